package databend

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/terapush/terapush/pkg/batch"
)

// There are three ways to stop what an earlier attempt has started:
//
//   - cancel asks /v1/query to end a query, which any user may ask of his own; it knows no streaming load;
//   - kill says KILL QUERY to the sessions that the list of processes shows, and does not wait;
//   - end does both on every host, and waits until the list shows none.

// killGrace is how long to wait for the query of a streaming load that the server has agreed to kill. What stays
// listed longer is the request that waits for a client which is gone, and would do so until the server's kernel gives
// up the connection; killed, its statement commits nothing when the rows end. This trusts that a commit which was
// under way when the server agreed is over by then: it writes one snapshot, which takes a second or so.
//
// An INSERT and a COPY have their rows, so one that is still listed may be committing, however long that takes, and
// is waited for to the end.
const killGrace = 20 * time.Second

// endAttempts ends the queries of the attempts 1 … attempt, and of the removals that may have followed each of them.
func (l *opened) endAttempts(ctx context.Context, k kind, id batch.ID, attempt int) error {
	if l.plan.method.Name != streamingLoad {
		return l.end(ctx, queryIDs(k, id, attempt), 0)
	}
	if err := l.end(ctx, queryIDs(k, id, attempt), l.grace); err != nil {
		return err
	}
	var removals []string
	for try := range maxRemovals {
		removals = append(removals, queryIDs(removal(try+1), id, attempt)...)
	}
	return l.end(ctx, removals, 0)
}

// end ends queries on all hosts and waits until none of them is left. One that a server has agreed to kill is waited
// for as long as grace, or as long as it takes with a grace of 0.
//
// A host that cannot be reached is passed over if another one has shown its list. This trusts that nothing runs on a
// host where nobody listens, or that the other host lists it: a list is that of all nodes of a warehouse. Hosts of
// separate warehouses that only this machine is cut off from are where that ends; the label is what is left there.
func (l *opened) end(ctx context.Context, ids []string, grace time.Duration) error {
	e := ending{ids: ids, grace: grace, agreed: make(map[string]time.Time)}
	var down []error
	for _, n := range l.hosts {
		err := n.end(ctx, e)
		switch {
		case unreachable(err) && ctx.Err() == nil:
			down = append(down, fmt.Errorf("%s: %w", n.address, err))
		case err != nil:
			return failed("end earlier attempts on "+n.address, err)
		}
	}
	if len(down) == len(l.hosts) {
		return failed("end earlier attempts", errors.Join(down...))
	}
	for _, err := range down {
		l.log.Warn("a host cannot be reached; another lists what is at work", "error", err)
	}
	return nil
}

// ending is queries that are to end.
type ending struct {
	ids    []string
	grace  time.Duration
	agreed map[string]time.Time // when a server first agreed to kill, by session: one for all hosts, which list the same
}

// pollEvery is the pause between two looks at the queries that are at work.
const pollEvery = 100 * time.Millisecond

func (n *node) end(ctx context.Context, e ending) error {
	for _, id := range e.ids {
		if err := n.cancel(ctx, id); err != nil {
			return err
		}
	}
	for {
		at, err := n.atWork(ctx, e.ids)
		if err != nil {
			return err
		}
		waiting := false
		for _, session := range at {
			// Who may not kill can wait: the query ends by itself, or ctx does.
			_, err := n.run(ctx, statement{sql: killQuery(session)}, nil)
			if _, known := e.agreed[session]; err == nil && !known {
				e.agreed[session] = time.Now()
			}
			when, agreed := e.agreed[session]
			waiting = waiting || !agreed || e.grace == 0 || time.Since(when) < e.grace
		}
		if !waiting {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("a query is still at work: %w", ctx.Err())
		case <-time.After(pollEvery):
		}
	}
}

func (n *node) kill(ctx context.Context, ids []string) error {
	at, err := n.atWork(ctx, ids)
	for _, session := range at {
		_, failed := n.run(ctx, statement{sql: killQuery(session)}, nil)
		err = errors.Join(err, failed)
	}
	return err
}

func killQuery(session string) string { return "KILL QUERY " + literal(session) }

// cancel ends a query of /v1/query. A node that knows no such query, which is the rule, answers with 404; one that
// knows it keeps it for a minute after its end.
func (n *node) cancel(ctx context.Context, id string) error {
	r, err := n.request(ctx, http.MethodGet, cancelPath(id))
	if err != nil {
		return err
	}
	answer, err := n.http.Do(r)
	if err != nil {
		return err
	}
	switch answer.Status {
	case http.StatusOK, http.StatusNotFound, http.StatusBadRequest:
		return nil
	}
	return refusal(answer)
}

func cancelPath(id string) string { return "/v1/query/" + id + "/kill" }

// atWork lists the sessions whose query is one of these, on all nodes of the warehouse: also those of streaming loads,
// which /v1/query knows nothing of, and those that wait for a slot.
func (n *node) atWork(ctx context.Context, ids []string) (sessions []string, err error) {
	_, err = n.run(ctx, statement{sql: selectAtWork(ids)}, func(row [][]byte) error {
		sessions = append(sessions, string(row[0]))
		return nil
	})
	return sessions, err
}

func selectAtWork(ids []string) string {
	return "SELECT id FROM system.processes WHERE current_query_id IN (" + literals(ids) + ")"
}
