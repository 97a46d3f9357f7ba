package oracle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	fake "github.com/terapush/terapush/internal/standin/oracle"
	"github.com/terapush/terapush/pkg/loader"
)

// takes is a process of its own that takes over the run "r".
func (o *one) takes(t *testing.T) error {
	t.Helper()
	l, _, err := o.prepare(t, o.target, func(p *loader.Preparation) {
		p.Schema, p.Contract, p.Owner = o.dataset.Schema(), o.contract, "another"
	})
	require.NoError(t, err)
	_, err = l.Take(t.Context(), "r")
	return err
}

// A claim that waits for the lock of the process which takes its run over reads the run's row after that: what it has read
// before would be in vain.
func TestClaimWaitsForTheFence(t *testing.T) {
	for _, native := range []bool{false, true} {
		o := oneBatch(t, way{native: native, contract: contractOf(methodArray, 3)}, 3)
		session := backendtest.Session(t, o.loader, o.contract)
		until, updates := make(chan struct{}), o.requests("UPDATE")
		o.SetScript(fake.At("UPDATE", 1, fake.Fault{Hold: until}))
		taken := make(chan error, 1)
		go func() { taken <- o.takes(t) }()
		o.reached(t, "UPDATE", updates+1)
		loaded := make(chan error, 1)
		go func() {
			_, err := load(t.Context(), session, o.batch)
			loaded <- err
		}()
		require.Eventually(t, func() bool { return o.Waiting() == 1 }, patience, time.Millisecond)
		close(until)
		require.NoError(t, <-taken)
		lost := (*loader.TakenOverError)(nil)
		require.ErrorAs(t, <-loaded, &lost)
		assert.Equal(t, "another", lost.Row.Owner)
		assert.Zero(t, o.Rows(name(o.target)))
		assert.Zero(t, o.Rows("TERAPUSH_CLAIMS"))
	}
}

// The fence waits for the batch on its way, which is in then.
func TestFenceWaitsForABatch(t *testing.T) {
	o := oneBatch(t, way{contract: contractOf(methodArray, 3)}, 3)
	session := backendtest.Session(t, o.loader, o.contract)
	until := make(chan struct{})
	o.SetScript(fake.At(fake.Commit, 1, fake.Fault{Hold: until}))
	commits, updates := o.requests(fake.Commit), o.requests("UPDATE")
	loaded := make(chan error, 1)
	go func() {
		_, err := load(t.Context(), session, o.batch)
		loaded <- err
	}()
	o.reached(t, fake.Commit, commits+1)
	taken := make(chan error, 1)
	go func() { taken <- o.takes(t) }()
	require.Eventually(t, func() bool { return o.Waiting() == 1 }, patience, time.Millisecond)
	assert.Equal(t, updates, o.requests("UPDATE"))
	close(until)
	require.NoError(t, <-loaded)
	require.NoError(t, <-taken)
	o.exact(t, o.target, 3)
}

// A lock that is not had within a second is tried again: batches of other runs go on meanwhile. Any other error is the end.
func TestFenceIsTriedAgain(t *testing.T) {
	for code, again := range map[int]bool{codeBusy: true, codeWaitedForLock: true, codeDeadlock: true, 1031: false} {
		for n := 1; n <= 2; n++ { // of two locks
			o := oneBatch(t, way{contract: contractOf(methodArray, 3)}, 3)
			before := o.requests("IN EXCLUSIVE MODE")
			o.SetScript(fake.At("IN EXCLUSIVE MODE", n, fake.Fault{Fail: fake.Ora(code)}))
			err := o.takes(t)
			if !again {
				require.ErrorContains(t, err, "ORA-01031")
				continue
			}
			require.NoError(t, err)
			assert.Equal(t, n+2, o.requests("IN EXCLUSIVE MODE")-before)
			o.quiet(t)
		}
	}
}
