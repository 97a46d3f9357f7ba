package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/faultproxy"
)

// proxy stands between terapush and the test's server.
func (d *database) proxy(t *testing.T, faults ...*faultproxy.Fault) *faultproxy.Proxy {
	t.Helper()
	p, err := faultproxy.New(d.url.Host, faults...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// by is a push by way of the proxy, unencrypted, so that faults find what they look for.
func (d *database) by(p *faultproxy.Proxy, flags ...string) invocation {
	return d.pushTo(d.target(through(p.Addr())), append(flags, "--tls", "off")...)
}

// The commit happened, its answer never came: the batch must not go in again.
func TestLostAnswers(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		l := small(scaled[int64](10_000, 200_000))
		commit := "\x07\x00\x00\x00\x03COMMIT" // as the protocol sends it
		if d.kind == postgres {
			commit = "Q\x00\x00\x00\x0bCOMMIT\x00"
		}
		lost := &faultproxy.Fault{Action: faultproxy.CutAfterAnswer, Match: []byte(commit), Every: 5}
		p := d.proxy(t, lost)
		is := reportOf(t, d.by(p, l.flags("--workers", "4", "--verify", "full")...).run(t).ends(t, 0))
		assert.Equal(t, l.batches()/5, lost.Injected(), "commits whose answer was lost")
		assert.Equal(t, lost.Injected(), is.Result.Duplicates, "batches found to be in")
		assert.Equal(t, []int64{l.rows, l.batches()}, []int64{is.Result.Rows, is.Result.Batches})
		assert.Zero(t, is.Result.Unknown)
		d.isExact(t, l)
	})
}

// One connection hangs: the other workers go on, and its batch goes another way.
func TestStuckBatch(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		l := small(5000)
		stuck := &faultproxy.Fault{Action: faultproxy.Stall, Bytes: 50_000, Times: 1}
		p := d.proxy(t, stuck)
		timeout := scaled("2s", "90s")
		began := d.by(p, l.flags("--workers", "2", "--batch-timeout", timeout)...).start(t)
		d.untilClaims(t, began, l.batches()-1) // all but the stuck one
		require.True(t, began.running(), "the stuck batch is waited for")
		r := began.wait(t).ends(t, 0)
		is := reportOf(t, r)
		assert.EqualValues(t, 1, stuck.Injected())
		assert.EqualValues(t, 1, is.Result.Retries)
		r.says(t, "no answer within")
		if soak() {
			r.says(t, "a worker is stalled")
		}
		d.isExact(t, l)
	})
}
