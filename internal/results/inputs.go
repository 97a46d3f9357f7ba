package results

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/terapush/terapush/internal/report"
)

// inputsOf lists what the measured pushes depended on, every value once. Several values of one name are a difference.
func inputsOf(reports []*report.Report, from group) []Input {
	var all []Input
	seen := map[Input]bool{}
	add := func(in Input) {
		if in.Value != "" && !seen[in] {
			seen[in] = true
			all = append(all, in)
		}
	}
	for _, r := range reports {
		for _, in := range inputsOfReport(r) {
			add(in)
		}
	}
	for _, p := range from {
		for _, in := range inputsOfHead(p.head, p.part) {
			add(in)
		}
	}
	return all
}

// shared are the inputs of one value. What differs is an axis, or a warning.
func shared(all []Input) []Input {
	kept := []Input{}
	of := map[string]int{}
	for _, in := range all {
		of[in.Name]++
	}
	for _, in := range all {
		if of[in.Name] == 1 {
			kept = append(kept, in)
		}
	}
	return kept
}

// values are the different values of one input.
func values(all []Input, name string) []string {
	var found []string
	for _, in := range all {
		if in.Name == name {
			found = append(found, in.Value)
		}
	}
	return found
}

// Names of inputs that others ask for.
const (
	inputServer     = "server"
	inputTarget     = "target"
	inputTable      = "table"
	inputDurability = "durability"
	inputDataset    = "dataset"
	inputDelivery   = "delivery"
	inputDistinct   = "distinct rows"
	inputMachine    = "machine"
	inputVersion    = "terapush"
)

func inputsOfReport(r *report.Report) []Input {
	in := []Input{
		{inputServer, r.Target.Server}, {inputTarget, r.Target.URL}, {"via", r.Target.Via}, {"endpoint", r.Target.Endpoint},
		{inputTable, r.Target.Table}, {inputDurability, durability(r)}, {inputDelivery, r.Plan.Delivery},
		{"method", r.Plan.Method}, {"format", r.Plan.Format}, {inputDataset, r.Plan.Dataset},
		{"data seed", strconv.FormatUint(r.Plan.Seed, 10)}, {"rows", positive(r.Plan.Rows)}, {inputDistinct, distinct(r.Plan)},
		{"workers", positive(int64(r.Plan.Workers))}, {"batch rows", positive(r.Plan.BatchRows)}, {"batch bytes", size(r.Plan.BatchBytes)},
		{"batches a commit", positive(r.Plan.GroupBatches)}, {"max rate", rate(r.Plan.MaxRate)}, {"loop", loop(r.Latency.Loop)},
		{"verify", r.Verify.Mode},
	}
	for _, name := range slices.Sorted(maps.Keys(r.Plan.Options)) {
		in = append(in, Input{"--" + name, r.Plan.Options[name]}) // as a plan's flags are called, which say the same
	}
	for _, name := range slices.Sorted(maps.Keys(r.Target.Settings)) {
		in = append(in, Input{"setting " + name, r.Target.Settings[name]})
	}
	return append(in, Input{"client cores", positive(int64(r.Client.Cores))})
}

func inputsOfHead(h Head, p Part) []Input {
	in := []Input{
		{inputMachine, machine(h.Machine)}, {"host", h.Machine.Host}, {inputVersion, h.Version}, {"scale", h.Scale},
		{"repeats", positive(int64(h.Repeats))},
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

func machine(m Machine) string {
	var parts []string
	if m.Cores > 0 {
		parts = append(parts, strconv.Itoa(m.Cores)+" cores")
	}
	if m.MemoryBytes > 0 {
		parts = append(parts, size(m.MemoryBytes)+" memory")
	}
	return Joined(", ", append([]string{m.CPU}, append(parts, Joined(" ", m.OS, m.Arch))...)...)
}

func distinct(p report.Plan) string {
	if p.DistinctRows == 0 {
		return "all"
	}
	return fmt.Sprintf("%s in %s", humanize.Comma(p.DistinctRows), size(p.Distinct))
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

func positive(n int64) string {
	if n == 0 {
		return ""
	}
	return humanize.Comma(n)
}

func size(n int64) string {
	if n <= 0 {
		return ""
	}
	return humanize.IBytesN(uint64(n), 4)
}

func rate(n int64) string {
	if n <= 0 {
		return ""
	}
	return size(n) + "/s"
}
