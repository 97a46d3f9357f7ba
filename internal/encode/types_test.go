package encode_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/dataset/datasettest"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// Every type, with NULLs and without, as libraries and servers read it. A value is nil, the int64 of rows.Vector.Ints, or
// bytes.

// typedSchema has every type that a format carries, but lists; TestBytesOfEveryFormat has those without NULLs.
func typedSchema(f batch.Format) rows.Schema { return schemaWithout(f, rows.Float32s, rows.Arrays) }

// schemaWithout has every type that a format carries, but some.
func schemaWithout(f batch.Format, lacks ...rows.Type) rows.Schema {
	if textOnly(f) {
		lacks = append(lacks, rows.Bytes)
	}
	if f == batch.DorisCSV {
		lacks = append(lacks, rows.JSON)
	}
	s := backendtest.EveryType(lacks...)
	for i, c := range s.Columns {
		s.Columns[i].Plain = f == batch.DorisCSV && c.Type.Variable()
	}
	return s
}

func f4(f float32) int64 { return int64(math.Float32bits(f)) }
func f8(f float64) int64 { return int64(math.Float64bits(f)) }

// typedRows are rows of a typed schema: those that every server takes, and what only an encoder has to get right.
func typedRows(f batch.Format, s rows.Schema) (all [][]any) {
	const at = 1_577_836_800_000_001
	values := append(slices.Clone(backendtest.EveryValue),
		map[string]any{
			"whole": int64(-5), "yes": int64(0), "f8": f8(-2.2250738585072014e-308), "tz": int64(at + 1), "day": int64(0),
			"words": []byte("NULL"), "mood": []byte("sad"), "raw": []byte(`\N`),
		},
		map[string]any{
			"small": int64(0), "f4": f4(21.5625), "f8": f8(-0.0625), "u": bytes.Repeat([]byte{0, 0x7F}, 8), "ts": int64(at),
			"tz": int64(-1), "amount": int64(12345), "code": []byte("x y"), "doc": []byte("null"),
		})
	if f == batch.TSV || f == batch.Values { // MySQL's TIMESTAMP begins in 1970
		values[len(values)-1]["tz"] = int64(at)
	}
	if f == batch.DorisCSV { // Plain
		values[0] = maps.Clone(values[0])
		values[0]["words"], values[0]["mood"] = []byte("N"), []byte("sad")
	}

	for _, n := range []int{len(values), 61, 64, 1000} { // words of NULLs, and bytes of them
		for i := range n {
			all = append(all, backendtest.EveryRow(s, values[i%len(values)], len(all)+1))
		}
	}
	return all
}

// typed encodes the typed rows, in pieces.
func typed(t testing.TB, f batch.Format) (rows.Schema, [][]any, []byte) {
	return typedAs(t, f, typedSchema(f))
}

func typedAs(t testing.TB, f batch.Format, s rows.Schema) (rows.Schema, [][]any, []byte) {
	values := typedRows(f, s)
	block := func(rows [][]any) *rows.Block { return backendtest.Block(s, rows) }
	buf, _ := whole(newEncoder(t, f, s), block(values[:3]), block(values[3:70]), block(values[70:]))
	return s, values, buf
}

// asText is a value as PostgreSQL writes it, whatever reads it: nil is a NULL.
func asText(c rows.Column, v any) any {
	switch x := v.(type) {
	case string:
		return x
	case []byte:
		switch c.Type {
		case rows.UUID:
			h := hex.EncodeToString(x)
			return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
		case rows.Wide:
			return c.TextOf(x)
		case rows.JSON:
			return canonical(string(x))
		case rows.Float32s, rows.Arrays:
			return listText(c, x)
		}
		return string(x)
	case int64:
		switch c.Type {
		case rows.Bool:
			return strconv.FormatBool(x == 1)
		case rows.Float32: // the exact number
			return strconv.FormatFloat(float64(math.Float32frombits(uint32(x))), 'g', -1, 64)
		case rows.Float64:
			return strconv.FormatFloat(math.Float64frombits(uint64(x)), 'g', -1, 64)
		case rows.Time:
			c.Scale = 0
		case rows.TimestampTZ, rows.Timestamp:
			return time.UnixMicro(x).UTC().Format("2006-01-02 15:04:05.000000")
		}
		return c.Text(x)
	}
	return nil
}

