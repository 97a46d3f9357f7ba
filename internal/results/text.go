package results

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/units"
)

type section struct {
	heading string
	cells   grid
	lines   []Input // what follows from the cases
	inputs  []Input // what was published, and what the results depend on
}

// sectionsOf also returns the inputs that all of several tables share.
func sectionsOf(tables []Table) (sections []section, common []Input) {
	if len(tables) > 1 {
		common = depends(tables[0])
		for _, t := range tables[1:] {
			has := depends(t)
			common = slices.DeleteFunc(common, func(in Input) bool { return !slices.Contains(has, in) })
		}
	}
	for _, t := range tables {
		s := section{heading: heading(t), lines: append(errorsOf(t), conclusions(t)...)}
		if len(t.Points) > 0 {
			s.cells = caseGrid(t)
		}
		for _, text := range t.Warnings {
			s.lines = append(s.lines, Input{"warning", text})
		}
		own := slices.DeleteFunc(depends(t), func(in Input) bool { return slices.Contains(common, in) })
		s.inputs = append(published(t), own...)
		sections = append(sections, s)
	}
	return sections, common
}

// WriteText writes tables as Text, with the cases in at most so many columns of a terminal; 0 is no limit.
func WriteText(w io.Writer, tables []Table, columns int) error {
	if len(tables) == 0 || columns == 0 {
		return Text.Write(w, tables)
	}
	return write(w, string(Text), textIn(tables, columns))
}

// asText formats tables for people and terminals. Inputs that all tables share follow them, once.
func asText(tables []Table) (string, error) { return textIn(tables, 0), nil }

func textIn(tables []Table, columns int) string {
	var b strings.Builder
	lines := func(all []Input) {
		for _, in := range all {
			fmt.Fprintf(&b, "%-17s %s\n", printable(in.Name), units.OneLine(in.Value))
		}
	}
	sections, common := sectionsOf(tables)
	for i, s := range sections {
		if i > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(s.heading + "\n\n")
		if len(s.cells.Head) > 0 {
			omitted := s.cells.fit(columns)
			b.WriteString(s.cells.text() + "\n")
			if len(omitted) > 0 {
				lines([]Input{{"not shown", strings.Join(omitted, ", ") + ": the terminal is too narrow"}})
			}
		}
		lines(s.lines)
		lines(s.inputs)
	}
	if len(common) > 0 {
		b.WriteString("\n\nall tables\n\n")
		lines(common)
	}
	return b.String()
}

// asMarkdown formats tables as GitHub shows them, with the words of asText.
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
		if len(s.cells.Head) > 0 {
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

func heading(t Table) string {
	return printable(units.Join(": ", t.Name, t.Title) + around(" (scale ", t.Scale, ")"))
}

// maxLines bounds the lines about knees, which the notes of cases show as well, and about errors.
const maxLines = 12

// conclusions are the best case, the smallest that is nearly as fast, the ceilings, and the knee of every row.
func conclusions(t Table) []Input {
	if t.Best < 0 {
		return []Input{{"best", "nothing was measured"}}
	}
	at := func(i int) string {
		p := t.Points[i]
		bytes := units.Amount(p.BytesPerSecond.Median / mib)
		return fmt.Sprintf("%s: %s rows/s, %s MiB/s", p.Settings, units.Amount(p.rate()), bytes)
	}
	var lines []Input
	for _, j := range t.Thresholds {
		lines = append(lines, Input{"threshold", j.String()})
	}
	if len(t.Points) > 1 {
		lines = append(lines, Input{"best", at(t.Best)})
		if t.Smallest != t.Best {
			lines = append(lines, Input{"smallest", at(t.Smallest) + ", within " + limitText(Near) + " of the best"})
		}
	}
	for _, c := range t.ceilings() {
		text := c.name
		if n, share := t.under(c); n >= 0 {
			cell := "this run"
			if len(t.Points) > 1 {
				cell = t.Points[n].Settings.String()
			}
			text += fmt.Sprintf(", %s reached %.0f %% of it", cell, 100*share)
		}
		lines = append(lines, Input{"ceiling", text})
	}
	return append(lines, kneesInWords(t)...)
}

// kneesInWords describes the knee of every row. Rows that rose until their end are only counted.
func kneesInWords(t Table) []Input {
	var lines []Input
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
		text := units.Join(": ", k.Row.String(), at)
		if k.At != k.Best {
			text += fmt.Sprintf(" is within %s of the best, which is at %s", limitText(Near), k.Best)
		} else {
			text += " is the best, and no smaller value is within " + limitText(Near)
		}
		lines = append(lines, Input{"knee", text})
	}
	if more := len(lines) - maxLines; more > 1 {
		lines = append(lines[:maxLines], Input{"knee", fmt.Sprintf("%d more series: see the notes", more)})
	}
	for _, at := range ends {
		text := fmt.Sprintf("not reached: %s, the largest that was measured, is the best", at)
		if len(t.Knees) > 1 {
			text += fmt.Sprintf(" in %d of %d series", rising[at], len(t.Knees))
		}
		lines = append(lines, Input{"knee", text})
	}
	return lines
}

// notes returns the marks of a point, and how its pushes ended that do not count. Their errors stand below the table.
func notes(t Table, i int) string { return units.Join(", ", marks(t, i), t.Points[i].ending()) }

