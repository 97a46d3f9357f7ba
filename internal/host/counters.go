package host

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// counters is the CPU time in a server's metrics, since it was started.
type counters struct {
	from string // the metric: two answers are compared only where they are of the same one
	// Of all cores, in ticks of the metric's own. total is 0 where only what a process took is known, in seconds.
	busy, total float64
	perCore     float64 // ticks of total that a core makes a second
	cores       int     // as counted by a label; 0: not known
}

// The metrics that are understood, in the order of preference.
const (
	nodeCPU    = "node_cpu_seconds_total"    // node_exporter: seconds by core and mode
	dorisCPU   = "doris_be_cpu"              // a Doris backend: /proc/stat, in ticks of a hundredth of a second
	processCPU = "process_cpu_seconds_total" // many servers, of their own process
)

const ticksPerSecond = 100 // USER_HZ, which Linux fixes for /proc/stat on all that Doris runs on

// errNothing is the error of metrics without CPU time. Of Doris only backends have it: a frontend counts its memory,
// threads and garbage collections, and no CPU time.
var errNothing = errors.New("no CPU time in there: node_exporter has it (" + nodeCPU + "), a Doris backend (" + dorisCPU +
	", which a frontend does not have), and most servers of themselves (" + processCPU + ")")

// readCounters reads metrics in Prometheus's text format.
func readCounters(from io.Reader) (counters, error) {
	wanted, exporter, err := sift(from)
	if err != nil {
		return counters{}, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(wanted))
	if err != nil {
		return counters{}, fmt.Errorf("not Prometheus's text format: %w", err)
	}
	if f := families[nodeCPU]; f != nil {
		return byMode(f, "cpu", 1), nil
	}
	if f := families[dorisCPU]; f != nil {
		return byMode(f, "device", ticksPerSecond), nil
	}
	f := families[processCPU]
	switch {
	case f == nil:
		return counters{}, errNothing
	case exporter != "":
		return counters{}, fmt.Errorf("it is %s that answers, whose own CPU time is not the server's: give node_exporter's URL", exporter)
	}
	return counters{from: processCPU, busy: value(f.GetMetric()[0])}, nil
}

// longestLine bounds a line: labels may be long, but not without end.
const longestLine = 1 << 20

// sift returns the lines of the metrics that are understood: a server has thousands of series, and some have lines that
// no parser accepts. exporter is the program that serves the metrics, if it is an exporter for another one.
func sift(from io.Reader) (wanted []byte, exporter string, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 0, 64<<10), longestLine)
	for lines.Scan() {
		line := lines.Text()
		name := line
		if i := strings.IndexAny(line, "{ \t"); i >= 0 {
			name = line[:i]
		}
		switch {
		case name == nodeCPU, name == dorisCPU, name == processCPU:
			wanted = append(append(wanted, line...), '\n')
		case strings.HasSuffix(name, "_exporter_build_info"):
			exporter = strings.TrimSuffix(name, "_build_info")
		}
	}
	return wanted, exporter, lines.Err()
}

// byMode adds up the time of all cores. Waiting for a disk counts as idle, and guests' time is in user's and nice's
// already. What the hypervisor took (steal) counts as busy: the server could not have it.
//
// A backend of Doris has a line for all cores together, device "cpu", and newer ones another for each core: either the
// cores are added up or the lines without one.
func byMode(f *dto.MetricFamily, label string, perCore float64) counters {
	c := counters{from: f.GetName(), perCore: perCore}
	cores := map[string]bool{}
	for _, m := range f.GetMetric() {
		if core := labelOf(m, label); core != "" && core != "cpu" {
			cores[core] = true
		}
	}
	c.cores = len(cores)
	for _, m := range f.GetMetric() {
		if c.cores > 0 && !cores[labelOf(m, label)] {
			continue
		}
		switch v := value(m); labelOf(m, "mode") {
		case "guest", "guest_nice":
		case "idle", "iowait":
			c.total += v
		default:
			c.total += v
			c.busy += v
		}
	}
	return c
}

// value returns that of an untyped metric: sift drops the lines with types.
func value(m *dto.Metric) float64 { return m.GetUntyped().GetValue() }

func labelOf(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}
