package databend

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// openRecords makes a table and prepares it for a load of files that began some time ago.
func openRecords(t *testing.T, columns string, ago time.Duration, names ...string) (*opened, loader.Session) {
	t.Helper()
	target := realServer(t)
	target.Method, target.Table = methodInsertNoPresign, "t_"+strings.ToLower(rand.Text())
	statementOn(t, target, "CREATE TABLE "+target.Table+" ("+columns+")")
	t.Cleanup(func() { statementOn(t, target, "DROP TABLE "+target.Table) })
	db := openTarget(t, target)
	p := preparation(methodInsertNoPresign)
	p.Run, p.Records, p.Began, p.Create = target.Table, true, time.Now().Add(-ago), loader.CreateNever
	p.Schema = rows.Schema{}
	for _, name := range names {
		p.Schema.Columns = append(p.Schema.Columns, rows.Column{Name: name})
	}
	_, err := db.Prepare(t.Context(), p)
	require.NoError(t, err)
	return db, backendtest.Session(t, db, p.Contract)
}

func recordsBatch(db *opened, number int64, attempt int, text string) *batch.Batch {
	b := &batch.Batch{
		ID: batch.ID{Run: db.plan.name.table, Number: number}, Format: batch.CSV, Rows: 2, Attempt: attempt, Encoded: []byte(text),
		Layout: &batch.Layout{Columns: []string{"total", "id"}},
	}
	b.Hold()
	return b
}

// The name of a file is a label, which the engine keeps: a batch goes in once, however often it is sent.
func TestRecords(t *testing.T) {
	const columns = "id BIGINT NOT NULL, total DECIMAL(10, 2) NULL"
	db, s := openRecords(t, columns, 0, "id", "total")
	ack, err := s.Load(t.Context(), recordsBatch(db, 0, 1, "1.5,1\n\\N,2\n"))
	require.NoError(t, err)
	require.Equal(t, loader.Ack{Rows: 2}, ack)
	ack, err = s.Load(t.Context(), recordsBatch(db, 0, 2, "1.5,1\n\\N,2\n"))
	require.NoError(t, err)
	require.Equal(t, loader.Ack{Rows: 2, AlreadyApplied: true}, ack)

	_, err = s.Load(t.Context(), recordsBatch(db, 1, 1, "1.5,1\nmuch,2\n"))
	var bad *loader.RecordError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, []any{int64(2), "total"}, []any{bad.Record, bad.Column})
	require.ErrorContains(t, err, "server error 1046: Invalid value 'much'")
	require.NotContains(t, err.Error(), "at file")
	require.Equal(t, []any{loader.No, loader.ClassData}, []any{verdict(err).Applied, verdict(err).Class})

	for number, want := range map[int64]loader.Applied{0: loader.Yes, 1: loader.No, 2: loader.No} {
		found, err := db.Resolve(t.Context(), loader.Ref{ID: batch.ID{Run: db.plan.name.table, Number: number}, Attempt: 1})
		require.NoError(t, err)
		require.Equal(t, want, found.Applied, number)
	}
	n, err := db.Rows(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
	left, err := db.rows(t.Context(), "LIST @~/terapush/"+db.plan.name.table+"/")
	require.NoError(t, err)
	require.Empty(t, left)
}

// What an earlier process sent longer ago than the server remembers may be in; what this one sent is not that old.
func TestRecordsForgotten(t *testing.T) {
	db, s := openRecords(t, "id BIGINT, total BIGINT", labelWindow, "id", "total")
	_, err := s.Load(t.Context(), recordsBatch(db, 1, 1, "1,x\n2,y\n"))
	require.Error(t, err)
	for number, want := range map[int64]loader.Applied{0: loader.Unknown, 1: loader.No} {
		found, err := db.Resolve(t.Context(), loader.Ref{ID: batch.ID{Run: db.plan.name.table, Number: number}, Attempt: 1})
		require.NoError(t, err)
		require.Equal(t, want, found.Applied, number)
	}
}

// What a load must not send to a column is what the engine takes for something else.
func TestFragileColumns(t *testing.T) {
	db, _ := openRecords(t, "id BIGINT, total BIGINT, d DECIMAL(9, 2), t TIMESTAMP, b BOOLEAN, day DATE, j VARIANT, raw BINARY, f DOUBLE, "+
		"a ARRAY(INT), word VARCHAR, must VARCHAR NOT NULL DEFAULT 'x'", 0, "id")
	columns, err := db.Columns(t.Context())
	require.NoError(t, err)
	require.Len(t, columns, 12)
	st, err := db.State()
	require.NoError(t, err)
	loadAs := func(format batch.Format, column, value string) bool {
		b := &batch.Batch{ID: batch.ID{Run: "r-" + strings.ToLower(rand.Text())}, Format: format, Rows: 1, Encoded: []byte(value + "\n")}
		b.Layout = &batch.Layout{Columns: []string{column}}
		b.Hold()
		require.NoError(t, db.exec(t.Context(), "TRUNCATE TABLE "+st.Table))
		s := &recordsSession{session: &session{statements: statements{st.Statements}, owner: db, endpoint: db.hosts.Current()}, run: b.ID.Run}
		_, err := s.Load(t.Context(), b)
		return err == nil
	}
	load := func(column, value string) bool { return loadAs(batch.CSV, column, value) }
	isNull := func(column string) bool {
		found, err := db.rows(t.Context(), "SELECT CAST("+column+" IS NULL AS INT) FROM "+st.Table)
		require.NoError(t, err)
		return found[0][0] == "1"
	}
	for _, c := range columns {
		emptied := load(c.Name, `""`) && isNull(c.Name)
		require.Equal(t, emptied, c.NoEmpty, c.Name)
		written := load(c.Name, `\N`) && !isNull(c.Name)
		require.Equal(t, written, c.NoNull, c.Name)

		if c.Name == "j" { // a text is another value there
			continue
		}
		var is []string
		for _, value := range []string{"8.290", `"8.290"`} {
			if loadAs(batch.NDJSON, c.Name, fmt.Sprintf("{%q:%s}", c.Name, value)) {
				found, err := db.rows(t.Context(), "SELECT CAST("+c.Name+" AS VARCHAR) FROM "+st.Table)
				require.NoError(t, err)
				is = append(is, found[0][0])
			}
		}
		require.Equal(t, len(is) == 2 && is[0] != is[1], c.Quoted, "%s: %s", c.Name, is)
	}
}

// A COPY that loads nothing, of a file that is not listed, has loaded nothing.
func TestRecordsSkippedForNothing(t *testing.T) {
	f := newFake(t)
	f.on("COPY INTO", result())
	f.on("SELECT COUNT(*) FROM copy_history", result([]any{"0"}))
	f.routes["/v1/upload_to_stage"] = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"state":"SUCCESS","files":["000000000002.csv"]}`))
	}
	db := openTarget(t, f.target(methodInsertNoPresign))
	p := preparation(methodInsertNoPresign)
	p.Records, p.Create = true, loader.CreateNever
	_, err := db.Prepare(t.Context(), p)
	require.NoError(t, err)
	b := testBatch(1)
	b.Layout = &batch.Layout{Columns: []string{"id", "s"}}
	_, err = backendtest.Session(t, db, p.Contract).Load(t.Context(), b)
	require.True(t, errors.As(err, new(*fileError)), "%v", err)
	require.Equal(t, []any{loader.No, true}, []any{verdict(err).Applied, verdict(err).Retry})
}
