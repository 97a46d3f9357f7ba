// Package baseline keeps what calibrate found this machine able to do, so that a run can be told as a share of that.
//
// They lie in one file of the state folder. Figures of another machine, or of another number of cores, are kept there and
// not used: a state folder is copied to new machines, and a process that may use fewer cores can do less.
package baseline

import (
	"time"

	"github.com/terapush/terapush/internal/record"
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
	Measured time.Time      `json:"measured"`
	Version  string         `json:"version"` // of terapush
	Machine  record.Machine `json:"machine"`
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

// same tells whether a figure of one machine holds for the other. Memory and kernel may differ: they say little about
// speed, and change with every reboot.
func same(a, b record.Machine) bool {
	return a.Host == b.Host && a.Arch == b.Arch && a.CPU == b.CPU && a.Cores == b.Cores
}

// best is the highest rate that a machine has reached with the key, by whatever number of workers and into whatever sink: a
// sink on this machine takes cores from the client, one on another machine has a network before it, and what the client
// can do is at least the larger of both.
func best(all []Measurement, k Key, machine record.Machine) (found Measurement, ok bool) {
	for _, c := range all {
		if c.Key == k && same(c.Machine, machine) && c.BytesPerSecond > found.BytesPerSecond {
			found, ok = c, true
		}
	}
	return found, ok
}

// replaces tells whether a new figure makes an old one void: it is of the same machine, sink and key. What other numbers
// of workers reached goes, too, or a best that cannot be had any more would stay for ever.
func replaces(made, old Measurement) bool {
	return made.Key == old.Key && made.Host == old.Host && same(made.Machine, old.Machine)
}
