package doris

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/pkg/loader"
)

// earlierPatience is how long a load waits for an earlier one under its label. One that takes longer may hang, and is for
// Resolve to end.
const earlierPatience = 5 * time.Second

// maxSends bounds how often a label that an earlier load has given back is tried.
const maxSends = 3

// labelTaken tells that a load was refused because its label names another one that is in, or under way.
func labelTaken(err error) bool {
	var refused *refusal
	var server *mysql.MySQLError
	return errors.As(err, &refused) && refused.status == statusExists ||
		errors.As(err, &server) && strings.Contains(server.Message, "has already been used")
}

// labelSpentError says that a label is taken for good by a load that put nothing in: a statement that found no objects.
type labelSpentError struct{ label string }

func (e *labelSpentError) Error() string {
	return fmt.Sprintf("label %s was used by a load that is over and put no rows in, and nothing can go in under it any more", e.label)
}

// once sends what goes in under the label of a batch or a group.
//
// An earlier attempt may turn up late: its request lay in a backend's socket while Resolve looked for it, and found
// nothing. It then has the label, and nothing of this attempt was taken. So this one waits for what becomes of the
// other, and sends again only what the server has certainly thrown away.
func (db *database) once(ctx context.Context, s statements, ref loader.Ref, label string, send func() (loader.Ack, error)) (ack loader.Ack, err error) {
	if earlier := db.replaced.Load(); label != "" && earlier != nil {
		// That batch was counted; from here on nothing would recognise one that is sent twice.
		return ack, &loader.Error{Op: "load", Applied: loader.No, Err: fmt.Errorf("of an earlier batch, %w", earlier), Hint: hint(earlier)}
	}
	for range maxSends {
		ack, err = send()
		if replaced := (*replacedError)(nil); errors.As(err, &replaced) {
			db.replaced.CompareAndSwap(nil, replaced)
		}
		if label == "" || !labelTaken(err) {
			return ack, err
		}
		found, lost := db.earlier(ctx, s, ref, label)
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
func (db *database) earlier(ctx context.Context, s statements, ref loader.Ref, label string) (loader.Resolution, error) {
	bound, cancel := context.WithTimeout(ctx, earlierPatience)
	defer cancel()
	state, err := db.ended(bound, label)
	switch {
	case db.open(state) && ctx.Err() == nil:
		return loader.Resolution{Reason: fmt.Sprintf("the load that has label %s is still under way (%s)", label, state)}, nil
	case err != nil:
		return loader.Resolution{}, err
	}
	found, err := db.meaning(ctx, s, ref, state)
	if err == nil && found.Applied == loader.No && state == stateVisible {
		return found, &labelSpentError{label}
	}
	return found, err
}
