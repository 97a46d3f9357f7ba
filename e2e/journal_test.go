package e2e_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	standin "github.com/terapush/terapush/internal/fake/databend"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/rows"
)

// The dataset journal has a key of text, 20 digits, and a JSON document in which no format may lose a quotation mark.
// Whatever finds rows by their number has to find these, too.

// journalLoad is a load of the dataset journal from key first on.
func journalLoad(n, batchRows, first int64) load {
	return load{rows: n, batchRows: batchRows, seed: 1 + uint64(first), first: first, table: "journal"}
}

// journalFlags are the command line's for it, but for the first key, which a test may leave to terapush.
func (l load) journalFlags(more ...string) []string {
	flags := []string{"--dataset", "journal", "--rows", fmt.Sprint(l.rows), "--batch-rows", fmt.Sprint(l.batchRows), "--seed", fmt.Sprint(l.seed)}
	return append(flags, more...)
}

// journalRow gives row i of the load, as texts in the schema's order.
func (l load) journalRow(t *testing.T) func(i int64) []string {
	t.Helper()
	data, err := dataset.New("journal", dataset.Options{Seed: l.seed})
	require.NoError(t, err)
	block := rows.NewBlock(data.Schema())
	return func(i int64) []string {
		dataset.Row(block, data, l.first, i, 0)
		var row []string
		for c, column := range data.Schema().Columns {
			if v := &block.Columns[c]; column.Type.Variable() {
				row = append(row, string(v.Value(0)))
			} else {
				row = append(row, textOf(column.Type, v.Ints[0]))
			}
		}
		return row
	}
}

// areJournal asks the server by its own client: every row of the loads once, every byte of them, and no other. at is the
// column ts as text.
func (d *database) areJournal(t *testing.T, at string, loads ...load) {
	t.Helper()
	total := int64(0)
	for _, l := range loads {
		want, n := l.journalRow(t), int64(0)
		query := fmt.Sprintf("SELECT id, run_id, scenario, %s, payload FROM journal WHERE id BETWEEN '%020d' AND '%020d' ORDER BY id",
			at, l.first, l.first+l.rows-1)
		require.NoError(t, d.query(query, func(scan func(...any) error) error {
			got := make([]string, 5)
			if err := scan(&got[0], &got[1], &got[2], &got[3], &got[4]); err != nil {
				return err
			}
			if row := want(n); !slices.Equal(row, got) {
				return fmt.Errorf("row %d is %q, want %q", n, got, row)
			}
			n++
			return nil
		}), query)
		require.Equal(t, l.rows, n, "rows of the load from key %d on", l.first)
		total += l.rows
	}
	require.Equal(t, total, d.number(t, "SELECT COUNT(*) FROM journal"))
}

// twoJournals pushes a load in the format with a full proof, and a second one behind it, and proves both once more.
func twoJournals(t *testing.T, d *database, push func(...string) invocation, format string, flags, behind []string) (loads []load) {
	t.Helper()
	for _, l := range []load{journalLoad(3000, 250, 0), journalLoad(1100, 250, 3000)} {
		more := slices.Concat(flags, []string{"--workers", "3", "--verify", "full", "--verify-rows", "700"})
		if l.first > 0 {
			push(l.journalFlags(flags...)...).fails(t, "holds rows", "--append", "journal")
			more = slices.Concat(more, []string{"--append"}, behind)
		}
		is := reportOf(t, push(l.journalFlags(more...)...).run(t).ends(t, 0))
		assert.Equal(t, []any{report.OK, "journal", format, "exactly-once", l.first},
			[]any{is.Result.Outcome, is.Plan.Dataset, is.Plan.Format, is.Plan.Delivery, is.Plan.FirstKey})
		assert.Equal(t, []int64{l.rows, l.batches(), 1360 * l.rows}, []int64{is.Result.Rows, is.Result.Batches, is.Result.PayloadBytes})
		assert.Zero(t, is.Result.Retries+is.Result.Duplicates+is.Result.Unknown+is.Result.Missing)
		assert.Equal(t, report.Verify{
			Mode: "full", Ran: true, OK: true, ExpectedRows: l.rows, FoundRows: l.rows, SampledRows: 700,
			BadBatches: []report.BadBatch{}, Problems: []string{},
		}, is.Verify)
		loads = append(loads, l)

		again := push()
		again.args = []string{"verify", d.target(), "--run", is.Run.ID, "--state-dir", d.state, "--json", "--verify", "full"}
		later := reportOf(t, again.run(t).ends(t, 0))
		assert.Equal(t, []any{true, l.rows}, []any{later.Verify.OK, later.Verify.FoundRows})
	}
	return loads
}

