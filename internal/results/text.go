package results

import (
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/units"
)

// section is one table in words, for whatever is made of plain text.
type section struct {
	heading string
	cells   grid
	lines   []Input // what follows from the cells
	inputs  []Input // what was published, and what all of it depends on
}

// sectionsOf also returns the inputs that all of several tables share, which are said once.
func sectionsOf(tables []Table) (sections []section, common []Input) {
	if len(tables) > 1 {
		common = depends(tables[0])
		for _, t := range tables[1:] {
			has := depends(t)
			common = slices.DeleteFunc(common, func(in Input) bool { return !slices.Contains(has, in) })
		}
	}
	for _, t := range tables {
		s := section{heading: heading(t), lines: append(longErrors(t), conclusions(t)...)}
		if len(t.Points) > 0 {
			s.cells = gridOf(t, func(i int) string { return notes(t, i) })
		}
		for _, text := range t.Warnings {
			s.lines = append(s.lines, Input{"warning", text})
		}
		own := slices.DeleteFunc(depends(t), func(in Input) bool { return slices.Contains(common, in) })
		s.inputs = append(besides(t), own...)
		sections = append(sections, s)
	}
	return sections, common
}

// asText shows tables for people and terminals. What all of several tables depend on stands at their end, once.
func asText(tables []Table) (string, error) {
	var b strings.Builder
	lines := func(all []Input) {
		for _, in := range all {
			fmt.Fprintf(&b, "%-17s %s\n", printable(in.Name), oneLine(in.Value))
		}
	}
	sections, common := sectionsOf(tables)
	for i, s := range sections {
		if i > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(s.heading + "\n\n")
		if len(s.cells.rows) > 0 {
			b.WriteString(s.cells.text() + "\n")
		}
		lines(s.lines)
		lines(s.inputs)
	}
	if len(common) > 0 {
		b.WriteString("\n\nall tables\n\n")
		lines(common)
	}
	return b.String(), nil
}

// asMarkdown shows tables as GitHub does, with the words of asText.
func asMarkdown(tables []Table) (string, error) {
	var b strings.Builder
	inputs := func(all []Input) {
		if len(all) > 0 {
			b.WriteString("\n| input | value |\n| :-- | :-- |\n")
		}
		for _, in := range all {
			fmt.Fprintf(&b, "| %s | %s |\n", escape(in.Name), escape(in.Value))
		}
	}
	sections, common := sectionsOf(tables)
	for i, s := range sections {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "## %s\n\n", escape(s.heading))
		if len(s.cells.rows) > 0 {
			b.WriteString(s.cells.markdown() + "\n")
		}
		for _, line := range s.lines {
			fmt.Fprintf(&b, "- **%s** %s\n", line.Name, escape(line.Value))
		}
		inputs(s.inputs)
	}
	if len(common) > 0 {
		b.WriteString("\n## All tables\n")
		inputs(common)
	}
	return b.String(), nil
}

// heading is a table's name and title in one line.
func heading(t Table) string {
	text := joined(": ", t.Name, t.Title)
	if t.Scale != "" {
		text += " (scale " + t.Scale + ")"
	}
	return printable(text)
}

// maxKnees bounds the knees that are told in words: they are in the notes of the cells as well. It bounds the errors,
// too.
const maxKnees = 12

// conclusions are the best cell, the smallest that is nearly as fast, the ceilings, and the knee of every row.
func conclusions(t Table) []Input {
	if t.Best < 0 {
		return []Input{{"best", "nothing was measured"}}
	}
	at := func(i int) string {
		p := t.Points[i]
		bytes := units.Amount(p.BytesPerSecond.Median / mib)
		return fmt.Sprintf("%s: %s rows/s, %s MiB/s", p.Settings, units.Amount(p.rate()), bytes)
	}
	var found []Input
	if len(t.Points) > 1 {
		found = append(found, Input{"best", at(t.Best)})
		if t.Smallest != t.Best {
			found = append(found, Input{"smallest", at(t.Smallest) + ", within " + near() + " of the best"})
		}
	}
	for _, c := range t.ceilings() {
		text := c.name
		if n, share := t.under(c); n >= 0 {
			who := "this run"
			if len(t.Points) > 1 {
				who = t.Points[n].Settings.String()
			}
			text += fmt.Sprintf(", of which %s has %.0f %%", who, 100*share)
		}
		found = append(found, Input{"ceiling", text})
	}
	return append(found, kneesInWords(t)...)
}

// near is the share of the best rate that a smaller setting may give away.
func near() string { return fmt.Sprintf("%.4g %%", 100*Near) }

// kneesInWords says of every row where more stopped to pay. Of rows that were still rising at their end there is
// nothing to tell but how many they are.
func kneesInWords(t Table) []Input {
	var found []Input
	var ends []string // where rows still rose, each once
	rising := map[string]int{}
	for _, k := range t.Knees {
		at := k.Axis + " " + k.At
		if !k.Reached {
			if rising[at]++; rising[at] == 1 {
				ends = append(ends, at)
			}
			continue
		}
		text := joined(": ", k.Row.String(), at)
		if k.At != k.Best {
			text += fmt.Sprintf(" is within %s of the best, which is at %s", near(), k.Best)
		} else {
			text += " is the best, and nothing smaller is within " + near()
		}
		found = append(found, Input{"knee", text})
	}
	if more := len(found) - maxKnees; more > 1 {
		found = append(found[:maxKnees], Input{"knee", fmt.Sprintf("of %d more rows: see the notes", more)})
	}
	for _, at := range ends {
		text := fmt.Sprintf("not reached: %s, the most that was measured, is the best", at)
		if len(t.Knees) > 1 {
			text += fmt.Sprintf(" in %d of %d rows", rising[at], len(t.Knees))
		}
		found = append(found, Input{"knee", text})
	}
	return found
}

