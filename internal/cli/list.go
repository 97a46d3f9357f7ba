package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/sweep"
	"github.com/terapush/terapush/pkg/loader"
)

func (a *app) list() *cobra.Command {
	tables := map[string]func(row func(...string)){
		"targets": a.listTargets, "methods": a.listMethods, "datasets": listDatasets, "presets": a.listPresets,
	}
	names := []string{"targets", "methods", "datasets", "presets"}
	return &cobra.Command{
		Use:       "list [" + strings.Join(names, "|") + "]",
		Short:     "List targets, methods, datasets and presets",
		ValidArgs: names,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = names
			}
			var out strings.Builder
			for _, name := range args {
				table, ok := tables[name]
				if !ok {
					return usage(config.Unknown("list", name, names))
				}
				var rows [][]string
				table(func(cells ...string) { rows = append(rows, cells) })
				writeTable(&out, rows, cmp.Or(a.columns, listColumns))
				out.WriteString("\n")
			}
			_, err := io.WriteString(a.Stdout, out.String())
			return err
		},
	}
}

// listColumns is the width of a list that does not go to a terminal.
const listColumns = 80

// writeTable writes rows, of which the first has the titles, in so many columns. The cells that have no room follow on
// lines of their own, with their titles.
func writeTable(out *strings.Builder, rows [][]string, columns int) {
	const gap, indent = 2, 4
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	inLine, width := 0, 0
	for inLine < len(widths) && (inLine == 0 || width+widths[inLine] <= columns) {
		width += widths[inLine] + gap
		inLine++
	}
	for n, row := range rows {
		line := ""
		for i, cell := range row[:inLine] {
			line += cell + strings.Repeat(" ", widths[i]+gap-utf8.RuneCountInString(cell))
		}
		fmt.Fprintln(out, strings.TrimRight(line, " "))
		if n == 0 {
			continue
		}
		for i, cell := range row[inLine:] {
			if cell == "" {
				continue
			}
			title := strings.ToLower(rows[0][inLine+i]) + ":"
			for _, line := range wrapped(title+" "+cell, columns-indent) {
				fmt.Fprintf(out, "%*s%s\n", indent, "", line)
			}
		}
	}
}

// wrapped breaks a text between words into lines of at most so many characters, if its words are not longer.
func wrapped(text string, columns int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line+" "+word) > columns {
			lines, line = append(lines, line), " "
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

func (a *app) listTargets(row func(...string)) {
	row("TARGET", "SCHEMES", "METHODS")
	for _, d := range a.drivers.Drivers() {
		var methods []string
		for _, m := range d.Methods() {
			methods = append(methods, m.Name)
		}
		row(d.Name(), strings.Join(d.Schemes(), ", "), strings.Join(methods, ", "))
	}
}

func (a *app) listMethods(row func(...string)) {
	row("TARGET", "METHOD", "DELIVERY", "BY", "FORMATS", "WHAT IT DOES")
	for _, d := range a.drivers.Drivers() {
		for _, m := range d.Methods() {
			var formats []string
			for _, f := range m.Caps.Formats {
				formats = append(formats, string(f))
			}
			delivery := strings.ReplaceAll(string(m.Caps.Delivery()), "-", " ")
			row(d.Name(), m.Name, delivery, dedup(m.Caps), strings.Join(formats, ", "), m.Help)
		}
	}
}

// dedup returns what the guarantee rests on, and for how long.
func dedup(c loader.Caps) string {
	text := c.Dedup.String()
	if c.Dedup == loader.DedupKey && c.Window > 0 {
		text += fmt.Sprintf(" (%s)", strings.TrimSuffix(c.Window.String(), "0m0s"))
	}
	if c.Staged {
		text += " of staged groups"
	}
	return text
}

func listDatasets(row func(...string)) {
	row("DATASET", "COLUMNS")
	for _, name := range dataset.Names() {
		d, err := dataset.New(name, dataset.Options{})
		if err != nil {
			continue // every dataset has defaults
		}
		var columns []string
		for _, c := range d.Schema().Columns {
			columns = append(columns, c.Name+" "+c.Type.String())
		}
		row(name, strings.Join(columns, ", "))
	}
}

// listPresets finds the scales and targets of a preset by trying them.
func (a *app) listPresets(row func(...string)) {
	row("PRESET", "SCALES", "TARGETS", "NEEDS", "TITLE")
	for _, name := range sweep.Presets() {
		var targets, scales []string
		needs := "--staging s3://bucket/prefix" // unless one target does without
		for _, scheme := range a.drivers.Schemes() {
			if a.possible(name, scheme, nil) {
				needs = ""
			} else if !a.possible(name, scheme, []string{"s3://bucket/prefix"}) {
				continue
			}
			targets = append(targets, scheme)
			for _, scale := range []string{"cloud", "laptop", "ci"} {
				if slices.Contains(scales, scale) {
					continue
				}
				if _, err := a.presetPlan(name, scale, scheme, nil); err == nil {
					scales = append(scales, scale)
				}
			}
		}
		row(name, strings.Join(scales, ", "), strings.Join(targets, ", "), needs, sweep.PresetTitle(name))
	}
}

// possible reports whether all cases of a preset are pushes that targets of a scheme take.
func (a *app) possible(preset, scheme string, via []string) bool {
	plan, err := a.presetPlan(preset, sweep.DefaultScale, scheme, via)
	if err != nil {
		return false
	}
	noVariables := func(string) (string, bool) { return "", false }
	for _, c := range plan.Cases() {
		p, _, err := config.FromValues(c.Push, a.drivers, noVariables, "")
		if err != nil {
			return false
		}
		if push.CheckFlags(&p, a.drivers) != nil {
			return false
		}
	}
	return true
}

func (a *app) presetPlan(preset, scale, scheme string, via []string) (sweep.Plan, error) {
	file, text, err := sweep.Preset(preset)
	if err != nil {
		return sweep.Plan{}, err
	}
	flags := map[string][]string{}
	if via != nil {
		flags["staging"] = via
	}
	return sweep.ParsePlan(file, text, sweep.Options{
		Sources: sweep.Sources{Drivers: a.drivers}, Scale: scale, Target: scheme + "://user@host:1/db", Push: flags,
	})
}
