// Package calibrate measures what this machine can do at most: to draw rows, to encode them, and to send them by each
// protocol into a sink that forgets them. What is sent is sent by package push as a real push sends it: the same ring, the
// same engine, the same back-ends. So a run can be told as a share of what was possible.
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
	"github.com/terapush/terapush/pkg/loader"
)

// ErrStopped ends a calibration whose user asked for it.
var ErrStopped = errors.New("stopped by a signal: only what was measured to its end is kept")

// Options say what is measured.
type Options struct {
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
}

// Calibration is one that can be made.
type Calibration struct {
	Options
	Drivers   *loader.Registry
	LookupEnv func(string) (string, bool)
	Binary    string            // of terapush, for the sink's process
	Tell      func(line string) // progress; may be nil

	machine host.Machine
	work    string // folder of the pushes' journals
	sink    sink
	budget  budget
}

// sink is where loads go.
type sink struct {
	at    addresses
	child *child                  // of the protocol that is being measured; nil where somebody else started it
	known map[string]acquaintance // by protocol
}

// Run measures. What it has found is there as far as it came, also when there is an error; every series that came to its end
// is on disk. Closing drain ends it in order, with ErrStopped.
func (c *Calibration) Run(ctx context.Context, drain <-chan struct{}) (found Found, err error) {
	began := time.Now()
	c.machine = host.ThisMachine()
	found = c.newFound(began)
	defer func() { found.Seconds = time.Since(began).Seconds() }()
	c.budget = budget{ends: began.Add(c.Time)}
	soft, cancel := untilDrained(ctx, drain)
	defer cancel()

	if _, err := baseline.Read(c.State); err != nil {
		return found, err // before a minute is spent on what cannot be kept
	}
	leave, err := c.enter()
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, leave()) }()
	defer ownKeys()()

	source, err := c.newSource()
	if err != nil {
		return found, err
	}
	if err := c.meetAll(soft, &found); err != nil {
		return found, orStopped(soft, err)
	}
	if err := c.measureSource(soft, source, &found); err != nil {
		return found, orStopped(soft, err)
	}
	return found, orStopped(soft, c.measureLoads(ctx, soft, drain, &found))
}

// Check refuses what no push could be made of, without a sink.
func (c *Calibration) Check() error {
	_, err := c.newSource()
	return err
}

// untilDrained is a context that ends when drain closes: for what has nothing to finish.
func untilDrained(ctx context.Context, drain <-chan struct{}) (context.Context, context.CancelFunc) {
	soft, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-drain:
			cancel()
		case <-soft.Done():
		}
	}()
	return soft, cancel
}

// orStopped says that it was the user who ended it, whatever broke by that.
func orStopped(soft context.Context, err error) error {
	if soft.Err() != nil {
		return ErrStopped
	}
	return err
}

// enter takes the folder in which the pushes of a calibration keep their journals. Two calibrations at a time would measure
// each other, so there is one for all.
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

// ownKeys gives the process keys for the store that a sink is, and returns what gives it back its own: the sink takes any,
// and those of the user are nobody's business there. Without any, Amazon's library would look for a machine's role. It reads
// keys from the environment alone.
func ownKeys() (giveBack func()) {
	own := map[string]string{"AWS_ACCESS_KEY_ID": "calibrate", "AWS_SECRET_ACCESS_KEY": "calibrate", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": ""}
	type variable struct {
		value string
		set   bool
	}
	before := map[string]variable{}
	for name, value := range own {
		was, set := os.LookupEnv(name)
		before[name] = variable{was, set}
		_ = os.Setenv(name, value) // fails for names that are none
	}
	return func() {
		for name, was := range before {
			if was.set {
				_ = os.Setenv(name, was.value)
			} else {
				_ = os.Unsetenv(name)
			}
		}
	}
}

func (c *Calibration) tell(format string, args ...any) {
	if c.Tell != nil {
		c.Tell(fmt.Sprintf(format, args...))
	}
}

// budget shares out the time of a calibration.
type budget struct{ ends time.Time }

// share is one of n equal parts of what is left; 0 where nothing is.
func (b budget) share(n int) time.Duration {
	return max(time.Until(b.ends), 0) / time.Duration(max(n, 1))
}
