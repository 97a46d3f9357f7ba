package doris

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

// Resolve asks the frontend about the label, ends the load if it is still under way, and asks again.
//
// The question goes to GET /api/{db}/get_load_state, which every release has, which the frontend hands on to the master,
// and which needs no more than the load itself: SHOW TRANSACTION wants an administrator, and SHOW LOAD does not list
// stream loads. It tells the state of the label's newest transaction, and UNKNOWN for a label that it does not know.
func (db *database) Resolve(ctx context.Context, ref loader.Ref) (loader.Resolution, error) {
	s, err := db.prepared()
	if err != nil {
		return loader.Resolution{}, err
	}
	found, err := db.outcome(ctx, s, ref)
	return found, failed("look for the label", err)
}

// outcome is final: No means that nothing of the batch is in, and that nothing that was sent so far will be.
func (db *database) outcome(ctx context.Context, s statements, ref loader.Ref) (loader.Resolution, error) {
	label := db.name.label(ref, db.caps.Staged)
	state, err := db.settled(ctx, label)
	if err != nil {
		return loader.Resolution{}, err
	}
	return db.meaning(ctx, s, ref, state)
}

// meaning is what the state of a label says about the rows, once nothing is under way any more.
func (db *database) meaning(ctx context.Context, s statements, ref loader.Ref, state txnState) (loader.Resolution, error) {
	switch {
	case state == stateAborted:
		return loader.Resolution{Applied: loader.No}, nil
	case !db.caps.Staged && (state == stateCommitted || state == stateVisible):
		return loader.Resolution{Applied: loader.Yes}, nil
	}
	// A label that is not known was never used, or is forgotten: twelve hours are the default, streaming_label_keep_max_second
	// is often lowered, and label_num_threshold cuts in on a busy day. Nobody can ask for either without an
	// administrator's rights, so the rows themselves are asked. They are asked about a group as well: a statement that found
	// some of its objects, or none, used its label up all the same, and a group that counts as in loses its objects.
	return db.counted(ctx, s, ref)
}

// counted compares the rows in the batch's key range with those of the batch.
func (db *database) counted(ctx context.Context, s statements, ref loader.Ref) (loader.Resolution, error) {
	n, err := db.visible(ctx, s, loader.KeyRange{First: ref.First, Last: ref.First + ref.Rows - 1})
	switch {
	case err != nil:
		return loader.Resolution{}, fmt.Errorf("counting the rows of %s: %w", ref.ID, err)
	case n == ref.Rows:
		return loader.Resolution{Applied: loader.Yes}, nil
	case n == 0:
		return loader.Resolution{Applied: loader.No}, nil
	}
	return loader.Resolution{Reason: fmt.Sprintf("%d rows lie in the key range of %s, which has %d", n, ref.ID, ref.Rows)}, nil
}

func (db *database) visible(ctx context.Context, s statements, r loader.KeyRange) (n int64, err error) {
	err = db.control.QueryRowContext(ctx, s.SelectCount(r)).Scan(&n)
	return n, err
}

// Pauses between two questions about a load that is under way.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// settled ends a load that is under way and waits until it is in or out: its client has given it up, and until the server
// notices, which may be its timeout, nobody else gets the label. A load that is committed by then stays.
func (db *database) settled(ctx context.Context, label string) (txnState, error) {
	state, err := db.labelState(ctx, label)
	if err != nil || !db.open(state) {
		return state, err
	}
	if !state.underWay() {
		return db.ended(ctx, label)
	}
	if err := db.cancel(ctx, label); err != nil {
		db.log.Warn("a load that was given up cannot be cancelled; waiting for the server to end it", "label", label, "error", err)
	}
	return db.ended(ctx, label)
}

// open tells that it is not known yet what a load comes to. A batch that is committed is in. A group may be committed
// with fewer rows than it has, and can be counted only when it is visible.
func (db *database) open(s txnState) bool {
	return s.underWay() || s == stateCommitted && db.caps.Staged
}

// ended waits until no load is open under the label.
func (db *database) ended(ctx context.Context, label string) (txnState, error) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		state, err := db.labelState(ctx, label)
		if err != nil || !db.open(state) {
			return state, err
		}
		select {
		case <-ctx.Done():
			return state, fmt.Errorf("load %s is still under way (%s): %w", label, state, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// labelState asks a frontend, which asks the master.
func (db *database) labelState(ctx context.Context, label string) (txnState, error) {
	a, err := db.get(ctx, http.MethodGet, db.name.labelPath(), url.Values{"label": {label}})
	if err != nil {
		return "", err
	}
	var state string
	if err := json.Unmarshal(a.Data, &state); err != nil {
		return "", &unreadable{fmt.Errorf("state of label %s: %w", label, err)}
	}
	switch s := txnState(state); s {
	case stateUnknown, statePrepare, statePrecommitted, stateCommitted, stateVisible, stateAborted:
		return s, nil
	}
	return "", fmt.Errorf("label %s is in state %q, which has no meaning here", label, state)
}

// cancel aborts the transaction of a label (CancelLoadAction; it needs LOAD_PRIV on the database).
func (db *database) cancel(ctx context.Context, label string) error {
	_, err := db.get(ctx, http.MethodPost, db.name.cancelPath(), url.Values{"label": {label}})
	return err
}

// readReply reads what a frontend answers to a question: {"msg":"success","code":0,"data":…}.
func readReply(status int, body []byte) (answer, error) {
	var a answer
	err := json.Unmarshal(body, &a)
	switch {
	case status != http.StatusOK:
		return a, &refusal{http: status, code: a.Code, message: firstOf(a.Msg, excerpt(body))}
	case err != nil:
		return a, &unreadable{err}
	case a.Code != 0:
		return a, &refusal{http: status, code: a.Code, message: firstOf(string(a.Data), a.Msg) + ": " + a.Msg}
	}
	return a, nil
}
