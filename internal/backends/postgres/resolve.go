package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/pkg/loader"
)

// backend is a server process. Process ids come again, so it is known by its start as well, in seconds since 1970.
type backend struct{ pid, started string }

const (
	selectOwnBackend = "SELECT pid, extract(epoch FROM backend_start)::text FROM pg_stat_activity WHERE pid = pg_backend_pid()"
	selectBackends   = "SELECT pid, extract(epoch FROM backend_start)::text FROM pg_stat_activity WHERE application_name = %s AND usename = session_user"
)

// endPatience is how long a backend may take to end: it rolls back first, and may be deep in a disk write.
const endPatience = 30 * time.Second

// Resolve ends the sessions of the run that nobody here has in hand any more, and those at work on the batch. What
// could not be ended cannot commit behind its back either: the look waits for it, or fails.
func (l *opened) Resolve(ctx context.Context, ref loader.Ref) (loader.Resolution, error) {
	r, err := l.prepared()
	if err != nil {
		return loader.Resolution{}, err
	}
	for _, e := range l.hosts {
		if r.flavour == redshift { // shows nobody whose session is whose; the lock on the claims is waited for
			break
		}
		// A claim would also hold off what still runs on a host that does not answer; a key range would not.
		switch err := l.endLeftovers(ctx, e, ref); {
		case err == nil || wrongRole(err): // a host in the wrong role has no session of this run
		case l.Caps().Dedup == loader.DedupRange:
			return loader.Resolution{}, err
		default:
			l.deps.Log.Warn("earlier sessions may still run", "host", e, "error", err)
		}
	}
	var res loader.Resolution
	err = l.somewhere(ctx, func(c *pgconn.PgConn, _ endpoint) error {
		if l.Caps().Dedup == loader.DedupRange {
			res, err = r.front(ctx, c, ref)
			return err
		}
		res.Applied, err = r.claimed(ctx, c, ref)
		return err
	})
	return res, err
}

// claimed tells for good whether the batch's claim is committed. An error leaves that open, whatever the server says
// about the statement: the look's failure is not the batch's.
func (r *ready) claimed(ctx context.Context, c *pgconn.PgConn, ref loader.Ref) (loader.Applied, error) {
	if r.flavour == redshift {
		return r.claimedInRedshift(ctx, c, ref)
	}
	open := func(err error) (loader.Applied, error) {
		e := describe("look for the claim", err)
		e.Applied = loader.Unknown
		return loader.Unknown, e
	}
	results, err := exec(ctx, c, r.finalLook(ref))
	if err != nil {
		return open(err)
	}
	if len(results) != 3 {
		return open(fmt.Errorf("the server answered %d of 3 statements", len(results)))
	}
	if results[1].CommandTag.RowsAffected() == 1 {
		return loader.No, nil
	}
	found, err := rowsOf(ctx, c, r.SelectClaim(ref.ID.Run, ref.ID.Number))
	if err != nil {
		return open(err)
	}
	if len(found) == 0 {
		return open(errors.New("the claim is taken and cannot be read: was it removed just now?"))
	}
	return loader.Yes, nil
}

// endLeftovers ends, on one host, every session of the batch's run that is not spared, and waits until it is gone:
// pg_stat_activity drops a backend after its transaction has ended.
func (l *opened) endLeftovers(ctx context.Context, e endpoint, ref loader.Ref) error {
	ctx, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	c, err := l.dial(ctx, e, adminName, nil)
	if err != nil {
		return err
	}
	defer func() { _ = closeConn(c) }()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		found, err := rowsOf(ctx, c, fmt.Sprintf(selectBackends, literal(sessionName(ref.ID.Run))))
		if err != nil {
			return failed("list earlier sessions", err)
		}
		spared := l.spared(ref)
		left := 0
		for _, row := range found {
			b := backend{pid: row[0], started: row[1]}
			if spared[b] {
				continue
			}
			left++
			if _, err := rowsOf(ctx, c, "SELECT pg_terminate_backend("+b.pid+")"); err != nil {
				return failed("end an earlier session", err)
			}
		}
		if left == 0 {
			return nil
		}
		if err := wait(ctx, pause); err != nil {
			return fmt.Errorf("%d earlier sessions on %s do not end: %w", left, e, err)
		}
	}
}