func marks(t Table, i int) string {
	p := t.Points[i]
	var marks []string
	add := func(is bool, text string) {
		if is {
			marks = append(marks, text)
		}
	}
	add(i == t.Best && len(t.Points) > 1, "best")
	add(i == t.Smallest && i != t.Best, "smallest within "+limitText(Near))
	add(t.isKnee(p), "knee")
	add(p.missed, "threshold missed")
	add(p.Limited > 0, "limited")
	return strings.Join(marks, ", ")
}

// ending returns how the pushes of a point ended that do not count, "" if all count.
func (p Point) ending() string {
	switch {
	case p.Status == Failed || p.Status == Skipped:
		return string(p.Status)
	case p.Failed > 0:
		return fmt.Sprintf("%d failed", p.Failed)
	}
	return ""
}

// errorsOf are the errors of points, each once, with the cases that have it.
func errorsOf(t Table) (lines []Input) {
	var all []Input
	cases := map[Input][]string{}
	for _, p := range t.Points {
		one := Input{p.ending(), units.OneLine(p.Error)}
		if one.Name != "" && one.Value != "" {
			all, cases[one] = append(all, one), append(cases[one], p.Settings.String())
		}
	}
	for _, one := range distinct(all) {
		lines = append(lines, Input{one.Name, units.Join(": ", firstFew(cases[one]), one.Value)})
	}
	if more := len(lines) - maxLines; more > 1 {
		lines = append(lines[:maxLines], Input{"failed", fmt.Sprintf("for %d more reasons: see --format json", more)})
	}
	return lines
}

// published describes where published and measured figures come from.
func published(t Table) []Input {
	if t.Facts == nil {
		return nil
	}
	lines := []Input{{"published", units.Join("; ", t.Facts.Source, t.Facts.Machine, t.Facts.Note)}}
	if here := units.Join("; ", t.input(inputServer), t.input(inputDurability), t.input(inputMachine)); here != "" {
		lines = append(lines, Input{"here", here})
	}
	missing := 0
	for i := range t.Facts.Points {
		if !slices.ContainsFunc(t.Points, func(p Point) bool { return p.Fact == &t.Facts.Points[i] }) {
			missing++
		}
	}
	if missing > 0 {
		text := fmt.Sprintf("%d of %d published figures have no case of the same settings here", missing, len(t.Facts.Points))
		lines = append(lines, Input{"published", text})
	}
	return lines
}

// depends summarises the inputs for people; HTML and JSON list every one.
func depends(t Table) []Input {
	machine, target := t.input(inputMachine), ""
	if cores := t.input("client cores"); machine == "" && cores != "" {
		machine = cores + " cores"
	}
	if t.input("--target") == "" { // sweeps list it among their flags
		target = units.Join(", table ", t.input(inputTarget), t.input(inputTable))
	}
	var settings, flags, own []string
	last := ""
	durable := strings.Split(t.input(inputDurability), ", ")
	for _, in := range t.Inputs {
		name, isSetting := strings.CutPrefix(in.Name, "setting ")
		if isSetting && !slices.Contains(durable, name+"="+in.Value) {
			settings = append(settings, name+"="+in.Value)
		}
		switch flag, of, isOwn := strings.Cut(in.Name, " of "); {
		case !strings.HasPrefix(flag, "--"):
		case isOwn && of == last: // of a method, or of a value of an axis
			own[len(own)-1] += " " + flag + " " + in.Value
		case isOwn:
			last, own = of, append(own, of+": "+flag+" "+in.Value)
		default:
			flags = append(flags, in.Name+" "+in.Value)
		}
	}
	data := units.Join(", ", t.input(inputDataset), around("seed ", t.input("data seed"), ""), around("", t.input("rows"), " rows"))
	all := []Input{
		{"target", target}, {"server", t.input(inputServer)}, {"durability", t.input(inputDurability)}, {"data", data},
		{"plan", planInWords(t)}, {"machine", machine}, {"terapush", t.input(inputVersion)},
		{"settings", strings.Join(settings, ", ")}, {"flags", units.Join("; ", append([]string{strings.Join(flags, " ")}, own...)...)},
	}
	here := []string{"server", "durability", "machine"} // published has them in one line
	return slices.DeleteFunc(all, func(in Input) bool {
		return in.Value == "" || t.Facts != nil && slices.Contains(here, in.Name)
	})
}

// planInWords describes how rows were pushed, as far as all cases share it.
func planInWords(t Table) string {
	var parts []string
	for _, l := range [][3]string{
		{"method ", "method"}, {"format ", "format"}, {"", "delivery"}, {"workers ", "workers"},
		{"batch rows ", "batch rows"}, {"batch bytes ", "batch bytes"}, {"", "batches a commit", " batches a commit"},
		{"max rate ", "max rate"}, {"verify ", "verify"}, {"repeats ", "repeats"},
	} {
		parts = append(parts, around(l[0], t.input(l[1]), l[2]))
	}
	for _, s := range t.fixed() {
		if t.input(strings.ReplaceAll(s.Name, "-", " ")) == "" {
			parts = append(parts, s.Name+" "+s.Value)
		}
	}
	return units.Join(", ", parts...)
}

// around puts words around a text, unless that is "".
func around(before, text, after string) string {
	if text == "" {
		return ""
	}
	return before + text + after
}
