package doris

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// Resolve asks the frontend about the label, cancels a load that is under way, and asks again. "Not applied" is final:
// nothing of the batch is applied, and nothing that was sent so far will be.
//
// The client has given such a load up, and until the server notices, which may take until its timeout, no other load
// gets the label. A load that was committed in the meantime stays.
func (l *opened) Resolve(ctx context.Context, ref loader.Ref) (found loader.Resolution, err error) {
	label := l.name.label(ref, l.caps.Staged)
	state, err := l.labelState(ctx, label)
	if err == nil && state.running() {
		l.endAttempts(ctx, label)
	}
	if err == nil && l.pending(state) {
		state, err = l.waitLabel(ctx, label)
	}
	if err == nil {
		found, err = l.outcome(ctx, ref, state)
	}
	return found, failed("look up the label", err)
}

// outcome returns what the state of a label means for the rows, once nothing is pending.
//
// An unknown label was never used, or is forgotten: after twelve hours by default, but streaming_label_keep_max_second
// is often lowered, and label_num_threshold applies on a busy day. Reading either needs an administrator's rights, so
// the rows are counted. Those of a group are counted as well: a statement that found some of its objects, or none, has
// used its label all the same, and the objects of an applied group are deleted.
func (l *opened) outcome(ctx context.Context, ref loader.Ref, state txnState) (loader.Resolution, error) {
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
		found.Reason = fmt.Sprintf("%d of %d rows are in the key range of %s", n, ref.Rows, ref.ID)
	}
	return found, nil
}

// Pauses between two questions about a load that is under way.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// waitLabel waits until no load is pending under the label.
func (l *opened) waitLabel(ctx context.Context, label string) (state txnState, err error) {
	for range sqlload.Poll(ctx, firstPause, lastPause) {
		state, err = l.labelState(ctx, label)
		if err != nil || !l.pending(state) {
			return state, err
		}
	}
	return state, fmt.Errorf("load %s is still under way (%s): %w", label, state, ctx.Err())
}

// labelPath is where a frontend returns the state of a label.
func (n tableName) labelPath() string { return n.path("get_load_state") }

// labelState asks a frontend, which asks the master: GET /api/{db}/get_load_state. Every release has it, and it needs
// no more rights than the load. SHOW TRANSACTION needs an administrator, and SHOW LOAD does not list stream loads.
func (l *opened) labelState(ctx context.Context, label string) (txnState, error) {
	a, err := l.question(ctx, http.MethodGet, l.name.labelPath(), label)
	if err != nil {
		return "", err
	}
	var state txnState
	if err := json.Unmarshal(a.Data, &state); err != nil {
		return "", fmt.Errorf("%w: state of label %s: %w", errUnreadable, label, err)
	}
	switch state {
	case stateUnknown, statePrepare, statePrecommitted, stateCommitted, stateVisible, stateAborted:
		return state, nil
	}
	return "", fmt.Errorf("label %s is in unknown state %q", label, state)
}
