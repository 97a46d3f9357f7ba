package loader

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// ConnectTimeout bounds an attempt to connect to one host: some accept a connection and then say nothing. It is also
// the time for the end of a session that somebody waits for.
const ConnectTimeout = 10 * time.Second

// Hosts are the servers of a target, any of which will do. Sessions take them in turn; what one host cannot answer,
// because it is down, the next one is asked. Hosts is safe for concurrent use once its fields are set, and is not
// copied after that.
type Hosts[H any] struct {
	List []H // in the order of the target
	// Another reports whether another host may do better after an error, which is so where this one cannot be reached.
	// Any other error is the answer. nil: after every error.
	Another func(error) bool
	// Patience is the most that one host gets while there is another one to ask; 0 is no bound. The last one has all
	// the time there is.
	Patience time.Duration

	turns    atomic.Uint64
	answered atomic.Uint64
}

// At returns host number n, modulo their number.
func (h *Hosts[H]) At(n int) H { return h.List[n%len(h.List)] }

// Turn returns the number of the host whose turn it is: 0, 1, 2 and so on, beyond the number of hosts, for At and From.
func (h *Hosts[H]) Turn() int { return int(h.turns.Add(1) - 1) }

// Current returns the host that has answered the last Ask; before that the first.
func (h *Hosts[H]) Current() H { return h.At(int(h.answered.Load())) }

// From calls f with one host after the other, beginning with number first, until one answers: f returns nil, or an
// error after which there is no Another, which From returns alone. Where no host answers, the error joins those of all.
//
// If ctx has a deadline, each host gets a share of the time left, so that one that never answers does not use it up. An
// f whose work may take as long as ctx allows, and that bounds only the connecting itself, uses ctx and not its own.
func (h *Hosts[H]) From(ctx context.Context, first int, f func(context.Context, H) error) error {
	_, err := h.from(ctx, first, f)
	return err
}

// Ask is From beginning with the current host. The one that answers is the current one from then on.
func (h *Hosts[H]) Ask(ctx context.Context, f func(context.Context, H) error) error {
	n, err := h.from(ctx, int(h.answered.Load()), f)
	if n >= 0 {
		h.answered.Store(uint64(n))
	}
	return err
}

// from is From, and returns the number of the host that has answered, or -1.
func (h *Hosts[H]) from(ctx context.Context, first int, f func(context.Context, H) error) (answered int, err error) {
	var all []error
	for i := range h.List {
		n := (first + i) % len(h.List)
		share, cancel := h.share(ctx, len(h.List)-i)
		err := f(share, h.List[n])
		cancel()
		if err == nil || h.Another != nil && !h.Another(err) {
			return n, err
		}

		all = append(all, err)
		if ctx.Err() != nil {
			break
		}
	}
	return -1, errors.Join(all...)
}

// share returns the context of one of the hosts that are left.
func (h *Hosts[H]) share(ctx context.Context, left int) (context.Context, context.CancelFunc) {
	end, bound := ctx.Deadline()
	if left == 1 || !bound && h.Patience == 0 {
		return ctx, func() {}
	}

	share := h.Patience
	if bound {
		share = time.Until(end) / time.Duration(left)
	}
	if h.Patience > 0 {
		share = min(share, h.Patience)
	}
	return context.WithTimeout(ctx, share)
}