// timeAsText is the column ts as the formats write it.
func timeAsText(k kind) string {
	switch k {
	case postgres:
		return "to_char(ts, 'YYYY-MM-DD HH24:MI:SS.US')"
	case databend:
		return "to_string(ts)"
	default:
		return "CAST(ts AS CHAR)"
	}
}

// Every method of the servers with transactions, with and without a primary key.
func TestJournal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind          kind
		format, flags string
	}{
		{postgres, "pgbinary", "--method copy --primary-key"},
		{postgres, "pgtext", "--method copy --format pgtext"},
		{postgres, "csv", "--method copy --format csv"},
		{postgres, "pgvalues", "--method insert --primary-key"},
		{mariaDB, "tsv", "--method load-data"},
		{mariaDB, "values", "--method insert --primary-key"},
		{mySQL, "tsv", "--method load-data --primary-key"},
		{mySQL, "values", "--method insert"},
	} {
		t.Run(string(c.kind)+" "+c.flags, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t, c.kind)
			loads := twoJournals(t, d, d.push, c.format, strings.Fields(c.flags), nil)
			d.areJournal(t, timeAsText(c.kind), loads...)
			assert.Zero(t, d.claims())
		})
	}
}

// The proof sees what became of a row: one that is gone, one with another byte in its document, one that is there twice.
func TestJournalProof(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		l := journalLoad(2000, 200, 0)
		d.push(l.journalFlags("--verify", "none")...).run(t).ends(t, 0)
		finds := func(found int64, mode string) report.Verify {
			is := reportOf(t, d.again(t, "verify", "--json", "--verify", mode, "--verify-rows", "2000").run(t).ends(t, 4))
			assert.False(t, is.Verify.OK)
			assert.Equal(t, found, is.Verify.FoundRows)
			return is.Verify
		}
		d.must(t, "DELETE FROM journal WHERE id = '00000000000000001234'")
		bad := finds(1999, "count").BadBatches
		require.Len(t, bad, 1)
		assert.Equal(t, []any{int64(6), int64(1200), int64(1399), int64(199), "short"}, []any{bad[0].Number, bad[0].FirstKey, bad[0].LastKey, bad[0].Found, bad[0].Reason})

		d.must(t, "INSERT INTO journal SELECT '00000000000000001234', run_id, scenario, ts, payload FROM journal WHERE id = '00000000000000001235'")
		differs := strings.Join(finds(2000, "full").Problems, "\n")
		assert.Contains(t, differs, "1234")

		d.must(t, "UPDATE journal SET id = '00000000000000001235' WHERE id = '00000000000000001234'") // the right number of rows, one of them twice
		assert.Len(t, finds(2000, "count").BadBatches, 1)
	})
}

// kill -9 in the middle: the resume knows what is in.
func TestJournalResume(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		l := journalLoad(6000, 100, 0)
		p := d.push(l.journalFlags("--workers", "3", "--max-rate", "2MiB/s", "--verify", "full")...).start(t)
		d.untilClaims(t, p, l.batches()/3)
		p.kill(t)
		is := reportOf(t, d.resume(t, "--max-rate", "1GiB/s").run(t).ends(t, 0))
		assert.Positive(t, is.Run.ResumedRows)
		assert.True(t, is.Verify.OK)
		d.areJournal(t, timeAsText(d.kind), l)
	})
}

// Every method and format of Databend, in the real engine.
func TestJournalInDatabend(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, format string }{
		{"streaming-load", "csv"}, {"streaming-load", "ndjson"}, {"streaming-load", "parquet"},
		{"insert", "parquet"}, {"insert-no-presign", "csv"}, {"stage-load", "ndjson"},
	} {
		t.Run(c.method+" "+c.format, func(t *testing.T) {
			t.Parallel()
			d, f := newEngine(t), newFolder(t)
			flags := []string{"--method", c.method, "--format", c.format}
			if c.method == "insert" {
				flags = append(flags, "--stage", d.stage(t, f))
			}
			loads := twoJournals(t, d, d.push, c.format, flags, []string{"--first-key", "3000"})
			d.areJournal(t, timeAsText(databend), loads...)
		})
	}
}

