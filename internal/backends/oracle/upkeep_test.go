package oracle

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fake "github.com/terapush/terapush/internal/fake/oracle"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// chore is something besides loading that talks to the server.
type chore struct {
	do func(ctx context.Context) error
	// after checks, with nothing wrong any more, that what do said is true and that doing it again ends well.
	after func(t *testing.T, err error)
}

// everyRequest has each request of a chore fail in every way, once.
func everyRequest(t *testing.T, least int, setUp func(t *testing.T) (*standIn, chore)) {
	for label, fault := range everyFault() {
		n := 1
		for ; ; n++ {
			s, c := setUp(t)
			struck := fake.Statement{}
			var mu sync.Mutex
			s.SetScript(nth(n, fault, &mu, &struck))
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			err := c.do(ctx)
			require.NoError(t, ctx.Err(), "it hangs")
			cancel()
			s.SetScript(func(fake.Statement) fake.Fault { return fake.Fault{} })
			mu.Lock()
			at := struck
			mu.Unlock()
			s.quiet(t)
			ok := t.Run("", func(t *testing.T) { c.after(t, err) })
			require.True(t, ok, "%s at %s %s: %v", label, at.Kind, at.Text, err)
			s.quiet(t)
			s.Close()
			if at.Kind == "" {
				require.NoError(t, err)
				break
			}
		}
		assert.Greater(t, n, least, label)
	}
}

// quiet waits until the server has ended whatever its clients have left.
func (s *standIn) quiet(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return s.Sessions() == 0 && s.Open() == 0 }, patience, time.Millisecond)
}

func TestEveryRequestOfPrepareFails(t *testing.T) {
	t.Parallel()
	for _, mode := range []loader.CreateMode{loader.CreateIfMissing, loader.CreateRecreate} {
		everyRequest(t, 6, func(t *testing.T) (*standIn, chore) {
			s := startStandIn(t, false, fake.Options{})
			target := s.table(methodFast) // which asks for the most
			prepare := func(ctx context.Context) error {
				l, err := s.backend.Open(ctx, target, testDeps())
				if err != nil {
					return err
				}
				defer l.Close()
				c := contractOf(methodFast, 10)
				c.Dedup = loader.DedupTx // for the claim table's sake
				_, err = l.Prepare(ctx, loader.Preparation{
					Run: "r", Schema: journal(), Contract: c, Create: mode, MayDrop: target.Table, PrimaryKey: true,
				})
				return err
			}
			if mode == loader.CreateRecreate {
				require.NoError(t, prepare(t.Context()))
				s.say(t, "INSERT INTO "+qualified("", name(target))+" (ID, TS) VALUES ('1', TO_TIMESTAMP('2026-01-01', 'YYYY-MM-DD'))")
			}
			return s, chore{prepare, func(t *testing.T, err error) {
				made := func() {
					assert.True(t, s.has(t, name(target)))
					assert.True(t, s.has(t, "TERAPUSH_CLAIMS"))
					assert.Zero(t, s.Rows(name(target)))
				}
				if err == nil {
					made()
				} else {
					assert.NotEqual(t, loader.Yes, s.backend.Classify(err).Applied)
				}
				require.NoError(t, prepare(t.Context()))
				made()
			}}
		})
	}
}

func TestEveryRequestOfReserveFails(t *testing.T) {
	t.Parallel()
	for _, method := range []string{methodArray, methodFast} {
		everyRequest(t, 5, func(t *testing.T) (*standIn, chore) {
			s := startStandIn(t, false, fake.Options{})
			l := s.open(t, s.table(method), documents(t), contractOf(method, 10)).(*opened)
			first := int64(-1)
			return s, chore{func(ctx context.Context) (err error) {
				first, err = l.Reserve(ctx, "a", 100, math.MaxInt64)
				return err
			}, func(t *testing.T, err error) {
				again, failed := l.Reserve(t.Context(), "a", 100, math.MaxInt64)
				require.NoError(t, failed)
				if err == nil {
					assert.Equal(t, first, again)
				}
				other, failed := l.Reserve(t.Context(), "b", 100, math.MaxInt64)
				require.NoError(t, failed)
				assert.Equal(t, again+100, other)
				assert.Equal(t, 2, s.Rows("TERAPUSH_CLAIMS"))
			}}
		})
	}
}

