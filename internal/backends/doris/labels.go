package doris

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// label names a batch, or a commit group, on the server for as long as it remembers: within ^[-_A-Za-z0-9:]{1,128}$,
// since a run id is made of lower-case letters, digits and dashes and no longer than 64. Labels are unique within a
// database; the table's hash keeps two pushes apart that somebody gave one run id.
func (n tableName) label(ref loader.Ref, staged bool) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(n.String()))
	kind := "" // a run has batches or groups, never both; the letter is for who reads SHOW LOAD
	if staged {
		kind = "g"
	}
	return fmt.Sprintf("terapush_%s_%08x_%s%d", ref.ID.Run, h.Sum32(), kind, ref.ID.Number)
}

// txnState is what a frontend knows of a label: the status of its newest transaction.
type txnState string

// The states (org.apache.doris.transaction.TransactionStatus).
const (
	stateUnknown      txnState = "UNKNOWN" // the label was never used, or is forgotten
	statePrepare      txnState = "PREPARE" // under way
	statePrecommitted txnState = "PRECOMMITTED"
	stateCommitted    txnState = "COMMITTED" // in, and not to be seen yet
	stateVisible      txnState = "VISIBLE"
	stateAborted      txnState = "ABORTED" // nothing is in, and the label is free again
)

// underWay reports whether nobody knows yet how the load will end.
func (s txnState) underWay() bool { return s == statePrepare || s == statePrecommitted }

// pending reports whether it is not known yet what a load comes to. A batch that is committed is in. A group may be
// committed with fewer rows than it has, and can be counted only when it is visible.
func (l *opened) pending(s txnState) bool {
	return s.underWay() || s == stateCommitted && l.caps.Staged
}

// earlierPatience is how long a load waits for an earlier one under its label. One that takes longer may hang, and is
// for Resolve to end.
const earlierPatience = 5 * time.Second

// maxSends bounds how often a label that an earlier load has given back is tried.
const maxSends = 3

// labelTaken reports whether a load was refused because its label names another one that is in, or under way.
func labelTaken(err error) bool {
	var refused *refusal
	var server *mysql.MySQLError
	return errors.As(err, &refused) && refused.status == statusExists ||
		errors.As(err, &server) && strings.Contains(server.Message, "has already been used")
}

// replacedError says that the server loads under another label than it was given.
type replacedError struct{ sent, got string }

func (e *replacedError) Error() string {
	return fmt.Sprintf("the server loaded under label %q what was sent under %q", e.got, e.sent)
}

// labelSpentError says that a label is taken for good by a load that put nothing in: a statement that found no objects.
type labelSpentError struct{ label string }

func (e *labelSpentError) Error() string {
	return "label " + e.label + " was used by a load that is over and put no rows in, and nothing can go in under it any more"
}

// once sends what goes in under the label of a batch or a group; "" is none.
//
// An earlier attempt may turn up late: its request lay in a backend's socket while Resolve looked for it, and found
// nothing. It then has the label, and nothing of this attempt was taken. So this one waits for what becomes of the
// other, and sends again only what the server has certainly thrown away.
func (l *opened) once(
	ctx context.Context, ref loader.Ref, label string, send func() (loader.Ack, error),
) (ack loader.Ack, err error) {
	if label == "" {
		return send()
	}
	if earlier := l.replaced.Load(); earlier != nil {
		// That batch was counted; from here on nothing would recognise one that is sent twice.
		err = fmt.Errorf("of an earlier batch, %w", earlier)
		return ack, &loader.Error{Op: "load", Applied: loader.No, Err: err, Hint: hint(earlier)}
	}
	for range maxSends {
		ack, err = send()
		if replaced := (*replacedError)(nil); errors.As(err, &replaced) {
			l.replaced.CompareAndSwap(nil, replaced)
		}
		if !labelTaken(err) {
			return ack, err
		}
		found, lost := l.earlier(ctx, ref, label)
		spent := (*labelSpentError)(nil)
		switch {
		case errors.As(lost, &spent):
			return loader.Ack{}, failed("load", lost)
		case lost != nil:
			return loader.Ack{}, &loader.Error{Op: "wait for an earlier attempt", Applied: loader.Unknown, Err: and(err, lost)}
		case found.Applied == loader.Yes:
			return loader.Ack{Rows: ref.Rows, AlreadyApplied: true, Detail: []string{err.Error()}}, nil
		case found.Applied == loader.Unknown:
			return loader.Ack{}, &loader.Error{Op: "load", Applied: loader.Unknown, Err: fmt.Errorf("%w; %s", err, found.Reason)}
		}
	}
	return ack, err
}

