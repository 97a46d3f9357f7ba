package databend

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

// What is read of a table that is there. What Prepare makes of it is package sqlload's to show.
func TestPrepareReadsTheCatalog(t *testing.T) {
	for name, c := range map[string]struct {
		id      []any // the table's id, engine and comment
		columns string
		change  func(*loader.Preparation)
		says    string // "": it fits
	}{
		"fits": {},
		"not made by terapush": {
			id:     []any{"7", "FUSE", ""},
			change: func(p *loader.Preparation) { p.Create = loader.CreateRecreate },
			says:   "was not made by terapush",
		},
		"a view":         {id: []any{"7", "VIEW", ""}, says: "is a view"},
		"another engine": {id: []any{"7", "MEMORY", ""}, says: "need FUSE"},
		"columns": {
			columns: result([]any{"id", "INT", "0"}, []any{"more", "DATE", "0"}, []any{"fine", "DATE", "1"}),
			says:    "column id is INT, want BIGINT; column s (VARCHAR) is missing; column more (DATE) is unknown",
		},
		"a computed column": {
			columns: result([]any{"id", "BIGINT", "NO", "a + 1", "STORED", "a + 1", ""}, []any{"s", "VARCHAR", "NO", nil, "", "", ""}),
			says:    "column id is generated",
		},
		"a decimal of another scale": {
			columns: result([]any{"price", "DECIMAL(15, 3)", "0"}),
			change:  func(p *loader.Preparation) { p.Schema = everyType() },
			says:    "column price is DECIMAL(15, 3), want DECIMAL(15, 2)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			if c.id != nil {
				f.on("SELECT table_id", result(c.id))
			}
			if c.columns != "" {
				f.on("SELECT name, data_type", c.columns)
			}
			p := preparation(methodInsertNoPresign)
			if c.change != nil {
				c.change(&p)
			}
			got, err := openTarget(t, f.target(methodInsertNoPresign)).Prepare(t.Context(), p)
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				require.Equal(t, loader.No, New().Classify(err).Applied)
				return
			}
			require.NoError(t, err)
			require.Equal(t, loader.Table{Name: "db.t", Identity: "table id 7"}, got)
		})
	}
}

// What a lost answer makes necessary is tried before anything is made.
func TestPrepareTriesTheListOfProcesses(t *testing.T) {
	f := newFake(t)
	f.on("SELECT table_id", result())
	f.on("SELECT id FROM system.processes", failure(1063, "not allowed"))
	l := openTarget(t, f.target(methodInsertNoPresign))
	_, err := l.Prepare(t.Context(), preparation(methodInsertNoPresign))
	require.ErrorContains(t, err, "not allowed")
	require.Contains(t, loader.Explain(err), "--delivery at-least-once")
	require.Equal(t, loader.No, New().Classify(err).Applied)
	require.Empty(t, f.asked("CREATE TABLE"))

	p := preparation(methodInsertNoPresign)
	p.Contract.Delivery, p.Contract.Dedup, p.Create = loader.AtLeastOnce, loader.DedupNone, loader.CreateNever
	f.on("SELECT table_id", result([]any{"7", "FUSE", loader.MadeBy}))
	_, err = l.Prepare(t.Context(), p)
	require.NoError(t, err)
}

func TestServer(t *testing.T) {
	f := newFake(t)
	f.on(selectMaxRunning, failure(1063, "not allowed"))
	db, _ := f.open(t, methodStreamingLoad, func(t *loader.Target) { t.Settings = []loader.Setting{{Name: "max_threads", Value: "2"}} })
	require.Equal(t, loader.Server{
		Product: "Databend", Version: "v1.2.900", Endpoint: f.target("").Hosts[0], Settings: map[string]string{"max_threads": "2"},
	}, db.Server())
	require.Zero(t, db.Caps().MaxInFlight, "no bound is known")
	for said, want := range map[string]int{"0": 0, "3": 3} {
		f.on(selectMaxRunning, result([]any{said}))
		db, _ := f.open(t, methodStreamingLoad)
		require.Equal(t, want, db.Caps().MaxInFlight, said)
		db, _ = f.open(t, methodStageLoad)
		require.Zero(t, db.Caps().MaxInFlight, "uploads take no slot")
	}
}

// Rows are read back as they went in, and the wider they are, the fewer come in one answer.
func TestFetch(t *testing.T) {
	f := newFake(t)
	l := openTarget(t, f.target(methodStreamingLoad))
	p := preparation(methodStreamingLoad)
	p.Schema, p.Silent = everyType(), true
	p.Schema.Columns[1].MaxBytes = 1 << 20
	_, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	const query = "SELECT (`id` - 100), `id`, `name`, TO_HEX(`raw`), CAST(`day` AS BIGINT), CAST(`t` AS BIGINT), `price` FROM `db`.`t` WHERE `id` IN (105,106)"
	row := []any{"5", "105", "né", "00fF", "-1", "1704164645123456", "-12.05"}
	f.on(query, strings.Replace(result(row), `"next_uri":null`, `"next_uri":"/v1/query/q/page/1"`, 1))
	f.routes["/v1/query/q/page/1"] = func(w http.ResponseWriter, _ *http.Request) {
		row[0] = "6"
		_, _ = io.WriteString(w, result(row))
	}
	got := make(map[int64][]any)
	require.NoError(t, l.Fetch(t.Context(), []int64{5, 6}, func(number int64, values []any) error {
		got[number] = values
		return nil
	}))
	want := []any{int64(105), []byte("né"), []byte{0, 255}, int64(-1), int64(1704164645123456), int64(-1205)}
	require.Equal(t, map[int64][]any{5: want, 6: want}, got)
	require.Equal(t, int64(1), f.asked(query)[0].query.Pagination.MaxRows)
}
