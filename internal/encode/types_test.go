package encode_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
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
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// Every type, with NULLs and without, as libraries and servers read it. A value is nil, the int64 of rows.Vector.Ints, or
// a string of bytes.

// typedColumns are one of every type that a format carries; TestBytesOfEveryFormat has those without NULLs.
func typedColumns(f batch.Format) []rows.Column {
	all := []rows.Column{
		{Name: "id", Type: rows.Int32, Derived: true},
		{Name: "ref", Type: rows.UUID, Derived: true},
		{Name: "moment", Type: rows.TimestampTZ, Derived: true},
		{Name: "big", Type: rows.Int64},
		{Name: "whole", Type: rows.Int32},
		{Name: "small", Type: rows.Int16},
		{Name: "yes", Type: rows.Bool},
		{Name: "f4", Type: rows.Float32},
		{Name: "f8", Type: rows.Float64},
		{Name: "u", Type: rows.UUID},
		{Name: "tz", Type: rows.TimestampTZ},
		{Name: "ts", Type: rows.Timestamp},
		{Name: "day", Type: rows.Date},
		{Name: "amount", Type: rows.Decimal, Digits: 9, Scale: 2},
		{Name: "words", Type: rows.Text, MaxBytes: 20, Plain: f == batch.DorisCSV},
		{Name: "code", Type: rows.Char, MaxBytes: 6, Plain: f == batch.DorisCSV},
		{Name: "mood", Type: rows.Enum, MaxBytes: 6, Labels: []string{"sad", "ok", "so, so"}, Plain: f == batch.DorisCSV},
	}
	if f != batch.DorisCSV {
		all = append(all, rows.Column{Name: "doc", Type: rows.JSON, MaxBytes: 40})
	}
	if !textOnly(f) {
		all = append(all, rows.Column{Name: "raw", Type: rows.Bytes, MaxBytes: 8})
	}
	for i := range all {
		all[i].Nullable = i > 2
	}
	return all
}

func f4(f float32) int64 { return int64(math.Float32bits(f)) }
func f8(f float64) int64 { return int64(math.Float64bits(f)) }

// typedRows are values for all typedColumns; formats that carry fewer go without the last ones.
func typedRows(f batch.Format) (all [][]any) {
	first, second := "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff", strings.Repeat("\xff", 16)
	const at = 1_577_836_800_000_001
	values := [][]any{
		{int64(math.MinInt64), int64(math.MinInt32), int64(math.MinInt16), int64(1), f4(-math.MaxFloat32), f8(-0.0625), first,
			int64(at), int64(at), int64(18262), int64(-999_999_999), "\\N", "a", "so, so", `{"a": "it's \"q\" \\ ü"}`, "\x00\\\n\xff"},
		{int64(math.MaxInt64), int64(math.MaxInt32), int64(math.MaxInt16), int64(0), f4(0.1), f8(1e300), second,
			int64(-1), int64(-1), int64(-1), int64(5), "", "", "sad", `[1.50, null, true]`, ""},
		make([]any, 16),
		{nil, int64(-5), nil, int64(0), nil, f8(-2.2250738585072014e-308), nil, int64(at + 1), nil, int64(0), nil, "NULL", nil, "ok", nil, "\\N"},
		{int64(7), nil, int64(0), nil, f4(21.5625), nil, first, nil, int64(at), nil, int64(12345), nil, "x y", nil, "null", nil},
	}
	if f == batch.TSV || f == batch.Values { // MySQL's TIMESTAMP begins in 1970
		values[1][7] = int64(at)
	}
	if f == batch.DorisCSV { // Plain
		values[0][11], values[0][13] = "N", "ok"
	}
	for i, v := range values {
		all = append(all, append([]any{int64(i + 1), second[:15] + string(rune('0'+i)), int64(at + i)}, v...))
	}
	for _, n := range []int{61, 64, 1000} { // words of NULLs, and bytes of them
		for i := range n {
			row := append([]any{}, all[i%5]...)
			row[0] = int64(len(all) + 1)
			all = append(all, row)
		}
	}
	return all
}

