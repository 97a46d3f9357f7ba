package dataset

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/rows"
)

// sampling compiles a spec with the columns, beside files in its folder.
func sampling(t *testing.T, columns string, files map[string]string) (*Spec, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return ParseSpec(filepath.Join(dir, "s.yaml"), []byte("version: 1\nkey: [id]\ncolumns:\n  id: {type: bigint, sequence: {}}\n"+columns), nil)
}

// samples returns the different rows of a dataset but for their first column.
func samples(t *testing.T, s *Spec) map[string]int {
	t.Helper()
	d, err := s.Compile(3)
	require.NoError(t, err)
	block := rows.NewBlock(d.Schema())
	d.Fill(block, 0, 500)
	all := map[string]int{}
	for i := range 500 {
		var row []string
		for c, of := range d.Schema().Columns[1:] {
			v := &block.Columns[c+1]
			switch {
			case v.IsNull(i):
				row = append(row, "NULL")
			case of.Type == rows.UUID:
				row = append(row, UUIDText(v.UUID(i)))
			case of.Type == rows.Wide:
				row = append(row, of.TextOf(v.UUID(i)))
			case of.Type.Variable():
				row = append(row, fmt.Sprintf("%q", v.Value(i)))
			default:
				row = append(row, of.Text(v.Ints[i]))
			}
		}
		all[strings.Join(row, " ")]++
	}
	return all
}

// Rows come whole from the file, as its author wrote them, and all of them do.
func TestSamplesAreWholeRows(t *testing.T) {
	const columns = `  name: {type: text(80), sample: f}
  town: {type: text, sample: {file: f, column: city}}
  born: {type: date, sample: f}
  total: {type: "decimal(6,2)", sample: f}
  uid: {type: uuid, sample: f}
  wide: {type: "decimal(38,10)", sample: {file: f, column: total}}
`
	uid := func(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-00000000000%d", n) }
	want := map[string]bool{
		`"Ann \"A\", x" "two\nlines" 1980-01-02 3.50 ` + uid(1) + " 3.5000000000": true,
		`"Bob" "" NULL -1.25 ` + uid(2) + " -1.2500000000":                        true,
		`NULL "Köln" 1999-12-31 7.00 ` + uid(3) + " 7.0000000000":                 true,
	}
	csv := "\xef\xbb\xbfname,city,born,total,uid\r\n\"Ann \"\"A\"\", x\",\"two\r\nlines\",1980-01-02,3.50," + uid(1) + "\r\n" +
		"Bob,\"\",,-1.25," + uid(2) + "\r\n,Köln,1999-12-31,7,{" + strings.ToUpper(strings.ReplaceAll(uid(3), "-", "")) + "}"
	for name, text := range map[string]string{"f.csv": csv, "f.TSV": strings.NewReplacer("Ann", "Ann", ", x", ", x", ",", "\t", "\t x", ", x").Replace(csv)} {
		s, err := sampling(t, strings.ReplaceAll(columns, ": f", ": "+name), map[string]string{name: text})
		require.NoError(t, err, name)
		found := samples(t, s)
		require.Len(t, found, len(want), name)
		for row, n := range found {
			require.True(t, want[row], row)
			require.Greater(t, n, 100, "all rows are drawn equally often")
		}
	}
}

// A Parquet file's values are what its logical types say.
func TestSamplesOfParquet(t *testing.T) {
	type row struct {
		Small int32   `parquet:"small"`
		Price int64   `parquet:"price,decimal(2:18)"`
		Day   int32   `parquet:"day,date"`
		At    int64   `parquet:"at,timestamp(millisecond)"`
		Text  *string `parquet:"text,optional"`
		Raw   []byte  `parquet:"raw"`
		Half  float64 `parquet:"half"`
		Is    bool    `parquet:"is"`
	}
	text := "x,y"
	var file bytes.Buffer
	require.NoError(t, parquet.Write(&file, []row{
		{-7, -5, -1, 1_700_000_000_123, &text, []byte{0xff, 1}, -0.5, true}, {8, 1234567, 20454, 0, nil, []byte{2}, 2.25, false},
	}))
	columns := ""
	for name, kind := range map[string]string{
		"small": "int", "price": `"decimal(18,2)"`, "day": "date", "at": "timestamp", "text": "text", "raw": "bytes", "half": "double", "is": "boolean",
	} {
		columns += fmt.Sprintf("  %s: {type: %s, sample: f.parquet}\n", name, kind)
	}
	s, err := sampling(t, columns, map[string]string{"f.parquet": file.String()})
	require.NoError(t, err)
	found := samples(t, s)
	require.Len(t, found, 2)
	all := fmt.Sprint(found)
	for _, value := range []string{"-7", "-0.05", "1969-12-31", "2023-11-14 22:13:20.123000", `"x,y"`, `"\xff\x01"`, "12345.67", "2026-01-01", "NULL"} {
		require.Contains(t, all, value)
	}

	// As many digits as a decimal has here, and one more, which 16 bytes have room for.
	tall := parquet.Decimal(2, 38, parquet.FixedLenByteArrayType(16)).Type()
	for digits, want := range map[int]string{38: strings.Repeat("9", 36) + ".99", 39: ""} {
		n := new(big.Int).Sub(new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil), big.NewInt(int64(39-digits)))
		got, err := parquetText(parquet.FixedLenByteArrayValue(n.FillBytes(make([]byte, 16))), tall)
		require.Equal(t, want, got)
		require.Equal(t, want == "", err != nil)
	}

	type nested struct {
		List []int32 `parquet:"list,list"`
	}
	file.Reset()
	require.NoError(t, parquet.Write(&file, []nested{{[]int32{1}}}))
	_, err = sampling(t, "  list: {type: int, sample: f.parquet}\n", map[string]string{"f.parquet": file.String()})
	require.ErrorContains(t, err, "column list is nested: a sample has columns of single values")
}

