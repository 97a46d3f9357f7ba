package databend

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

func TestPrepare(t *testing.T) {
	const (
		empty  = "TRUNCATE TABLE `db`.`t`"
		drop   = "DROP TABLE `db`.`t`"
		create = "CREATE TABLE IF NOT EXISTS `db`.`t` (\n  `id` BIGINT NOT NULL,\n  `s` VARCHAR NOT NULL\n) COMMENT = 'made by terapush'"
	)
	found := loader.Table{Name: "db.t", Identity: "table id 7"}
	made := found
	made.Created = true
	for name, c := range map[string]struct {
		id      []any // the table's id, engine and comment
		columns string
		change  func(*loader.Preparation)
		want    loader.Table
		sent    []string
		says    string
	}{
		"there": {want: found},
		"not made by terapush, and not to be dropped": {
			id: []any{"7", "FUSE", ""}, change: func(p *loader.Preparation) { p.Create = loader.CreateRecreate }, says: "was not made by terapush"},
		"dropped by its full name": {
			id: []any{"7", "FUSE", ""}, change: func(p *loader.Preparation) { p.Create, p.MayDrop = loader.CreateRecreate, "db.t" },
			want: made, sent: []string{drop, create}},
		"emptied by its name": {
			id: []any{"7", "FUSE", ""}, change: func(p *loader.Preparation) { p.Create, p.MayDrop = loader.CreateTruncate, "t" },
			want: found, sent: []string{empty}},
		"not emptied, since it cannot take the rows": {
			columns: result([]any{"id", "BIGINT", "0"}, []any{"s", "DECIMAL(15, 2)", "0"}),
			change:  func(p *loader.Preparation) { p.Create = loader.CreateTruncate }, says: "column s is DECIMAL(15, 2), want VARCHAR"},
		"a view":         {id: []any{"7", "VIEW", ""}, says: "is a view"},
		"another engine": {id: []any{"7", "MEMORY", ""}, says: "need FUSE"},
		"columns": {
			columns: result([]any{"id", "INT", "0"}, []any{"more", "DATE", "0"}, []any{"fine", "DATE", "1"}),
			says:    "column id is INT, want BIGINT; column s (VARCHAR) is missing; column more (DATE) is unknown"},
		"a decimal of another scale": {
			columns: result([]any{"price", "DECIMAL(15, 3)", "0"}),
			change:  func(p *loader.Preparation) { p.Schema = everyType() }, says: "column price is DECIMAL(15, 3), want DECIMAL(15, 2)"},
		"silent": {change: func(p *loader.Preparation) { p.Silent = true }, want: loader.Table{Name: "db.t"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			if c.id != nil {
				f.on("SELECT table_id", result(c.id))
			}
			if c.columns != "" {
				f.on("SELECT name, data_type", c.columns)
			}
			f.on(drop, result())
			f.on(empty, result())
			l := openTarget(t, f.target(insertNoPresign))
			asked := len(f.asked("SELECT"))
			p := preparation(insertNoPresign)
			if c.change != nil {
				c.change(&p)
			}
			got, err := l.Prepare(t.Context(), p)
			var sent []string
			for _, begin := range []string{"DROP", "TRUNCATE", "CREATE"} {
				for _, s := range f.asked(begin) {
					sent = append(sent, s.query.SQL)
				}
			}
			require.Equal(t, c.sent, sent)
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				require.Equal(t, loader.No, New().Classify(err).Applied)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			if p.Silent {
				require.Len(t, f.asked("SELECT"), asked, "nothing was to be asked")
			}
		})
	}
}

// What a lost answer makes necessary is tried before anything is made.
func TestPrepareTriesTheListOfProcesses(t *testing.T) {
	f := newFake(t)
	f.on("SELECT table_id", result())
	f.on("SELECT id FROM system.processes", failure(1063, "not allowed"))
	l := openTarget(t, f.target(insertNoPresign))
	_, err := l.Prepare(t.Context(), preparation(insertNoPresign))
	require.ErrorContains(t, err, "not allowed")
	require.ErrorContains(t, err, "--delivery at-least-once")
	require.Equal(t, loader.No, New().Classify(err).Applied)
	require.Empty(t, f.asked("CREATE TABLE"))

	p := preparation(insertNoPresign)
	p.Contract.Delivery, p.Contract.Dedup, p.Create = loader.AtLeastOnce, loader.DedupNone, loader.CreateNever
	f.on("SELECT table_id", result([]any{"7", "FUSE", loader.MadeBy}))
	_, err = l.Prepare(t.Context(), p)
	require.NoError(t, err)
}

func TestServer(t *testing.T) {
	f := newFake(t)
	f.on(selectMaxRunning, failure(1063, "not allowed"))
	db, _ := f.open(t, streamingLoad, func(t *loader.Target) { t.Settings = []loader.Setting{{Name: "max_threads", Value: "2"}} })
	require.Equal(t, loader.Server{
		Product: "Databend", Version: "v1.2.900", Endpoint: f.target("").Hosts[0], Settings: map[string]string{"max_threads": "2"},
	}, db.Server())
	require.Zero(t, db.Caps().MaxInFlight, "no bound is known")
	for said, want := range map[string]int{"0": 0, "3": 3} {
		f.on(selectMaxRunning, result([]any{said}))
		db, _ := f.open(t, streamingLoad)
		require.Equal(t, want, db.Caps().MaxInFlight, said)
		db, _ = f.open(t, stageLoad)
		require.Zero(t, db.Caps().MaxInFlight, "uploads take no slot")
	}
}

// Rows are read back as they went in, and the wider they are, the fewer come in one answer.
func TestFetch(t *testing.T) {
	f := newFake(t)
	l := openTarget(t, f.target(streamingLoad))
	p := preparation(streamingLoad)
	p.Schema, p.Silent = everyType(), true
	p.Schema.Columns[1].MaxBytes = 1 << 20
	_, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	const query = "SELECT (`id` - 100), `id`, `name`, TO_HEX(`raw`), CAST(`day` AS BIGINT), CAST(`t` AS BIGINT), `price` FROM `db`.`t` WHERE (`id` - 100) IN (5,6)"
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
