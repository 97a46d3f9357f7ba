package databend

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/sqlload"
)

// killGrace is how long to wait for a streaming load that the server has agreed to kill. What is listed after that is
// a request that waits for a client which is gone, until the server's kernel closes the connection; its statement is
// killed and commits nothing. This trusts that a commit that was running when the server agreed is over by then: it
// writes one snapshot, which takes about a second.
//
// An INSERT and a COPY have all their rows, so one that is still listed may be committing, however long that takes, and
// is awaited to the end.
const killGrace = 20 * time.Second

// endAttempts ends the queries of the attempts 1 … attempt, and of the deletions that may have followed each of them.
func (l *opened) endAttempts(ctx context.Context, k kind, id batch.ID, attempt int) error {
	if l.plan.method.Name != methodStreamingLoad {
		return l.endQueries(ctx, queryIDs(k, id, attempt), 0)
	}
	if err := l.endQueries(ctx, queryIDs(k, id, attempt), l.grace); err != nil {
		return err
	}
	var removals []string
	for n := range maxRemovals {
		removals = append(removals, queryIDs(removalKind(n+1), id, attempt)...)
	}
	return l.endQueries(ctx, removals, 0)
}

// endQueries ends queries on all hosts and waits until no host lists one of them. A query that a server has agreed to
// kill is awaited for as long as grace; a grace of 0 is forever.
//
// A host that cannot be reached is skipped if another one has shown its list. This trusts that nothing runs on a host
// where nobody listens, or that the other host lists it: a list covers all nodes of a warehouse. It fails for hosts of
// separate warehouses that only this machine is cut off from; there only the label protects.
func (l *opened) endQueries(ctx context.Context, ids []string, grace time.Duration) error {
	agreed := make(map[string]time.Time) // to be killed, by session: one for all hosts, which list the same
	var down []error
	for _, n := range l.hosts.List {
		err := n.endQueries(ctx, ids, grace, agreed)
		switch {
		case unreachable(err) && ctx.Err() == nil:
			down = append(down, fmt.Errorf("%s: %w", n.address, err))
		case err != nil:
			return failed("end earlier attempts on "+n.address, err)
		}
	}
	if len(down) == len(l.hosts.List) {
		return failed("end earlier attempts", errors.Join(down...))
	}
	for _, err := range down {
		l.log.Warn("a host cannot be reached; another lists the running queries", "error", err)
	}
	return nil
}

func (n *endpoint) endQueries(ctx context.Context, ids []string, grace time.Duration, agreed map[string]time.Time) error {
	for _, id := range ids {
		if err := n.cancel(ctx, id); err != nil {
			return err
		}
	}
	list := func(ctx context.Context) ([]string, error) {
		sessions, err := n.running(ctx, ids)
		return slices.DeleteFunc(sessions, func(session string) bool {
			since := agreed[session]
			return grace > 0 && !since.IsZero() && time.Since(since) >= grace
		}), err
	}
	end := func(ctx context.Context, session string) error {
		// A user who may not kill can wait: the query ends by itself, or ctx does.
		_, err := n.run(ctx, statement{sql: killQuery(session)}, nil)
		if agreed[session].IsZero() && err == nil {
			agreed[session] = time.Now()
		}
		return nil
	}
	return sqlload.EndSessions(ctx, list, end)
}

// kill kills a query without waiting for its end.
func (n *endpoint) kill(ctx context.Context, id string) error {
	sessions, err := n.running(ctx, []string{id})
	for _, session := range sessions {
		_, failed := n.run(ctx, statement{sql: killQuery(session)}, nil)
		err = errors.Join(err, failed)
	}
	return err
}

func killQuery(session string) string { return "KILL QUERY " + literal(session) }

// cancel ends a query of /v1/query, which users may do to their own; it does not reach streaming loads. A node keeps a
// query for a minute after its end, and answers 404 if it has none of this id.
func (n *endpoint) cancel(ctx context.Context, id string) error {
	r, err := n.request(ctx, http.MethodGet, "/v1/query/"+id+"/kill")
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

// running lists the sessions that run one of the queries, on all nodes of the warehouse, with streaming loads and
// queries that wait for a slot.
func (n *endpoint) running(ctx context.Context, ids []string) ([]string, error) {
	rows, err := sqlload.Rows(ctx, conn{run: n.run}, selectProcesses(ids))
	sessions := make([]string, len(rows))
	for i, row := range rows {
		sessions[i] = row[0]
	}
	return sessions, err
}

const listsProcesses = "SELECT id FROM system.processes"

func selectProcesses(ids []string) string {
	return listsProcesses + " WHERE current_query_id IN (" + literals(ids) + ")"
}
