package postgres_test

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/backends/postgres"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// newYugabyte opens a node of a scripted cluster, with the option unless it is "".
func newYugabyte(t *testing.T, option, value string, dedup loader.Dedup) (*fake, loader.Loader, loader.Contract) {
	f := newFake(t, yugabyteVersion)
	to := f.target("yugabyte", "copy")
	if option != "" {
		to.Options[option] = value
	}
	c := contract("copy", batch.PGBinary)
	c.Dedup = dedup
	return f, open(t, to), c
}

func prepare(t *testing.T, l loader.Loader, c loader.Contract) error {
	p := preparation(t, loader.CreateIfMissing)
	p.Contract = c
	_, err := l.Prepare(t.Context(), p)
	return err
}

// A COPY in several transactions that fails half way has left rows behind, and the next attempt sends all of the batch.
func TestYugabyteRowsPerTransaction(t *testing.T) {
	f, l, c := newYugabyte(t, "rows-per-transaction", "20", loader.DedupNone)
	assert.Equal(t, "YugabyteDB", l.Server().Product)
	assert.Equal(t, loader.AtLeastOnce, l.Caps().Delivery())
	assert.Contains(t, l.Caps().Reason, "--batch-rows 20", "who wants the same exactly once is told how")
	assert.Equal(t, int64(20), l.Caps().MinRows)
	assert.False(t, l.Caps().Atomic)
	require.NoError(t, prepare(t, l, c))
	s := backendtest.Session(t, l, c)
	b := documentsOf(t, 3, 300, 100)
	f.says(answer{part: "COPY", code: "XX000", message: "Timed out waiting for a tablet leader", once: true})
	_, err := s.Load(t.Context(), b)
	assert.ErrorContains(t, err, "load: ERROR: Timed out waiting for a tablet leader")
	v := postgres.New().Classify(err)
	assert.Equal(t, loader.Unknown, v.Applied)
	assert.True(t, v.Retry)

	ack, err := s.Load(t.Context(), b)
	require.NoError(t, err)
	assert.Equal(t, int64(100), ack.Rows)
	assert.Equal(t, b.Encoded, f.copied[1])
	assert.Empty(t, f.queries("BEGIN ISOLATION LEVEL READ COMMITTED"), "in a transaction block YugabyteDB ignores ROWS_PER_TRANSACTION")
}

func TestYugabyteWithoutTransactions(t *testing.T) {
	f, l, c := newYugabyte(t, "disable-transactional-writes", "true", loader.DedupNone)
	assert.Equal(t, loader.AtLeastOnce, l.Caps().Delivery())
	assert.Contains(t, l.Caps().Reason, "yb_enable_upsert_mode")
	require.NoError(t, prepare(t, l, c))
	s := backendtest.Session(t, l, c)
	assert.NotEmpty(t, f.queries("SET yb_disable_transactional_writes = on"))
	f.says(answer{part: "COPY", code: "XX000"})
	_, err := s.Load(t.Context(), documentsOf(t, 0, 0, 10))
	assert.Equal(t, loader.Unknown, postgres.New().Classify(err).Applied, "rows may have stayed")
}

// What a server that gives a transaction up, or loses a claim, answers without an error.
func TestUnexpectedAnswers(t *testing.T) {
	for text, says := range map[string][]answer{
		"the server answered ROLLBACK":                  {{part: "BEGIN", tags: []string{"BEGIN", "INSERT 0 1"}}, {part: "COMMIT", tags: []string{"ROLLBACK"}}},
		"run run-1 has no row in the database any more": {{part: "INSERT INTO", tags: []string{"BEGIN", "INSERT 0 0"}}, {part: "SELECT row_count"}},
	} {
		f, l, c := newYugabyte(t, "", "", loader.DedupTx)
		require.NoError(t, prepare(t, l, c))
		s := backendtest.Session(t, l, c)
		f.says(says...)
		_, err := s.Load(t.Context(), documentsOf(t, 0, 0, 10))
		require.ErrorContains(t, err, text)
		assert.Equal(t, loader.No, postgres.New().Classify(err).Applied)
	}
}

// Sessions go to all nodes that answer. One node has an address that means nothing here, and a public one that does.
func TestYugabyteNodes(t *testing.T) {
	first, second := newFake(t, yugabyteVersion), newFake(t, yugabyteVersion)
	port := func(l net.Listener) string { return strconv.Itoa(l.Addr().(*net.TCPAddr).Port) }
	dead, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, dead.Close())
	first.says(answer{part: "FROM yb_servers()", rows: [][]string{
		{"127.0.0.1", port(first.listener), ""},
		{"no.such.host.invalid", port(second.listener), "127.0.0.1"},
		{"127.0.0.1", port(dead), ""},
	}})
	c := contract("copy", batch.PGBinary)
	l := open(t, first.target("yugabyte", "copy"))
	require.NoError(t, prepare(t, l, c))
	for range 4 {
		backendtest.Session(t, l, c)
	}
	assert.Len(t, first.queries("SET application_name = 'terapush/"), 2)
	assert.Len(t, second.queries("SET application_name = 'terapush/"), 2)

	// A session that was left behind can only be ended on its own node.
	second.says(answer{part: "usename = session_user", rows: [][]string{{"8", "1600000000", "terapush/run-1"}}, once: true})
	_, err = l.(loader.Resolver).Resolve(t.Context(), loader.Ref{ID: batch.ID{Run: "run-1", Number: 9}})
	require.NoError(t, err)
	assert.Len(t, second.queries("pg_terminate_backend(8)"), 1)
	assert.Len(t, second.queries("usename = session_user"), 2, "asked again until it is gone")
}
