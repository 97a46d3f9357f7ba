package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/live"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/units"
)

// complete fills in flags from environment and file, and warns of what is wrong with how they were given.
func (a *app) complete(f *pflag.FlagSet, c *config.Push, file string) (err error) {
	c.Connect.LookupEnv = a.LookupEnv
	if err = config.Complete(f, a.LookupEnv, file); err != nil {
		return err
	}
	for of, path := range map[string]string{"--state-dir": c.State, "--report-to": c.ReportTo} {
		if _, err := config.ParseStore(of, path); inStore(path) && err != nil {
			return err
		}
	}
	if inStore(c.State) { // what is on this machine then is of no use to another process
		c.Shared, c.State = c.State, ""
	}
	if c.State == "" {
		c.State, err = a.stateDir()
	}
	for _, text := range a.misspelled() {
		a.log().Warn(text)
	}
	if config.PasswordInArguments(c.Target) {
		a.log().Warn("the password on the command line can be read by every user of this machine: use TERAPUSH_PASSWORD or --password-file")
	}
	if a.logging.Quiet {
		c.Progress = string(live.None)
	}
	return err
}

// misspelled returns a sentence for each variable that is nearly that of a flag of the command, and no flag of another.
// It is no error: the variable may be another program's.
func (a *app) misspelled() []string {
	if a.Environ == nil {
		return nil
	}
	if len(config.Misspelled(a.Environ(), flagNames(a.commands))) == 0 {
		return nil
	}
	return config.Misspelled(a.Environ(), flagNames(a.root()))
}

func flagNames(root *cobra.Command) (names []string) {
	for _, c := range root.Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	}
	return names
}

// restore completes the flags of a push, from the record of a resumed run last. explicit reports whether a flag was
// given to this process.
func (a *app) restore(ctx context.Context, f *pflag.FlagSet, c *config.Push, file string) (explicit func(string) bool, err error) {
	typed := changed(f)
	if err := a.complete(f, c, file); err != nil {
		return nil, err
	}
	explicit = changed(f)
	if explicit("resume") && c.Resume == "" { // an empty variable in a script would start a new run
		return nil, errors.New("--resume needs a run: its id, or last (see terapush runs)")
	}
	if c.Resume != "" && c.RunID != "" {
		return nil, errors.New("--run-id resumes the run of that name by itself: leave out --resume")
	}
	if err := c.Shard.Resolve(a.LookupEnv); err != nil {
		return explicit, err
	}
	if explicit("like") && explicit("dataset") && c.RowsOfLike() {
		return nil, errors.New("--like makes rows for a table, and --dataset names others: " +
			"give one of them, or a file.yaml whose rows go into a table that is made like the one of --like")
	}
	if c.Resume == "" {
		return explicit, a.readRows(ctx, c)
	}
	err = a.readRecord(f, c, typed)
	switch named := config.IsRunName(c.Resume); {
	case named && errors.Is(err, runlog.ErrNoRun) && !hasRun(c.State, c.Resume):
		err = fmt.Errorf("%w; one that was begun with --run-id goes on by the same command", err)
	case named:
		err = fmt.Errorf("run %s has a name: resume it by --run-id %s and the flags it was begun with", c.Resume, c.Resume)
	}
	return explicit, err
}

// changed reports of each flag whether it was given to this process up to now.
func changed(f *pflag.FlagSet) func(string) bool {
	given := map[string]bool{}
	f.Visit(func(flag *pflag.Flag) { given[flag.Name] = true })
	return func(name string) bool { return given[name] }
}

// hasRun reports whether the state folder has a run of the name, or a shard of it.
func hasRun(state, name string) bool {
	all, _ := runlog.Records(state) // what cannot be read is no run that could be resumed
	return slices.ContainsFunc(all, func(r runlog.Record) bool {
		return r.Run == name || strings.HasPrefix(r.Run, name+"-")
	})
}

// readRecord finds the run of c.Resume, and completes the flags from its record. The user's dataset is in it, too: a
// file is read only if the command line names one, whatever the environment says.
func (a *app) readRecord(f *pflag.FlagSet, c *config.Push, typed func(flag string) bool) (err error) {
	if c.Resume, err = runlog.Find(c.State, c.Resume, a.fits(c, f.Lookup("run") != nil)); err != nil {
		return err
	}
	if tables, err := runlog.ReadTables(c.State, c.Resume); tables != nil || err != nil {
		return errors.Join(err, a.restoreTables(f, c, tables, typed))
	}
	r, err := runlog.Read(c.State, c.Resume)
	if err != nil {
		return err
	}
	if err := sameKind(c, f, r); err != nil {
		return err
	}
	if err := config.Restore(f, ofKind(c, r)); err != nil {
		return err
	}
	if r.Plan.Definition != nil && !typed("dataset") && !typed("param") {
		c.Own = r.Plan.Definition
		return nil
	}
	return c.ReadSpec()
}

// sameKind returns an error if a push is to resume a load, or the other way round.
func sameKind(c *config.Push, f *pflag.FlagSet, r runlog.Record) error {
	resumes, isLoad := f.Lookup("run") == nil, r.Plan.Files != nil
	switch {
	case resumes && c.Files == nil && isLoad:
		return fmt.Errorf("run %s is a load: terapush load %s --resume %s", r.Run, units.ShellWord(r.Target), r.Run)
	case resumes && c.Files != nil && !isLoad:
		return fmt.Errorf("run %s is a push: terapush push %s --resume %s", r.Run, units.ShellWord(r.Target), r.Run)
	}
	return nil
}

// ofKind returns the flags of a run without those that only a load has, unless c is one: what is forgotten needs none
// of them.
func ofKind(c *config.Push, r runlog.Record) map[string][]string {
	if r.Plan.Files == nil || c.Files != nil {
		return r.Flags
	}
	kept := maps.Clone(r.Flags)
	for _, name := range config.OnlyLoads() {
		delete(kept, name)
	}
	return kept
}

// fits tells the runs of a target from others; "" is any. A push resumes pushes, a load loads, and other commands are
// for both.
func (a *app) fits(c *config.Push, both bool) func(runlog.Record) bool {
	target := c.Target
	is, err := config.PlaceOf(target, a.drivers)
	return func(r runlog.Record) bool {
		if !both && (r.Plan.Files != nil) != (c.Files != nil) {
			return false
		}
		was, unknown := config.PlaceOf(r.Target, a.drivers)
		return target == "" || err == nil && unknown == nil && was == is
	}
}

// stateDir returns the user's state folder, after the XDG base directory specification.
func (a *app) stateDir() (string, error) {
	if dir, ok := a.LookupEnv("XDG_STATE_HOME"); ok && dir != "" {
		return filepath.Join(dir, "terapush"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding the user's state folder: %w; give --state-dir", err)
	}
	return filepath.Join(home, ".local", "state", "terapush"), nil
}
