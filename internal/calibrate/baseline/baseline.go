// Package baseline keeps the rates that calibrate measured on this machine, so that a run can be compared with them.
//
// They are in one file of the state folder. Figures of another machine or of another number of cores are kept but not
// used: state folders are copied to new machines, and a process with fewer cores can do less.
package baseline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/terapush/terapush/internal/file"
	"github.com/terapush/terapush/internal/host"
)

// Key has to be the same for two figures to be compared.
type Key struct {
	Backend      string `json:"backend"`
	Method       string `json:"method"`
	Format       string `json:"format"`
	Dataset      string `json:"dataset"`
	PayloadBytes int    `json:"payload_bytes_per_row"` // as --payload-bytes, also for datasets without a payload
	PayloadKind  string `json:"payload_kind"`
	TLS          bool   `json:"tls"`
}

// Measurement is one measured rate. Bytes are column data.
type Measurement struct {
	Key
	Measured time.Time    `json:"measured"`
	Version  string       `json:"version"` // of terapush
	Machine  host.Machine `json:"machine"`
	// Host is where the sink was; "" is this machine, where it took part of the cores.
	Host string `json:"host"`
	// Counting says that the sink read what it got instead of dropping it in the kernel, and may have been the bottleneck.
	Counting bool `json:"counting"`

	Workers          int     `json:"workers"`
	RowsPerSecond    float64 `json:"rows_per_second"`
	BytesPerSecond   float64 `json:"bytes_per_second"`
	CPUSecondsPerGiB float64 `json:"cpu_seconds_per_gib"` // of this process
	BoundBy          string  `json:"bound_by"`            // an event.Limit
}

// same reports whether figures of one machine hold for the other. Memory and kernel say little about speed, and change with
// every reboot.
func same(a, b host.Machine) bool {
	return a.Host == b.Host && a.Arch == b.Arch && a.CPU == b.CPU && a.Cores == b.Cores
}

const (
	// schema names the form of the file. Fields may be added under the same name.
	schema   = "terapush.ceilings/v1"
	fileName = "ceilings.json"
	// maxBytes bounds what is read: a calibration leaves some 50 KiB.
	maxBytes = 16 << 20
)

// Path returns the file in a state folder.
func Path(state string) string { return filepath.Join(state, fileName) }

// Best returns the highest rate of this machine for the key. A missing file is no error.
func Best(state string, k Key) (best Measurement, ok bool, err error) {
	return bestOf(state, k, host.ThisMachine())
}

// bestOf considers any sink: one on this machine takes cores from the client, another is limited
// by the network, and the client can do at least the larger of both.
func bestOf(state string, k Key, machine host.Machine) (best Measurement, ok bool, err error) {
	all, err := Read(state)
	for _, m := range all {
		if m.Key == k && same(m.Machine, machine) && m.BytesPerSecond > best.BytesPerSecond {
			best, ok = m, true
		}
	}
	return best, ok, err
}

// Read returns all measurements in the state folder, of every machine. A missing file has none.
func Read(state string) ([]Measurement, error) {
	text, err := file.Read(Path(state), maxBytes)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ceilings: %w", err)
	}
	all, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; move it away and calibrate again", Path(state), err)
	}
	return all, nil
}

func parse(text []byte) (all []Measurement, err error) {
	var head struct {
		Schema       string          `json:"schema"`
		Measurements json.RawMessage `json:"ceilings"` // decoded once the schema is known to be this one
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	if head.Schema != schema {
		return nil, fmt.Errorf("its schema is %q, and this terapush knows %s", head.Schema, schema)
	}
	if err := json.Unmarshal(head.Measurements, &all); err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	return all, nil
}

// Save adds a measurement, durably. It replaces older ones of the same key, machine and sink, by any number of workers: a
// best that is no longer reached must not stay. The folder must exist, and one process at a time may call it. A file that
// cannot be read is left as it is.
func Save(state string, made Measurement) error {
	all, err := Read(state)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(old Measurement) bool {
		return made.Key == old.Key && made.Host == old.Host && same(made.Machine, old.Machine)
	})

	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetIndent("", " ")
	err = out.Encode(map[string]any{"schema": schema, "ceilings": append(all, made)})
	if err == nil {
		err = file.Replace(Path(state), text.Bytes())
	}
	if err != nil {
		return fmt.Errorf("keeping the ceilings: %w", err)
	}
	return nil
}