// notes say of a point what no number does: whether it is the best, and how its pushes ended.
func notes(t Table, i int) string {
	p, why := t.Points[i], t.Points[i].ending()
	if why != "" && p.Error != "" {
		why += ": " + shortened(p.Error)
	}
	return joined(", ", marks(t, i), why)
}

// marks are the notes but for the pushes that do not count.
func marks(t Table, i int) string {
	p := t.Points[i]
	var parts []string
	add := func(is bool, text string) {
		if is {
			parts = append(parts, text)
		}
	}
	add(i == t.Best && len(t.Points) > 1, "best")
	add(i == t.Smallest && i != t.Best, "smallest within "+near())
	add(t.isKnee(p), "knee")
	add(p.Limited > 0, "limited")
	return strings.Join(parts, ", ")
}

// ending is how pushes of a point ended that do not count; "" if there are none.
func (p Point) ending() string {
	switch {
	case p.Status == Failed || p.Status == Skipped:
		return string(p.Status)
	case p.Failed > 0:
		return fmt.Sprintf("%d failed", p.Failed)
	}
	return ""
}

// shortened cuts an error for a cell: what a server says may be longer than all other columns. What is cut there stands
// whole below the table.
func shortened(why string) string {
	const most = 60 // letters
	all := []rune(oneLine(why))
	if len(all) <= most {
		return string(all)
	}
	return strings.TrimSpace(string(all[:most])) + "…"
}

// longErrors are the errors that cells have shortened, whole and each once, with the first cell that has it.
func longErrors(t Table) []Input {
	var found []Input
	seen := map[string]bool{}
	for _, p := range t.Points {
		why := oneLine(p.Error)
		if p.ending() == "" || shortened(why) == why || seen[why] {
			continue
		}
		seen[why] = true
		found = append(found, Input{p.ending(), joined(": ", p.Settings.String(), why)})
	}
	if more := len(found) - maxKnees; more > 1 {
		found = append(found[:maxKnees], Input{"failed", fmt.Sprintf("for %d more reasons: see --format csv", more)})
	}
	return found
}

// besides are what was published and what was measured here, so that nobody reads the one as the other.
func besides(t Table) []Input {
	if t.Facts == nil {
		return nil
	}
	found := []Input{{"seed", joined("; ", t.Facts.Source, t.Facts.Machine, t.Facts.Note)}}
	if here := joined("; ", t.input(inputServer), t.input(inputDurability), t.input(inputMachine)); here != "" {
		found = append(found, Input{"here", here})
	}
	missing := 0
	for i := range t.Facts.Points {
		if !slices.ContainsFunc(t.Points, func(p Point) bool { return p.Fact == &t.Facts.Points[i] }) {
			missing++
		}
	}
	if missing > 0 {
		text := fmt.Sprintf("%d of %d published figures have no cell of the same settings here", missing, len(t.Facts.Points))
		found = append(found, Input{"seed", text})
	}
	return found
}

// depends are the inputs for people, in eight lines at most; HTML and JSON have every one by itself.
func depends(t Table) []Input {
	machine, target := t.input(inputMachine), ""
	if cores := t.input("client cores"); machine == "" && cores != "" {
		machine = cores + " cores"
	}
	if t.input("--target") == "" { // a sweep has it among its flags
		target = joined(", table ", t.input(inputTarget), t.input(inputTable))
	}
	var settings, flags []string
	decisive := strings.Split(t.input(inputDurability), ", ")
	for _, in := range t.Inputs {
		name, isSetting := strings.CutPrefix(in.Name, "setting ")
		if isSetting && !slices.Contains(decisive, name+"="+in.Value) {
			settings = append(settings, name+"="+in.Value)
		}
		if strings.HasPrefix(in.Name, "--") {
			flags = append(flags, in.Name+" "+in.Value)
		}
	}
	data := joined(", ", t.input(inputDataset), t.labelled("seed ", "data seed", ""), t.labelled("", "rows", " rows"))
	all := []Input{
		{"target", target}, {"server", t.input(inputServer)}, {"durability", t.input(inputDurability)}, {"data", data},
		{"plan", planInWords(t)}, {"machine", machine}, {"terapush", t.input(inputVersion)},
		{"settings", strings.Join(settings, ", ")}, {"flags", strings.Join(flags, " ")},
	}
	here := []string{"server", "durability", "machine"} // the line of besides that is called so has them
	return slices.DeleteFunc(all, func(in Input) bool {
		return in.Value == "" || t.Facts != nil && slices.Contains(here, in.Name)
	})
}

// planInWords is how the rows were pushed, as far as it is the same for all cells.
func planInWords(t Table) string {
	parts := []string{
		t.labelled("method ", "method", ""), t.labelled("format ", "format", ""), t.input("delivery"),
		t.labelled("workers ", "workers", ""), t.labelled("batch rows ", "batch rows", ""),
		t.labelled("batch bytes ", "batch bytes", ""), t.labelled("", "batches a commit", " batches a commit"),
		t.labelled("max rate ", "max rate", ""), t.labelled("verify ", "verify", ""), t.labelled("repeats ", "repeats", ""),
	}
	for _, s := range t.fixed() {
		if t.input(strings.ReplaceAll(s.Name, "-", " ")) == "" {
			parts = append(parts, s.Name+" "+s.Value)
		}
	}
	return joined(", ", parts...)
}

// labelled is an input with words around it; "" where the cells do not share it.
func (t Table) labelled(before, name, after string) string {
	value := t.input(name)
	if value == "" {
		return ""
	}
	return before + value + after
}