// block fills a block with values.
func block(s rows.Schema, values [][]any) *rows.Block {
	b := rows.NewBlock(s)
	b.Reset(len(values))
	for c := range s.Columns {
		v := &b.Columns[c]
		for i, row := range values {
			if row[c] == nil {
				if len(v.Nulls) == 0 {
					v.SetNulls(len(values))
				}
				v.Nulls[i/64] |= 1 << (i % 64)
			}
			text, _ := row[c].(string)
			switch {
			case v.Type.Variable():
				v.Data = append(v.Data, text...)
				v.Ends = append(v.Ends, uint32(len(v.Data)))
			case v.Type == rows.UUID:
				clear(v.UUID(i))
				copy(v.UUID(i), text)
			default:
				v.Ints[i], _ = row[c].(int64)
			}
		}
	}
	return b
}

// typed encodes the typed rows, in pieces.
func typed(t testing.TB, f batch.Format) (rows.Schema, [][]any, []byte) {
	s := rows.Schema{Dataset: "typed", Columns: typedColumns(f), Number: []rows.Term{{Times: 1}}}
	values := typedRows(f)
	for i := range values {
		values[i] = values[i][:len(s.Columns)]
	}
	buf, _ := whole(newEncoder(t, f, s), block(s, values[:3]), block(s, values[3:70]), block(s, values[70:]))
	return s, values, buf
}

// asText is a value as PostgreSQL writes it, whatever reads it: nil is a NULL.
func asText(c rows.Column, v any) any {
	switch x := v.(type) {
	case string:
		switch c.Type {
		case rows.UUID:
			h := hex.EncodeToString([]byte(x))
			return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
		case rows.JSON:
			return canonical(x)
		}
		return x
	case int64:
		switch c.Type {
		case rows.Bool:
			return strconv.FormatBool(x == 1)
		case rows.Float32: // the exact number
			return strconv.FormatFloat(float64(math.Float32frombits(uint32(x))), 'g', -1, 64)
		case rows.Float64:
			return strconv.FormatFloat(math.Float64frombits(uint64(x)), 'g', -1, 64)
		case rows.TimestampTZ, rows.Timestamp:
			return time.UnixMicro(x).UTC().Format("2006-01-02 15:04:05.000000")
		}
		return c.Text(x)
	}
	return nil
}

// canonical writes a JSON document in one way, with numbers as they are, but for one.
func canonical(text string) string {
	var v any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return "not JSON: " + text
	}
	out, _ := json.Marshal(v)
	return strings.Replace(string(out), "1.50", "1.5", 1) // as MySQL keeps it
}