func TestEveryRequestOfProbeFails(t *testing.T) {
	t.Parallel()
	for _, native := range []bool{false, true} {
		everyRequest(t, 5, func(t *testing.T) (*standIn, chore) {
			s := startStandIn(t, native, fake.Options{})
			d, c := documents(t), contractOf(methodArray, 10)
			target := s.table(methodArray)
			l := s.open(t, target, d, c).(*opened)
			probe := func(ctx context.Context) error {
				b := held(encoded(t, d, c.Format, batch.ID{Run: "r"}, 0, 1))
				proof, err := l.Probe(ctx, c, b)
				if err == nil {
					assert.True(t, proof.Transactional, proof.Reason)
				}
				return err
			}
			return s, chore{probe, func(t *testing.T, _ error) {
				nothing := func() {
					assert.Zero(t, s.Rows(name(target)))
					assert.Zero(t, s.Rows("TERAPUSH_CLAIMS"))
				}
				nothing()
				require.NoError(t, probe(t.Context()))
				nothing()
			}}
		})
	}
}

func TestEveryRequestOfForgetFails(t *testing.T) {
	t.Parallel()
	for _, native := range []bool{false, true} {
		everyRequest(t, 2, func(t *testing.T) (*standIn, chore) {
			s := startStandIn(t, native, fake.Options{})
			d, c := documents(t), contractOf(methodArray, 10)
			target := s.table(methodArray)
			l := s.open(t, target, d, c).(*opened)
			session, err := l.Session(t.Context(), c)
			require.NoError(t, err)
			_, err = load(t.Context(), session, encoded(t, d, c.Format, batch.ID{Run: "r"}, 0, 10))
			require.NoError(t, err)
			require.NoError(t, session.Close())
			forget := func(ctx context.Context) error {
				_, err := l.Forget(ctx, "r")
				return err
			}
			return s, chore{forget, func(t *testing.T, err error) {
				if err == nil {
					assert.Zero(t, s.Rows("TERAPUSH_CLAIMS"))
				}
				require.NoError(t, forget(t.Context()))
				assert.Zero(t, s.Rows("TERAPUSH_CLAIMS"))
				s.exact(t, target, 10)
			}}
		})
	}
}

// stored is a stand-in with two batches of a group in its store.
func stored(t *testing.T, change func(loader.Contract) loader.Contract) (s *standIn, l *staged, target loader.Target, g loader.Group) {
	t.Helper()
	s, b := startWithStore(t, fake.Options{})
	d := datasetOf(t, "people", "")
	c := contractOf(methodCloudCopy, 10)
	if change != nil {
		c = change(c)
	}
	target = s.through(b)
	opened, err := s.backend.Open(t.Context(), target, testDeps())
	require.NoError(t, err)
	t.Cleanup(func() { _ = opened.Close() })
	_, err = opened.Prepare(t.Context(), loader.Preparation{Run: "r-1", Schema: d.Schema(), Contract: c, Create: loader.CreateIfMissing})
	require.NoError(t, err)
	session, err := opened.Session(t.Context(), c)
	require.NoError(t, err)
	g = loader.Group{Ref: loader.Ref{ID: batch.ID{Run: "r-1"}, Rows: 20}}
	for n := range int64(2) {
		b := encoded(t, d, batch.CSV, batch.ID{Run: "r-1", Number: n}, n*10, 10)
		_, err := load(t.Context(), session, b)
		require.NoError(t, err)
		g.Members = append(g.Members, loader.RefOf(b))
	}
	return s, opened.(*staged), target, g
}

