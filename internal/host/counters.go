package host

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// counters is the CPU time in a server's metrics, since it was started, in the metric's ticks.
type counters struct {
	metric      string
	busy, total float64 // of all cores; total is 0, and busy in seconds, if only a process' time is known
	perCore     float64 // ticks of total that a core makes a second
	cores       int     // counted by a label; 0 if unknown
}

// The metrics that are read, in the order of preference.
const (
	nodeCPU    = "node_cpu_seconds_total"    // node_exporter: seconds by core and mode
	dorisCPU   = "doris_be_cpu"              // a Doris backend: /proc/stat, in ticks
	processCPU = "process_cpu_seconds_total" // many servers, of their own process
)

// errNothing is the error of metrics without CPU time.
var errNothing = errors.New("no CPU time in there: node_exporter has it (" + nodeCPU + "), a Doris backend (" +
	dorisCPU + ", which a frontend does not have), and most servers of themselves (" + processCPU + ")")

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
		return byMode(f, "device", ticks), nil
	}
	f := families[processCPU]
	switch {
	case f == nil:
		return counters{}, errNothing
	case exporter != "":
		return counters{}, fmt.Errorf("this is %s, whose CPU time is not the server's: give node_exporter's URL", exporter)
	}
	return counters{metric: processCPU, busy: f.GetMetric()[0].GetUntyped().GetValue()}, nil
}

const maxLine = 1 << 20

// sift returns the lines of the metrics above: a server has thousands of series, some with lines that no parser
// accepts. exporter names the program, if it is an exporter for another one.
func sift(from io.Reader) (wanted []byte, exporter string, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
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

// byMode adds up the time of all cores. Waiting for a disk is idle, guests' time is part of user's and nice's, and what
// the hypervisor took (steal) is busy.
//
// A Doris backend has a line for all cores together, device "cpu", and newer ones another for each core, which are
// preferred.
func byMode(f *dto.MetricFamily, label string, perCore float64) counters {
	cores := make(map[string]counters)
	for _, m := range f.GetMetric() {
		var core, mode string
		for _, l := range m.GetLabel() {
			switch l.GetName() {
			case label:
				core = l.GetValue()
			case "mode":
				mode = l.GetValue()
			}
		}
		c, v := cores[core], m.GetUntyped().GetValue() // sift drops the lines with types
		switch mode {
		case "guest", "guest_nice":
		case "idle", "iowait":
			c.total += v
		default:
			c.total, c.busy = c.total+v, c.busy+v
		}
		cores[core] = c
	}
	sum := counters{metric: f.GetName(), perCore: perCore}
	for _, core := range slices.Sorted(maps.Keys(cores)) { // in one order, or rounding would move the sums of equal answers
		c := cores[core]
		if all := core == "" || core == "cpu"; !all {
			sum.cores++
		} else if len(cores) > 1 {
			continue
		}
		sum.busy, sum.total = sum.busy+c.busy, sum.total+c.total
	}
	return sum
}
