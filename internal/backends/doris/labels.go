package doris

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/pkg/loader"
)

// label names a batch, or a commit group, on the server, within ^[-_A-Za-z0-9:]{1,128}$: a run id has lower-case
// letters, digits and dashes, at most 64. Labels are unique in a database; the table's hash keeps two pushes with one
// run id apart.
func (n tableName) label(ref loader.Ref, staged bool) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(n.String()))
	kind := "" // a run has batches or groups, never both; the letter is for readers of SHOW LOAD
	if staged {
		kind = "g"
	}
	return fmt.Sprintf("terapush_%s_%08x_%s%d", strings.ReplaceAll(ref.ID.Run, ".", "_"), h.Sum32(), kind, ref.ID.Number)
}

// txnState is the status of a label's newest transaction (org.apache.doris.transaction.TransactionStatus).
type txnState string

const (
	stateUnknown      txnState = "UNKNOWN" // never used, or forgotten
	statePrepare      txnState = "PREPARE" // under way
	statePrecommitted txnState = "PRECOMMITTED"
	stateCommitted    txnState = "COMMITTED" // applied, not visible yet
	stateVisible      txnState = "VISIBLE"
	stateAborted      txnState = "ABORTED" // not applied, and the label is free again
)

// running reports whether the load may still end either way.
func (s txnState) running() bool { return s == statePrepare || s == statePrecommitted }

// pending reports whether the outcome of a load is open. A committed batch is applied. A group may be committed with
// fewer rows than it has, and can be counted only when it is visible.
func (l *opened) pending(s txnState) bool {
	return s.running() || s == stateCommitted && l.caps.Staged
}

const (
	// earlierTime is how long a load waits for an earlier one under its label. One that takes longer may hang, and is left
	// to Resolve.
	earlierTime = 5 * time.Second
	// maxSends bounds the attempts under a label that earlier loads have freed.
	maxSends = 3
)

// labelTaken reports whether a load was refused because its label names another one, applied or under way.
func labelTaken(err error) bool {
	var refused *refusal
	var server *mysql.MySQLError
	return errors.As(err, &refused) && refused.status == statusExists ||
		errors.As(err, &server) && strings.Contains(server.Message, "has already been used")
}

// once sends a batch or a group under its label; "" is none.
//
// An earlier attempt may arrive late: its request was in a backend's socket while Resolve found nothing of it. It then
// has the label, and nothing of this attempt was taken. So this one waits for the other's outcome, and sends again only
// what the server has certainly discarded.
func (l *opened) once(
	ctx context.Context, ref loader.Ref, label string, send func() (loader.Ack, error),
) (ack loader.Ack, err error) {
	if label == "" {
		return send()
	}
	if earlier := l.replaced.Load(); earlier != nil { // nothing would recognize a batch that is sent twice
		err = fmt.Errorf("an earlier batch failed: %w", *earlier)
		return ack, &loader.Error{Op: "load", Applied: loader.No, Err: err, Hint: hint(err)}
	}
	for range maxSends {
		ack, err = send()
		if replaced := err; errors.Is(err, errReplaced) {
			l.replaced.CompareAndSwap(nil, &replaced)
		}
		if !labelTaken(err) {
			return ack, err
		}
		found, lost := l.earlier(ctx, ref, label)
		switch {
		case errors.Is(lost, errLabelSpent):
			return loader.Ack{}, failed("load", lost)
		case lost != nil:
			return loader.Ack{}, &loader.Error{Op: "wait for an earlier attempt", Applied: loader.Unknown, Err: and(err, lost)}
		case found.Applied == loader.Yes:
			return loader.Ack{Rows: ref.Rows, AlreadyApplied: true, Detail: []string{loader.Explain(err)}}, nil
		case found.Applied == loader.Unknown:
			return loader.Ack{}, &loader.Error{Op: "load", Applied: loader.Unknown, Err: fmt.Errorf("%w; %s", err, found.Reason)}
		}
	}
	return ack, err
}

// earlier waits for the load that has the label. Unknown means that it is still under way.
func (l *opened) earlier(ctx context.Context, ref loader.Ref, label string) (loader.Resolution, error) {
	bound, cancel := context.WithTimeout(ctx, earlierTime)
	defer cancel()
	state, err := l.waitLabel(bound, label)
	switch {
	case l.pending(state) && ctx.Err() == nil:
		return loader.Resolution{Reason: fmt.Sprintf("the load that has label %s is still under way (%s)", label, state)}, nil
	case err != nil:
		return loader.Resolution{}, err
	}
	found, err := l.outcome(ctx, ref, state)
	if err == nil && found.Applied == loader.No && state == stateVisible {
		err = fmt.Errorf("label %s: %w", label, errLabelSpent)
	}
	return found, err
}
