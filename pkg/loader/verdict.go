package loader

import (
	"errors"
	"fmt"
	"time"
)

// Applied says whether the rows of an attempt are in. Unknown is never reported as success.
type Applied uint8

// The answers.
const (
	Unknown Applied = iota
	No
	Yes
)

// String returns the word used in events and messages.
func (a Applied) String() string {
	return [...]string{"unknown", "not applied", "applied"}[a]
}

// Class is the class of an error, for metrics.
type Class string

// The classes.
const (
	ClassConnection Class = "connection" // refused, reset, closed
	ClassTimeout    Class = "timeout"    // the batch's deadline passed
	ClassThrottled  Class = "throttled"  // the server asks to slow down
	ClassShutdown   Class = "shutdown"   // the server is stopping or starting
	ClassLock       Class = "lock"       // lock wait, deadlock, serialization
	ClassConstraint Class = "constraint" // duplicate key, check, foreign key
	ClassData       Class = "data"       // the server cannot read a value
	ClassRows       Class = "rows"       // the server took another number of rows than were sent
	ClassTooLarge   Class = "too_large"  // packet, statement or transaction limit
	ClassDiskFull   Class = "disk_full"
	ClassPermission Class = "permission" // authentication or privilege
	ClassMissing    Class = "missing"    // no such database, table, column
	ClassTakenOver  Class = "taken_over" // another process has the run
	ClassOther      Class = "other"
)

// Classes lists all classes, so that a metric has all series from the first scrape.
func Classes() []Class {
	return []Class{
		ClassConnection, ClassTimeout, ClassThrottled, ClassShutdown, ClassLock, ClassConstraint, ClassData,
		ClassRows, ClassTooLarge, ClassDiskFull, ClassPermission, ClassMissing, ClassTakenOver, ClassOther,
	}
}

// Verdict is what a retry needs to know of an error.
type Verdict struct {
	Applied     Applied
	Retry       bool          // a retry can help
	After       time.Duration // the earliest time for it, by the server's request; 0: the policy decides
	SessionDead bool          // the session cannot be used again
	Class       Class
}

// Error is an error with what the back-end knows about it where it occurs.
type Error struct {
	Op      string  // what was being done: "claim", "load", "commit", "connect" …
	Applied Applied // what is certain here: before the commit of a transaction it is No
	Err     error   // the cause, with the server's own words
	Hint    string  // what to do next, in one sentence; may be empty
}

// Error returns the operation and the cause. The hint is not in it, but in Explain.
func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Op, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// JudgedError is an error with the verdict of the back-end or the store that it came from, who alone can judge it.
// VerdictOf returns that; Judge makes verdicts, and is for back-ends.
type JudgedError struct {
	Verdict Verdict
	Err     error
}

// Judged returns err with the verdict on it. An error that has one keeps it. nil stays nil.
func Judged(err error, v Verdict) error {
	if err == nil || errors.As(err, new(*JudgedError)) {
		return err
	}
	return &JudgedError{v, err}
}

// VerdictOf returns the verdict that err has; the zero value, with class "", if nobody has judged it.
func VerdictOf(err error) Verdict {
	if judged := (*JudgedError)(nil); errors.As(err, &judged) {
		return judged.Verdict
	}
	return Verdict{}
}

// Error returns the cause's text.
func (e *JudgedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *JudgedError) Unwrap() error { return e.Err }

// FinalError marks an error that no resume can overcome, since something that the run depends on is gone.
type FinalError struct{ err error }

// Final marks err.
func Final(err error) error { return &FinalError{err} }

func (e *FinalError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *FinalError) Unwrap() error { return e.err }

// RowsError reports that a server acknowledged a different number of rows than it was sent.
type RowsError struct {
	Sent, Acknowledged int64
	Detail             []string // the server's warnings
}

// Error returns both numbers and the first warning.
func (e *RowsError) Error() string {
	text := fmt.Sprintf("the server took %d of %d rows", e.Acknowledged, e.Sent)
	if len(e.Detail) > 0 {
		text += ": " + e.Detail[0]
	}
	if len(e.Detail) > 1 {
		text += fmt.Sprintf(" (and %d more warnings)", len(e.Detail)-1)
	}
	return text
}

// RecordError is an error about one record of a user's file, as the server tells it. Numbers count from 1 in the batch
// that was sent; 0 is not told.
type RecordError struct {
	Line, Record int64
	Column       string
	Err          error
	More         []*RecordError // all records that the server has named, with this one; nil if that is all
}

// Error returns the cause's text.
func (e *RecordError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *RecordError) Unwrap() error { return e.Err }
