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

// counters is the CPU time that a server's metrics tell of, since it was started.
type counters struct {
	from string // the metric: two answers are compared only where they are of the same one
	// Of all cores, in ticks of the metric's own. total is 0 where only what a process took is known, in seconds.
	busy, total float64
	perCore     float64 // ticks of total that a core makes a second
	cores       int     // as counted by a label; 0: not told
}

// The metrics that are understood, the best first.
const (
	nodeCPU    = "node_cpu_seconds_total"    // node_exporter: seconds by core and mode
	dorisCPU   = "doris_be_cpu"              // a Doris backend: /proc/stat, in ticks of a hundredth of a second
	processCPU = "process_cpu_seconds_total" // what many servers tell of their own process
)

const ticksPerSecond = 100 // USER_HZ, which Linux fixes for /proc/stat on all that Doris runs on

// errNothing is told of metrics that have nothing in them. Of Doris only backends tell: a frontend counts its memory,
// threads and garbage collections, and no CPU time.
var errNothing = errors.New("no CPU time in there: node_exporter tells it (" + nodeCPU + "), a Doris backend (" + dorisCPU +
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

// sift leaves what is wanted: a server has thousands of series, and some have lines that no parser takes. exporter is the
// program that tells of somebody else, if it is one.
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

// byMode adds up the time of all cores. Waiting for a disk is no work, and guests' time is in user's and nice's already.
// What the hypervisor took (steal) counts as busy: the server could not have it.
//
// A backend of Doris has a line for all cores together, device "cpu", and the newer ones another for each core: what is
// added up are either the cores or what has no core.
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

// value is that of a metric without a type: lines that tell types are sifted out.
func value(m *dto.Metric) float64 { return m.GetUntyped().GetValue() }

func labelOf(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}