// wait sleeps, or returns when ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// spared are the sessions of this process that are well and busy with something else.
func (l *opened) spared(ref loader.Ref) map[backend]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	spared := make(map[backend]bool, len(l.sessions))
	for s := range l.sessions {
		if s.run != ref.ID.Run || s.loading.Load() != ref.ID.Number {
			spared[s.backend] = true
		}
	}
	return spared
}

// front finds how many rows at the front of the batch are in the table. YugabyteDB commits a COPY piece by piece in
// the order of its rows, so what is there is a front part; if it is not, something else has written these keys.
func (r *ready) front(ctx context.Context, c *pgconn.PgConn, ref loader.Ref) (loader.Resolution, error) {
	found, err := rowsOf(ctx, c, r.SelectFront(ref))
	if err != nil {
		return loader.Resolution{}, failed("look for the batch's rows", err)
	}
	row := found[0]
	n, err := parseInt(row[0])
	if err != nil || n == 0 {
		return loader.Resolution{Applied: loader.No}, err
	}
	first, err := parseInt(row[1])
	if err != nil {
		return loader.Resolution{}, err
	}
	last, err := parseInt(row[2])
	switch {
	case err != nil:
		return loader.Resolution{}, err
	case first != ref.First || last != ref.First+n-1:
		return loader.Resolution{Reason: fmt.Sprintf("batch %v: %d rows from %d to %d are there, which is not the front of %d to %d "+
			"(something else writes to the table: load the range again into an empty table)",
			ref.ID, n, first, last, ref.First, ref.First+ref.Rows-1)}, nil
	case n == ref.Rows:
		return loader.Resolution{Applied: loader.Yes, Rows: n}, nil
	}
	return loader.Resolution{Applied: loader.No, Rows: n}, nil
}

// Claimed lists the claims of a run.
func (l *opened) Claimed(ctx context.Context, run string, f func(number, rows int64) error) error {
	r, err := l.prepared()
	if err != nil {
		return err
	}
	return l.somewhere(ctx, func(c *pgconn.PgConn, _ endpoint) error {
		return r.each(ctx, c, r.SelectClaims(run), func(row [][]byte) error {
			number, err := parseInt(string(row[0]))
			if err != nil {
				return err
			}
			rows, err := parseInt(string(row[1]))
			if err != nil {
				return err
			}
			return f(number, rows)
		})
	})
}

// Forget removes the run's claims and its reservation.
func (l *opened) Forget(ctx context.Context, run string) (rows int64, err error) {
	r, err := l.prepared()
	if err != nil {
		return 0, err
	}
	tables := []string{r.Claims}
	if r.persistence == "" && r.flavour != redshift { // nobody has looked which of them is the table's
		tables = []string{claimsTable(schemaOf(r.asked), false), claimsTable(schemaOf(r.asked), true)}
	}
	err = l.somewhere(ctx, func(c *pgconn.PgConn, _ endpoint) error {
		rows = 0
		for _, claims := range tables {
			s := r.Statements
			s.Claims = claims
			results, err := exec(ctx, c, s.DeleteClaims(run))
			if err == nil {
				rows += results[0].CommandTag.RowsAffected()
			} else if !is(err, "42P01") {
				return failed("remove the claims of run "+run, err)
			}
		}
		return nil
	})
	return rows, err
}

// each hands the rows of one statement to f as they come.
func (r *ready) each(ctx context.Context, c *pgconn.PgConn, sql string, f func(row [][]byte) error) error {
	results := c.Exec(ctx, sql)
	for results.NextResult() {
		for rows := results.ResultReader(); rows.NextRow(); {
			if err := f(rows.Values()); err != nil {
				hangUp(c) // rather than read a long answer to its end
				return err
			}
		}
	}
	return failed("read", cause(c, results.Close()))
}
