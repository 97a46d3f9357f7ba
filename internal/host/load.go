package host

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/report"
)

// Load is the machine's counters since it was started. What cannot be read is empty.
type Load struct {
	Cores []float64 // busy seconds of each core, with other processes, interrupts and the hypervisor
	NICs  []Traffic
}

// Traffic is what a network interface has sent since it came up.
type Traffic struct {
	Name      string
	Sent      int64            // bytes, with all headers
	Allowance map[string]int64 // Amazon's ENA: how often an allowance was exceeded, by the driver's name for it
}

// ReadLoad reads the counters of all cores and of all network interfaces of this process' network namespace, with the
// loopback. It takes tens of microseconds.
func ReadLoad() Load { return readLoad("/", statistics) }

// readLoad parses the two files of /proc itself: prometheus/procfs takes microseconds a core, loses all lines of stat
// when one is invalid, and panics on a short line of net/dev.
func readLoad(root tree, statistics func(nic string) map[string]uint64) Load {
	stat, _ := root.text("proc/stat")
	load := Load{Cores: busy(stat)}
	dev, _ := root.text("proc/net/dev")
	for line := range strings.Lines(dev) {
		t, ok := traffic(line)
		if !ok {
			continue
		}
		if root.driver(t.Name) == ena {
			t.Allowance = exceeded(statistics(t.Name))
		}
		load.NICs = append(load.NICs, t)
	}
	return load
}

// ticks is USER_HZ, the ticks a second of /proc/stat: 100 on every architecture that Go compiles for.
const ticks = 100

// busy reads the lines "cpu0 user nice system idle iowait irq softirq steal guest guest_nice" of proc(5). Guests are
// part of user and nice, and waiting for a disk is idle.
func busy(stat string) (seconds []float64) {
	for line := range strings.Lines(stat) {
		fields := strings.Fields(line)
		if len(fields) < 9 || fields[0] == "cpu" || !strings.HasPrefix(fields[0], "cpu") {
			continue
		}
		var sum, bad = 0.0, false
		for _, i := range []int{1, 2, 3, 6, 7, 8} {
			n, err := strconv.ParseUint(fields[i], 10, 64)
			sum, bad = sum+float64(n), bad || err != nil
		}
		if !bad {
			seconds = append(seconds, sum/ticks)
		}
	}
	return seconds
}

// traffic reads a line of /proc/net/dev: the interface, a colon, eight numbers of what was received, eight of what was
// sent. There may be no space behind the colon.
func traffic(line string) (t Traffic, ok bool) {
	at := strings.LastIndexByte(line, ':')
	if at < 0 {
		return Traffic{}, false
	}
	fields := strings.Fields(line[at+1:])
	if len(fields) < 16 {
		return Traffic{}, false
	}
	sent, err := strconv.ParseInt(fields[8], 10, 64)
	t = Traffic{Name: strings.TrimSpace(line[:at]), Sent: sent}
	return t, err == nil && t.Name != ""
}

// ena is the driver of Amazon's network cards, the only one with allowances.
const ena = "ena"

// exceeded returns the counters of ENA_Linux_Best_Practices.rst: bw_in_allowance_exceeded, pps_allowance_exceeded and
// others.
func exceeded(statistics map[string]uint64) (counters map[string]int64) {
	for name, n := range statistics {
		if strings.HasSuffix(name, "_allowance_exceeded") {
			if counters == nil {
				counters = make(map[string]int64)
			}
			counters[name] = int64(n)
		}
	}
	return counters
}

// Work is what the machine did while rows moved, which may be more than once.
type Work struct {
	since  time.Time // zero outside of Start and Stop
	before Load

	seconds float64
	cores   []float64 // busy seconds of each
	nics    map[string]Traffic
}

// Start begins a period in which rows move.
func (w *Work) Start() { w.since, w.before = time.Now(), ReadLoad() }

// Stop ends it, if one has begun.
func (w *Work) Stop() {
	if w.since.IsZero() {
		return
	}
	w.add(time.Since(w.since).Seconds(), w.before, ReadLoad())
	w.since = time.Time{}
}

// add adds what happened between two loads. Cores and interfaces that are in one of them only are left out.
func (w *Work) add(seconds float64, before, now Load) {
	w.seconds += seconds
	for i := range min(len(now.Cores), len(before.Cores)) {
		if i == len(w.cores) {
			w.cores = append(w.cores, 0)
		}
		w.cores[i] += max(now.Cores[i]-before.Cores[i], 0)
	}
	if w.nics == nil {
		w.nics = make(map[string]Traffic)
	}
	for _, n := range now.NICs {
		i := slices.IndexFunc(before.NICs, func(b Traffic) bool { return b.Name == n.Name })
		if i < 0 {
			continue
		}
		b, t := before.NICs[i], w.nics[n.Name]
		t.Name = n.Name
		t.Sent += max(n.Sent-b.Sent, 0)
		for name, count := range n.Allowance {
			if t.Allowance == nil {
				t.Allowance = make(map[string]int64)
			}
			t.Allowance[name] += max(count-b.Allowance[name], 0)
		}
		w.nics[n.Name] = t
	}
}

// AddTo adds the load of the cores, of the interface named to or else of the one that sent most, and the exceeded
// allowances.
func (w *Work) AddTo(e *report.Evidence, nics []NIC, to string) {
	if w.seconds <= 0 {
		return
	}
	if len(w.cores) > 0 {
		var sum float64
		for _, busy := range w.cores {
			sum += busy
		}
		// The clocks of two files differ by a little.
		e.HottestCore, e.MachineCPU = min(slices.Max(w.cores)/w.seconds, 1), min(sum/w.seconds/float64(len(w.cores)), 1)
	}
	var most Traffic
	e.Allowance = make(map[string]int64)
	for _, t := range w.nics {
		if t.Sent > most.Sent || t.Sent == most.Sent && t.Name < most.Name {
			most = t
		}
		for name, n := range t.Allowance {
			if n > 0 {
				e.Allowance[name] += n
			}
		}
	}
	if t, known := w.nics[to]; known {
		most = t
	}
	e.NIC, e.NICBits = most.Name, 8*float64(most.Sent)/w.seconds
	for _, n := range nics {
		// A virtual pair reports 10 Gbit/s and may be faster.
		if n.Name == most.Name && n.BitsPerSecond > 0 && float64(n.BitsPerSecond) >= e.NICBits {
			e.NICSpeed, e.NICShare = n.BitsPerSecond, e.NICBits/float64(n.BitsPerSecond)
		}
	}
}
