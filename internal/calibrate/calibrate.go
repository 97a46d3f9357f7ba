// Package calibrate measures what this machine can do at most: draw rows, encode them, and send them by each protocol into
// a sink that discards them. Rows are sent by package push with the same ring, engine and back-ends as in a real push, so
// that a run can be stated as a share of what is possible.
package calibrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/terapush/terapush/internal/calibrate/baseline"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/pkg/loader"
)

// ErrStopped ends a calibration after a signal.
var ErrStopped = errors.New("stopped by a signal: only what was measured to its end is kept")

// Calibration says what is measured, and measures it once.
type Calibration struct {
	// Host is where a sink runs; "" starts one on this machine, in another process.
	Host  string
	Ports map[string]int // of the sink at Host, by the names of Ports

	Dataset      string
	PayloadBytes int    // 0: the default
	PayloadKind  string // "": the default
	Memory       string // of all buffers, as --memory takes it; "": the default

	Protocols []Protocol
	Workers   []int  // rising
	TLS       []bool // in order
	Time      time.Duration
	State     string // the user's state folder
	Version   string // of terapush
	Binary    string // of terapush, for the sink's process

	Drivers   *loader.Registry
	LookupEnv func(string) (string, bool)
	Tell      func(line string) // progress; may be nil

	machine host.Machine
	ends    time.Time // planned end of all measuring
	work    string    // folder of the pushes' journals
	sink    sink
}

// sink is where pushes go.
type sink struct {
	at       addresses
	child    *child            // of the current protocol; nil for a sink at Host
	versions map[string]string // by protocol; "" where only a push finds it out
	refusal  map[string]string // why a protocol is not measured
}

// Run measures. Found is filled as far as it came, also if there is an error; every complete series is on disk. Closing
// drain ends it in order, with ErrStopped.
func (c *Calibration) Run(ctx context.Context, drain <-chan struct{}) (found Found, err error) {
	began := time.Now()
	c.machine, c.ends = host.ThisMachine(), began.Add(c.Time)
	found = c.newFound(began)
	defer func() { found.Seconds = time.Since(began).Seconds() }()
	soft, cancel := push.Until(ctx, drain, ErrStopped)
	defer cancel(nil)

	if _, err := baseline.Read(c.State); err != nil {
		return found, err // before a minute is spent on what cannot be kept
	}
	leave, err := c.enter()
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, leave()) }()
	defer sinkKeys()()

	sources, err := c.sources()
	if err != nil {
		return found, err
	}
	if err = c.probeHost(soft, &found); err == nil {
		err = c.measureSources(soft, sources, &found)
	}
	if err == nil {
		err = c.measureLoads(ctx, soft, drain, &found)
	}
	if soft.Err() != nil { // the cause of any other error
		err = ErrStopped
	}
	return found, err
}

// Check refuses flags that no push accepts, without a sink.
func (c *Calibration) Check() error {
	_, err := c.sources()
	return err
}

// enter locks and makes the folder of the pushes' journals. All calibrations share it: two at a time would measure each
// other.
func (c *Calibration) enter() (leave func() error, err error) {
	c.work = filepath.Join(c.State, ".calibrate")
	if err := os.MkdirAll(c.work, 0o700); err != nil {
		return nil, fmt.Errorf("the state folder: %w; choose another --state-dir", err)
	}
	lock := flock.New(filepath.Join(c.State, ".calibrate.lock"))
	free, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("locking the state folder: %w", err)
	}
	if !free {
		return nil, errors.New("another process calibrates: two at a time would measure each other, so wait for it")
	}
	return func() error { return errors.Join(os.RemoveAll(c.work), lock.Unlock()) }, nil
}

// sinkKeys replaces the user's keys of object stores, and returns a function that restores them. A sink takes any keys and
// must not see the user's. Amazon's library reads keys from the environment, and without any asks for a machine's role.
func sinkKeys() (restore func()) {
	var undo []func() error
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "calibrate", "AWS_SECRET_ACCESS_KEY": "calibrate", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "",
	} {
		if was, set := os.LookupEnv(name); set {
			undo = append(undo, func() error { return os.Setenv(name, was) })
		} else {
			undo = append(undo, func() error { return os.Unsetenv(name) })
		}
		_ = os.Setenv(name, value) // fails for malformed names only
	}
	return func() {
		for _, one := range undo {
			_ = one()
		}
	}
}

func (c *Calibration) tell(format string, args ...any) {
	if c.Tell != nil {
		c.Tell(fmt.Sprintf(format, args...))
	}
}

// share returns one of n equal parts of the time that is left, at least 0.
func share(ends time.Time, n int) time.Duration {
	return max(time.Until(ends), 0) / time.Duration(max(n, 1))
}