// listText is a list as a JSON array of what asText returns of its elements.
func listText(c rows.Column, value []byte) string {
	list := []any{}
	if c.Type == rows.Float32s {
		for ; len(value) > 0; value = value[rows.FloatBytes:] {
			list = append(list, asText(rows.Column{Type: rows.Float32}, int64(binary.LittleEndian.Uint32(value))))
		}
	} else {
		one := rows.Vector{Type: c.Of.Type}
		for len(value) > 0 {
			value = one.TakeElement(value)
			list = append(list, asText(*c.Of, one.At(0)))
		}
	}
	text, _ := json.Marshal(list)
	return string(text)
}

// canonical writes a JSON document in one way, with numbers as they are, but for the zeros at the end of a fraction,
// which MySQL does not keep.
func canonical(text string) string {
	var v any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return "not JSON: " + text
	}
	out, _ := json.Marshal(shortNumbers(v))
	return string(out)
}

func shortNumbers(v any) any {
	switch x := v.(type) {
	case json.Number:
		if strings.Contains(x.String(), ".") {
			return json.Number(strings.TrimRight(strings.TrimRight(x.String(), "0"), "."))
		}
	case []any:
		for i := range x {
			x[i] = shortNumbers(x[i])
		}
	case map[string]any:
		for name := range x {
			x[name] = shortNumbers(x[name])
		}
	}
	return v
}

// read brings what a reader found into the form of asText.
func read(t testing.TB, c rows.Column, text string) any {
	switch c.Type {
	case rows.Int64, rows.Int32, rows.Int16, rows.Uint16, rows.Uint32:
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		require.NoError(t, err)
		return strconv.FormatInt(n, 10)
	case rows.Bool:
		return map[string]string{"t": "true", "1": "true", "true": "true", "f": "false", "0": "false", "false": "false"}[text]
	case rows.Float32:
		f, err := strconv.ParseFloat(text, 32)
		require.NoError(t, err)
		return strconv.FormatFloat(f, 'g', -1, 64)
	case rows.Float64:
		f, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		return strconv.FormatFloat(f, 'g', -1, 64)
	case rows.JSON:
		return canonical(text)
	case rows.Char:
		return strings.TrimRight(text, " ")
	case rows.TimestampTZ:
		return strings.TrimSuffix(text, "+00:00")
	}
	return text
}

// requireTyped compares all rows with what was read: nil or string.
func requireTyped(t testing.TB, s rows.Schema, want, got [][]any) {
	require.Len(t, got, len(want))
	for i := range want {
		for c, column := range s.Columns {
			w := asText(column, want[i][c])
			g := got[i][c]
			if text, is := g.(string); is {
				g = read(t, column, text)
			}
			require.Equal(t, w, g, "row %d, column %s", i, column.Name)
		}
	}
}

// decode reads what an encoder wrote by a library, in the form of requireTyped. want says which documents are NULL,
// which in NDJSON is a document, too.
func decode(t testing.TB, f batch.Format, s rows.Schema, want [][]any, buf []byte) [][]any {
	switch f {
	case batch.CSV:
		return readLists(t, s, readCSV(t, buf))
	case batch.DorisCSV:
		return readLists(t, s, readDorisCSV(buf))
	case batch.NDJSON:
		return readLists(t, s, readNDJSON(t, s, want, buf))
	case batch.Parquet:
		return readParquet(t, s, buf)
	case batch.ColumnArrays:
		return readColumns(t, s, len(want), buf)
	default:
		return nil
	}
}

