package cli

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/sweep"
)

// listPresets tells the scales and targets of every preset by trying them: a preset is for the targets on which all its
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

// fits tells whether a preset can be done on targets of a scheme, and whether it takes an object store besides.
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
