package doris

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	fake "github.com/terapush/terapush/internal/standin/doris"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// attempts sends a batch as the engine does: after every failure it asks what became of it, and sends again only what is
// not applied.
func attempts(ctx context.Context, l loader.Loader, c loader.Contract, b *batch.Batch) error {
	for range 10 {
		s, err := l.Session(ctx, c)
		if err != nil {
			return err
		}
		ack, err := load(ctx, s, b)
		_ = s.Close()
		if err == nil && ack.Rows != b.Rows {
			return &loader.RowsError{Sent: b.Rows, Acknowledged: ack.Rows}
		}
		if err == nil {
			return nil
		}
		v := New().Classify(err)
		if v.Applied != loader.No {
			found, err := l.(loader.Resolver).Resolve(ctx, loader.RefOf(b))
			if err != nil || found.Applied == loader.Yes {
				return err
			}
			v.Applied = found.Applied
		}
		if !v.Retry || v.Applied != loader.No {
			return err
		}
	}
	return errors.New("ten attempts failed")
}

// firstOnly lets a fault happen to the first request of the kind.
func firstOnly(kind fake.Kind, fault fake.Fault) func(fake.Request) fake.Fault {
	return func(r fake.Request) fake.Fault {
		if r.Kind == kind && r.Attempt == 1 && (kind != fake.Statement || r.Label != "") {
			return fault
		}
		return fake.Fault{}
	}
}

// oneBatch loads batch 0 against a script and returns what came of the first attempt.
func oneBatch(t *testing.T, method string, options map[string]string, script func(fake.Request) fake.Fault) (*standIn, *opened, *batch.Batch, loader.Contract, error) {
	d := documents(t)
	s := startStandIn(t, fake.Options{Script: script})
	format := batch.DorisCSV
	if method == methodInsert {
		format = batch.Values
	}
	c := contractOf(method, format, 10)
	if g := options[optGroupCommit]; g != "" && g != "off" {
		c.Delivery, c.Dedup = loader.AtLeastOnce, loader.DedupNone
	}
	db := s.open(t, s.table(method, options), d, c)
	b := batchOf(t, d, format, batch.ID{Run: "r", Number: 0}, 0, 10)
	session := backendtest.Session(t, db, c)
	_, err := load(t.Context(), session, b)
	if err != nil && New().Classify(err).SessionDead {
		_, again := load(t.Context(), session, b)
		require.Error(t, again)
		assert.Equal(t, loader.No, New().Classify(again).Applied, "a dead session sends nothing: %v", again)
	}
	return s, db, b, c, err
}

func TestFaultsOfTheServer(t *testing.T) {
	for name, c := range map[string]struct {
		kind  fake.Kind
		fault fake.Fault
		want  loader.Verdict
		final bool // trying again is of no use
	}{
		"too many versions":  {fake.Load, fake.Fault{Fail: fake.TooManyVersions}, loader.Verdict{Class: loader.ClassThrottled, Applied: loader.No, Retry: true}, false},
		"no backend":         {fake.Redirect, fake.Fault{Fail: fake.NoBackend}, loader.Verdict{Class: loader.ClassShutdown, Applied: loader.No, Retry: true}, false},
		"refused early":      {fake.Load, fake.Fault{RefuseEarly: "Access denied"}, loader.Verdict{Class: loader.ClassPermission, Applied: loader.No}, true},
		"frontend cuts":      {fake.Redirect, fake.Fault{Cut: true}, loader.Verdict{Class: loader.ClassConnection, Applied: loader.No, Retry: true, SessionDead: true}, false},
		"cut body":           {fake.Load, fake.Fault{Cut: true}, loader.Verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}, false},
		"answer lost":        {fake.Load, fake.Fault{CutAnswer: true}, loader.Verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}, false},
		"answer truncated":   {fake.Load, fake.Fault{Truncate: true}, loader.Verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}, false},
		"statement refused":  {fake.Statement, fake.Fault{Fail: fake.TooManyVersions}, loader.Verdict{Class: loader.ClassThrottled, Applied: loader.No, Retry: true}, false},
		"statement is lost":  {fake.Statement, fake.Fault{CutAnswer: true}, loader.Verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}, false},
		"statement not sent": {fake.Statement, fake.Fault{Cut: true}, loader.Verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			method := methodStreamLoad
			if c.kind == fake.Statement {
				method = methodInsert
			}
			s, db, b, contract, err := oneBatch(t, method, nil, firstOnly(c.kind, c.fault))
			require.Error(t, err)
			assert.NotContains(t, err.Error(), "hunter2")
			assert.Equal(t, c.want, New().Classify(err), "%v", err)
			if c.final {
				assert.Zero(t, s.Rows(db.name.table))
				return
			}
			require.NoError(t, attempts(t.Context(), db, contract, b))
			assert.EqualValues(t, 10, s.Rows(db.name.table))
		})
	}
}

