// Package host reads facts about the machine that terapush runs on: memory, cores and network cards, the EC2 instance,
// the route to a target. It has the doctor's checks of all that, and reads the CPU use of servers from their metrics.
//
// What cannot be found out is empty, 0 or a finding of grade unknown, and never an error.
package host

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Facts are what matters to a sender about the machine. What cannot be read is empty or 0.
type Facts struct {
	Cores     Cores
	Memory    int64 // bytes that this process may use
	OpenFiles int64 // limit of files and sockets; Go has raised the soft limit to the hard one
	NICs      []NIC
	Sysctls   map[string]string // kernel settings, by their names for sysctl(8)

	EC2 Instance
	// Out is the interface of the route to the target, or of the default route without a target; "" if unknown.
	Out string
	// RoundTrip is the time to the target and back; 0 where it was not measured.
	RoundTrip time.Duration
}

// Cores are those of the machine, and what this process may use of them.
type Cores struct {
	Machine int
	Usable  int     // GOMAXPROCS, which respects affinity and the cgroup's quota
	Quota   float64 // of the cgroup, in cores; 0: none
}

// readFacts reads the kernel's files, which takes a few milliseconds.
func readFacts() Facts {
	f := factsBelow("/")
	f.OpenFiles, f.Cores.Usable = openFiles(), runtime.GOMAXPROCS(0)
	return f
}

func factsBelow(root tree) Facts {
	f := Facts{Cores: cores(root), Memory: memory(root), NICs: nics(root), Sysctls: make(map[string]string)}
	for _, name := range []string{
		"net.ipv4.ip_local_port_range", "net.ipv4.tcp_wmem", "net.netfilter.nf_conntrack_count", "net.netfilter.nf_conntrack_max",
	} {
		if text, ok := root.text("proc/sys", strings.ReplaceAll(name, ".", "/")); ok {
			f.Sysctls[name] = text
		}
	}
	return f
}

// Numbers returns the numbers of a setting that has exactly n of them, none negative.
func (f Facts) Numbers(name string, n int) (numbers []int64, ok bool) {
	for text := range strings.FieldsSeq(f.Sysctls[name]) {
		number, err := strconv.ParseInt(text, 10, 64)
		if err != nil || number < 0 {
			return nil, false
		}
		numbers = append(numbers, number)
	}
	return numbers, len(numbers) == n
}

// NIC returns the interface of a name. ok is false if it is hidden.
func (f Facts) NIC(name string) (n NIC, ok bool) {
	at := slices.IndexFunc(f.NICs, func(n NIC) bool { return n.Name == name })
	if at < 0 {
		return NIC{}, false
	}
	return f.NICs[at], true
}

// Memory returns the memory that this process may use, in bytes: the cgroup's limit, else the machine's memory.
func Memory() int64 { return memory("/") }

func memory(root tree) int64 {
	meminfo, _ := root.text("proc/meminfo")
	total := field(strings.ReplaceAll(meminfo, " kB", ""), "MemTotal:") << 10 // its kB are KiB
	// In version 2 of cgroups no limit is the word "max", in version 1 a number near 2^63.
	for _, name := range []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if limit := root.number(name); limit > 0 && (total == 0 || limit < total) {
			return limit
		}
	}
	return total
}

func cores(root tree) Cores {
	stat, _ := root.text("proc/stat")
	return Cores{Machine: len(busy(stat)), Quota: quota(root)}
}

// quota returns the quota of this process' cgroup, as a container sees it, in cores; 0: none. The file has "max 100000"
// or "400000 100000", in microseconds a period; version 1 has two files, and -1 for none.
func quota(root tree) float64 {
	text, ok := root.text("sys/fs/cgroup/cpu.max")
	if !ok {
		share, _ := root.text("sys/fs/cgroup/cpu/cpu.cfs_quota_us")
		period, _ := root.text("sys/fs/cgroup/cpu/cpu.cfs_period_us")
		text = share + " " + period
	}
	share, period, _ := strings.Cut(text, " ")
	s, _ := strconv.ParseInt(share, 10, 64)
	p, _ := strconv.ParseInt(period, 10, 64)
	if s <= 0 || p <= 0 {
		return 0
	}
	return float64(s) / float64(p)
}

// field returns the number after a name at the start of a line.
func field(text, name string) int64 {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == name {
			n, _ := strconv.ParseInt(fields[1], 10, 64)
			return max(n, 0)
		}
	}
	return 0
}

// Machine identifies a machine beside figures that were measured on it. What is unknown is zero.
type Machine struct {
	Host        string `json:"host"`
	OS          string `json:"os"` // with the kernel's version
	Arch        string `json:"arch"`
	CPU         string `json:"cpu"` // the model's name
	Cores       int    `json:"cores"`
	MemoryBytes int64  `json:"memory_bytes"`
}

// modelName is in /proc/cpuinfo, but not of Linux on ARM.
var modelName = regexp.MustCompile(`(?m)^model name\s*:\s*(.*\S)`)

// ThisMachine returns the machine that this process runs on, with the cores that it may use.
func ThisMachine() Machine {
	m := Machine{OS: system(), Arch: runtime.GOARCH, Cores: runtime.GOMAXPROCS(0), MemoryBytes: Memory()}
	m.Host, _ = os.Hostname()
	text, _ := os.ReadFile("/proc/cpuinfo")
	if name := modelName.FindSubmatch(text); name != nil {
		m.CPU = string(name[1])
	}
	return m
}

// Place returns what tells the processes apart that share this machine's cores: the host's name, and what is the same in
// all containers of a machine, with the number of its cores. The latter are "" and 0 where the system does not tell.
func Place() (name, machine string, cores int) {
	root := tree("/")
	name, _ = os.Hostname()
	machine, _ = root.text("proc/sys/kernel/random/boot_id")
	stat, _ := root.text("proc/stat")
	return name, machine, len(busy(stat))
}

// tree is the folder of /proc and /sys: "/", and another one in tests.
type tree string

// text returns a file's content without surrounding white space. Some files of /sys cannot be read, and containers lack
// whole folders.
func (t tree) text(path ...string) (text string, ok bool) {
	read, err := os.ReadFile(t.path(path...))
	return strings.TrimSpace(string(read)), err == nil
}

// number returns the number in a file; -1 if there is none, as the kernel writes it for an unknown link speed.
func (t tree) number(path ...string) int64 {
	text, _ := t.text(path...)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// names lists a folder, sorted; nothing if it cannot be read.
func (t tree) names(path ...string) (names []string) {
	entries, _ := os.ReadDir(t.path(path...))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (t tree) path(path ...string) string {
	return filepath.Join(append([]string{string(t)}, path...)...)
}
