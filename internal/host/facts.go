// Package host reads facts of the machine that terapush runs on: memory, cores and network cards, the EC2 instance, the
// route to a target. It has the doctor's checks of all that, the price of a run, and reads the CPU use of servers from
// their metrics.
//
// What cannot be found out is empty, 0 or a finding of grade unknown, and never an error.
package host

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Facts is how the machine is set up, as far as it matters to a sender. What cannot be read is empty or 0.
type Facts struct {
	Cores     Cores
	Memory    int64 // bytes that this process may use
	OpenFiles int64 // files and sockets that this process may have open; Go has raised the soft limit to the hard one
	NICs      []NIC
	// Allowances are the counters of Traffic since the machine was started, by the interface's name.
	Allowances  map[string]map[string]int64
	Governors   []string // of the CPU's frequency, each once; none where the hypervisor decides
	ClockSource string
	Sysctls     map[string]string // those of the kernel's settings that bear on a push, by their names for sysctl(8)

	EC2 Instance
	// Out is the interface by which packets to the target leave, or those of the default route without a target; ""
	// where it is not known.
	Out string
	// RoundTrip is the time to the target and back; 0 where it was not measured, for the reason in Unmeasured, or without
	// a target.
	RoundTrip  time.Duration
	Unmeasured string
}

// Cores is what this process may use of the machine's cores.
type Cores struct {
	Machine int // that the machine has
	Usable  int // that this process uses at once: GOMAXPROCS, which respects affinity and the cgroup's quota
	// Quota is the cgroup's, in cores; 0 where there is none.
	Quota float64
	// Periods is how often the cgroup's quota was given out, and Throttled how often it was used up before the
	// period's end.
	Periods, Throttled int64
}

// readFacts reads the kernel's files, which takes a few milliseconds.
func readFacts() Facts {
	f := factsBelow("/", native())
	f.OpenFiles, f.Cores.Usable = openFiles(), runtime.GOMAXPROCS(0)
	return f
}

func factsBelow(root tree, d drivers) Facts {
	f := Facts{
		Cores: cores(root), Memory: memory(root), NICs: nics(root, d.channels),
		Governors: governors(root), Allowances: make(map[string]map[string]int64), Sysctls: make(map[string]string),
	}
	f.ClockSource, _ = root.text("sys/devices/system/clocksource/clocksource0/current_clocksource")
	for _, t := range readLoad(root, d.statistics).NICs {
		if t.Allowance != nil {
			f.Allowances[t.Name] = t.Allowance
		}
	}
	for _, name := range sysctls() {
		if text, ok := root.text("proc/sys", strings.ReplaceAll(name, ".", "/")); ok {
			f.Sysctls[name] = text
		}
	}
	return f
}

// sysctls are the names of Facts.Sysctls.
func sysctls() []string {
	return []string{
		"net.core.default_qdisc", "net.core.wmem_max",
		"net.ipv4.ip_local_port_range",
		"net.ipv4.tcp_available_congestion_control", "net.ipv4.tcp_congestion_control",
		"net.ipv4.tcp_mtu_probing", "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_wmem",
		"net.netfilter.nf_conntrack_count", "net.netfilter.nf_conntrack_max",
	}
}

// Numbers returns the numbers of a setting that has exactly n of them, none negative. ok is false for everything else.
func (f Facts) Numbers(name string, n int) (numbers []int64, ok bool) {
	fields := strings.Fields(f.Sysctls[name])
	if len(fields) != n {
		return nil, false
	}
	for _, text := range fields {
		one, err := strconv.ParseInt(text, 10, 64)
		if err != nil || one < 0 {
			return nil, false
		}
		numbers = append(numbers, one)
	}
	return numbers, true
}

// NIC returns the interface of a name. ok is false where it is hidden.
func (f Facts) NIC(name string) (n NIC, ok bool) {
	at := slices.IndexFunc(f.NICs, func(n NIC) bool { return n.Name == name })
	if at < 0 {
		return NIC{}, false
	}
	return f.NICs[at], true
}

// Memory returns the memory that this process may use, in bytes: the cgroup's limit where there is one, else the
// machine's memory; 0 where neither can be read.
func Memory() int64 { return memory("/") }

func memory(root tree) int64 {
	meminfo, _ := root.text("proc/meminfo")
	total := field(strings.ReplaceAll(meminfo, " kB", ""), "MemTotal:") << 10 // its kB are KiB
	// Version 2 of cgroups first; its limit is the word "max" where there is none. Version 1 writes a number near 2^63.
	for _, name := range []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if limit := root.number(name); limit > 0 && (total == 0 || limit < total) {
			return limit
		}
	}
	return total
}

func cores(root tree) Cores {
	stat, _ := root.text("proc/stat")
	c := Cores{Machine: len(busy(stat)), Quota: quota(root)}
	for _, folder := range []string{"sys/fs/cgroup", "sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"} {
		text, ok := root.text(folder, "cpu.stat")
		if !ok {
			continue
		}
		c.Periods, c.Throttled = field(text, "nr_periods"), field(text, "nr_throttled")
		break
	}
	return c
}

// quota returns the quota of this process' cgroup as a container sees it, in cores; 0 is none. The file has "max 100000"
// or "400000 100000", in microseconds a period; version 1 has two files and -1 for none.
func quota(root tree) float64 {
	text, ok := root.text("sys/fs/cgroup/cpu.max")
	if !ok {
		share, _ := root.text("sys/fs/cgroup/cpu/cpu.cfs_quota_us")
		period, _ := root.text("sys/fs/cgroup/cpu/cpu.cfs_period_us")
		text = share + " " + period
	}
	share, period, _ := strings.Cut(text, " ")
	s, wrong := strconv.ParseInt(share, 10, 64)
	p, alsoWrong := strconv.ParseInt(strings.TrimSpace(period), 10, 64)
	if wrong != nil || alsoWrong != nil || s <= 0 || p <= 0 {
		return 0
	}
	return float64(s) / float64(p)
}

// field returns the number after a name at the start of a line.
func field(text, name string) int64 {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == name {
			n, _ := strconv.ParseInt(fields[1], 10, 64) // garbage is 0, as what is missing
			return max(n, 0)
		}
	}
	return 0
}

func governors(root tree) []string {
	const folder = "sys/devices/system/cpu"
	var all []string
	for _, cpu := range root.names(folder) {
		if text, ok := root.text(folder, cpu, "cpufreq/scaling_governor"); ok && text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	slices.Sort(all)
	return all
}

// tree is the folder in which /proc and /sys are looked for: "/", and another one in tests.
type tree string

// text returns a file's content without the white space around it. Some files of /sys exist and cannot be read, and in
// containers whole folders are missing: both are not ok.
func (t tree) text(path ...string) (text string, ok bool) {
	read, err := os.ReadFile(t.path(path...))
	return strings.TrimSpace(string(read)), err == nil
}

// number returns the number in a file; -1 for everything else, as the kernel writes it for an unknown link speed.
func (t tree) number(path ...string) int64 {
	text, _ := t.text(path...)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// names lists a folder, sorted.
func (t tree) names(path ...string) []string {
	entries, _ := os.ReadDir(t.path(path...)) // a folder that cannot be read counts as empty
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

func (t tree) path(path ...string) string {
	return filepath.Join(append([]string{string(t)}, path...)...)
}
