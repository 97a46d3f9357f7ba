package push_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// server answers questions of 1,000 bytes with one byte, after a while; those that begin with 1 at once, so that its
// clients can tell the way from the answer.
func server(t *testing.T, after time.Duration) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				for question := make([]byte, 1000); ; {
					if _, err := io.ReadFull(c, question); err != nil {
						return
					}
					if question[0] == 0 {
						time.Sleep(after)
					}
					if _, err := c.Write([]byte{1}); err != nil {
						return
					}
				}
			})
		}
	})
	return l.Addr().String()
}

// asks has every load ask the server, over a connection of the process's own dialer.
func (p *place) asks(address string) {
	free := make(chan net.Conn, 100)
	p.Cleanup(func() {
		for close(free); ; {
			c, more := <-free
			if !more {
				return
			}
			c.Close()
		}
	})
	p.meddle = func(ctx context.Context, op string, _ int64) error {
		if op != "load" {
			return nil
		}
		var c net.Conn
		select {
		case c = <-free:
		default:
			var err error
			if c, err = p.dial(ctx, "tcp", address); err != nil {
				return err
			}
			if err = ask(c, 1); err != nil {
				return err
			}
		}
		if err := ask(c, 0); err != nil {
			return err
		}
		free <- c
		return nil
	}
}

func ask(c net.Conn, first byte) error {
	question := make([]byte, 1000)
	question[0] = first
	if _, err := c.Write(question); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 1))
	return err
}

// addsUp checks what holds of every verdict.
func addsUp(t *testing.T, r *report.Report) {
	t.Helper()
	var shares, seconds, workers float64
	for _, l := range event.Limits() {
		require.Contains(t, r.BoundBy.Shares, string(l))
		require.GreaterOrEqual(t, r.BoundBy.Shares[string(l)], 0.0)
		shares += r.BoundBy.Shares[string(l)]
		seconds += r.BoundBy.Seconds[string(l)]
	}
	for _, s := range r.WorkerSeconds {
		workers += s
	}
	require.InDelta(t, 1, shares, 1e-9)
	require.InEpsilon(t, workers, seconds, 1e-6)
}

func TestBoundByTheTarget(t *testing.T) {
	p := newPlace(t)
	p.asks(server(t, 20*time.Millisecond))
	r := p.succeeds(small)
	addsUp(t, r)
	require.Equal(t, "target", r.BoundBy.Verdict)
	e := r.BoundBy.Evidence
	require.Greater(t, e.Awaited, 0.5)
	require.InDelta(t, 1.4, e.TurnsPerBatch, 0.35, "a question a batch, and two for each connection")
	require.InDelta(t, 4, e.Connections, 3, "of workers that ask at once")
	require.Positive(t, e.ClientCPU)
	require.Positive(t, e.WirePerPayload)
}

func TestBoundByTheRate(t *testing.T) {
	p := newPlace(t)
	p.asks(server(t, 0))
	r := p.succeeds(small + " --max-rate 20KB/s")
	addsUp(t, r)
	require.Equal(t, "limit", r.BoundBy.Verdict)
}

func TestBoundByItsOwnEnd(t *testing.T) {
	p := newPlace(t)
	p.asks(server(t, 0))
	asks := p.meddle
	p.meddle = func(ctx context.Context, op string, number int64) error {
		if op == "load" && number == 19 {
			time.Sleep(200 * time.Millisecond)
		}
		return asks(ctx, op, number)
	}
	r := p.succeeds(small)
	addsUp(t, r)
	require.Equal(t, "tail", r.BoundBy.Verdict, "three of four workers wait for the last batch")
}

// To look whether all claims are still there is no time of workers, who have ended: one alone has nobody to wait for.
func TestLostClaimsAreLookedForInNobodysTime(t *testing.T) {
	const looks = 300 * time.Millisecond
	p := newPlace(t)
	p.meddle = func(_ context.Context, op string, _ int64) error {
		if op == "claimed" {
			time.Sleep(looks)
		}
		return nil
	}
	r := p.succeeds("--rows 195 --batch-rows 10 --payload-bytes 16 --workers 1")
	addsUp(t, r)
	require.GreaterOrEqual(t, r.Phases.Finish, looks.Seconds())
	require.Less(t, r.BoundBy.Seconds["tail"], looks.Seconds())
}

// A staged run's sessions wait for commits, not for answers.
func TestBoundByCommits(t *testing.T) {
	p := newStaged(t, loader.DedupTx)
	p.asks(server(t, 0))
	asks := p.meddle
	p.meddle = func(ctx context.Context, op string, number int64) error {
		if op == "commit" {
			time.Sleep(20 * time.Millisecond)
		}
		return asks(ctx, op, number)
	}
	r := p.succeeds(grouped + " --commit-batches 1")
	addsUp(t, r)
	require.Equal(t, "target", r.BoundBy.Verdict)
	require.Positive(t, r.WorkerSeconds["wait_commit"])
}

func TestNoVerdictWithoutALoad(t *testing.T) {
	p := newPlace(t)
	p.meddle = func(_ context.Context, op string, _ int64) error {
		if op == "probe" {
			return io.ErrUnexpectedEOF
		}
		return nil
	}
	r, err := p.push(small)
	require.Error(t, err)
	require.Empty(t, r.BoundBy.Verdict)
	require.Len(t, r.BoundBy.Shares, len(event.Limits()))
}
