package mysql

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// LOAD DATA LOCAL calls all of these a success.
func TestBadRowsAreCountedAndRolledBack(t *testing.T) {
	transactional(t, func(t *testing.T, s *testServer) {
		d, contract := documents(t, 20), contractOf(methodLoadData, 2)
		s.exec(t, fmt.Sprintf("CREATE TABLE %s (document_id BIGINT PRIMARY KEY, payload VARBINARY(20) NOT NULL) ENGINE=InnoDB",
			tableName{s.target.Database, "narrow"}.quoted()))
		db := s.open(t, s.table("narrow"), preparation(d, contract))
		session := db.testSession(t, contract)
		_, err := session.Load(t.Context(), textBatch(id(0), 1, "1\tgood\n"))
		require.NoError(t, err)
		for _, c := range []struct {
			name, text, words string
		}{
			{"duplicate key", "2\tgood\n1\ttwice\n", "Duplicate entry '1'"},
			{"no number", "2\tgood\nNaN\tx\n", "Incorrect integer value|Truncated incorrect DOUBLE value"},
			{"too long", "2\tgood\n3\t" + strings.Repeat("x", 21) + "\n", "Data too long|Data truncated"},
			{"short row", "2\tgood\n3\n", "doesn't contain data"},
			{"long row", "2\tgood\n3\tx\ty\n", "was truncated"},
		} {
			_, err := session.Load(t.Context(), textBatch(id(1), 2, c.text))
			require.Error(t, err, c.name)
			v := New().Classify(err)
			assert.Equal(t, loader.Verdict{Applied: loader.No, Class: loader.ClassRows}, v, c.name)
			assert.Regexp(t, c.words, err.Error(), c.name)
			assert.EqualValues(t, 1, s.rowsIn(t, "narrow"), c.name)
		}
		// Nothing of it is left in the session.
		ack, err := session.Load(t.Context(), textBatch(id(1), 2, "2\tgood\n3\tgood\n"))
		require.NoError(t, err)
		assert.EqualValues(t, 2, ack.Rows)
		assert.EqualValues(t, 3, s.rowsIn(t, "narrow"))
	})
}

func TestAtLeastOnce(t *testing.T) {
	transactional(t, func(t *testing.T, s *testServer) {
		d, contract := documents(t, 20), contractOf(methodLoadData, 2)
		contract.Delivery, contract.Dedup = loader.AtLeastOnce, loader.DedupNone
		s.exec(t, fmt.Sprintf("CREATE TABLE %s (document_id BIGINT PRIMARY KEY, payload BLOB NOT NULL)",
			tableName{s.target.Database, "plain"}.quoted()))
		p := preparation(d, contract)
		p.Create, p.Silent = loader.CreateNever, true
		db := s.open(t, s.table("plain"), p)
		session := db.testSession(t, contract)
		ack, err := session.Load(t.Context(), textBatch(id(0), 2, "1\ta\n2\tb\n"))
		require.NoError(t, err)
		assert.Equal(t, loader.Ack{Rows: 2}, ack)
		ack, err = session.Load(t.Context(), textBatch(id(1), 2, "2\tb\n3\tc\n"))
		require.NoError(t, err, "the engine compares the counts")
		assert.EqualValues(t, 1, ack.Rows)
		require.Len(t, ack.Detail, 1)
		assert.Contains(t, ack.Detail[0], "Warning 1062: Duplicate entry '2'")
		assert.EqualValues(t, 3, s.rowsIn(t, "plain"), "every statement commits by itself")
		ack, err = session.Load(t.Context(), textBatch(id(2), 1, "4x\td\n"))
		require.NoError(t, err, "a bent value fails nothing")
		assert.EqualValues(t, 1, ack.Rows)
		require.Len(t, ack.Detail, 1)
		assert.Regexp(t, `^Warning \d+: .*'(document_id|4x)'`, ack.Detail[0])
		assert.EqualValues(t, 0, s.count(t, "SELECT COUNT(*) FROM information_schema.tables WHERE table_name = 'terapush_claims'"+
			" AND table_schema = ?", s.target.Database))
	})
}

// Without a transaction around it, too: a connection that closes in the body leaves nothing behind.
func TestHalfSentLoadLeavesNoRows(t *testing.T) {
	transactional(t, func(t *testing.T, s *testServer) {
		faults := loadertest.NewFaults(s.deps.Dial)
		defer faults.Close()
		s.deps.Dial = faults.Dial
		d, contract := documents(t, 512), contractOf(methodLoadData, 20000)
		contract.Delivery, contract.Dedup = loader.AtLeastOnce, loader.DedupNone
		db := s.open(t, s.table("half"), preparation(d, contract))
		session := db.testSession(t, contract)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		hit := faults.StallAfter(5 << 20)
		go func() {
			<-hit
			cancel()
		}()
		b := batchOf(t, d, contract.Format, id(0), 0, 20000)
		_, err := session.Load(ctx, b)
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, loader.Unknown, New().Classify(err).Applied)
		for range 10 { // the server may still be busy with it
			require.Zero(t, s.rowsIn(t, "half"))
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// Where dirty reads are not to be had, the tag is what finds an attempt that a dead process left behind.
func TestTagFindsStatement(t *testing.T) {
	eachServer(t, func(t *testing.T, s *testServer) {
		d, contract := documents(t, 20), contractOf(methodLoadData, 2)
		db := s.open(t, s.table("t"), preparation(d, contract))
		session := db.testSession(t, contract)
		ended := make(chan error)
		go func() {
			_, err := session.conn.ExecContext(t.Context(), tag(id(1))+"DO 1; "+tag(id(1))+"DO SLEEP(30)")
			ended <- err
		}()
		time.Sleep(200 * time.Millisecond)
		ref := loader.Ref{ID: id(11), Rows: 2}
		require.NoError(t, db.endOthersOn(t.Context(), db.hosts.List[0], stateOf(t, db), ref), "another batch")
		select {
		case err := <-ended:
			t.Fatalf("ended too soon: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
		ref.ID = id(1)
		require.NoError(t, db.endOthersOn(t.Context(), db.hosts.List[0], stateOf(t, db), ref))
		assert.True(t, New().Classify(<-ended).SessionDead)
	})
}

func TestStoredIsNotStale(t *testing.T) {
	eachServer(t, func(t *testing.T, s *testServer) {
		d, contract := documents(t, 512), contractOf(methodLoadData, 10000)
		db := s.open(t, s.table("t"), preparation(d, contract))
		session := db.testSession(t, contract)
		var payload int64
		for i := range int64(4) {
			b := batchOf(t, d, batch.TSV, id(i), i*10000, 10000)
			_, err := session.Load(t.Context(), b)
			require.NoError(t, err)
			payload += b.Payload
		}
		stored, err := db.Stored(t.Context())
		require.NoError(t, err)
		assert.InDelta(t, payload, stored, 0.5*float64(payload))
	})
}
