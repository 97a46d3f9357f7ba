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

	"github.com/gofrs/flock"

	"github.com/terapush/terapush/internal/record"
)

// Schema names the form of the file. Fields may be added under the same name.
const Schema = "terapush.ceilings/v1"

const (
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

// Best is the best that the file in the state folder has of this machine for the key. No file is no error; one that cannot
// be read is, and the error names it.
func Best(state string, k Key) (best Measurement, ok bool, err error) {
	return bestOf(state, k, record.ThisMachine())
}

func bestOf(state string, k Key, machine record.Machine) (Measurement, bool, error) {
	all, err := Read(state)
	if err != nil {
		return Measurement{}, false, err
	}
	found, ok := best(all, k, machine)
	return found, ok, nil
}

// Read is all that the file in the state folder has, of every machine. No file is none.
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
	if head.Schema != Schema {
		return nil, fmt.Errorf("its schema is %q, and this terapush knows %s", head.Schema, Schema)
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
func write(state string, all []Measurement) (err error) {
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetIndent("", " ")
	out.SetEscapeHTML(false)
	if err := out.Encode(form{Schema, all}); err != nil {
		return err
	}
	beside, err := os.CreateTemp(state, ".ceilings-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(beside.Name())
		}
	}()
	_, err = beside.Write(text.Bytes())
	if err = errors.Join(err, beside.Sync(), beside.Close()); err != nil {
		return err
	}
	return os.Rename(beside.Name(), Path(state))
}