// What is wrong with a file is told with file and line.
func TestMistakesInSamples(t *testing.T) {
	for text, want := range map[string]string{
		"a\n1\nx\n":                    "f.csv, line 3: x is no whole number of 64 bits",
		"a\n1\n99999999999999999999\n": "line 3: 99999999999999999999 is no whole number of 64 bits",
		"a,b\n1,2\n\n1\n":              "f.csv, line 4: it has another number of fields than the header, which has 2",
		"a\n\"1\n":                     "f.csv, line 2: extraneous or missing \" in quoted-field",
		"":                             "f.csv is empty: a sample has a header and rows",
		"a\n":                          "f.csv has a header and no rows",
		"b\n1\n":                       "f.csv: column a: did you mean b?",
		"aa\n1\n":                      "column a: did you mean aa?",
		"a,a\n1,1\n":                   "f.csv: the header has a twice",
		"a,\n1,1\n":                    "f.csv: column 2 of the header has no name",
		"a,b\n,1\n":                    "f.csv: all values of the column are NULL: leave it out",
		"a\n\xff\n":                    "f.csv, line 2: this is not UTF-8",
		"\xff\xfea\x00":                "f.csv is UTF-16",
		"\x1f\x8b":                     "f.csv is compressed: decompress it first",
		"PAR1":                         "f.csv: ",
	} {
		_, err := sampling(t, "  a: {type: bigint, sample: f.csv}\n", map[string]string{"f.csv": text})
		require.ErrorContains(t, err, want, "%q", text)
		require.ErrorContains(t, err, "s.yaml:5: column a: sample: ")
	}
	for column, want := range map[string]string{
		"{type: text, sample: none.csv}":                       "none.csv: no such file or directory",
		"{type: text(2), sample: f.csv}":                       "f.csv, line 2: long has 4 bytes, more than text(2)",
		"{type: text, sample: {file: f.csv, columns: [a]}}":    "write each column of the file as one of its own",
		"{type: text, sample: {column: a}}":                    "sample needs file",
		"{type: text, sample: f.csv, nulls: 5%}":               "NULLs and values are those of the file",
		"{type: text, sample: f.csv, distinct: 5}":             "NULLs and values are those of the file",
		"{type: double, sample: {file: f.csv, column: tenth}}": "f.csv, line 2: 0.1 is no multiple of 1/1048576",
		"{type: json, json: {a: {type: text, sample: f.csv}}}": "sample is for a column of its own",
		"{type: uuid, sample: f.csv}":                          "f.csv, line 2: long is no UUID",
	} {
		_, err := sampling(t, "  a: "+column+"\n", map[string]string{"f.csv": "a,tenth\nlong,0.1\n"})
		require.ErrorContains(t, err, want, column)
	}
}

