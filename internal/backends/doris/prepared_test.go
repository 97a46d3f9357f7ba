package doris

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	fake "github.com/terapush/terapush/internal/standin/doris"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// startPrepared opens a session of prepared INSERTs.
func startPrepared(t *testing.T, script func(fake.Request) fake.Fault) (*standIn, loader.Session) {
	s := startStandIn(t, fake.Options{Script: script})
	c := contractOf(methodInsert, batch.ColumnArrays, 10)
	c.Delivery, c.Dedup = loader.AtLeastOnce, loader.DedupNone
	options := map[string]string{optGroupCommit: "async", optGroupInterval: "20", optPrepared: "true"}
	return s, backendtest.Session(t, s.open(t, s.table(methodInsert, options), documents(t), c), c)
}

// A session prepares its INSERT once, the run's smaller last batch another one, and a retry the one that may be gone.
func TestInsertIsPreparedOnceForASize(t *testing.T) {
	s, session := startPrepared(t, func(r fake.Request) (f fake.Fault) {
		if r.Loads() && r.Attempt == 3 {
			f.Fail = "prepare statement 1 not found,  maybe expired"
		}
		return f
	})
	for i, c := range []struct {
		rows     int64
		prepared int // so far
	}{{10, 1}, {10, 1}, {10, 1}, {10, 2}, {5, 3}} {
		b := batchOf(t, documents(t), batch.ColumnArrays, batch.ID{Run: "r", Number: int64(i)}, 10*int64(i), c.rows)
		ack, err := load(t.Context(), session, b)
		if i == 2 {
			require.ErrorContains(t, err, "maybe expired")
		} else {
			require.NoError(t, err)
			assert.Equal(t, c.rows, ack.Rows)
		}
		assert.EqualValues(t, len(b.Encoded), b.Sent())
		n := 0
		for _, r := range s.Requests() {
			if strings.HasPrefix(r.SQL, "PREPARE ") {
				n++
			}
		}
		assert.Equal(t, c.prepared, n, "batch %d", i)
	}
}

// A server that does not prepare the INSERT has none of its rows, and the user can leave the option out.
func TestPrepareRefused(t *testing.T) {
	_, session := startPrepared(t, func(r fake.Request) (f fake.Fault) {
		if strings.HasPrefix(r.SQL, "PREPARE ") {
			f.Fail = "Forward master command is not supported for prepare statement"
		}
		return f
	})
	_, err := load(t.Context(), session, batchOf(t, documents(t), batch.ColumnArrays, batch.ID{Run: "r"}, 0, 10))
	require.ErrorContains(t, err, "Forward master command")
	assert.Contains(t, hint(err), "leave out --prepared")
	assert.Equal(t, loader.Refused(loader.ClassOther), New().Classify(err))
}

// The bounds on a batch leave every dataset within the parameters of the protocol and the packet of the server.
func TestBoundsOfAPreparedInsert(t *testing.T) {
	s := startStandIn(t, fake.Options{})
	target := s.table(methodInsert, map[string]string{optPrepared: "true", optGroupCommit: "sync"})
	caps := backendtest.Open(t, New(), target, testDeps()).Caps()
	for _, name := range dataset.Names() {
		d := documents(t)
		if name != "documents" {
			d = named(t, name)
		}
		b := batchOf(t, d, batch.ColumnArrays, batch.ID{Run: "r"}, 0, caps.MaxRows)
		values, err := b.Columns(d.Schema())
		require.NoError(t, err, name)
		var p preparedInsert
		p.bind(d.Schema(), values)
		bytes := int64(0)
		for _, arg := range p.args {
			bytes += 2 + 1 + 3 // type, NULL, length
			if text, is := arg.([]byte); is {
				bytes += int64(len(text))
			} else {
				bytes += 8
			}
		}
		require.NoError(t, values.Close())
		assert.LessOrEqual(t, len(p.args), maxParameters, name)
		assert.LessOrEqual(t, bytes*caps.MaxBytes/int64(len(b.Encoded)), int64(16777216), "%s, as large as a batch may be", name)
	}
}

func TestAppendDecimal(t *testing.T) {
	for want, n := range map[string]struct {
		value int64
		scale int
	}{"0.00": {0, 2}, "0.05": {5, 2}, "-0.05": {-5, 2}, "-12.34": {-1234, 2}, "10": {10, 0}, "-9223372036854775808": {-1 << 63, 0}} {
		assert.Equal(t, want, string(appendDecimal(nil, n.value, n.scale)))
	}
}
