package e2e_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/rows"
)

// peopleLoad is a load of the dataset people.
func peopleLoad(n, batchRows int64) load {
	return load{rows: n, batchRows: batchRows, seed: 1, table: "people"}
}

// peopleFlags are the command line's for it.
func (l load) peopleFlags(more ...string) []string {
	return append([]string{"--dataset", "people", "--rows", fmt.Sprint(l.rows), "--batch-rows", fmt.Sprint(l.batchRows)}, more...)
}

// peopleRows gives the rows that a batch has to hold, one after another, as texts in the schema's order.
type peopleRows struct {
	data  dataset.Dataset
	block *rows.Block
	next  int64 // row number of the block's end
	at    int
	row   []string
}

func newPeopleRows(t *testing.T, first int64) *peopleRows {
	t.Helper()
	data, err := dataset.New("people", dataset.Options{Seed: 1})
	require.NoError(t, err)
	return &peopleRows{data: data, block: rows.NewBlock(data.Schema()), next: first, row: make([]string, len(data.Schema().Columns))}
}

func (p *peopleRows) columns() []rows.Column { return p.data.Schema().Columns }

// step gives the next row. It is overwritten by the following one.
func (p *peopleRows) step() []string {
	if p.at == p.block.Rows {
		const some = 500
		p.data.Fill(p.block, p.next, some)
		p.data.Derive(p.block, p.next)
		p.next, p.at = p.next+some, 0
	}
	for i, c := range p.columns() {
		if v := &p.block.Columns[i]; c.Type.Variable() {
			p.row[i] = string(v.Value(p.at))
		} else {
			p.row[i] = textOf(c.Type, v.Ints[p.at])
		}
	}
	p.at++
	return p.row
}

// textOf is a number as the formats write it, but without zeros in front.
func textOf(typ rows.Type, n int64) string {
	switch typ {
	case rows.Date:
		return time.Unix(n*86400, 0).UTC().Format(time.DateOnly)
	case rows.Timestamp:
		return time.UnixMicro(n).UTC().Format("2006-01-02 15:04:05.000000")
	default:
		return strconv.FormatInt(n, 10)
	}
}

// arePeople reads an object with a reader that is not ours, and compares every field of every row.
func arePeople(t *testing.T, format string, body []byte, first, n int64) {
	t.Helper()
	want := newPeopleRows(t, first)
	next := map[string]func(*testing.T, []byte, []rows.Column) func() ([]string, error){
		"csv": csvPeople, "ndjson": jsonPeople, "parquet": parquetPeople,
	}[format](t, body, want.columns())
	for i := range n {
		got, err := next()
		require.NoError(t, err, "row %d", first+i)
		if row := want.step(); !equalRow(got, row) {
			require.Equal(t, row, got, "row %d", first+i)
		}
	}
	_, err := next()
	require.ErrorIs(t, err, io.EOF, "rows behind the batch's last one")
}

func equalRow(a, b []string) bool {
	same := len(a) == len(b)
	for i := 0; same && i < len(a); i++ {
		same = a[i] == b[i]
	}
	return same
}

func csvPeople(_ *testing.T, body []byte, _ []rows.Column) func() ([]string, error) {
	in := csv.NewReader(bytes.NewReader(body))
	in.ReuseRecord = true
	return func() ([]string, error) {
		row, err := in.Read()
		if err != nil {
			return nil, err
		}
		key, err := strconv.ParseInt(row[0], 10, 64) // the digits of the run's last key
		row[0] = strconv.FormatInt(key, 10)
		return row, err
	}
}

func jsonPeople(_ *testing.T, body []byte, columns []rows.Column) func() ([]string, error) {
	in := json.NewDecoder(bytes.NewReader(body))
	in.UseNumber()
	row := make([]string, len(columns))
	return func() ([]string, error) {
		var object map[string]any
		if err := in.Decode(&object); err != nil {
			return nil, err
		}
		for i, c := range columns {
			row[i] = fmt.Sprint(object[c.Name])
		}
		if len(object) != len(columns) {
			return nil, fmt.Errorf("%d fields: %v", len(object), object)
		}
		return row, nil
	}
}

func parquetPeople(t *testing.T, body []byte, columns []rows.Column) func() ([]string, error) {
	t.Helper()
	file, err := parquet.OpenFile(bytes.NewReader(body), int64(len(body)))
	require.NoError(t, err)
	for i, c := range columns {
		require.Equal(t, c.Name, file.Schema().Columns()[i][0])
	}
	in := parquet.NewReader(file)
	t.Cleanup(func() { _ = in.Close() })
	buf, row := make([]parquet.Row, 500), make([]string, len(columns))
	n, at := 0, 0
	return func() ([]string, error) {
		if at == n {
			var err error
			if n, err = in.ReadRows(buf); n == 0 {
				return nil, err
			}
			at = 0
		}
		at++
		for i, v := range buf[at-1] {
			switch c := columns[i]; c.Type {
			case rows.Date:
				row[i] = textOf(c.Type, int64(v.Int32()))
			case rows.Int64, rows.Timestamp:
				row[i] = textOf(c.Type, v.Int64())
			default:
				row[i] = string(v.ByteArray())
			}
		}
		return row, nil
	}
}
