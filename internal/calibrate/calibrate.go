// Package calibrate measures what this machine can do at most: draw rows, encode them, and send them by each protocol into
// a sink that discards them. Rows are sent by package push as in a real push: the same ring, engine and back-ends. So a run
// can be stated as a share of what was possible.
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

// ErrStopped ends a calibration whose user asked for it.
var ErrStopped = errors.New("stopped by a signal: only what was measured to its end is kept")

// Calibration says what is measured, and measures it once.
type Calibration struct {
	// Host is where a sink runs already; "" starts one on this machine, in another process.
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
	ends    time.Time // of all measuring, as far as it can be planned
	work    string    // folder of the pushes' journals
	sink    sink
}

// sink is where loads go.
type sink struct {
	at      addresses
	child   *child            // of the protocol that is being measured; nil where somebody else started it
	says    map[string]string // what it calls itself, by protocol; "" of protocols whose pushes find out
	refusal map[string]string // why nothing is sent to a protocol
}

// Run measures. Found is filled as far as it came, also when there is an error; every complete series is on disk. Closing
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
	defer ownKeys()()

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
	if soft.Err() != nil { // whatever broke by that
		err = ErrStopped
	}
	return found, err
}

// Check refuses what no push could be made of, without a sink.
func (c *Calibration) Check() error {
	_, err := c.sources()
	return err
}

// enter locks and makes the folder in which the pushes of a calibration keep their journals. There is one for all
// calibrations: two at a time would measure each other.
func (c *Calibration) enter() (leave func() error, err error) {
	c.work = filepath.Join(c.State, ".calibrate")
	if err := os.MkdirAll(c.work, 0o700); err != nil {
		return nil, fmt.Errorf("the state folder: %w; choose another --state-dir", err)
	}
	lock := flock.New(filepath.Join(c.State, ".calibrate.lock"))
	free, err := lock.TryLock()
	switch {
	case err != nil:
		return nil, fmt.Errorf("locking the state folder: %w", err)
	case !free:
		return nil, errors.New("another process calibrates: two at a time would measure each other, so wait for it")
	}
	return func() error {
		return errors.Join(os.RemoveAll(c.work), lock.Unlock())
	}, nil
}

// ownKeys gives the process keys for the store that a sink is, and returns what restores the user's. The sink takes any
// keys, and the user's are no business of a sink. Without any, Amazon's library would ask for a machine's role. It reads
// keys from the environment alone.
func ownKeys() (restore func()) {
	own := map[string]string{
		"AWS_ACCESS_KEY_ID": "calibrate", "AWS_SECRET_ACCESS_KEY": "calibrate", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "",
	}
	var users [][2]string
	for name, value := range own {
		if was, set := os.LookupEnv(name); set {
			users = append(users, [2]string{name, was})
		}
		_ = os.Setenv(name, value) // fails for names that are none
	}
	return func() {
		for name := range own {
			_ = os.Unsetenv(name)
		}
		for _, was := range users {
			_ = os.Setenv(was[0], was[1])
		}
	}
}

func (c *Calibration) tell(format string, args ...any) {
	if c.Tell != nil {
		c.Tell(fmt.Sprintf(format, args...))
	}
}

// share is one of n equal parts of the time that is left; 0 where nothing is.
func share(ends time.Time, n int) time.Duration {
	return max(time.Until(ends), 0) / time.Duration(max(n, 1))
}
