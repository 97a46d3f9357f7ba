package oracle

import (
	"context"
	"fmt"
	"math/big"
	"time"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// What Fast Ingest is asked. Rows that a session has written have numbers; all up to the second are on disk.
const (
	selectWritten = "SELECT TO_CHAR(DBMS_MEMOPTIMIZE.GET_WRITE_HWM_SEQID) FROM DUAL"
	selectApplied = "SELECT TO_CHAR(DBMS_MEMOPTIMIZE.GET_APPLY_HWM_SEQID) FROM DUAL"
	flushWrites   = "BEGIN DBMS_MEMOPTIMIZE_ADMIN.WRITES_FLUSH; END;"
)

// How long Finish asks without an advance before it gives up, and how often. The server writes by itself about every
// minute, or when it has collected a megabyte.
const (
	drainPatience = 5 * time.Minute
	drainPause    = 100 * time.Millisecond
	drainMaxPause = 2 * time.Second
)

// fast is what closed sessions have written by Fast Ingest.
type fast struct {
	highest      *big.Int // of all sequence numbers; nil: none
	conventional int      // sessions that wrote rows and have no number
	unknown      int      // sessions that broke before they were asked, or were refused
}

// noteFast asks a session for the number of what it has written.
func (l *opened) noteFast(ctx context.Context, s *session) {
	var written *big.Int
	asked := false
	if !s.dead {
		if found, err := sqlload.Rows(ctx, s, selectWritten); err == nil && len(found) == 1 {
			asked, written = true, numbered(found[0][0])
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !asked:
		l.fast.unknown++
	case written == nil && s.acked == 0:
		// What it has sent was refused.
	case written == nil:
		l.fast.conventional++
	case l.fast.highest == nil || written.Cmp(l.fast.highest) > 0:
		l.fast.highest = written
	}
}

// numbered reads a sequence number; nil if there is none.
func numbered(text string) *big.Int {
	n, ok := new(big.Int).SetString(text, 10)
	if !ok || n.Sign() <= 0 {
		return nil
	}
	return n
}

// Finish waits until what Fast Ingest holds in memory is on disk, where it can be read and outlives a crash. Other methods
// have nothing to wait for.
func (l *opened) Finish(ctx context.Context, _ loader.KeyRange, _ int64) (notes []string, err error) {
	if l.method != methodFast {
		return nil, nil
	}
	l.mu.Lock()
	state := l.fast
	l.mu.Unlock()
	if state.conventional > 0 {
		notes = append(notes, fmt.Sprintf("the rows of %d sessions went in conventionally: the server did not heed MEMOPTIMIZE_WRITE "+
			"(see the restrictions on Fast Ingest)", state.conventional))
	}
	if state.unknown > 0 {
		notes = append(notes, fmt.Sprintf("%d sessions did not say how far they came: some of their rows may not be on disk yet", state.unknown))
	}
	// Asked in any case: a process that has sent nothing itself may go on where another one was stopped in the middle of this.
	err = l.somewhere(ctx, func(k *link) error {
		more, err := k.drain(ctx, state.highest)
		notes = append(notes, more...)
		return err
	})
	return notes, failed("wait for Fast Ingest", err)
}

// drain asks for the rows to be written and waits until they are, as long as there is an advance. Without a number to wait
// for it does no more than ask.
func (k *link) drain(ctx context.Context, highest *big.Int) (notes []string, err error) {
	_, refused := k.exec(ctx, flushWrites)
	if k.dead {
		return nil, refused
	}
	const grant = "to have it write at once, GRANT EXECUTE ON DBMS_MEMOPTIMIZE_ADMIN to the user"
	if highest == nil {
		if refused != nil {
			notes = append(notes, "the server could not be asked to write what it may still have in memory, and will by itself: "+grant)
		}
		return notes, nil
	}
	waited := false
	defer func() {
		if waited && refused != nil {
			notes = append(notes, "waited for the server to write by itself: "+grant)
		}
	}()
	var last *big.Int
	advanced := time.Now()
	for pause := drainPause; ; pause = min(2*pause, drainMaxPause) {
		found, err := sqlload.Rows(ctx, k, selectApplied)
		if err != nil {
			return notes, err
		}
		if len(found) != 1 {
			return notes, fmt.Errorf("the server answered nothing about what is on disk")
		}
		applied := numbered(found[0][0])
		switch {
		case applied != nil && applied.Cmp(highest) >= 0:
			return notes, nil
		case applied != nil && (last == nil || applied.Cmp(last) > 0):
			last, advanced = applied, time.Now()
		case time.Since(advanced) > drainPatience:
			return append(notes, fmt.Sprintf("rows are still in the server's memory: %v of %v is on disk, without an advance for %v",
				applied, highest, drainPatience)), nil
		}
		waited = true
		select {
		case <-ctx.Done():
			return append(notes, fmt.Sprintf("rows are still in the server's memory: %v of %v is on disk", applied, highest)), nil
		case <-time.After(pause):
		}
	}
}
