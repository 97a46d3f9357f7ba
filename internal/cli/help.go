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
	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/loader"
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
	a.writeFlags(&b, c)
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nHelp for a command: %s [command] --help\n", c.CommandPath())
	}
	_, err := io.WriteString(c.OutOrStderr(), b.String())
	return err
}

// commonFlags are the flags of push that its help explains. The others are a topic, so that the help fits a screen or
// two.
const commonFlags = "method table dataset like rows bytes duration append workers batch-rows batch-bytes max-rate " +
	"delivery create verify resume run-id shard password-file tls set json dry-run report fail-below config"

// writeFlags prints the flags that are not hidden, those without a group first. Each flag is explained once: push's in
// the help of push and in a topic, those of every command in the help of terapush. Other commands name them.
func (a *app) writeFlags(b *strings.Builder, c *cobra.Command) {
	explained, named := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	explained.SortFlags, named.SortFlags = false, false
	pushed, common, isPush := a.pushFlags(), strings.Fields(commonFlags), c.Name() == "push"
	c.Flags().VisitAll(func(f *pflag.Flag) {
		group := config.GroupOf(f)
		switch ofPush := pushed.Lookup(f.Name); {
		case f.Hidden || group == config.GroupMethods:
		case ofPush != nil && sameHelp(f, ofPush) && (!isPush || !slices.Contains(common, f.Name)):
			named.AddFlag(f)
		case group != config.GroupGlobal || ofPush != nil || !c.HasParent():
			explained.AddFlag(f)
		}
	})

	a.writeGroups(b, explained)
	switch {
	case named.HasFlags() && isPush:
		fmt.Fprintf(b, "\nMore, see terapush help push-flags:\n%s", a.names(named))
	case named.HasFlags():
		fmt.Fprintf(b, "\nThe same as for push (terapush push --help, terapush help push-flags):\n%s", a.names(named))
	}
	if !c.HasParent() {
		return
	}
	b.WriteString("\nFlags of all commands: terapush --help")
	if groupOf(c.Flags(), config.GroupMethods).HasAvailableFlags() {
		b.WriteString(" · options of single methods: terapush help methods")
	}
	b.WriteString("\n")
}

// writeGroups prints the flags that are not hidden, those without a group first.
func (a *app) writeGroups(b *strings.Builder, flags *pflag.FlagSet) {
	for _, group := range append([]string{""}, config.Groups()...) {
		if part := groupOf(flags, group); part.HasAvailableFlags() {
			fmt.Fprintf(b, "\n%s:\n%s", cmp.Or(group, "Flags"), a.usages(part))
		}
	}
}

// pushFlags returns push's flags, as its help shows them.
func (a *app) pushFlags() *pflag.FlagSet {
	all := pflag.NewFlagSet("push", pflag.ContinueOnError)
	new(config.Push).Flags(all, a.drivers)
	addConfig(all, new(string))
	return all
}

// sameHelp reports whether one line of help holds for both flags.
func sameHelp(f, g *pflag.Flag) bool {
	return f.Usage == g.Usage && f.DefValue == g.DefValue && f.Value.Type() == g.Value.Type()
}

// names lists flags without words, wrapped.
func (a *app) names(flags *pflag.FlagSet) string {
	var b strings.Builder
	line := " "
	flags.VisitAll(func(f *pflag.Flag) {
		if len(line)+len(" --"+f.Name) > a.helpWidth() {
			fmt.Fprintln(&b, line)
			line = " "
		}
		line += " --" + f.Name
	})
	fmt.Fprintln(&b, line)
	return b.String()
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

func (a *app) usages(flags *pflag.FlagSet) string { return flags.FlagUsagesWrapped(a.helpWidth()) }

// helpWidth is the columns of help: the terminal's, up to helpColumns.
func (a *app) helpWidth() int {
	if a.columns > 0 {
		return min(helpColumns, a.columns)
	}
	return helpColumns
}

// lessCommon is a topic of help, and no command: the flags of push that its help only names.
func (a *app) lessCommon() *cobra.Command {
	rest, common := a.pushFlags(), strings.Fields(commonFlags)
	rest.VisitAll(func(f *pflag.Flag) { f.Hidden = slices.Contains(common, f.Name) })
	var b strings.Builder
	b.WriteString("These flags of push are not in its help. For options of single methods see terapush help methods.\n")
	a.writeGroups(&b, rest)
	return &cobra.Command{Use: "push-flags", Short: "The less common flags of push", Long: b.String()}
}

// methods is a topic of help, and no command.
func (a *app) methods() *cobra.Command {
	var b strings.Builder
	b.WriteString("These flags are options of single methods, for push, sweep, tune and doctor. Other methods have none.\n" +
		"terapush list methods says what each method does.\n")
	all := a.pushFlags()
	for _, d := range a.drivers.Drivers() {
		for _, part := range optionsOf(d) {
			options := pflag.NewFlagSet("", pflag.ContinueOnError)
			options.SortFlags = false
			for _, name := range part.options {
				options.AddFlag(all.Lookup(name))
			}
			fmt.Fprintf(&b, "\n%s %s:\n%s", d.Name(), part.methods, a.usages(options))
		}
	}
	return &cobra.Command{Use: "methods", Short: "Options of single methods", Long: b.String()}
}

// methodOptions are options that the same methods have.
type methodOptions struct {
	methods string // joined by commas
	options []string
}

// optionsOf returns each option of a back-end once, with those of the same methods.
func optionsOf(d loader.Driver) (parts []methodOptions) {
	var names []string
	methods := map[string]string{} // by the option's name
	for _, m := range d.Methods() {
		for _, o := range m.Options {
			if methods[o.Name] == "" {
				names = append(names, o.Name)
			}
			methods[o.Name] = units.Join(", ", methods[o.Name], m.Name)
		}
	}

	for _, name := range names {
		i := slices.IndexFunc(parts, func(p methodOptions) bool { return p.methods == methods[name] })
		if i < 0 {
			i = len(parts)
			parts = append(parts, methodOptions{methods: methods[name]})
		}
		parts[i].options = append(parts[i].options, name)
	}
	return parts
}
