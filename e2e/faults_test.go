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

// commit is a COMMIT as the database's protocol sends it.
func (d *database) commit() []byte {
	if d.kind == postgres {
		return []byte("Q\x00\x00\x00\x0bCOMMIT\x00")
	}
	return []byte("\x07\x00\x00\x00\x03COMMIT")
}

// eachMethod runs a test on every server with each of its methods.
func eachMethod(t *testing.T, test func(t *testing.T, d *database, method string)) {
	t.Parallel()
	for _, k := range sqlServers() {
		for _, method := range (&database{kind: k}).methods() {
			t.Run(string(k)+" "+method, func(t *testing.T) {
				t.Parallel()
				test(t, newDatabase(t, k), method)
			})
		}
	}
}

// The commit happened, its answer never came: the batch must not go in again.
func TestLostAnswers(t *testing.T) {
	eachMethod(t, func(t *testing.T, d *database, method string) {
		l := small(scaled[int64](10_000, 200_000))
		lost := &faultproxy.Fault{Action: faultproxy.CutAfterAnswer, Match: d.commit(), Every: 5}
		p := d.proxy(t, lost)
		is := reportOf(t, d.by(p, l.flags("--method", method, "--workers", "4", "--verify", "full")...).run(t).ends(t, 0))
		assert.Equal(t, l.batches()/5, lost.Injected(), "commits whose answer was lost")
		assert.Equal(t, lost.Injected(), is.Result.Duplicates, "batches found to be in")
		assert.Equal(t, []int64{l.rows, l.batches()}, []int64{is.Result.Rows, is.Result.Batches})
		assert.Zero(t, is.Result.Unknown)
		d.isExact(t, l)
	})
}

// Before the commit a lost answer, whichever it is, leaves nothing behind, and the batch goes in by another attempt.
func TestLostAnswersBeforeTheCommit(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		// The empty packet behind two of rows. Without its number, 5, the bytes are also the head of "KILL 1234", by which an
		// earlier attempt is ended.
		statement, end := "LOAD DATA LOCAL", "\n\x00\x00\x00\x05"
		if d.kind == postgres {
			statement, end = "FROM STDIN", "c\x00\x00\x00\x04" // CopyDone
		}
		l := small(scaled[int64](10_000, 200_000))
		ofStatement := &faultproxy.Fault{Action: faultproxy.CutAfterAnswer, Match: []byte(statement), Every: 5}
		ofData := &faultproxy.Fault{Action: faultproxy.CutAfterAnswer, Match: []byte(end), Every: 7}
		p := d.proxy(t, ofStatement, ofData)
		is := reportOf(t, d.by(p, l.flags("--workers", "4", "--verify", "full")...).run(t).ends(t, 0))
		assert.Positive(t, ofStatement.Injected())
		assert.Positive(t, ofData.Injected())
		assert.Equal(t, ofStatement.Injected()+ofData.Injected(), is.Result.Retries)
		assert.Zero(t, is.Result.Duplicates)
		assert.Zero(t, is.Result.Unknown)
		d.isExact(t, l)
	})
}

// One connection hangs: the other workers go on, and its batch goes another way.
func TestStuckBatch(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		l := small(20_000)
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
