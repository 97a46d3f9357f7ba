package oracle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// Fast Ingest numbers the rows that a session writes to memory. All rows up to the applied number are on disk.
const (
	selectWritten = "SELECT TO_CHAR(DBMS_MEMOPTIMIZE.GET_WRITE_HWM_SEQID) FROM DUAL"
	selectApplied = "SELECT TO_CHAR(DBMS_MEMOPTIMIZE.GET_APPLY_HWM_SEQID) FROM DUAL"
	flushWrites   = "BEGIN DBMS_MEMOPTIMIZE_ADMIN.WRITES_FLUSH; END;"
)

// Finish polls the applied number, and gives up after drainTimeout without progress. The server writes by itself about
// every minute, or a megabyte.
const (
	drainTimeout  = 5 * time.Minute
	drainPause    = 100 * time.Millisecond
	drainMaxPause = 2 * time.Second
)

// fast is what closed sessions have written by Fast Ingest.
type fast struct {
	highest      int64 // number that a session has written; 0: none
	conventional int   // sessions that wrote rows and have no number
	unknown      int   // sessions that broke, or could not be asked
}

// readNumber reads the number of a statement above; 0 for NULL.
func (k *conn) readNumber(ctx context.Context, query string) (int64, error) {
	found, err := sqlload.Rows(ctx, k, query)
	if err != nil {
		return 0, err
	}
	if len(found) != 1 {
		return 0, errors.New("the server returned no number of Fast Ingest")
	}
	return sqlload.ParseNumber(cmp.Or(found[0][0], "0"))
}

// addFast asks a session for the number of the last row that it has written.
func (l *opened) addFast(ctx context.Context, s *session) {
	written, err := int64(0), errNotSent
	if !s.dead {
		written, err = s.readNumber(ctx, selectWritten)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		l.fast.unknown++
	case written == 0 && s.acked > 0: // else everything it sent was refused
		l.fast.conventional++
	default:
		l.fast.highest = max(l.fast.highest, written)
	}
}

// Finish waits until what Fast Ingest holds in memory is on disk, where it can be read and survives a crash.
func (l *opened) Finish(ctx context.Context, _ loader.KeyRange, _ int64) (notes []string, err error) {
	if l.method != methodFast {
		return nil, nil
	}
	l.mu.Lock()
	state := l.fast
	l.mu.Unlock()
	if state.conventional > 0 {
		notes = append(notes, fmt.Sprintf("the rows of %d sessions were inserted conventionally: the server ignored "+
			"MEMOPTIMIZE_WRITE (see the restrictions on Fast Ingest)", state.conventional))
	}
	if state.unknown > 0 {
		notes = append(notes, fmt.Sprintf("%d sessions did not say how far they came: "+
			"some of their rows may not be on disk yet", state.unknown))
	}
	// Even if no session wrote anything: this process may resume a run that was stopped while it waited.
	err = l.withConn(ctx, func(k *conn) error {
		more, err := k.drain(ctx, state.highest)
		notes = append(notes, more...)
		return err
	})
	return notes, failed("wait for Fast Ingest", err)
}

// drain asks the server to write its memory to disk, and waits for the row numbered highest while there is progress.
func (k *conn) drain(ctx context.Context, highest int64) (notes []string, err error) {
	_, refused := k.exec(ctx, flushWrites)
	if k.dead {
		return nil, refused
	}
	const grant = "to have it write at once, GRANT EXECUTE ON DBMS_MEMOPTIMIZE_ADMIN to the user"
	if highest == 0 {
		if refused != nil {
			notes = append(notes, "the server writes what it may have in memory by itself: "+grant)
		}
		return notes, nil
	}

	applied, progress := int64(0), time.Now()
	for range sqlload.Poll(ctx, drainPause, drainMaxPause) {
		if ctx.Err() != nil || time.Since(progress) >= drainTimeout {
			break
		}
		now, err := k.readNumber(ctx, selectApplied)
		if err != nil || now >= highest {
			return notes, err
		}
		if refused != nil && len(notes) == 0 {
			notes = append(notes, "waited for the server to write by itself: "+grant)
		}
		if now > applied {
			applied, progress = now, time.Now()
		}
	}
	return append(notes, fmt.Sprintf("rows are still in the server's memory: %d of %d is on disk, without progress for %v",
		applied, highest, time.Since(progress).Round(time.Second))), nil
}
