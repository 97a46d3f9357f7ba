// Package cli is the command line. A command reads flags, calls the package that does the work and prints what it
// returns. None of them exits.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/backends/all"
	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/live"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/spelling"
	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/loader"
)

// Process is what a command uses of its process.
type Process struct {
	Stdin          io.Reader // may be nil
	Stdout, Stderr io.Writer
	LookupEnv      func(string) (string, bool)
	Environ        func() []string // all variables, as NAME=value; nil finds none
	Signals        <-chan os.Signal
	Drivers        []loader.Driver // besides terapush's own
}

// app is what all commands share.
type app struct {
	Process
	// terminal is stderr, shared by goroutines and a progress line that is redrawn.
	terminal *live.Terminal
	columns  int  // of stdout; 0 if it is no terminal
	together bool // stdout and stderr are one terminal, pipe or file
	commands *cobra.Command
	drivers  *loader.Registry
	signal   caught
	logging  config.Log
	logger   *slog.Logger // nil until log
	folding  live.Folding // of logger
}

// Run executes the command line and returns the exit code.
func Run(ctx context.Context, args []string, p Process) int {
	drivers, err := all.Drivers(p.Drivers...)
	if err != nil {
		fmt.Fprintln(p.Stderr, "terapush:", err)
		return exitFailed
	}
	columns, together := live.Columns(p.Stdout), areOne(p.Stdout, p.Stderr)
	p.Stdout = &pipe{out: p.Stdout}
	a := &app{Process: p, terminal: live.NewTerminal(p.Stderr), columns: columns, together: together, drivers: drivers}
	root := a.root(args...)
	a.commands = root
	if isCompletion(args) {
		a.completeValues(root)
	}
	root.SetArgs(args)
	root.SetOut(p.Stdout)
	root.SetErr(a.terminal)
	err = root.ExecuteContext(ctx)
	if a.logger != nil {
		a.folding.Close()
	}
	if err != nil {
		a.complain(err)
	}
	return a.exitCode(err)
}

// complain prints the lines of an error, each once.
func (a *app) complain(err error) {
	printed := map[string]bool{}
	for line := range strings.Lines(loader.Explain(err)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || printed[line]:
		case a.logging.Format == config.LogJSON:
			a.log().Error(line)
		default:
			fmt.Fprintln(a.terminal, "terapush:", units.Printable(line))
		}
		printed[line] = true
	}
}

// root returns the command of the arguments alone, if they begin with its name, and otherwise all: most declare the
// flags of push, which takes a third of a millisecond.
func (a *app) root(args ...string) *cobra.Command {
	root := &cobra.Command{
		Use:   "terapush",
		Short: "Push terabytes into databases, prove that every row arrived, compare the ways in",
		Example: `  terapush demo
  terapush load postgres://user@host/db --table orders 'exports/*.csv.gz' --header
  terapush push postgres://user@host/db --bytes 1TiB --workers 32
  terapush push mysql://user@host/db --rows 2000000 --verify full --json
  terapush tune postgres://user@host/db --method copy
  terapush sweep mysql://user@host/db --plan mine.yaml --repeats 5 --report mine.html`,
		Version:       buildVersion().String(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs, // or cobra would report unknown commands, with another exit code
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				var names []string
				for _, sub := range c.Commands() {
					names = append(names, sub.Name())
				}
				return usage(config.Unknown("command", args[0], names))
			}
			return c.Help()
		},
		DisableAutoGenTag: true, // man pages of one release are the same bytes
	}
	root.SetVersionTemplate("{{.Version}}")
	root.SetFlagErrorFunc(unknownFlag)
	root.SetUsageFunc(a.usageOf)
	config.Group(root.PersistentFlags(), config.GroupGlobal, func(f *pflag.FlagSet) {
		a.logging.Flags(f)
		f.BoolP("help", "h", false, "print the help of the command")
	})
	commands := map[string]func() *cobra.Command{
		"push": a.push, "load": a.load, "prepare": a.prepare, "runs": a.runs, "verify": a.verify, "forget": a.forget,
		"sweep": a.sweep, "tune": a.tune, "report": a.report, "compare": a.compare, "doctor": a.doctor,
		"calibrate": a.calibrate, "list": a.list, "inspect": a.inspect, "preview": a.preview, "demo": a.demo,
		"sink": a.sink, "version": a.version, "push-flags": a.lessCommon, "methods": a.methods, "man": a.man,
	}
	if len(args) > 0 && commands[args[0]] != nil && args[0] != "man" { // whose pages are of all
		commands = map[string]func() *cobra.Command{args[0]: commands[args[0]]}
	}
	for _, command := range commands {
		root.AddCommand(command())
	}
	return root
}