// A load whose label is taken is not applied twice, whatever becomes of the other one.
func TestLabelExists(t *testing.T) {
	for name, outcomes := range map[string][]bool{"committed": {true}, "aborted": {false}, "canceled": nil} {
		t.Run("under way, then "+name, func(t *testing.T) {
			linger := make(chan bool, 1)
			for _, commits := range outcomes {
				linger <- commits
			}
			s, db, b, c, err := oneBatch(t, methodStreamLoad, nil, firstOnly(fake.Load, fake.Fault{Linger: linger}))
			require.Error(t, err)
			found, err := db.Resolve(t.Context(), loader.RefOf(b))
			require.NoError(t, err)
			assert.NotEqual(t, loader.Unknown, found.Applied, "the server ends what is under way")
			require.NoError(t, attempts(t.Context(), db, c, b))
			assert.EqualValues(t, 10, s.Rows(db.name.table))
		})
	}
	t.Run("under way, then gone", func(t *testing.T) { // the server says RUNNING, and knows the label no more when asked
		s, db, _, _, err := oneBatch(t, methodStreamLoad, nil, firstOnly(fake.Load, fake.Fault{Existing: "RUNNING"}))
		require.NoError(t, err)
		assert.EqualValues(t, 10, s.Rows(db.name.table))
	})
	t.Run("for ever", func(t *testing.T) {
		_, _, _, _, err := oneBatch(t, methodStreamLoad, nil, func(r fake.Request) fake.Fault {
			if r.Kind == fake.Load {
				return fake.Fault{Existing: "RUNNING"}
			}
			return fake.Fault{}
		})
		require.ErrorContains(t, err, "RUNNING")
		assert.Equal(t, loader.Verdict{Class: loader.ClassOther, Retry: true}, New().Classify(err))
	})
}

// A server that loads under labels of its own recognizes nothing: the batch that shows it is counted, and no other is sent. A
// follower does not know the label of an INSERT, so the master is asked for the one that was sent.
func TestReplacedLabelsEndTheRun(t *testing.T) {
	d := documents(t)
	for name, c := range map[string]struct {
		method   string
		format   batch.Format
		follower bool
		by       string
	}{
		"stream load":        {methodStreamLoad, batch.DorisCSV, false, "made_up"},
		"insert":             {methodInsert, batch.Values, false, "made_up"},
		"insert, a follower": {methodInsert, batch.Values, true, "another one"},
	} {
		t.Run(name, func(t *testing.T) {
			s := startStandIn(t, fake.Options{Follower: c.follower, Script: func(r fake.Request) (f fake.Fault) {
				if r.Label != "" && r.Loads() {
					f.Label = "made_up"
				}
				return f
			}})
			contract, target := contractOf(c.method, c.format, 10), s.table(c.method, nil)
			db := s.open(t, target, d, contract)
			require.NoError(t, attempts(t.Context(), db, contract, batchOf(t, d, c.format, batch.ID{Run: "r"}, 0, 10)))
			err := attempts(t.Context(), db, contract, batchOf(t, d, c.format, batch.ID{Run: "r", Number: 1}, 10, 10))
			require.ErrorContains(t, err, "by "+c.by)
			assert.Equal(t, loader.Verdict{Class: loader.ClassOther, Applied: loader.No}, New().Classify(err))
			assert.EqualValues(t, 10, s.Rows(target.Table))
		})
	}
}

// A forgotten label proves nothing: the rows in the batch's key range do.
func TestForgottenLabels(t *testing.T) {
	d := documents(t)
	s := startStandIn(t, fake.Options{})
	c := contractOf(methodStreamLoad, batch.DorisCSV, 10)
	target := s.table(methodStreamLoad, nil)
	db := s.open(t, target, d, c)
	require.NoError(t, attempts(t.Context(), db, c, batchOf(t, d, batch.DorisCSV, batch.ID{Run: "r"}, 0, 10)))
	s.ForgetLabels()

	resolve := func(first int64) loader.Resolution {
		found, err := db.Resolve(t.Context(), loader.Ref{ID: batch.ID{Run: "r", Number: first / 10}, First: first, Rows: 10, Attempt: 1})
		require.NoError(t, err)
		return found
	}
	assert.Equal(t, loader.Resolution{Applied: loader.Yes}, resolve(0))
	assert.Equal(t, loader.Resolution{Applied: loader.No}, resolve(100))
	s.Remove(db.name.table, 3)
	assert.Equal(t, loader.Resolution{Reason: "9 of 10 rows are in the key range of r/0"}, resolve(0), "that is an answer, and no error")
}

func TestGroupCommitOfTheServer(t *testing.T) {
	for _, method := range []string{methodStreamLoad, methodInsert} {
		t.Run(method, func(t *testing.T) {
			async := map[string]string{optGroupCommit: "async", optGroupInterval: "50"}
			s, db, _, _, err := oneBatch(t, method, async, nil)
			require.NoError(t, err)
			notes, err := db.Finish(t.Context(), loader.KeyRange{Last: 9}, 10)
			require.NoError(t, err)
			assert.Empty(t, notes)
			assert.EqualValues(t, 10, s.Rows(db.name.table))
			assert.Equal(t, 50*time.Millisecond, db.interval())

			silent := func(fake.Request) fake.Fault { return fake.Fault{NoGroup: true} }
			_, _, _, _, err = oneBatch(t, method, map[string]string{optGroupCommit: "sync"}, silent)
			require.ErrorContains(t, err, "did not merge")
			assert.False(t, New().Classify(err).Retry)
		})
	}
}