func TestEveryRequestOfACommitFails(t *testing.T) {
	t.Parallel()
	everyRequest(t, 6, func(t *testing.T) (*standIn, chore) {
		s, l, target, g := stored(t, nil)
		commit := func(ctx context.Context) error {
			ack, err := l.Commit(ctx, g)
			if err == nil {
				assert.EqualValues(t, 20, ack.Rows)
			}
			return err
		}
		return s, chore{commit, func(t *testing.T, err error) {
			there := s.Rows(name(target))
			switch applied := s.backend.Classify(err).Applied; {
			case err == nil:
				assert.Equal(t, 20, there)
			case applied == loader.No:
				assert.Zero(t, there, err)
			default:
				found, err := l.Resolve(t.Context(), g.Ref)
				require.NoError(t, err)
				assert.Equal(t, map[bool]loader.Applied{true: loader.Yes, false: loader.No}[there == 20], found.Applied)
			}
			require.NoError(t, commit(t.Context()))
			s.exact(t, target, 20)
			_, err = l.Forget(t.Context(), "r-1")
			require.NoError(t, err)
			assert.False(t, s.has(t, externalTable("r-1", 0)))
			assert.Zero(t, s.Rows("TERAPUSH_CLAIMS"))
		}}
	})
}

// A run at least once has no claim table, and its leftovers go all the same.
func TestEveryRequestOfForgettingACopyFails(t *testing.T) {
	t.Parallel()
	for _, change := range []func(loader.Contract) loader.Contract{nil, atLeastOnce} {
		everyRequest(t, 3, func(t *testing.T) (*standIn, chore) {
			s, l, _, g := stored(t, change)
			s.SetScript(fake.At("/*+ APPEND */", 1, fake.Fault{Drop: true}))
			_, err := l.Commit(t.Context(), g)
			require.Error(t, err)
			s.SetScript(func(fake.Statement) fake.Fault { return fake.Fault{} })
			require.True(t, s.has(t, externalTable("r-1", 0)))
			forget := func(ctx context.Context) error {
				_, err := l.Forget(ctx, "r-1")
				if change != nil && s.backend.Classify(err).Class == loader.ClassMissing {
					return nil // the claim table, which the product takes for none
				}
				return err
			}
			return s, chore{forget, func(t *testing.T, err error) {
				if err == nil {
					assert.False(t, s.has(t, externalTable("r-1", 0)))
				}
				require.NoError(t, forget(t.Context()))
				assert.False(t, s.has(t, externalTable("r-1", 0)))
			}}
		})
	}
}

// Without credentials nothing is sent to the server: that group is certainly not in.
func TestCommitWithoutCredentials(t *testing.T) {
	s, l, target, g := stored(t, nil)
	before := len(s.Log())
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(name, "")
	}
	for name, value := range map[string]string{
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
	} {
		t.Setenv(name, value)
	}
	bare, err := s.backend.Open(t.Context(), target, testDeps())
	if err == nil { // else the store says so when it is opened
		defer bare.Close()
		_, err = bare.Prepare(t.Context(), settled(t, l.opened).Want)
		require.NoError(t, err)
		_, err = bare.(*staged).Commit(t.Context(), g)
	}
	require.Error(t, err)
	assert.Equal(t, loader.No, s.backend.Classify(err).Applied, "%v", err)
	for _, text := range s.sent(before) {
		assert.NotContains(t, text, "DBMS_CLOUD.")
	}
}

// A session that says logoff is done with its work, and what it has not committed the server commits: so the link rolls
// back first, and where it cannot the connection ends without a word.
func TestGoodbyeCommitsNothing(t *testing.T) {
	for _, native := range []bool{false, true} {
		for label, fault := range map[string]fake.Fault{
			"rolled back": {}, "no rollback": {Fail: &fake.Error{Code: 600, Text: "internal error code"}},
		} {
			t.Run(label, func(t *testing.T) {
				s := startStandIn(t, native, fake.Options{Script: fake.At(fake.Rollback, 1, fault)})
				s.say(t, "CREATE TABLE T (ID NUMBER(19))")
				l := &opened{target: s.table(methodArray), deps: testDeps(), client: s.backend.client}
				k, err := l.connect(t.Context(), 0)
				require.NoError(t, err)
				require.NoError(t, k.begin(t.Context()))
				_, err = k.exec(t.Context(), "INSERT INTO T (ID) VALUES (1)")
				require.NoError(t, err)
				_ = k.Close()
				s.quiet(t)
				assert.Zero(t, s.Rows("T"))
			})
		}
	}
}