// unknownFlag adds the flag that was probably meant.
func unknownFlag(c *cobra.Command, err error) error {
	err = config.PlainError(err)
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || len(unknown.GetSpecifiedName()) < 2 {
		return usage(err)
	}
	if removed := config.Removed("--" + unknown.GetSpecifiedName()); removed != nil {
		return usage(removed)
	}

	var flags []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden { // many commands declare what only push has
			flags = append(flags, f.Name)
		}
	})
	if guess := spelling.Nearest(unknown.GetSpecifiedName(), flags); guess != "" {
		err = fmt.Errorf("%w; did you mean --%s?", err, guess)
	}
	return usage(err)
}

// Exit codes are part of the contract with scripts.
const (
	exitFailed      = 1
	exitThreshold   = 6
	exitDoubt       = 8
	exitInterrupted = 128 // plus the signal's number
)

func (a *app) exitCode(err error) int {
	outcome := push.OutcomeOf(err)
	if errors.As(err, new(tooSlowError)) {
		return exitThreshold
	}
	if errors.As(err, new(inconclusiveError)) {
		return exitDoubt
	}
	if outcome == report.Interrupted {
		return exitInterrupted + a.signal.number()
	}
	codes := map[report.Outcome]int{
		report.OK: 0, push.Usage: 2, report.Rejected: 3, report.VerificationFailed: 4, report.PreflightFailed: 5, report.Unknown: 7,
		report.TakenOver: 9,
	}
	if code, ok := codes[outcome]; ok {
		return code
	}
	return exitFailed
}

// usage marks an error as the command line's; nil stays nil.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &push.Error{Outcome: push.Usage, Err: err}
}

// exactly accepts n arguments. Of one in excess it says which flag it is for.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		err := fmt.Errorf("%s: %s given", what, english.Plural(len(args), "argument", ""))
		if flag := flagFor(cmd, args); len(args) > n && flag != "" {
			err = fmt.Errorf("%w: write %s", err, flag)
		}
		return usage(err)
	}
}

// oneTarget accepts the URL of a database. Of what stands in its place it says which flag it is for.
func oneTarget(cmd *cobra.Command, args []string) error {
	what, flag := cmd.Name()+" takes one TARGET", flagFor(cmd, args)
	if len(args) == 0 || len(args) == 1 && flag != "" {
		return usage(fmt.Errorf(`%s, the URL of a database: terapush %s "$DATABASE_URL" %s`,
			what, cmd.Name(), cmp.Or(flag, "…")))
	}
	return exactly(1, what)(cmd, args)
}

// flagFor returns the flag for the argument that is no TARGET but the name of a table or the file of a dataset, "" if
// the command has none.
func flagFor(cmd *cobra.Command, args []string) string {
	i := slices.IndexFunc(args, func(arg string) bool { return !strings.Contains(arg, "://") })
	if i < 0 {
		return ""
	}
	names := []string{"table"}
	switch {
	case config.IsFile(args[i]):
		names = []string{"plan", "dataset"}
	case cmd.Name() == "push" && !cmd.Flags().Changed("dataset"):
		names = []string{"like"} // what fits the table
	}
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f != nil && !f.Hidden {
			return "--" + name + " " + units.ShellWord(args[i])
		}
	}
	return ""
}

// log returns the log on stderr, as the flags that are set by then ask for it.
func (a *app) log() *slog.Logger {
	if a.logger == nil {
		a.folding = live.Fold(a.logging.Handler(a.terminal))
		a.logger = slog.New(a.folding)
	}
	return a.logger
}
