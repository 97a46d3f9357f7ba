package calibrate

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/sweep"
	"github.com/terapush/terapush/internal/units"
)

// What a push has in its ring, and in flight, encoded. Both together exceed the caches of most machines, and are filled
// in a fraction of a second.
const (
	inFlight   = 128 << 20
	mostBatch  = 16 << 20
	leastBatch = 256 << 10
)

const (
	// shortest and longest bound the time of a push. Connecting is in it.
	shortest = 250 * time.Millisecond
	longest  = 5 * time.Second
	// batchTimeout is how long a batch may take before the sink is given up.
	batchTimeout = 30 * time.Second
	// table is one that no server has, in case there is a server instead of a sink.
	table = "terapush_calibrate"
)

// Check refuses flags that no push accepts, without a sink.
func (c *Calibration) Check() (err error) {
	c.sweep, err = c.plan(nowhere())
	return err
}

// plan returns the sweep into sinks at these addresses: a part without TLS and one with it, whose cases are all protocols,
// which are told apart by their methods, with all numbers of workers.
func (c *Calibration) plan(at addresses) (*sweep.Sweep, error) {
	p := sweep.Plan{Name: "calibrate", Title: "what this machine can send at most", Repeats: 1, Knee: "workers"}
	for _, encrypted := range c.TLS {
		p.Parts = append(p.Parts, c.part(at, encrypted))
	}
	s, err := sweep.New(p, sweep.Options{Sources: c.sources()})
	if err != nil {
		return nil, err
	}
	for i := range s.Parts { // for people: the other flags are always the same
		s.Parts[i].Push, s.Parts[i].Methods, s.Parts[i].Sparse = c.Push, nil, true
	}
	for i := range s.Cases {
		if err := c.fit(&s.Cases[i]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (c *Calibration) part(at addresses, encrypted bool) sweep.Part {
	methods, workers := results.Axis{Name: "method"}, results.Axis{Name: "workers"}
	for _, n := range c.Workers {
		workers.Values = append(workers.Values, strconv.Itoa(n))
	}
	pushes := time.Duration(len(c.TLS) * len(c.Protocols) * len(c.Workers))
	duration := min(max(c.Time/pushes, shortest), longest).Round(time.Millisecond)
	part := sweep.Part{
		Name: "plain", Methods: map[string]map[string][]string{},
		Push: map[string][]string{
			"table": {table}, "create": {"never"}, "delivery": {"at-least-once"}, "duration": {duration.String()}, "verify": {"none"}, "retries": {"0"}, "retry-for": {"0s"},
			"batch-timeout": {batchTimeout.String()}, "batch-bytes": {strconv.Itoa(leastBatch)}, "tls": {"off"},
		},
	}
	if encrypted {
		part.Name, part.Push["tls"] = "TLS", []string{"require"} // the sink's certificate is self-signed
	}
	maps.Copy(part.Push, c.Push)
	for _, p := range c.Protocols {
		methods.Values = append(methods.Values, p.Method)
		part.Methods[p.Method] = map[string][]string{"target": {p.targetAt(at, encrypted)}}
		if p.Name == doris && c.Push["dataset"][0] == documents && c.Push["payload-kind"] == nil {
			part.Methods[p.Method]["payload-kind"] = []string{string(dataset.Text)}
		}
	}
	part.Axes = []results.Axis{methods, workers}
	return part
}

// fit gives a case the largest batches for which memory has a ring and a buffer more for each worker; with fewer, nearly
// every batch would be encoded anew, and that would be measured, too.
func (c *Calibration) fit(one *sweep.Case) (err error) {
	workers := one.Config.Workers
	for total := inFlight; total >= leastBatch; total /= 2 {
		one.Push["batch-bytes"] = []string{strconv.Itoa(max(min(mostBatch, total/workers), leastBatch))}
		one.Push["distinct-bytes"] = []string{strconv.Itoa(total)}
		if one.Setup, err = c.sources().Setup(one.Push); err != nil {
			return err
		}
		err = one.Outline(c.Drivers) // also refuses batches that memory cannot hold one of
		if err == nil && int64(one.Plan.Buffers) >= one.Plan.Templates()+int64(workers) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("--workers %d: memory has no room for their batches of at least %s: ask for fewer, or raise --memory",
		workers, units.Bytes(leastBatch))
}

// sources are those of the pushes. The user's settings for other pushes do not apply.
func (c *Calibration) sources() sweep.Sources {
	return sweep.Sources{Drivers: c.Drivers, LookupEnv: func(string) (string, bool) { return "", false }}
}

// documents is the dataset whose rows have a payload, and the only one whose rows have one length.
const documents = "documents"

// rowBytes returns how many bytes are a row for a sink that does not count, or 0 if the sink has to count: where the
// back-end compares rows and they differ in length. Where nothing is compared any number will do.
func (c *Calibration) rowBytes(p Protocol) int64 {
	one := c.caseOf(func(one sweep.Case) bool { return one.Config.Method == p.Method }).Plan
	if p.Name == doris && (one.Dataset != documents || one.Definition != nil) {
		return 0
	}
	return one.EncodedRowBytes
}