// A file that was replaced since is refused by name; one that only lies elsewhere is the same dataset.
func TestSamplesThatChanged(t *testing.T) {
	one, err := sampling(t, "  a: {type: text, sample: f.csv}\n", map[string]string{"f.csv": "a\nx\ny\n"})
	require.NoError(t, err)
	other, err := sampling(t, "  a: {type: text, sample: f.csv}\n", map[string]string{"f.csv": "a\nx\ny\n"})
	require.NoError(t, err)
	require.Equal(t, one.Digest(), other.Digest())
	require.Empty(t, one.Differences(other))

	path := one.Columns[1].Generator.(*SpecSample).File
	require.NoError(t, os.WriteFile(path, []byte("a\nx\nz\n"), 0o600))
	_, err = one.Compile(11)
	require.ErrorContains(t, err, path+" has changed: the SHA-256 of its bytes was ")
	changed, err := sampling(t, "  a: {type: text, sample: f.csv}\n", map[string]string{"f.csv": "a\nx\nz\n"})
	require.NoError(t, err)
	require.NotEqual(t, one.Digest(), changed.Digest())
	require.NotEmpty(t, one.Differences(changed))

	require.NoError(t, os.Remove(path))
	_, err = one.Compile(12)
	require.ErrorContains(t, err, "no such file or directory: the run's rows are of this file, whose SHA-256 is ")
	require.ErrorContains(t, err, "put it back until the run is forgotten")
}

// A file that is longer than what is read at once has every row and line as it is, and what is no UTF-8 its line.
func TestLongSample(t *testing.T) {
	const rows = 3 * measuredRows
	var all strings.Builder
	all.WriteString("\xef\xbb\xbfa,b\r\n")
	for i := range rows {
		fmt.Fprintf(&all, [...]string{"x%d,\r\n", "\n\"y\n%d\",\"\"\n", ",ü%d\n"}[i%3], i)
	}
	text := all.String()
	path := filepath.Join(t.TempDir(), "f.csv")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	f, err := readSample(path)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%x", sha256.Sum256([]byte(text))), f.hash)
	require.Len(t, f.lines, rows)
	for i := range rows {
		a, b := string(f.columns[0].text(i)), string(f.columns[1].text(i))
		require.Equal(t, [...]string{fmt.Sprintf("x%d", i), fmt.Sprintf("y\n%d", i), ""}[i%3], a)
		require.Equal(t, [...]string{"", "", fmt.Sprintf("ü%d", i)}[i%3], b)
		require.Equal(t, []bool{i%3 == 2, i%3 == 0}, []bool{f.columns[0].nulls[i], f.columns[1].nulls[i]})
		require.Equal(t, 2+i/3*5+[...]int{0, 2, 4}[i%3], f.lines[i])
	}

	require.NoError(t, os.WriteFile(path, []byte(text+"z,\"\n\xff\"\n"), 0o600))
	_, err = readSample(path)
	require.EqualError(t, err, fmt.Sprintf("%s, line %d: this is not UTF-8", path, 2+rows/3*5+1))
}