// earlier waits for a while for the load that has the label; Unknown means that it is still under way.
func (l *opened) earlier(ctx context.Context, ref loader.Ref, label string) (loader.Resolution, error) {
	bound, cancel := context.WithTimeout(ctx, earlierPatience)
	defer cancel()
	state, err := l.ended(bound, label)
	switch {
	case l.pending(state) && ctx.Err() == nil:
		return loader.Resolution{Reason: fmt.Sprintf("the load that has label %s is still under way (%s)", label, state)}, nil
	case err != nil:
		return loader.Resolution{}, err
	}
	found, err := l.meaning(ctx, ref, state)
	if err == nil && found.Applied == loader.No && state == stateVisible {
		err = &labelSpentError{label}
	}
	return found, err
}

// Resolve asks the frontend about the label, ends the load if it is still under way, and asks again. "Not applied" is
// final: nothing of the batch is in, and nothing that was sent so far will be.
//
// Its client has given the load up, and until the server notices, which may be its timeout, nobody else gets the
// label. A load that is committed by then stays.
func (l *opened) Resolve(ctx context.Context, ref loader.Ref) (found loader.Resolution, err error) {
	label := l.name.label(ref, l.caps.Staged)
	state, err := l.labelState(ctx, label)
	if err == nil && state.underWay() {
		// CancelLoadAction; it needs LOAD_PRIV on the database.
		if _, err := l.question(ctx, http.MethodPost, l.name.cancelPath(), label); err != nil {
			l.log.Warn("a load that was given up cannot be cancelled; waiting for the server to end it",
				"label", label, "error", err)
		}
	}
	if err == nil && l.pending(state) {
		state, err = l.ended(ctx, label)
	}
	if err == nil {
		found, err = l.meaning(ctx, ref, state)
	}
	return found, failed("look for the label", err)
}

// meaning is what the state of a label says about the rows, once nothing is under way any more.
//
// A label that is not known was never used, or is forgotten: twelve hours are the default,
// streaming_label_keep_max_second is often lowered, and label_num_threshold cuts in on a busy day. Nobody can ask for
// either without an administrator's rights, so the rows themselves are asked. They are asked about a group as well: a
// statement that found some of its objects, or none, used its label up all the same, and a group that counts as in
// loses its objects.
func (l *opened) meaning(ctx context.Context, ref loader.Ref, state txnState) (loader.Resolution, error) {
	switch {
	case state == stateAborted:
		return loader.Resolution{Applied: loader.No}, nil
	case !l.caps.Staged && (state == stateCommitted || state == stateVisible):
		return loader.Resolution{Applied: loader.Yes}, nil
	}
	n, err := l.CountRows(ctx, loader.KeyRange{First: ref.First, Last: ref.First + ref.Rows - 1})
	if err != nil {
		return loader.Resolution{}, fmt.Errorf("counting the rows of %s: %w", ref.ID, err)
	}
	found := loader.Resolution{Applied: sqlload.Outcome(n, ref.Rows)}
	if found.Applied == loader.Unknown {
		found.Reason = fmt.Sprintf("%d rows lie in the key range of %s, which has %d", n, ref.ID, ref.Rows)
	}
	return found, nil
}

// Pauses between two questions about a load that is under way.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// ended waits until no load is pending under the label.
func (l *opened) ended(ctx context.Context, label string) (txnState, error) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		state, err := l.labelState(ctx, label)
		if err != nil || !l.pending(state) {
			return state, err
		}
		if err := sqlload.Wait(ctx, pause); err != nil {
			return state, fmt.Errorf("load %s is still under way (%s): %w", label, state, err)
		}
	}
}

// labelPath is where a frontend tells the state of a label, and cancelPath where it ends the load that has it.
func (n tableName) labelPath() string  { return n.path("get_load_state") }
func (n tableName) cancelPath() string { return n.path("_cancel") }

// labelState asks a frontend, which asks the master: GET /api/{db}/get_load_state, which every release has, and which
// needs no more than the load itself. SHOW TRANSACTION wants an administrator, and SHOW LOAD does not list stream
// loads. It tells the state of the label's newest transaction, and UNKNOWN for a label that it does not know.
func (l *opened) labelState(ctx context.Context, label string) (txnState, error) {
	a, err := l.question(ctx, http.MethodGet, l.name.labelPath(), label)
	if err != nil {
		return "", err
	}
	var state txnState
	if err := json.Unmarshal(a.Data, &state); err != nil {
		return "", &unreadable{fmt.Errorf("state of label %s: %w", label, err)}
	}
	switch state {
	case stateUnknown, statePrepare, statePrecommitted, stateCommitted, stateVisible, stateAborted:
		return state, nil
	}
	return "", fmt.Errorf("label %s is in state %q, which has no meaning here", label, state)
}