func readCSV(t testing.TB, buf []byte) [][]any {
	// encoding/csv does not say what was quoted, so a NULL is looked for by its bytes; and it drops a CR before an LF.
	marked := bytes.ReplaceAll(buf, []byte(`"\N"`), []byte(`"<backslash>N"`))
	marked = bytes.ReplaceAll(marked, []byte("\r"), []byte("<return>"))
	records, err := csv.NewReader(bytes.NewReader(marked)).ReadAll()
	require.NoError(t, err)
	return fields(records, func(text string) any {
		if text == `\N` {
			return nil
		}
		return strings.NewReplacer("<backslash>", `\`, "<return>", "\r").Replace(text)
	})
}

func readDorisCSV(buf []byte) [][]any {
	var records [][]string
	for line := range strings.SplitSeq(strings.TrimSuffix(string(buf), "\x02"), "\x02") {
		records = append(records, strings.Split(line, "\x01"))
	}
	return fields(records, func(text string) any {
		if text == `\N` {
			return nil
		}
		return text
	})
}

func fields(records [][]string, value func(string) any) (all [][]any) {
	for _, r := range records {
		var row []any
		for _, text := range r {
			row = append(row, value(text))
		}
		all = append(all, row)
	}
	return all
}

func readNDJSON(t testing.TB, s rows.Schema, want [][]any, buf []byte) (got [][]any) {
	for line := range strings.SplitSeq(strings.TrimSuffix(string(buf), "\n"), "\n") {
		var object map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(line), &object), line)
		var row []any
		for i, c := range s.Columns {
			var text string
			raw := object[c.Name]
			switch {
			case string(raw) == "null" && (c.Type != rows.JSON || want[len(got)][i] == nil):
				row = append(row, nil)
				continue
			case c.Type == rows.JSON:
				text = string(raw)
			case raw[0] == '"':
				require.NoError(t, json.Unmarshal(raw, &text))
			default:
				text = string(raw)
			}
			row = append(row, text)
		}
		got = append(got, row)
	}
	return got
}

// readLists brings lists into the form of asText.
func readLists(t testing.TB, s rows.Schema, all [][]any) [][]any {
	for _, row := range all {
		for i, c := range s.Columns {
			if text, is := row[i].(string); is && c.Type.IsList() {
				row[i] = listFromReader(t, c, elementsOf(t, text))
			}
		}
	}
	return all
}

// elementsOf returns the texts of a JSON array's elements, and any other text as it is.
func elementsOf(t testing.TB, text string) any {
	if !strings.HasPrefix(text, "[") {
		return text
	}

	var raw []json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(text), &raw), text)
	list := []any{}
	for _, one := range raw {
		var element any
		require.NoError(t, json.Unmarshal(one, &element))
		if _, is := element.(string); !is && element != nil {
			element = string(one)
		}
		list = append(list, element)
	}
	return list
}

func TestTypesAsParquet(t *testing.T) {
	s, want, buf := typed(t, batch.Parquet)
	f, err := parquet.OpenFile(bytes.NewReader(buf), int64(len(buf)))
	require.NoError(t, err)
	assert.Equal(t, `message schema {
	required int32 id (INT(32,true));
	required binary ref (STRING);
	required int64 moment (TIMESTAMP(isAdjustedToUTC=true,unit=MICROS));
	optional int64 big (INT(64,true));
	optional int32 whole (INT(32,true));
	optional int32 small (INT(16,true));
	optional boolean yes;
	optional float f4;
	optional double f8;
	optional binary u (STRING);
	optional int64 tz (TIMESTAMP(isAdjustedToUTC=true,unit=MICROS));
	optional int64 ts (TIMESTAMP(isAdjustedToUTC=false,unit=MICROS));
	optional int32 day (DATE);
	optional binary words (STRING);
	optional binary raw;
	optional binary code (STRING);
	optional binary mood (STRING);
	optional binary doc (STRING);
	optional int64 clock (TIME(isAdjustedToUTC=false,unit=MICROS));
	optional int32 u2 (INT(16,false));
	optional int32 u4 (INT(32,false));
	optional int64 u8 (INT(64,false));
	optional fixed_len_byte_array(16) tall (DECIMAL(38,10));
	optional fixed_len_byte_array(16) whole38 (DECIMAL(38,0));
	optional int64 amount (DECIMAL(9,2));
}`, f.Schema().String())
	requireTyped(t, s, want, readParquet(t, s, buf))
}

func readParquet(t testing.TB, s rows.Schema, buf []byte) (got [][]any) {
	f, err := parquet.OpenFile(bytes.NewReader(buf), int64(len(buf)))
	require.NoError(t, err)
	reader := f.RowGroups()[0].Rows()
	defer func() { _ = reader.Close() }()
	for buf := make([]parquet.Row, 64); ; {
		n, err := reader.ReadRows(buf)
		for _, row := range buf[:n] {
			var values []any
			row.Range(func(i int, of []parquet.Value) bool {
				values = append(values, parquetText(s.Columns[i], of))
				return true
			})
			got = append(got, values)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
	return got
}

// parquetText is asText of a column's values in a row: those of its elements, if it is a list.
func parquetText(c rows.Column, values []parquet.Value) any {
	v := values[0]
	switch {
	case c.Type.IsList():
		return parquetListText(c, values)
	case v.IsNull():
		return nil
	case v.Kind() == parquet.Boolean:
		return strconv.FormatBool(v.Boolean())
	case v.Kind() == parquet.Float:
		return strconv.FormatFloat(float64(v.Float()), 'g', -1, 64)
	case v.Kind() == parquet.Double:
		return strconv.FormatFloat(v.Double(), 'g', -1, 64)
	case c.Type == rows.Uint32:
		return asText(c, int64(v.Uint32()))
	case c.Type == rows.Wide:
		return asText(c, v.ByteArray())
	case v.Kind() == parquet.Int32:
		return asText(c, int64(v.Int32()))
	case v.Kind() == parquet.Int64:
		return asText(c, v.Int64())
	default:
		return string(v.ByteArray())
	}
}

func parquetListText(c rows.Column, values []parquet.Value) any {
	empty, of := 0, rows.Column{Type: rows.Float32}
	if c.Nullable {
		empty = 1
	}
	if c.Of != nil {
		of = *c.Of
	}
	if values[0].DefinitionLevel() < empty {
		return nil
	}

	list := []any{}
	for _, v := range values {
		if v.DefinitionLevel() > empty {
			list = append(list, parquetText(of, []parquet.Value{v}))
		}
	}
	text, _ := json.Marshal(list)
	return string(text)
}

func readColumns(t testing.TB, s rows.Schema, n int, buf []byte) (got [][]any) {
	c, err := (&batch.Batch{Format: batch.ColumnArrays, Rows: int64(n), Encoded: buf}).Columns(s)
	require.NoError(t, err)
	for _, row := range plain(c.Vectors, n) {
		for i := range row {
			row[i] = asText(s.Columns[i], row[i])
		}
		got = append(got, row)
	}
	return got
}

// plain returns the values of vectors as those of typedRows are: nil, an int64, or bytes.
func plain(columns []rows.Vector, n int) (all [][]any) {
	for i := range n {
		var row []any
		for c := range columns {
			v := columns[c].At(i)
			if raw, is := v.([]byte); is {
				v = bytes.Clone(raw)
			}
			row = append(row, v)
		}
		all = append(all, row)
	}
	return all
}

func TestTypes(t *testing.T) {
	for _, f := range []batch.Format{batch.CSV, batch.DorisCSV, batch.NDJSON, batch.ColumnArrays} {
		t.Run(string(f), func(t *testing.T) {
			s, want, buf := typed(t, f)
			requireTyped(t, s, want, decode(t, f, s, want, buf))
		})
	}
}

// TestRandomSpecs: what a library reads of any spec's rows are their values.
func TestRandomSpecs(t *testing.T) {
	random := rand.New(rand.NewPCG(39, 4))
	for k := range 60 {
		text, s, b := randomRows(t, random)
		for _, f := range []batch.Format{batch.CSV, batch.DorisCSV, batch.NDJSON, batch.Parquet, batch.ColumnArrays} {
			if encode.Carries(f, s) != nil {
				continue
			}
			t.Run(fmt.Sprintf("%d/%s", k, f), func(t *testing.T) {
				defer func() {
					if t.Failed() {
						t.Log(text)
					}
				}()
				want := plain(b.Columns, b.Rows)
				buf, _ := whole(newEncoder(t, f, s), b)
				requireTyped(t, s, want, decode(t, f, s, want, buf))
			})
		}
	}
}

// randomRows returns some rows of a random spec, and its text.
func randomRows(t testing.TB, random *rand.Rand) (string, rows.Schema, *rows.Block) {
	text := datasettest.Spec(random)
	spec, err := dataset.ParseSpec("random.yaml", []byte(text), nil)
	require.NoError(t, err, text)
	d, err := spec.Compile(random.Uint64())
	require.NoError(t, err)
	s, b := d.Schema(), rows.NewBlock(d.Schema())
	d.Fill(b, random.Int64N(1<<40), 200)
	d.Derive(b, random.Int64N(s.MaxNumber()-200)>>random.IntN(40))
	return text, s, b
}

// withoutLists leaves out vectors and arrays, which the tests of the back-ends read back from servers.
func withoutLists(text string, s rows.Schema, b *rows.Block) (string, rows.Schema, *rows.Block) {
	few, of := &rows.Block{Rows: b.Rows}, s.Columns
	s.Columns = nil
	for i, c := range of {
		if !c.Type.IsList() {
			s.Columns, few.Columns = append(s.Columns, c), append(few.Columns, b.Columns[i])
		}
	}
	return text, s, few
}

// Derived columns of the new types are stamped as they are encoded.
func TestTypesAreStamped(t *testing.T) {
	for _, f := range uncompressed() {
		s := typedSchema(f)
		values := typedRows(f, s)
		others := make([][]any, len(values))
		for i, row := range values {
			others[i] = append([]any{int64(9), bytes.Repeat([]byte{0x17}, 16), int64(0)}, row[3:]...)
		}
		e := newEncoder(t, f, s)
		want, _ := whole(e, backendtest.Block(s, values))
		got, at := whole(e, backendtest.Block(s, others))
		e.(encode.Stamper).Stamp(got, at, 0, backendtest.Block(s, values[:64]))
		e.(encode.Stamper).Stamp(got, at, 64, backendtest.Block(s, values[64:]))
		require.Equal(t, want, got, "%s", f)
	}
}

// What a format would cut off or could not say stops the run.
func TestValuesBeyondTheirTypesPanic(t *testing.T) {
	for _, f := range uncompressed() {
		for typ, value := range map[rows.Type]int64{
			rows.Int16: 1 << 15, rows.Int32: -1<<31 - 1, rows.Bool: 2, rows.Float64: f8(math.Inf(1)), rows.Float32: f4(float32(math.NaN())),
			rows.Uint16: 1 << 16, rows.Uint32: -1, rows.Time: 86_400_000_000,
		} {
			s := rows.Schema{Dataset: "d", Columns: []rows.Column{{Name: "id", Type: rows.Int64, Derived: true}, {Name: "c", Type: typ}}}
			e := newEncoder(t, f, s)
			write := func() { whole(e, backendtest.Block(s, [][]any{{int64(1), value}})) }
			if typ.IsInteger() && f != batch.PGBinary && f != batch.Parquet && f != batch.ColumnArrays {
				require.NotPanics(t, write, "%s %s: the server refuses it", f, typ)
				continue
			}
			require.Panics(t, write, "%s %s", f, typ)
		}
		for _, c := range []rows.Column{
			{Name: "c", Type: rows.Int64, Derived: true, Nullable: true}, {Name: "c", Type: rows.Bool, Derived: true},
			{Name: "c", Type: rows.Float64, Derived: true},
		} {
			require.ErrorContains(t, encode.Carries(f, rows.Schema{Columns: []rows.Column{c}}), "cannot be stamped", "%s", f)
		}
	}
}

func TestTypesInPostgres(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), backendtest.Server(t, "TERAPUSH_TEST_POSTGRES"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	for _, f := range []batch.Format{batch.CSV, batch.PGBinary, batch.PGText, batch.PGValues} {
		t.Run(string(f), func(t *testing.T) {
			s, want, buf := typed(t, f)
			tx, err := conn.Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = tx.Rollback(t.Context()) }()
			_, err = tx.Exec(t.Context(), `CREATE TYPE pg_temp.mood AS ENUM ('sad', 'o''k', 'so, so')`)
			require.NoError(t, err)
			_, err = tx.Exec(t.Context(), `CREATE TEMPORARY TABLE records (id int4 PRIMARY KEY, ref uuid NOT NULL, moment timestamptz NOT NULL,
				big int8, whole int4, small int2, yes bool, f4 float4, f8 float8, u uuid, tz timestamptz, ts timestamp, day date,
				words text, raw bytea, code char(6), mood pg_temp.mood, doc jsonb, clock time, u2 int4, u4 int8, u8 numeric(20), tall numeric(38,10),
				whole38 numeric(38), amount numeric(9,2))`)
			require.NoError(t, err)
			_, err = tx.Exec(t.Context(), "SET LOCAL timezone = 'Asia/Tokyo'")
			require.NoError(t, err)
			names := strings.Join(s.Names(), ", ")
			if f == batch.CSV {
				_, err = conn.PgConn().CopyFrom(t.Context(), bytes.NewReader(buf), "COPY records ("+names+`) FROM STDIN (FORMAT csv, NULL '\N')`)
			} else {
				_, err = loadPostgres(t.Context(), conn, f, buf)
			}
			require.NoError(t, err)

			requireTyped(t, s, want, fetchPostgres(t, tx, s, "id"))
		})
	}
}

// fetchPostgres reads the table records.
func fetchPostgres(t testing.TB, tx pgx.Tx, s rows.Schema, order string) [][]any {
	asText := make([]string, len(s.Columns))
	for i, c := range s.Columns {
		asText[i] = "CAST(" + c.Name + " AS text)"
		switch c.Type {
		case rows.Timestamp:
			asText[i] = "to_char(" + c.Name + ", 'YYYY-MM-DD HH24:MI:SS.US')"
		case rows.Time:
			asText[i] = "to_char(" + c.Name + ", 'HH24:MI:SS.US')"
		case rows.TimestampTZ:
			asText[i] = "to_char(" + c.Name + " AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')"
		case rows.Bytes:
			asText[i] = "encode(" + c.Name + ", 'hex')"
		}
	}
	found, err := tx.Query(t.Context(), "SELECT "+strings.Join(asText, ", ")+" FROM records ORDER BY records."+order)
	require.NoError(t, err)
	got := scanned(t, len(s.Columns), found.Next, found.Scan)
	require.NoError(t, found.Err())
	for _, row := range got {
		for i, c := range s.Columns {
			if c.Type == rows.Bytes && row[i] != nil {
				raw, err := hex.DecodeString(row[i].(string))
				require.NoError(t, err)
				row[i] = string(raw)
			}
		}
	}
	return got
}

// define lists a schema's columns as a server declares them.
func define(s rows.Schema, types map[rows.Type]string) string {
	var all []string
	for _, c := range s.Columns {
		name := types[c.Type]
		switch c.Type {
		case rows.Decimal, rows.Wide:
			name += fmt.Sprintf("(%d,%d)", c.Digits, c.Scale)
		case rows.Char:
			name += fmt.Sprintf("(%d)", c.MaxBytes)
		}
		all = append(all, c.Name+" "+name)
	}
	return strings.Join(all, ", ")
}

// TestRandomSpecsInPostgres: what PostgreSQL reads of any spec's rows are their values.
func TestRandomSpecsInPostgres(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), backendtest.Server(t, "TERAPUSH_TEST_POSTGRES"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	types := map[rows.Type]string{
		rows.Int64: "int8", rows.Int32: "int4", rows.Int16: "int2", rows.Bool: "bool", rows.Float32: "float4",
		rows.Float64: "float8", rows.UUID: "uuid", rows.TimestampTZ: "timestamptz", rows.Timestamp: "timestamp",
		rows.Date: "date", rows.Decimal: "numeric", rows.Text: "text", rows.Enum: "text", rows.Char: "char",
		rows.JSON: "jsonb", rows.Bytes: "bytea", rows.Time: "time", rows.Uint16: "int4", rows.Uint32: "int8", rows.Uint64: "numeric",
		rows.Wide: "numeric",
	}
	random := rand.New(rand.NewPCG(39, 5))
	for range 25 {
		text, s, b := withoutLists(randomRows(t, random))
		for _, f := range []batch.Format{batch.CSV, batch.PGBinary, batch.PGText, batch.PGValues} {
			if encode.Carries(f, s) != nil {
				continue
			}
			tx, err := conn.Begin(t.Context())
			require.NoError(t, err)
			_, err = tx.Exec(t.Context(), "CREATE TEMPORARY TABLE records ("+define(s, types)+", place bigserial)")
			require.NoError(t, err, text)
			buf, _ := whole(newEncoder(t, f, s), b)
			names := " (" + strings.Join(s.Names(), ", ") + ") "
			switch f {
			case batch.PGValues:
				_, err = conn.PgConn().Exec(t.Context(), "INSERT INTO records"+names+"VALUES "+string(buf)).ReadAll()
			default:
				options := map[batch.Format]string{batch.CSV: ` (FORMAT csv, NULL '\N')`, batch.PGBinary: " (FORMAT binary)"}[f]
				_, err = conn.PgConn().CopyFrom(t.Context(), bytes.NewReader(buf), "COPY records"+names+"FROM STDIN"+options)
			}
			require.NoError(t, err, "%s\n%s", f, text)
			requireTyped(t, s, plain(b.Columns, b.Rows), fetchPostgres(t, tx, s, "place"))
			require.NoError(t, tx.Rollback(t.Context()))
		}
	}
}

func TestTypesInMySQL(t *testing.T) {
	for _, variable := range []string{"TERAPUSH_TEST_MARIADB", "TERAPUSH_TEST_MYSQL", "TERAPUSH_TEST_TIDB", "TERAPUSH_TEST_OCEANBASE"} {
		for _, f := range []batch.Format{batch.TSV, batch.Values} {
			t.Run(variable+"/"+string(f), func(t *testing.T) { typesInMySQL(t, variable, f) })
		}
	}
}

// mysqlConn connects to a server of that protocol, in UTC.
func mysqlConn(t *testing.T, variable string) *sql.Conn {
	address, err := url.Parse(backendtest.Server(t, variable))
	require.NoError(t, err)
	config := mysql.NewConfig()
	config.Net, config.Addr, config.DBName = "tcp", address.Host, strings.TrimPrefix(address.Path, "/")
	config.User = address.User.Username()
	config.Passwd, _ = address.User.Password()
	config.Params = map[string]string{"time_zone": "'+00:00'"}
	connector, err := mysql.NewConnector(config)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func typesInMySQL(t *testing.T, variable string, f batch.Format) {
	conn := mysqlConn(t, variable)
	s, want, buf := typed(t, f)
	table := fmt.Sprintf("typed_%d", time.Now().UnixNano())
	_, err := conn.ExecContext(t.Context(), "CREATE TABLE "+table+` (id INT PRIMARY KEY, ref CHAR(36) NOT NULL,
		moment TIMESTAMP(6) NOT NULL, big BIGINT, whole INT, small SMALLINT, yes TINYINT(1), f4 FLOAT, f8 DOUBLE,
		u CHAR(36), tz TIMESTAMP(6) NULL, ts DATETIME(6), day DATE, words LONGTEXT CHARACTER SET utf8mb4, raw LONGBLOB,
		code CHAR(6) CHARACTER SET utf8mb4, mood ENUM('sad', 'o''k', 'so, so'), doc JSON,
		clock TIME(6), u2 SMALLINT UNSIGNED, u4 INT UNSIGNED, u8 BIGINT UNSIGNED, tall DECIMAL(38,10), whole38 DECIMAL(38), amount DECIMAL(9,2))`)
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = conn.ExecContext(context.Background(), "DROP TABLE "+table) })
	charset := "binary"
	if variable == "TERAPUSH_TEST_OCEANBASE" {
		charset = "utf8mb4"
	}
	require.NoError(t, loadMySQL(t, conn, table, charset, s, f, buf))

	got := fetchMySQL(t, conn, table, s, "id")
	if f == batch.TSV && strings.HasSuffix(variable, "OCEANBASE") {
		for _, row := range want { // an empty last field is a NULL to it, which its back-end refuses
			if last := len(row) - 1; row[last] == "" {
				row[last] = nil
			}
		}
	}
	requireTyped(t, s, want, got)
}

// loadMySQL sends encoded rows. Documents are made of texts, whatever the character set of all else.
func loadMySQL(t *testing.T, conn *sql.Conn, table, charset string, s rows.Schema, f batch.Format, buf []byte) error {
	if f == batch.Values {
		names := strings.Join(s.Names(), ", ")
		_, err := conn.ExecContext(t.Context(), "INSERT INTO "+table+" ("+names+") VALUES "+string(buf))
		return err
	}

	mysql.RegisterReaderHandler(t.Name(), func() io.Reader { return bytes.NewReader(buf) })
	defer mysql.DeregisterReaderHandler(t.Name())
	names, documents := s.Names(), []string(nil)
	for i, c := range s.Columns {
		if c.Type == rows.JSON {
			names[i] = "@" + c.Name
			documents = append(documents, c.Name+" = CONVERT(@"+c.Name+" USING utf8mb4)")
		}
	}
	statement := fmt.Sprintf("LOAD DATA LOCAL INFILE 'Reader::%s' INTO TABLE %s CHARACTER SET %s (%s)",
		t.Name(), table, charset, strings.Join(names, ", "))
	if documents != nil {
		statement += " SET " + strings.Join(documents, ", ")
	}
	_, err := conn.ExecContext(t.Context(), statement)
	return err
}

func fetchMySQL(t *testing.T, conn *sql.Conn, table string, s rows.Schema, order string) [][]any {
	asText := make([]string, len(s.Columns))
	for i, c := range s.Columns {
		asText[i] = c.Name
		if c.Type == rows.Float32 { // FLOAT is shown with six digits
			asText[i] = c.Name + " + 0e0"
		}
	}
	found, err := conn.QueryContext(t.Context(), "SELECT "+strings.Join(asText, ", ")+" FROM "+table+" ORDER BY "+order)
	require.NoError(t, err)
	got := scanned(t, len(s.Columns), found.Next, found.Scan)
	require.NoError(t, found.Err())
	return got
}

// TestRandomSpecsInMySQL: what MySQL and MariaDB read of any spec's rows are their values.
func TestRandomSpecsInMySQL(t *testing.T) {
	types := map[rows.Type]string{
		rows.Int64: "BIGINT", rows.Int32: "INT", rows.Int16: "SMALLINT", rows.Bool: "TINYINT(1)", rows.Float32: "FLOAT",
		rows.Float64: "DOUBLE", rows.UUID: "CHAR(36)", rows.TimestampTZ: "DATETIME(6)", rows.Timestamp: "DATETIME(6)", // a TIMESTAMP ends in 2038
		rows.Date: "DATE", rows.Decimal: "DECIMAL", rows.Text: "LONGTEXT", rows.Enum: "TEXT", rows.Char: "CHAR",
		rows.JSON: "JSON", rows.Bytes: "LONGBLOB", rows.Time: "TIME(6)", rows.Uint16: "SMALLINT UNSIGNED", rows.Uint32: "INT UNSIGNED",
		rows.Uint64: "BIGINT UNSIGNED", rows.Wide: "DECIMAL",
	}
	for _, variable := range []string{"TERAPUSH_TEST_MARIADB", "TERAPUSH_TEST_MYSQL"} {
		t.Run(variable, func(t *testing.T) {
			conn, random := mysqlConn(t, variable), rand.New(rand.NewPCG(39, 6))
			table := fmt.Sprintf("random_%d", time.Now().UnixNano())
			t.Cleanup(func() { _, _ = conn.ExecContext(context.Background(), "DROP TABLE IF EXISTS "+table) })
			for range 15 {
				text, s, b := withoutLists(randomRows(t, random))
				for _, f := range []batch.Format{batch.TSV, batch.Values} {
					_, err := conn.ExecContext(t.Context(), "CREATE TABLE "+table+" ("+define(s, types)+
						", place BIGINT AUTO_INCREMENT PRIMARY KEY) CHARACTER SET utf8mb4")
					require.NoError(t, err, text)
					buf, _ := whole(newEncoder(t, f, s), b)
					require.NoError(t, loadMySQL(t, conn, table, "binary", s, f, buf), "%s\n%s", f, text)
					requireTyped(t, s, plain(b.Columns, b.Rows), fetchMySQL(t, conn, table, s, "place"))
					_, err = conn.ExecContext(t.Context(), "DROP TABLE "+table)
					require.NoError(t, err)
				}
			}
		})
	}
}

// scanned reads rows of nullable texts.
func scanned(t testing.TB, columns int, next func() bool, scan func(...any) error) (all [][]any) {
	for next() {
		values, into := make([]*string, columns), make([]any, columns)
		for i := range values {
			into[i] = &values[i]
		}
		require.NoError(t, scan(into...))
		row := make([]any, columns)
		for i, v := range values {
			if v != nil {
				row[i] = *v
			}
		}
		all = append(all, row)
	}
	return all
}
