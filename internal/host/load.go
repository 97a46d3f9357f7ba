package host

import (
	"strconv"
	"strings"
)

// Load is the machine's counters since it was started; the difference of two is what it did in between. What cannot be
// read is empty.
type Load struct {
	Cores []float64 // seconds that each core was busy, those of other processes, interrupts and the hypervisor included
	NICs  []Traffic
}

// Traffic is what went through a network interface since it came up.
type Traffic struct {
	Name           string
	Sent, Received int64            // bytes, with all headers
	Allowance      map[string]int64 // Amazon's ENA: how often an allowance of the instance was exceeded, by the driver's own name
}

// ReadLoad reads the counters of all cores and of all network interfaces of this process' network namespace, the loopback
// included. It costs tens of microseconds.
func ReadLoad() Load { return readLoad("/", native().statistics) }

// readLoad parses the two files of /proc itself: prometheus/procfs needs microseconds a core, loses all lines of stat
// when one is garbage, and panics on a short line of net/dev.
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

// ticks is USER_HZ, the ticks a second of /proc/stat. It is part of the kernel's promise to programs and 100 on every
// architecture that Go compiles for.
const ticks = 100

// busy reads the lines "cpu0 user nice system idle iowait irq softirq steal guest guest_nice" of proc(5). Guests are part
// of user and nice, and waiting for a disk is idle.
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
	received, wrong := strconv.ParseInt(fields[0], 10, 64)
	sent, alsoWrong := strconv.ParseInt(fields[8], 10, 64)
	t = Traffic{Name: strings.TrimSpace(line[:at]), Sent: sent, Received: received}
	return t, wrong == nil && alsoWrong == nil && t.Name != ""
}

// ena is the driver of Amazon's network cards. It alone has allowances.
const ena = "ena"

// exceeded returns the counters of ENA_Linux_Best_Practices.rst: bw_in_allowance_exceeded, pps_allowance_exceeded and
// so on.
func exceeded(statistics map[string]uint64) map[string]int64 {
	var picked map[string]int64
	for name, n := range statistics {
		if strings.HasSuffix(name, "_allowance_exceeded") {
			if picked == nil {
				picked = make(map[string]int64)
			}
			picked[name] = int64(n)
		}
	}
	return picked
}