// read brings what a reader found into the form of asText.
func read(t testing.TB, c rows.Column, text string) any {
	switch c.Type {
	case rows.Int64, rows.Int32, rows.Int16:
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

func TestTypesAsCSV(t *testing.T) {
	s, want, buf := typed(t, batch.CSV)
	// encoding/csv does not say what was quoted, so a NULL is looked for by its bytes.
	records, err := csv.NewReader(bytes.NewReader(bytes.ReplaceAll(buf, []byte(`"\N"`), []byte(`"<backslash>N"`)))).ReadAll()
	require.NoError(t, err)
	requireTyped(t, s, want, fields(records, func(text string) any {
		if text == `\N` {
			return nil
		}
		return strings.ReplaceAll(text, "<backslash>", `\`)
	}))
}

func TestTypesAsDorisCSV(t *testing.T) {
	s, want, buf := typed(t, batch.DorisCSV)
	var records [][]string
	for line := range strings.SplitSeq(strings.TrimSuffix(string(buf), "\x02"), "\x02") {
		records = append(records, strings.Split(line, "\x01"))
	}
	requireTyped(t, s, want, fields(records, func(text string) any {
		if text == `\N` {
			return nil
		}
		return text
	}))
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

func TestTypesAsNDJSON(t *testing.T) {
	s, want, buf := typed(t, batch.NDJSON)
	var got [][]any
	for line := range strings.SplitSeq(strings.TrimSuffix(string(buf), "\n"), "\n") {
		var object map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(line), &object), line)
		var row []any
		for _, c := range s.Columns {
			var text string
			raw := object[c.Name]
			switch {
			case string(raw) == "null" && c.Type != rows.JSON, string(raw) == "null" && want[len(got)][17] == nil:
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
	requireTyped(t, s, want, got)
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
	optional int64 amount (DECIMAL(9,2));
	optional binary words (STRING);
	optional binary code (STRING);
	optional binary mood (STRING);
	optional binary doc (STRING);
	optional binary raw;
}`, f.Schema().String())
	reader := f.RowGroups()[0].Rows()
	defer func() { _ = reader.Close() }()
	var got [][]any
	for buf := make([]parquet.Row, 64); ; {
		n, err := reader.ReadRows(buf)
		for _, row := range buf[:n] {
			var values []any
			for i, v := range row {
				c := s.Columns[i]
				switch {
				case v.IsNull():
					values = append(values, nil)
				case v.Kind() == parquet.Boolean:
					values = append(values, strconv.FormatBool(v.Boolean()))
				case v.Kind() == parquet.Float:
					values = append(values, strconv.FormatFloat(float64(v.Float()), 'g', -1, 32))
				case v.Kind() == parquet.Double:
					values = append(values, strconv.FormatFloat(v.Double(), 'g', -1, 64))
				case v.Kind() == parquet.Int32:
					values = append(values, asText(c, int64(v.Int32())))
				case v.Kind() == parquet.Int64:
					values = append(values, asText(c, v.Int64()))
				default:
					values = append(values, string(v.ByteArray()))
				}
			}
			got = append(got, values)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
	requireTyped(t, s, want, got)
}

func TestTypesAsColumns(t *testing.T) {
	s, want, buf := typed(t, batch.ColumnArrays)
	c, err := (&batch.Batch{Format: batch.ColumnArrays, Rows: int64(len(want)), Encoded: buf}).Columns(s)
	require.NoError(t, err)
	for i := range want {
		for k := range s.Columns {
			v := &c.Vectors[k]
			require.Equal(t, want[i][k] == nil, v.IsNull(i), "row %d, column %s", i, s.Columns[k].Name)
			switch {
			case v.IsNull(i):
			case v.Type.Variable():
				require.Equal(t, want[i][k], string(v.Value(i)))
			case v.Type == rows.UUID:
				require.Equal(t, want[i][k], string(v.UUID(i)))
			default:
				require.Equal(t, want[i][k], v.Ints[i])
			}
		}
	}
}

// Derived columns of the new types are stamped as they are encoded.
func TestTypesAreStamped(t *testing.T) {
	for _, f := range uncompressed() {
		s := rows.Schema{Dataset: "typed", Columns: typedColumns(f), Number: []rows.Term{{Times: 1}}}
		values := typedRows(f)
		others := make([][]any, len(values))
		for i, row := range values {
			values[i] = row[:len(s.Columns)]
			others[i] = append([]any{int64(9), strings.Repeat("\x17", 16), int64(0)}, values[i][3:]...)
		}
		e := newEncoder(t, f, s)
		want, _ := whole(e, block(s, values))
		got, at := whole(e, block(s, others))
		e.(encode.Stamper).Stamp(got, at, 0, block(s, values[:64]))
		e.(encode.Stamper).Stamp(got, at, 64, block(s, values[64:]))
		require.Equal(t, want, got, "%s", f)
	}
}

// What a format would cut off or could not say stops the run.
func TestValuesBeyondTheirTypesPanic(t *testing.T) {
	for _, f := range uncompressed() {
		for typ, value := range map[rows.Type]int64{
			rows.Int16: 1 << 15, rows.Int32: -1<<31 - 1, rows.Bool: 2, rows.Float64: f8(math.Inf(1)), rows.Float32: f4(float32(math.NaN())),
		} {
			s := rows.Schema{Dataset: "d", Columns: []rows.Column{{Name: "id", Type: rows.Int64, Derived: true}, {Name: "c", Type: typ}}}
			e := newEncoder(t, f, s)
			write := func() { whole(e, block(s, [][]any{{int64(1), value}})) }
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
			_, err = tx.Exec(t.Context(), `CREATE TYPE pg_temp.mood AS ENUM ('sad', 'ok', 'so, so')`)
			require.NoError(t, err)
			_, err = tx.Exec(t.Context(), `CREATE TEMPORARY TABLE records (id int4 PRIMARY KEY, ref uuid NOT NULL, moment timestamptz NOT NULL,
				big int8, whole int4, small int2, yes bool, f4 float4, f8 float8, u uuid, tz timestamptz, ts timestamp, day date,
				amount numeric(9,2), words text, code char(6), mood pg_temp.mood, doc jsonb, raw bytea)`)
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

			asText := make([]string, len(s.Columns))
			for i, c := range s.Columns {
				asText[i] = "CAST(" + c.Name + " AS text)"
				switch c.Type {
				case rows.Timestamp:
					asText[i] = "to_char(" + c.Name + ", 'YYYY-MM-DD HH24:MI:SS.US')"
				case rows.TimestampTZ:
					asText[i] = "to_char(" + c.Name + " AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')"
				case rows.Bytes:
					asText[i] = "encode(" + c.Name + ", 'escape')"
				}
			}
			found, err := tx.Query(t.Context(), "SELECT "+strings.Join(asText, ", ")+" FROM records ORDER BY records.id")
			require.NoError(t, err)
			got := scanned(t, len(s.Columns), found.Next, found.Scan)
			require.NoError(t, found.Err())
			for _, row := range want {
				if f != batch.CSV && row[18] != nil {
					row[18] = map[string]string{"\x00\\\n\xff": "\\000\\\\\n\\377", "": "", "\\N": `\\N`}[row[18].(string)]
				}
			}
			requireTyped(t, s, want, got)
		})
	}
}

func TestTypesInMySQL(t *testing.T) {
	for _, variable := range []string{"TERAPUSH_TEST_MARIADB", "TERAPUSH_TEST_MYSQL", "TERAPUSH_TEST_TIDB", "TERAPUSH_TEST_OCEANBASE"} {
		for _, f := range []batch.Format{batch.TSV, batch.Values} {
			t.Run(variable+"/"+string(f), func(t *testing.T) { typesInMySQL(t, variable, f) })
		}
	}
}

func typesInMySQL(t *testing.T, variable string, f batch.Format) {
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

	s, want, buf := typed(t, f)
	table := fmt.Sprintf("typed_%d", time.Now().UnixNano())
	_, err = conn.ExecContext(t.Context(), "CREATE TABLE "+table+` (id INT PRIMARY KEY, ref CHAR(36) NOT NULL,
		moment TIMESTAMP(6) NOT NULL, big BIGINT, whole INT, small SMALLINT, yes TINYINT(1), f4 FLOAT, f8 DOUBLE,
		u CHAR(36), tz TIMESTAMP(6) NULL, ts DATETIME(6), day DATE, amount DECIMAL(9,2),
		words LONGTEXT CHARACTER SET utf8mb4, code CHAR(6) CHARACTER SET utf8mb4, mood ENUM('sad', 'ok', 'so, so'), doc JSON, raw LONGBLOB)`)
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = db.Exec("DROP TABLE " + table) })

	statement := "INSERT INTO " + table + " VALUES " + string(buf)
	if f == batch.TSV {
		mysql.RegisterReaderHandler(t.Name(), func() io.Reader { return bytes.NewReader(buf) })
		defer mysql.DeregisterReaderHandler(t.Name())
		names := strings.Replace(strings.Join(s.Names(), ", "), "doc", "@doc", 1)
		statement = fmt.Sprintf("LOAD DATA LOCAL INFILE 'Reader::%s' INTO TABLE %s CHARACTER SET binary (%s) SET doc = CONVERT(@doc USING utf8mb4)",
			t.Name(), table, names)
		if variable == "TERAPUSH_TEST_OCEANBASE" {
			statement = strings.Replace(statement, "SET binary", "SET utf8mb4", 1)
		}
	}
	_, err = conn.ExecContext(t.Context(), statement)
	require.NoError(t, err)

	asText := make([]string, len(s.Columns))
	for i, c := range s.Columns {
		asText[i] = c.Name
		if c.Type == rows.Float32 { // FLOAT is shown with six digits
			asText[i] = c.Name + " + 0e0"
		}
	}
	found, err := conn.QueryContext(t.Context(), "SELECT "+strings.Join(asText, ", ")+" FROM "+table+" ORDER BY id")
	require.NoError(t, err)
	got := scanned(t, len(s.Columns), found.Next, found.Scan)
	require.NoError(t, found.Err())
	if f == batch.TSV && strings.HasSuffix(variable, "OCEANBASE") {
		for _, row := range want { // an empty last field is a NULL to it, which its back-end refuses
			if last := len(row) - 1; row[last] == "" {
				row[last] = nil
			}
		}
	}
	requireTyped(t, s, want, got)
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
