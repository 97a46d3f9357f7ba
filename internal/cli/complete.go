package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/sweep"
	"github.com/terapush/terapush/pkg/loader"
)

// isCompletion reports whether a shell asks for completions. Only then they are set: cobra keeps them for as long as the
// process lives, with their flags, and those of many commands would be most of the memory of a process that has run them.
func isCompletion(args []string) bool {
	return len(args) > 0 && slices.Contains([]string{cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}, args[0])
}

// completeValues sets what a shell offers for TARGET and for the values of flags. Files are what it offers otherwise.
func (a *app) completeValues(root *cobra.Command) {
	byFlag := map[string]cobra.CompletionFunc{
		"method":  a.methodsFor,
		"dataset": datasets,
		"format":  oneOf(config.Formats()),
		"preset":  oneOf(sweep.Presets()),
		"resume":  a.runsFor,
		"run":     a.runsFor,
	}
	for _, c := range root.Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			values := byFlag[f.Name]
			if all := config.Choices(f); all != nil {
				values = oneOf(all)
			}
			if values != nil {
				if err := c.RegisterFlagCompletionFunc(f.Name, values); err != nil {
					panic(err) // the flag has another one
				}
			}
		})
		switch {
		case strings.Contains(c.Use, "TARGET"):
			c.ValidArgsFunction = a.targets
		case strings.Contains(c.Use, "DATASET"):
			c.ValidArgsFunction = datasets
		}
	}
}

func oneOf(values []string) cobra.CompletionFunc {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}

// datasets offers built-in datasets, and files of others: what has a slash or begins with no dataset's name.
func datasets(_ *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	known := slices.DeleteFunc(dataset.Names(), func(name string) bool { return !strings.HasPrefix(name, begun) })
	if len(known) == 0 {
		return []cobra.Completion{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
	}
	return known, cobra.ShellCompDirectiveDefault
}

// targets offers the beginning of a URL.
func (a *app) targets(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var all []string
	for _, scheme := range a.drivers.Schemes() {
		if len(args) == 0 {
			all = append(all, scheme+"://")
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// methodsFor offers the methods of TARGET, or all if it is not there yet.
func (a *app) methodsFor(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	scheme, _, _ := strings.Cut(strings.Join(args, ""), "://")
	drivers := a.drivers.Drivers()
	if d, ok := a.drivers.Lookup(scheme); ok {
		drivers = []loader.Driver{d}
	}
	var all []string
	for _, d := range drivers {
		for _, m := range d.Methods() {
			all = append(all, cobra.CompletionWithDesc(m.Name, m.Help))
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}
