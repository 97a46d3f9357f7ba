package oracle

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	fake "github.com/terapush/terapush/internal/standin/oracle"
	"github.com/terapush/terapush/pkg/loader"
)

func TestMeasured(t *testing.T) {
	o := oneBatch(t, way{contract: contractOf(methodArray, 10)}, 10)
	loads(t, o.loader, o.contract, o.batch)
	cost, notes := o.loader.Measured(t.Context())
	assert.Empty(t, notes)
	assert.Equal(t, map[string]float64{
		"commits": 1, "redo_bytes": 5000, "received_bytes": 3000, "round_trips": 9, "cpu_seconds": 0.07,
	}, cost)

	// What a session has cost whose connection breaks is lost, and said.
	o.SetScript(fake.At("INSERT", 1, fake.Fault{Cut: true}))
	o.batch = numbered(t, o.dataset, o.contract, 1)
	session, err := o.loader.Session(t.Context(), o.contract)
	require.NoError(t, err)
	_, err = load(t.Context(), session, o.batch)
	require.Error(t, err)
	_ = session.Close()
	_, notes = o.loader.Measured(t.Context())
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0], "leaves out 1 sessions")
}

// A table of another owner is not the user's own one of the same name.
func TestStoredOfAnotherOwner(t *testing.T) {
	o := oneBatch(t, way{contract: contractOf(methodArray, 10)}, 10)
	loads(t, o.loader, o.contract, o.batch)
	for owner, theirs := range map[string]bool{"": false, "TERA.": false, "other.": true} {
		target := o.target
		target.Table = owner + target.Table
		l, _, err := o.prepare(t, target, func(p *loader.Preparation) { p.Schema, p.Silent = o.dataset.Schema(), true })
		require.NoError(t, err)
		bytes, err := l.Stored(t.Context())
		require.NoError(t, err)
		assert.Equal(t, theirs, bytes == 0, "%q: %d bytes", owner, bytes)
	}
}

// A batch is told how far it is, and once that all is sent: before the answer, where the driver lets us see.
func TestBatchIsToldHowFarItIs(t *testing.T) {
	const size = 5
	for _, w := range ways(size) {
		loose := w.contract.Delivery == loader.AtLeastOnce
		if w.contract.Method == methodFast || loose && w.contract.Method != methodSingle {
			continue // like array, and like exactly once
		}
		t.Run(w.label, func(t *testing.T) {
			o := oneBatch(t, w, size)
			all, told := int64(len(o.batch.Encoded)), 0
			o.batch.AllRead = func() { told++ }
			far := make(chan int64, size)
			o.SetScript(func(r fake.Request) fake.Fault {
				if r.Is(`INTO "TERA"."T_`) {
					far <- o.batch.Sent()
				}
				return fake.Fault{}
			})
			_, err := o.attempt(t.Context(), t)
			require.NoError(t, err)
			assert.Equal(t, 1, told)
			assert.Equal(t, all, o.batch.Sent())
			if w.contract.Method == methodSingle || w.contract.Method == methodBatch {
				require.Len(t, far, size, "requests with rows")
				for i := range int64(size - 1) { // the last may count already
					assert.Equal(t, all*i/size, <-far, "before row %d", i)
				}
			}
		})
	}
}

// What Fast Ingest does with ten rows, and what the back-end reports of it.
func TestFast(t *testing.T) {
	const rows = 10
	type faults = map[string]fake.Fault
	const insert, flush = "MEMOPTIMIZE_WRITE */", "WRITES_FLUSH"
	denied := faults{flush: {Fail: fake.Ora(6550)}}
	for label, c := range map[string]struct {
		server   fake.Options
		faults   faults
		crashes  bool
		fails    bool // Load
		wantRows int64
		note     string // of Finish
	}{
		"as it should be": {wantRows: rows},
		"miscounted":      {faults: faults{insert: {Count: 9}}, fails: true, wantRows: rows},
		"answer cut": {
			faults: faults{insert: {CutAnswer: true}}, fails: true, wantRows: rows, note: "1 sessions did not say how far they came",
		},
		"a crash":       {crashes: true, wantRows: 0},
		"conventional":  {server: fake.Options{NoFastIngest: true}, wantRows: rows, note: "1 sessions were inserted conventionally"},
		"written alone": {server: fake.Options{DrainRows: rows}, faults: denied, wantRows: rows},
		"waits": {
			server: fake.Options{DrainRows: 6}, faults: denied, wantRows: rows, note: "waited for the server to write by itself: " +
				"to have it write at once, GRANT EXECUTE ON DBMS_MEMOPTIMIZE_ADMIN",
		},
	} {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			c.server.IgnoreHints = true // as on an Autonomous Database
			o := oneBatchOf(t, documents(t), way{contract: contractOf(methodFast, rows)}, rows, c.server)
			o.SetScript(fake.Where(c.faults))
			session, err := o.loader.Session(t.Context(), o.contract)
			require.NoError(t, err)
			_, err = load(t.Context(), session, o.batch)
			require.Equal(t, c.fails, err != nil, "%v", err)
			if err != nil {
				assert.Equal(t, loader.Unknown, o.backend.Classify(err).Applied, "the memory knows no rollback")
			}
			_ = session.Close()
			if c.crashes {
				o.Crash()
			}
			notes, err := o.loader.Finish(t.Context(), loader.KeyRange{Last: rows - 1}, rows)
			require.NoError(t, err)
			if c.note == "" {
				assert.Empty(t, notes)
			} else {
				require.Len(t, notes, 1)
				assert.Contains(t, notes[0], c.note)
			}
			assert.Equal(t, 1, o.requests(flush), "an earlier process may have left rows in memory")
			n := int64(0)
			g := loader.Grouping{KeyRange: loader.KeyRange{Last: rows - 1}, Size: rows}
			require.NoError(t, o.loader.Count(t.Context(), g, func(b loader.Bucket) error { n += b.Rows; return nil }))
			assert.Equal(t, c.wantRows, n)
		})
	}
}

