package databend

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

func TestPrepare(t *testing.T) {
	table := func(id, engine, comment string) func(seen) string { return say(result([]any{id, engine, comment})) }
	for name, c := range map[string]struct {
		inspect func(seen) string
		columns func(seen) string
		change  func(*loader.Preparation)
		want    loader.Table
		drops   int
		empties int
		creates int
		says    string
	}{
		"there": {want: loader.Table{Name: "db.t", Identity: "table id 7"}},
		"a table of somebody's that is not to be dropped": {
			inspect: table("7", "FUSE", ""),
			change:  func(p *loader.Preparation) { p.Create = loader.CreateRecreate }, says: "was not made by terapush"},
		"one that the user names": {
			inspect: table("7", "FUSE", ""),
			change: func(p *loader.Preparation) {
				p.Create, p.MayDrop = loader.CreateRecreate, "db.t"
			}, want: loader.Table{Name: "db.t", Identity: "table id 7", Created: true}, drops: 1, creates: 1},
		"emptied": {
			change: func(p *loader.Preparation) { p.Create = loader.CreateTruncate },
			want:   loader.Table{Name: "db.t", Identity: "table id 7"}, empties: 1},
		"not emptied, since it cannot take the rows": {
			columns: say(result([]any{"id", "BIGINT", "0"}, []any{"s", "DECIMAL(15, 2)", "0"})),
			change:  func(p *loader.Preparation) { p.Create = loader.CreateTruncate }, says: "column s is DECIMAL(15, 2), want VARCHAR"},
		"a view":         {inspect: table("7", "VIEW", ""), says: "is a view"},
		"another engine": {inspect: table("7", "MEMORY", ""), says: "need FUSE"},
		"columns": {
			columns: say(result([]any{"id", "INT", "0"}, []any{"more", "DATE", "0"}, []any{"fine", "DATE", "1"})),
			says:    "column id is INT, want BIGINT; column s (VARCHAR) is missing; column more (DATE) is unknown"},
		"a decimal of another scale": {
			columns: say(result([]any{"price", "DECIMAL(15, 3)", "0"})),
			change:  func(p *loader.Preparation) { p.Schema = everyType() }, says: "column price is DECIMAL(15, 3), want DECIMAL(15, 2)"},
		"silent": {change: func(p *loader.Preparation) { p.Silent = true }, want: loader.Table{Name: "db.t"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			if c.inspect != nil {
				f.on("SELECT table_id", c.inspect)
			}
			if c.columns != nil {
				f.on("SELECT name, data_type", c.columns)
			}
			f.on("DROP TABLE `db`.`t`", say(result()))
			f.on("TRUNCATE TABLE `db`.`t`", say(result()))
			l, err := New().Open(t.Context(), f.target(insertNoPresign), testDeps())
			require.NoError(t, err)
			opened := len(f.asked("S"))
			p := preparation(insertNoPresign)
			if c.change != nil {
				c.change(&p)
			}
			got, err := l.Prepare(t.Context(), p)
			require.Len(t, f.asked("DROP TABLE"), c.drops)
			require.Len(t, f.asked("TRUNCATE TABLE"), c.empties)
			require.Len(t, f.asked("CREATE TABLE IF NOT EXISTS `db`.`t` (\n  `id` BIGINT NOT NULL,\n  `s` VARCHAR NOT NULL\n) COMMENT = 'made by terapush'"), c.creates)
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				require.Equal(t, loader.No, New().Classify(err).Applied)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			if p.Silent {
				require.Len(t, f.asked("S"), opened, "nothing was to be said")
			}
		})
	}
}

// As on other databases, the name of a table is enough, however --table was written.
func TestNameOfATableThatMayBeDropped(t *testing.T) {
	for _, name := range []string{"t", "db.t"} {
		f := newFake(t)
		f.on("SELECT table_id", say(result([]any{"7", "FUSE", ""})))
		f.on("TRUNCATE TABLE `db`.`t`", say(result()))
		target := f.target(insertNoPresign)
		target.Table = "db.t"
		l, err := New().Open(t.Context(), target, testDeps())
		require.NoError(t, err)
		p := preparation(insertNoPresign)
		p.Create, p.MayDrop = loader.CreateTruncate, name
		_, err = l.Prepare(t.Context(), p)
		require.NoError(t, err)
	}
}

// What a lost answer makes necessary is tried before anything is made.
func TestPrepareTriesTheListOfProcesses(t *testing.T) {
	f := newFake(t)
	f.on("SELECT table_id", say(result()))
	f.on("SELECT id FROM system.processes", say(failure(1063, "not allowed")))
	l, err := New().Open(t.Context(), f.target(insertNoPresign), testDeps())
	require.NoError(t, err)
	_, err = l.Prepare(t.Context(), preparation(insertNoPresign))
	require.ErrorContains(t, err, "not allowed")
	require.ErrorContains(t, err, "--delivery at-least-once")
	require.Equal(t, loader.No, New().Classify(err).Applied)
	require.Empty(t, f.asked("CREATE TABLE"))

	p := preparation(insertNoPresign)
	p.Contract.Delivery, p.Contract.Dedup, p.Create = loader.AtLeastOnce, loader.DedupNone, loader.CreateNever
	f.on("SELECT table_id", say(result([]any{"7", "FUSE", loader.MadeBy})))
	_, err = l.Prepare(t.Context(), p)
	require.NoError(t, err)
}

func TestServer(t *testing.T) {
	f := newFake(t)
	f.on(selectMaxRunning, say(failure(1063, "not allowed")))
	db, _ := f.open(t, streamingLoad, func(t *loader.Target) { t.Settings = []loader.Setting{{Name: "max_threads", Value: "2"}} })
	require.Equal(t, loader.Server{
		Product: "Databend", Version: "v1.2.900", Endpoint: f.target("").Hosts[0], Settings: map[string]string{"max_threads": "2"},
	}, db.Server())
	require.Zero(t, db.Caps().MaxInFlight, "no bound is known")
	for said, want := range map[string]int{"0": 0, "3": 3} {
		f.on(selectMaxRunning, say(result([]any{said})))
		db, _ := f.open(t, streamingLoad)
		require.Equal(t, want, db.Caps().MaxInFlight, said)
	}
}

// Rows are read back as they went in, and the wider they are, the fewer come in one answer.
func TestFetch(t *testing.T) {
	f := newFake(t)
	l, err := New().Open(t.Context(), f.target(streamingLoad), testDeps())
	require.NoError(t, err)
	p := preparation(streamingLoad)
	p.Schema, p.Silent = everyType(), true
	p.Schema.Columns[1].MaxBytes = 1 << 20
	_, err = l.Prepare(t.Context(), p)
	require.NoError(t, err)
	const query = "SELECT (`id` - 100), `id`, `name`, TO_HEX(`raw`), CAST(`day` AS BIGINT), CAST(`t` AS BIGINT), `price` FROM `db`.`t` WHERE (`id` - 100) IN (5,6)"
	f.on(query, say(result([]any{"5", "105", "né", "00fF", "-1", "1704164645123456", "-12.05"})))
	require.NoError(t, l.(loader.Fetcher).Fetch(t.Context(), []int64{5, 6}, func(number int64, values []any) error {
		require.Equal(t, int64(5), number)
		require.Equal(t, []any{int64(105), []byte("né"), []byte{0, 255}, int64(-1), int64(1704164645123456), int64(-1205)}, values)
		return nil
	}))
	require.Equal(t, int64(1), f.asked(query)[0].pageRows)
}
