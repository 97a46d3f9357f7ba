package results

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/units"
)

// Input is one thing that a result depends on.
type Input struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Names of inputs that are looked up.
const (
	inputServer     = "server"
	inputTarget     = "target"
	inputTable      = "table"
	inputDurability = "durability"
	inputDataset    = "dataset"
	inputDistinct   = "distinct rows"
	inputMachine    = "machine"
	inputVersion    = "terapush"
)

// inputsOf lists what the measured pushes depended on, each value once. Several values of one name are a difference.
func inputsOf(reports []*report.Report, from group) []Input {
	var all []Input
	for _, r := range reports {
		all = append(all, inputsOfReport(r)...)
	}
	for _, p := range from {
		all = append(all, inputsOfHead(p.head, p.part)...)
	}
	return distinct(slices.DeleteFunc(all, func(in Input) bool { return in.Value == "" }))
}

// distinct returns each once, in the order of the first.
func distinct[T comparable](all []T) []T {
	seen := map[T]bool{}
	return slices.DeleteFunc(all, func(one T) bool {
		had := seen[one]
		seen[one] = true
		return had
	})
}

// shared returns the inputs that have one value.
func shared(all []Input) []Input {
	count := map[string]int{}
	for _, in := range all {
		count[in.Name]++
	}
	return slices.DeleteFunc(append([]Input{}, all...), func(in Input) bool { return count[in.Name] > 1 })
}

func valuesOf(all []Input, name string) (values []string) {
	for _, in := range all {
		if in.Name == name {
			values = append(values, in.Value)
		}
	}
	return values
}

func inputsOfReport(r *report.Report) []Input {
	p := r.Plan
	durable, _ := durability(r)
	in := []Input{
		{inputServer, r.Target.Server}, {inputTarget, r.Target.URL}, {"via", r.Target.Via}, {"endpoint", r.Target.Endpoint},
		{inputTable, r.Target.Table}, {inputDurability, strings.Join(durable, ", ")}, {"delivery", p.Delivery},
		{"method", p.Method}, {"format", p.Format}, {inputDataset, p.Dataset},
		{"data seed", strconv.FormatUint(p.Seed, 10)}, {"rows", count(p.Rows)}, {inputDistinct, distinctRows(p)},
		{"workers", count(int64(p.Workers))}, {"batch rows", count(p.BatchRows)}, {"batch bytes", size(p.BatchBytes, "")},
		{"batches a commit", count(p.GroupBatches)}, {"max rate", size(p.MaxRate, "/s")}, {"loop", loops[r.Latency.Loop]},
		{"verify", r.Verify.Mode},
	}
	for _, name := range slices.Sorted(maps.Keys(p.Options)) {
		in = append(in, Input{"--" + name, p.Options[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(r.Target.Settings)) {
		in = append(in, Input{"setting " + name, r.Target.Settings[name]})
	}
	return append(in, Input{"client cores", count(int64(r.Client.Cores))})
}

func inputsOfHead(h Head, p Part) []Input {
	m := h.Machine
	cores := ""
	if m.Cores > 0 {
		cores = strconv.Itoa(m.Cores) + " cores"
	}
	machine := units.Join(", ", m.CPU, cores, size(m.MemoryBytes, " memory"), units.Join(" ", m.OS, m.Arch))
	return append([]Input{
		{inputMachine, machine}, {"host", m.Host}, {inputVersion, h.Version}, {"scale", h.Scale},
		{"repeats", repeatsOf(h)},
	}, flagsOf(p)...)
}

func distinctRows(p report.Plan) string {
	if p.DistinctRows == 0 {
		return "all"
	}
	rows, bytes := p.DistinctOf(p.Rows)
	return fmt.Sprintf("%s in %s", units.Count(rows), size(bytes, ""))
}

var loops = map[report.Loop]string{
	report.Closed: "closed: batches are timed from when they were sent",
	report.Open:   "open: batches are timed from when the rate wanted them sent",
}

// loopInWords makes a sentence of one of loops; "" of none.
func loopInWords(loop string) string {
	kind, what, _ := strings.Cut(loop, ": ")
	if what == "" {
		return ""
	}
	return " " + strings.ToUpper(kind[:1]) + kind[1:] + " loop: " + what + "."
}

func repeatsOf(h Head) string {
	if h.Precision > 0 {
		return fmt.Sprintf("until the median is known to %s, at most %d", units.Percent(h.Precision), h.Repeats)
	}
	return count(int64(h.Repeats))
}

// count formats a number, "" for 0.
func count(n int64) string {
	if n == 0 {
		return ""
	}
	return units.Count(n)
}

// size formats a number of bytes with a suffix, "" for none.
func size(n int64, suffix string) string {
	if n <= 0 {
		return ""
	}
	return units.Bytes(n) + suffix
}

// durabilitySettings are the settings and options that decide which acknowledged rows a crash of the server may lose,
// with the values that let it lose some. Those without such values are shown and compared only: any value may be right.
var durabilitySettings = map[string][]string{
	// PostgreSQL and servers compatible with it
	"fsync": {"off"}, "synchronous_commit": {"off"}, "full_page_writes": {"off"}, "wal_level": nil, "unlogged": {"true"},
	"synchronous_standby_names": nil,
	// the MySQL family
	"innodb_flush_log_at_trx_commit": {"0", "2"}, "sync_binlog": nil, "log_bin": nil, "sql_log_bin": nil,
	"innodb_doublewrite": {"off", "0"}, "innodb_flush_method": {"nosync"},
	// Doris
	"group_commit": {"async_mode", "async"}, "replication_num": nil, "replication_allocation": nil,
	// Oracle
	"commit_wait": {"nowait"}, "commit_write": nil, "commit_logging": nil, "memoptimize_write": nil,
	// YugabyteDB
	"yb_disable_transactional_writes": nil,
}

// durability returns the settings of a run that decide durability as name=value, sorted: those of the server and, where
// it has none of the name, the options of the method. unsafe are those with which it may lose acknowledged rows.
func durability(r *report.Report) (all, unsafe []string) {
	values := map[string]string{}
	for _, settings := range []map[string]string{r.Plan.Options, r.Target.Settings} {
		for name, v := range settings {
			name = strings.ReplaceAll(name, "-", "_") // options have dashes, settings do not
			if _, ok := durabilitySettings[strings.ToLower(name)]; ok {
				values[name] = v
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all = append(all, name+"="+values[name])
		if slices.Contains(durabilitySettings[strings.ToLower(name)], strings.ToLower(values[name])) {
			unsafe = append(unsafe, name+"="+values[name])
		}
	}
	return all, unsafe
}
