package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/config"
)

// helpColumns is the width of help that does not go to a terminal, and the most on one: longer lines are hard to read.
const helpColumns = 120

// usageOf prints what follows the description of a command in its help: cobra's own, with the flags in groups.
func (a *app) usageOf(c *cobra.Command) error {
	var b strings.Builder
	fmt.Fprintln(&b, "Usage:")
	if c.Runnable() {
		fmt.Fprintf(&b, "  %s\n", c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s [command]\n", c.CommandPath())
	}
	if c.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", c.Example)
	}
	list := func(title string, shown func(*cobra.Command) bool) {
		for _, sub := range c.Commands() {
			if shown(sub) {
				fmt.Fprintf(&b, "%s  %-*s %s\n", title, sub.NamePadding(), sub.Name(), sub.Short)
				title = ""
			}
		}
	}
	list("\nCommands:\n", func(sub *cobra.Command) bool { return sub.IsAvailableCommand() })
	list("\nMore help, with terapush help TOPIC:\n", (*cobra.Command).IsAdditionalHelpTopicCommand)
	a.writeFlags(&b, c.Flags())
	if groupOf(c.Flags(), config.GroupMethods).HasAvailableFlags() {
		b.WriteString("\nOptions of single methods: terapush help methods\n")
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nHelp for a command: %s [command] --help\n", c.CommandPath())
	}
	_, err := io.WriteString(c.OutOrStderr(), b.String())
	return err
}

// writeFlags prints the flags that are not hidden, those without a group first.
func (a *app) writeFlags(b *strings.Builder, flags *pflag.FlagSet) {
	for _, group := range append([]string{""}, config.Groups()...) {
		if part := groupOf(flags, group); part.HasAvailableFlags() {
			fmt.Fprintf(b, "\n%s:\n%s", cmp.Or(group, "Flags"), a.usages(part))
		}
	}
}

// groupOf returns the flags of a group.
func groupOf(flags *pflag.FlagSet, group string) *pflag.FlagSet {
	part := pflag.NewFlagSet(group, pflag.ContinueOnError)
	part.SortFlags = false
	flags.VisitAll(func(f *pflag.Flag) {
		if config.GroupOf(f) == group {
			part.AddFlag(f)
		}
	})
	return part
}

// showOnly hides all other flags from help.
func showOnly(flags *pflag.FlagSet, names ...string) {
	flags.VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(names, f.Name) })
}

func (a *app) usages(flags *pflag.FlagSet) string {
	columns := helpColumns
	if a.columns > 0 {
		columns = min(columns, a.columns)
	}
	return flags.FlagUsagesWrapped(columns)
}

// methods is a topic of help, and no command.
func (a *app) methods() *cobra.Command {
	var b strings.Builder
	b.WriteString("These flags are options of single methods, for push, sweep, tune and doctor. Other methods have none.\n" +
		"terapush list methods says what each method does.\n")
	all := pflag.NewFlagSet("push", pflag.ContinueOnError)
	new(config.Push).Flags(all, a.drivers)
	for _, d := range a.drivers.Drivers() {
		for _, m := range d.Methods() {
			options := pflag.NewFlagSet(m.Name, pflag.ContinueOnError)
			options.SortFlags = false
			for _, o := range m.Options {
				options.AddFlag(all.Lookup(o.Name))
			}
			if options.HasFlags() {
				fmt.Fprintf(&b, "\n%s %s:\n%s", d.Name(), m.Name, a.usages(options))
			}
		}
	}
	return &cobra.Command{Use: "methods", Short: "Options of single methods", Long: b.String()}
}