// kill -9 in the middle, in the real engine, which keeps what it has seen of a body that breaks off.
func TestJournalResumeInDatabend(t *testing.T) {
	t.Parallel()
	d, l := newEngine(t), journalLoad(6000, 1000, 0)
	p := d.push(l.journalFlags("--workers", "2", "--max-rate", "1MiB/s", "--verify", "full")...).start(t)
	p.until(t, "rows", func() bool {
		var n int64
		err := d.query("SELECT COUNT(*) FROM journal", func(scan func(...any) error) error { return scan(&n) })
		return err == nil && n >= 1000 // the table is made by terapush
	})
	p.kill(t)
	is := reportOf(t, d.resume(t, "--max-rate", "1GiB/s").run(t).ends(t, 0))
	assert.Equal(t, []any{true, l.rows}, []any{is.Verify.OK, is.Verify.FoundRows})
	assert.Positive(t, is.Run.ResumedRows)
	d.areJournal(t, timeAsText(databend), l)
}

// A streaming load that breaks in the middle leaves a part of its rows, which are found by their keys, deleted, and sent
// again.
func TestJournalBreaksInDatabend(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	defer close(hold)
	var server atomic.Pointer[scripted]
	s := newScripted(t, standin.Options{Fault: func(k standin.Kind, label string, attempt int) standin.Fault {
		if k != standin.Stream || labelled(label) != 3 || attempt > 1 {
			return standin.Fault{}
		}
		var part []string
		for key := 160; key < 170; key++ {
			part = append(part, fmt.Sprintf("('%020d', 'r', 's', '2020-01-01 00:00:00', '{}')", key))
		}
		server.Load().say(t, "INSERT INTO journal (id, run_id, scenario, ts, payload) VALUES "+strings.Join(part, ", "), "")
		return standin.Fault{Vanish: true, Hold: hold}
	}})
	server.Store(s)
	l := journalLoad(1000, 50, 0)
	is := reportOf(t, s.push(l.journalFlags("--workers", "2", "--verify", "full")...).run(t).ends(t, 0))
	assert.Equal(t, []any{true, l.rows}, []any{is.Verify.OK, is.Verify.FoundRows})
	assert.Equal(t, 1, s.count(standin.Delete, ""), "the part was deleted")
	found := s.fake.Rows("journal")
	require.Len(t, found, int(l.rows))
	slices.SortFunc(found, func(a, b []any) int { return strings.Compare(a[0].(string), b[0].(string)) })
	want := l.journalRow(t)
	for i, row := range found {
		var got []string
		for _, v := range row {
			got = append(got, v.(string))
		}
		require.Equal(t, want(int64(i)), got)
	}
}

// One object a batch in every format, read by readers that are not ours.
func TestJournalObjects(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"csv", "tsv", "ndjson", "parquet"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			for _, l := range []load{journalLoad(3000, 700, 0), journalLoad(1000, 700, 1<<40)} {
				f := newFolder(t)
				is := reportOf(t, f.push(l.journalFlags("--format", format, "--first-key", fmt.Sprint(l.first), "--verify", "count")...).run(t).ends(t, 0))
				assert.Equal(t, []any{true, l.rows}, []any{is.Verify.OK, is.Verify.FoundRows})
				require.Len(t, f.list(t), int(l.batches()))
				want, i := l.journalRow(t), int64(0)
				for n := range l.batches() {
					next := journalIn(t, format, f.get(t, f.object(is.Run.ID, n, format)))
					for range min(l.batchRows, l.rows-i) {
						got, err := next()
						require.NoError(t, err, "row %d", i)
						require.Equal(t, want(i), got)
						require.True(t, json.Valid([]byte(got[4])))
						i++
					}
					_, err := next()
					require.ErrorIs(t, err, io.EOF)
				}
				again := reportOf(t, f.again(t, "verify", "--json").run(t).ends(t, 0))
				assert.True(t, again.Verify.OK)
			}
		})
	}
}

// journalIn reads an object row by row.
func journalIn(t *testing.T, format string, body []byte) func() ([]string, error) {
	t.Helper()
	data, err := dataset.New("journal", dataset.Options{})
	require.NoError(t, err)
	switch format {
	case "csv":
		return csv.NewReader(bytes.NewReader(body)).Read
	case "ndjson":
		return jsonPeople(t, body, data.Schema().Columns)
	case "parquet":
		return parquetPeople(t, body, data.Schema().Columns)
	default:
		require.NotContains(t, string(body), `\`, "a document holds nothing that is escaped here")
		lines := strings.Split(strings.TrimSuffix(string(body), "\n"), "\n")
		return func() ([]string, error) {
			if len(lines) == 0 {
				return nil, io.EOF
			}
			row := strings.Split(lines[0], "\t")
			lines = lines[1:]
			return row, nil
		}
	}
}
