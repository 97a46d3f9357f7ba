package oracle

import (
	"context"
	"crypto/rand"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	fake "github.com/terapush/terapush/internal/standin/oracle"
	"github.com/terapush/terapush/pkg/loader"
)

// chore is something besides loading that talks to the server.
type chore struct {
	do func(ctx context.Context) error
	// after checks, when nothing fails any more, that what do returned is true and that doing it again succeeds.
	after func(t *testing.T, err error)
}

// everyRequest has each request of a chore fail in every way, once.
func everyRequest(t *testing.T, least int, setUp func(t *testing.T) (*standIn, chore)) {
	backendtest.Long(t)
	for label, fault := range everyFault {
		n := 1
		for ; ; n++ {
			s, c := setUp(t)
			script, struck := nth(n, fault)
			s.SetScript(script)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			err := c.do(ctx)
			require.NoError(t, ctx.Err(), "it hangs")
			cancel()
			s.SetScript(nil)
			s.quiet(t)
			ok := t.Run("", func(t *testing.T) { c.after(t, err) })
			require.True(t, ok, "%s at %s: %v", label, struck(), err)
			s.quiet(t)
			s.Close()
			if struck() == "" {
				require.NoError(t, err)
				break
			}
		}
		assert.Greater(t, n, least, label)
	}
}

func TestEveryRequestOfPrepareFails(t *testing.T) {
	t.Parallel()
	for _, mode := range []loader.CreateMode{loader.CreateIfMissing, loader.CreateRecreate} {
		everyRequest(t, 12, func(t *testing.T) (*standIn, chore) {
			s := startStandIn(t, fake.Options{})
			target := s.table(methodFast) // which asks for the most
			var begun loader.Claims
			prepare := func(ctx context.Context) error { // each time another run, which wants the table for itself
				l, err := s.backend.Open(ctx, target, backendtest.Deps())
				if err != nil {
					return err
				}
				c := contractOf(methodFast, 10)
				c.Dedup = loader.DedupTx // for the claim table's sake
				p := loader.Preparation{
					Schema: schemaOf(t, "journal"), Contract: c, Create: mode, MayDrop: target.Table, PrimaryKey: true,
				}
				begins("r-" + strings.ToLower(rand.Text()))(&p)
				p.Begin.Appends = false
				_, err = l.Prepare(ctx, p)
				begun = loader.FeaturesOf(l).Claims
				return err
			}
			if mode == loader.CreateRecreate {
				require.NoError(t, prepare(t.Context()))
				require.NoError(t, begun.GiveBack(t.Context()))
				s.insert(t, target, "journal", 1)
			}
			return s, chore{prepare, func(t *testing.T, err error) {
				created := func() {
					assert.True(t, s.Has(name(target)))
					assert.True(t, s.Has("TERAPUSH_CLAIMS"))
					assert.Zero(t, s.Rows(name(target)))
					assert.Equal(t, 1, s.Rows("TERAPUSH_RUNS"))
				}
				if err == nil {
					created()
					require.NoError(t, begun.GiveBack(t.Context()))
				} else {
					assert.NotEqual(t, loader.Yes, s.backend.Classify(err).Applied)
					assert.Zero(t, s.Rows("TERAPUSH_RUNS"), "it keeps others off the table: %v", err)
				}
				require.NoError(t, prepare(t.Context()))
				created()
			}}
		})
	}
}

func TestEveryRequestOfReserveFails(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		everyRequest(t, 5, func(t *testing.T) (*standIn, chore) {
			s := startStandIn(t, fake.Options{})
			target := s.table(methodFast) // whose rows may be in memory
			l, _, err := s.prepare(t, target, func(p *loader.Preparation) {
				begins("a")(p)
				p.Begin.Appends = shared
			})
			require.NoError(t, err)
			first := int64(-1)
			return s, chore{func(ctx context.Context) (err error) {
				first, err = l.Reserve(ctx, -1, 100, math.MaxInt64)
				return err
			}, func(t *testing.T, err error) {
				again, failed := l.Reserve(t.Context(), -1, 100, math.MaxInt64)
				require.NoError(t, failed)
				if err == nil {
					assert.Equal(t, first, again)
				}
				if !shared {
					return
				}
				l, _, err := s.prepare(t, target, begins("b"))
				require.NoError(t, err)
				other, failed := l.Reserve(t.Context(), -1, 100, math.MaxInt64)
				require.NoError(t, failed)
				assert.Equal(t, again+100, other)
			}}
		})
	}
}

// Whatever changes the run's row can be done again after any failure.
func TestEveryRequestOfARunsRowFails(t *testing.T) {
	t.Parallel()
	for want, do := range map[loader.RunState]func(context.Context, loader.Claims) error{
		loader.RunOpen: func(ctx context.Context, c loader.Claims) error { _, err := c.Take(ctx, "r"); return err },
		loader.RunClosed: func(ctx context.Context, c loader.Claims) error {
			return c.Settle(ctx, loader.RunClosed, loader.KeyRange{})
		},
		loader.RunForgotten: func(ctx context.Context, c loader.Claims) error {
			_, known, err := c.Forget(ctx, "r")
			assert.True(t, known || err != nil)
			return err
		},
		"": func(ctx context.Context, c loader.Claims) error { return c.GiveBack(ctx) },
	} {
		everyRequest(t, 2, func(t *testing.T) (*standIn, chore) {
			o := oneBatch(t, way{contract: contractOf(methodArray, 2)}, 2)
			loads(t, o.loader, o.contract, o.batch)
			state := func() loader.RunState {
				found, err := o.loader.Runs(t.Context(), "r")
				require.NoError(t, err)
				if len(found) == 0 {
					return ""
				}
				return found[0].State
			}
			again := func(ctx context.Context) error { return do(ctx, o.loader) }
			return o.standIn, chore{again, func(t *testing.T, err error) {
				if err == nil {
					assert.Equal(t, want, state())
				}
				require.NoError(t, again(t.Context()))
				assert.Equal(t, want, state())
				o.transacted(t)
				if want == loader.RunForgotten {
					assert.Zero(t, o.Rows("TERAPUSH_CLAIMS"))
				}
			}}
		})
	}
}

func TestEveryRequestOfProbeFails(t *testing.T) {
	t.Parallel()
	for _, native := range []bool{false, true} {
		everyRequest(t, 5, func(t *testing.T) (*standIn, chore) {
			o := oneBatch(t, way{native: native, contract: contractOf(methodArray, 1)}, 1)
			probe := func(ctx context.Context) error {
				o.batch.Hold()
				defer o.batch.Release()
				proof, err := o.loader.Probe(ctx, o.contract, o.batch)
				if err == nil {
					assert.True(t, proof.Transactional, proof.Reason)
				}
				return err
			}
			return o.standIn, chore{probe, func(t *testing.T, _ error) {
				nothing := func() {
					assert.Zero(t, o.Rows(name(o.target)))
					assert.Zero(t, o.Rows("TERAPUSH_CLAIMS"))
				}
				nothing()
				o.batch = numbered(t, o.dataset, o.contract, 0)
				require.NoError(t, probe(t.Context()))
				nothing()
			}}
		})
	}
}
