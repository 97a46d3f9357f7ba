// Package baseline keeps what calibrate found this machine able to do, so that a run can be told as a share of that.
//
// They lie in one file of the state folder. Figures of another machine, or of another number of cores, are kept there and
// not used: a state folder is copied to new machines, and a process that may use fewer cores can do less.
package baseline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"github.com/terapush/terapush/internal/file"
	"github.com/terapush/terapush/internal/host"
)

// Stage is the part of a push that was measured by itself.
type Stage string

// The stages.
const (
	Fill   Stage = "fill"   // rows are drawn into blocks
	Encode Stage = "encode" // and encoded into buffers, as every batch of --distinct-bytes all is
	Load   Stage = "load"   // filled buffers are sent to a sink
)

// Key is what has to be the same for two figures to be compared. Fields that mean nothing to a stage are empty.
type Key struct {
	Stage        Stage  `json:"stage"`
	Backend      string `json:"backend"`
	Method       string `json:"method"`
	Format       string `json:"format"`
	Dataset      string `json:"dataset"`
	PayloadBytes int    `json:"payload_bytes_per_row"` // as --payload-bytes, also for datasets that it means nothing to
	PayloadKind  string `json:"payload_kind"`
	TLS          bool   `json:"tls"`
}

// Protocol is the key's back-end and method, for people.
func (k Key) Protocol() string { return k.Backend + " " + k.Method }

// Measurement is what was reached once. Bytes are column data.
type Measurement struct {
	Key
	Measured time.Time    `json:"measured"`
	Version  string       `json:"version"` // of terapush
	Machine  host.Machine `json:"machine"`
	// Host is where the sink was; "" is this machine, over loopback, where it took part of the cores.
	Host string `json:"host"`
	// Counting says that the sink looked at what it got, and did not drop it in the kernel: it may have been the slower one.
	Counting bool `json:"counting"`

	Workers          int     `json:"workers"` // cores, where nothing was sent
	RowsPerSecond    float64 `json:"rows_per_second"`
	BytesPerSecond   float64 `json:"bytes_per_second"`
	CPUSecondsPerGiB float64 `json:"cpu_seconds_per_gib"` // of this process
	BoundBy          string  `json:"bound_by"`            // an event.Limit; "" where nothing was sent
}

// same reports whether a figure of one machine holds for the other. Memory and kernel may differ: they say little about
// speed, and change with every reboot.
func same(a, b host.Machine) bool {
	return a.Host == b.Host && a.Arch == b.Arch && a.CPU == b.CPU && a.Cores == b.Cores
}

// replaces reports whether a new figure makes an old one void: it is of the same machine, sink and key. What other numbers
// of workers reached goes, too, or a best that cannot be had any more would stay for ever.
func replaces(made, old Measurement) bool {
	return made.Key == old.Key && made.Host == old.Host && same(made.Machine, old.Machine)
}

const (
	// schema names the form of the file. Fields may be added under the same name.
	schema   = "terapush.ceilings/v1"
	fileName = "ceilings.json"
	lockName = ".ceilings.lock" // beside the file, which a rename replaces together with any lock on it
	// mostBytes bounds what is read: a calibration leaves some 50 KiB.
	mostBytes = 16 << 20
)

// form is the file.
type form struct {
	Schema       string        `json:"schema"`
	Measurements []Measurement `json:"ceilings"`
}

// Path is the file in a state folder.
func Path(state string) string { return filepath.Join(state, fileName) }

// Best returns the highest rate that the file in the state folder has of this machine for the key. No file is no error;
// one that cannot be read is, and the error names it.
func Best(state string, k Key) (best Measurement, ok bool, err error) {
	return bestOf(state, k, host.ThisMachine())
}

// bestOf takes any number of workers and any sink: a sink on this machine takes cores from the client, one on another
// machine has a network before it, and what the client can do is at least the larger of both.
func bestOf(state string, k Key, machine host.Machine) (best Measurement, ok bool, err error) {
	all, err := Read(state)
	for _, m := range all {
		if m.Key == k && same(m.Machine, machine) && m.BytesPerSecond > best.BytesPerSecond {
			best, ok = m, true
		}
	}
	return best, ok, err
}

// Read returns all that the file in the state folder has, of every machine. No file is none.
func Read(state string) ([]Measurement, error) {
	path := Path(state)
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ceilings: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading the ceilings: %w", err)
	}
	all, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; move it away and calibrate again", path, err)
	}
	return all, nil
}

// parse looks at the schema first, so that a newer file is not called damaged.
func parse(text []byte) ([]Measurement, error) {
	if len(text) > mostBytes {
		return nil, fmt.Errorf("larger than %d MiB, which no list of ceilings is", mostBytes>>20)
	}
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	if head.Schema != schema {
		return nil, fmt.Errorf("its schema is %q, and this terapush knows %s", head.Schema, schema)
	}
	var whole form
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	for i, c := range whole.Measurements {
		if !positive(c.BytesPerSecond) || c.Workers < 1 {
			return nil, fmt.Errorf("damaged: entry %d has %v bytes a second by %d workers", i+1, c.BytesPerSecond, c.Workers)
		}
	}
	return whole.Measurements, nil
}

func positive(v float64) bool { return v > 0 && !math.IsInf(v, 0) }

// Save adds figures to the file in the state folder, in place of older ones of the same key, machine and sink. It returns
// when they are on disk. Several processes may do it at once. A file that cannot be read is left as it is.
func Save(state string, made []Measurement) error {
	if len(made) == 0 {
		return nil
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return fmt.Errorf("keeping the ceilings: %w", err)
	}
	lock := flock.New(filepath.Join(state, lockName))
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("keeping the ceilings: locking %s: %w", lock.Path(), err)
	}
	defer func() { _ = lock.Unlock() }()
	old, err := Read(state)
	if err != nil {
		return err
	}
	old = slices.DeleteFunc(old, func(o Measurement) bool {
		return slices.ContainsFunc(made, func(m Measurement) bool { return replaces(m, o) })
	})
	if err := write(state, append(old, made...)); err != nil {
		return fmt.Errorf("keeping the ceilings: %w", err)
	}
	return nil
}

// write puts a new file in the place of the old one, whole or not at all.
func write(state string, all []Measurement) error {
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetIndent("", " ")
	out.SetEscapeHTML(false)
	if err := out.Encode(form{schema, all}); err != nil {
		return err
	}
	return file.Replace(Path(state), text.Bytes())
}
