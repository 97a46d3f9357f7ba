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

// Names of inputs that others ask for.
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

// inputsOf lists what the measured pushes depended on, every value once. Several values of one name are a difference.
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

// distinct returns each input once, in the order of their first places.
func distinct(all []Input) []Input {
	seen := map[Input]bool{}
	return slices.DeleteFunc(all, func(in Input) bool {
		had := seen[in]
		seen[in] = true
		return had
	})
}

// shared returns the inputs of one value. What differs is an axis, or a warning.
func shared(all []Input) []Input {
	of := map[string]int{}
	for _, in := range all {
		of[in.Name]++
	}
	kept := []Input{}
	for _, in := range all {
		if of[in.Name] == 1 {
			kept = append(kept, in)
		}
	}
	return kept
}

// valuesOf returns the different values of one input.
func valuesOf(all []Input, name string) (found []string) {
	for _, in := range all {
		if in.Name == name {
			found = append(found, in.Value)
		}
	}
	return found
}

func inputsOfReport(r *report.Report) []Input {
	p := r.Plan
	in := []Input{
		{inputServer, r.Target.Server}, {inputTarget, r.Target.URL}, {"via", r.Target.Via}, {"endpoint", r.Target.Endpoint},
		{inputTable, r.Target.Table}, {inputDurability, durability(r)}, {"delivery", p.Delivery},
		{"method", p.Method}, {"format", p.Format}, {inputDataset, p.Dataset},
		{"data seed", strconv.FormatUint(p.Seed, 10)}, {"rows", count(p.Rows)}, {inputDistinct, distinctRows(p)},
		{"workers", count(int64(p.Workers))}, {"batch rows", count(p.BatchRows)}, {"batch bytes", size(p.BatchBytes, "")},
		{"batches a commit", count(p.GroupBatches)}, {"max rate", size(p.MaxRate, "/s")}, {"loop", loop(r.Latency.Loop)},
		{"verify", r.Verify.Mode},
	}
	for _, name := range slices.Sorted(maps.Keys(p.Options)) {
		in = append(in, Input{"--" + name, p.Options[name]}) // as a plan's flags are called, which say the same
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
	machine := joined(", ", m.CPU, cores, size(m.MemoryBytes, " memory"), joined(" ", m.OS, m.Arch))
	in := []Input{
		{inputMachine, machine}, {"host", m.Host}, {inputVersion, h.Version}, {"scale", h.Scale},
		{"repeats", count(int64(h.Repeats))},
	}
	for _, name := range slices.Sorted(maps.Keys(p.Push)) {
		in = append(in, Input{"--" + name, strings.Join(p.Push[name], ", ")})
	}
	for _, method := range slices.Sorted(maps.Keys(p.Methods)) {
		for _, name := range slices.Sorted(maps.Keys(p.Methods[method])) {
			in = append(in, Input{"--" + name + " of " + method, strings.Join(p.Methods[method][name], ", ")})
		}
	}
	return in
}

func distinctRows(p report.Plan) string {
	if p.DistinctRows == 0 {
		return "all"
	}
	return fmt.Sprintf("%s in %s", units.Count(p.DistinctRows), size(p.Distinct, ""))
}

// loop says how the times of batches are to be read.
func loop(l report.Loop) string {
	switch l {
	case report.Closed:
		return "closed: batches are timed from when they were sent"
	case report.Open:
		return "open: batches are timed from when the rate wanted them sent"
	}
	return string(l)
}

// count is a number, "" for 0: nothing that a result depends on.
func count(n int64) string {
	if n == 0 {
		return ""
	}
	return units.Count(n)
}

// size is a number of bytes of something, "" for none.
func size(n int64, of string) string {
	if n <= 0 {
		return ""
	}
	return units.Bytes(n) + of
}

// decides lists the settings and options that decide what a crash of the server may take, and the values that let it
// take rows which were acknowledged. A setting without such values is shown and compared and not judged: it may be
// right either way.
var decides = map[string][]string{
	// PostgreSQL and what speaks like it
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

// deciding returns the settings of a run that decide durability, as name=value in the order of their names: those of
// the server and the method's options. Where both are of one name the server's is what holds.
func deciding(r *report.Report, judge func(name, value string) bool) []string {
	found := map[string]string{}
	for _, all := range []map[string]string{r.Plan.Options, r.Target.Settings} {
		for name, v := range all {
			name = strings.ReplaceAll(name, "-", "_") // as servers write it; options have dashes
			if _, ok := decides[strings.ToLower(name)]; ok {
				found[name] = v
			}
		}
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if judge(strings.ToLower(name), strings.ToLower(found[name])) {
			parts = append(parts, name+"="+found[name])
		}
	}
	return parts
}

// durability returns all settings of a run that decide durability, in one line: fsync=on, synchronous_commit=off.
func durability(r *report.Report) string {
	return strings.Join(deciding(r, func(string, string) bool { return true }), ", ")
}

// unsafeSettings returns the settings of a run with which the server may lose rows that it has acknowledged.
func unsafeSettings(r *report.Report) []string {
	return deciding(r, func(name, value string) bool { return slices.Contains(decides[name], value) })
}
