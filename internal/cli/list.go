package cli

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/sweep"
	"github.com/terapush/terapush/pkg/loader"
)

func (a *app) list() *cobra.Command {
	tables := map[string]func(*tabwriter.Writer){"targets": a.listTargets, "methods": a.listMethods, "datasets": listDatasets, "presets": a.listPresets}
	what := []string{"targets", "methods", "datasets", "presets"}
	return &cobra.Command{
		Use:       "list [" + strings.Join(what, "|") + "]",
		Short:     "List what there is to push into and to push",
		ValidArgs: what,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = what
			}
			out := tabwriter.NewWriter(a.Stdout, 0, 8, 2, ' ', 0)
			for _, name := range args {
				print, ok := tables[name]
				if !ok {
					return usage(config.Unknown("list", name, what))
				}
				print(out)
			}
			return out.Flush()
		},
	}
}

func (a *app) listTargets(out *tabwriter.Writer) {
	fmt.Fprintln(out, "TARGET\tSCHEMES\tMETHODS")
	for _, d := range a.drivers.Drivers() {
		var methods []string
		for _, m := range d.Methods() {
			methods = append(methods, m.Name)
		}
		fmt.Fprintf(out, "%s\t%s\t%s\n", d.Name(), strings.Join(d.Schemes(), ", "), strings.Join(methods, ", "))
	}
	fmt.Fprintln(out)
}

func (a *app) listMethods(out *tabwriter.Writer) {
	fmt.Fprintln(out, "TARGET\tMETHOD\tDELIVERY\tBY\tFORMATS\tWHAT IT DOES")
	for _, d := range a.drivers.Drivers() {
		for _, m := range d.Methods() {
			var formats []string
			for _, f := range m.Caps.Formats {
				formats = append(formats, string(f))
			}
			fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\n", d.Name(), m.Name, words(m.Caps.Delivery()), by(m.Caps), strings.Join(formats, ", "), m.Help)
		}
	}
	fmt.Fprintln(out)
}

// by is what the guarantee rests on, and for how long.
func by(c loader.Caps) string {
	text := c.Dedup.String()
	if c.Dedup == loader.DedupKey && c.Window > 0 {
		text += fmt.Sprintf(" (%s)", strings.TrimSuffix(strings.TrimSuffix(c.Window.String(), "0s"), "0m"))
	}
	if c.Staged {
		text += " of staged groups"
	}
	return text
}

func words(d loader.Delivery) string { return strings.ReplaceAll(string(d), "-", " ") }

func listDatasets(out *tabwriter.Writer) {
	fmt.Fprintln(out, "DATASET\tCOLUMNS")
	for _, name := range dataset.Names() {
		d, err := dataset.New(name, dataset.Options{})
		if err != nil {
			continue // every listed dataset has defaults
		}
		var columns []string
		for _, c := range d.Schema().Columns {
			columns = append(columns, c.Name+" "+c.Type.String())
		}
		fmt.Fprintf(out, "%s\t%s\n", name, strings.Join(columns, ", "))
	}
	fmt.Fprintln(out)
}

// listPresets finds the scales and targets of every preset by trying them: a preset is for the targets on which all its
// cells are pushes that can be.
func (a *app) listPresets(out *tabwriter.Writer) {
	fmt.Fprintln(out, "PRESET\tSCALES\tTARGETS\tNEEDS\tTITLE")
	for _, name := range sweep.Presets() {
		var targets, scales []string
		needs := "--via s3://bucket/prefix" // unless one target does without
		for _, scheme := range a.drivers.Schemes() {
			fits, staged := a.fits(name, scheme)
			if !fits {
				continue
			}
			targets = append(targets, scheme)
			if !staged {
				needs = ""
			}
			for _, scale := range []string{"cloud", "laptop", "ci"} {
				if _, err := a.presetPlan(name, scale, scheme, nil); err == nil && !slices.Contains(scales, scale) {
					scales = append(scales, scale)
				}
			}
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", name, strings.Join(scales, ", "), strings.Join(targets, ", "), needs, sweep.PresetTitle(name))
	}
	fmt.Fprintln(out)
}

// fits reports whether a preset can be done on targets of a scheme, and whether it takes an object store besides.
func (a *app) fits(preset, scheme string) (fits, staged bool) {
	if a.possible(preset, scheme, nil) {
		return true, false
	}
	return a.possible(preset, scheme, []string{"s3://bucket/prefix"}), true
}

func (a *app) possible(preset, scheme string, via []string) bool {
	plan, err := a.presetPlan(preset, "ci", scheme, via)
	if err != nil {
		return false
	}
	for _, cell := range plan.Cases() {
		p, _, err := config.FromValues(cell.Push, a.drivers, nowhere, "")
		if err != nil || push.Check(&p, a.drivers) != nil {
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
	flags := map[string][]string{"memory": {"1TiB"}} // what this machine has is not the preset's concern
	if via != nil {
		flags["via"] = via
	}
	return sweep.ParsePlan(file, text, sweep.Options{
		Sources: sweep.Sources{Drivers: a.drivers}, Scale: scale, Target: scheme + "://user@host:1/db", Push: flags,
	})
}

// nowhere is an environment without anything in it.
func nowhere(string) (string, bool) { return "", false }
