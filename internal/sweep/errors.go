package sweep

import (
	"errors"
	"fmt"
	"slices"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/loader"
)

// What the error of a trial may be besides.
var (
	// ErrDiskFull is a server without room: whatever is pushed next would fail as well.
	ErrDiskFull = errors.New("the server's disk is full")
	// ErrUnreachable is a server to which there was no connection.
	ErrUnreachable = errors.New("the target cannot be reached")
	// ErrLimit is a server that has not as much of something as the trial wanted: connections, memory, a batch of this
	// size. Less of it may do. It adds nothing to an error's text.
	ErrLimit = errors.New("more than the server allows")
)

// limited is an error that is ErrLimit besides.
type limited struct{ error }

func (e limited) Unwrap() error { return e.error }

func (limited) Is(target error) bool { return target == ErrLimit } //nolint:errorlint // Is is asked about each error of a tree by itself

// meaning tells what the error of a push means for other trials, and takes secrets out of it.
func (s *Setup) meaning(drivers *loader.Registry, r *report.Report, err error) error {
	if err == nil {
		return nil
	}
	var class loader.Class
	if driver, _, problem := config.FindTarget(s.Config.Target, s.Config.Connect, drivers); problem == nil {
		class = driver.Classify(err).Class
	}
	if len(s.secrets) > 0 {
		err = &push.Error{Outcome: push.OutcomeOf(err), Err: errors.New(loader.Redact(err.Error(), s.secrets...))}
	}
	switch {
	case class == loader.ClassDiskFull || r != nil && r.Result.Errors[string(loader.ClassDiskFull)] > 0:
		return fmt.Errorf("%w: %w", ErrDiskFull, err)
	case push.OutcomeOf(err) == report.PreflightFailed && slices.Contains(away(), class):
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	case class == loader.ClassThrottled || class == loader.ClassTooLarge:
		return limited{err}
	}
	return err
}

// away are errors of a server that is not there.
func away() []loader.Class {
	return []loader.Class{loader.ClassConnection, loader.ClassTimeout, loader.ClassShutdown}
}