// Without privileges, or on an older server, there is less to report, and nothing fails.
func TestWithoutPrivileges(t *testing.T) {
	o := oneBatchOf(t, documents(t), way{contract: contractOf(methodFast, 10)}, 10, fake.Options{
		Script: fake.Where(map[string]fake.Fault{
			"v$mystat": {Fail: fake.Ora(942)}, "v$parameter": {Fail: fake.Ora(942)}, "WRITES_FLUSH": {Fail: fake.Ora(6550)},
			"OPTIMIZER_IGNORE_HINTS": {Fail: fake.Ora(codeNoParameter)},
		}),
	})
	notes, err := o.loader.Finish(t.Context(), loader.KeyRange{Last: 9}, 10)
	require.NoError(t, err)
	require.Len(t, notes, 1)
	assert.NotContains(t, notes[0], "waited", "no session has sent a row")
	assert.Contains(t, notes[0], "GRANT EXECUTE ON DBMS_MEMOPTIMIZE_ADMIN")
	for n := range int64(2) {
		loads(t, o.loader, o.contract, numbered(t, o.dataset, o.contract, n))
	}
	cost, notes := o.loader.Measured(t.Context())
	assert.Empty(t, cost)
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0], "GRANT SELECT ON V_$MYSTAT")
	assert.Equal(t, 1, o.requests("v$mystat"), "a server that refuses is not asked again")
}

// Before 18c the version has another column.
func TestVersionOfOlderServers(t *testing.T) {
	lacks := fake.Fault{Fail: fake.Ora(codeNoColumn, "VERSION_FULL")}
	s := startStandIn(t, fake.Options{Script: fake.At("version_full", 1, lacks)})
	l, err := s.backend.Open(t.Context(), s.table(methodArray), backendtest.Deps())
	require.NoError(t, err)
	assert.Equal(t, "12.2.0.1.0", l.Server().Version)
	assert.NotContains(t, l.Server().Settings, settingCloud)
}

// Who has not asked for TCP is warned of it, unless the rows do not leave the machine. No log holds the password.
func TestWarnsOfTCP(t *testing.T) {
	for text, warns := range map[string]bool{
		"oracle://u:hunter2@db.example/s":              true,
		"oracle://u:hunter2@localhost,10.0.0.1:1522/s": true,
		"oracle://u:hunter2@localhost/s":               false,
		"oracle://u:hunter2@127.0.0.1:1521,[::1]/s":    false,
		"oracle://u:hunter2@db.example/s?ssl=true":     false,
		"oracle://u:hunter2@db.example/s?ssl=false":    false,
	} {
		for mode, chosen := range map[loader.TLSMode]bool{loader.TLSAuto: false, loader.TLSOff: true, loader.TLSVerify: true} {
			logged := new(strings.Builder)
			to := target(t, text, func(to *loader.Target) { to.TLS = mode })
			var err error
			to.TLS, err = tlsMode(to)
			require.NoError(t, err)
			(&opened{target: to, deps: loggingTo(logged)}).warnUnencrypted()
			assert.Equal(t, warns && !chosen, strings.Contains(logged.String(), "?ssl=true"), "%s, %s: %s", text, mode, logged)
			assert.NotContains(t, logged.String(), secret)
		}
	}
}
