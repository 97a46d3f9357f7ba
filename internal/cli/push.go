package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/demo"
	"github.com/terapush/terapush/internal/files"
	"github.com/terapush/terapush/internal/live"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/loader"
)

const pushHelp = `Fill a table with rows that terapush makes, as fast as possible, and prove that every row arrived exactly once. To send
files of your own, use terapush load.

TARGET is the usual URL of a database, such as postgres://user@host:5432/db; several hosts, separated by commas, share the
connections. Schemes:
  %s
s3 writes objects and fills no table; discard sends nothing and measures this machine alone. Others can see a password in
a URL: use TERAPUSH_PASSWORD or --password-file. Every flag is also a variable: TERAPUSH_BATCH_ROWS is --batch-rows.

Exit codes: 0 ok, 1 failed and can be resumed, 2 usage, 3 finished with rejected rows, 4 verification failed,
5 preflight failed: no row was sent, 6 slower than --fail-below, 7 the outcome of some batches is unknown,
9 another process has taken the run over, 129, 130 or 143 stopped by a signal and saved.`

func (a *app) push() *cobra.Command {
	var c config.Push
	var file string
	cmd := &cobra.Command{
		Use:   "push TARGET [flags]",
		Short: "Fill a table as fast as possible, and prove that every row arrived exactly once",
		Long:  fmt.Sprintf(pushHelp, strings.Join(a.drivers.Schemes(), ", ")),
		Example: `  terapush push postgres://user@host/db --bytes 1TiB --workers 32
  terapush push mysql://user@host/db --like orders --table orders_copy --rows 100M --verify full
  terapush push postgres://user@host/db --resume last`,
		Args: exactly(1, "push takes one TARGET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.Target = args[0]
			explicit, err := a.restore(cmd.Context(), cmd.Flags(), &c, file)
			switch {
			case errors.As(err, new(*push.Error)): // the table of --like could not be read
				return err
			case err != nil:
				return usage(err)
			}
			switch {
			case c.Tables != nil && c.DryRun:
				return usage(a.dryRunTables(&c))
			case c.Tables != nil:
				return a.runTables(cmd, &c, file, explicit)
			case c.DryRun:
				return usage(a.dryRun(&c))
			}
			return a.runReported(cmd, &c, file, explicit)
		},
	}
	c.Flags(cmd.Flags(), a.drivers)
	addConfig(cmd.Flags(), &file)
	return cmd
}

// runReported is runPush with all that is made of the report.
func (a *app) runReported(cmd *cobra.Command, c *config.Push, file string, explicit func(string) bool) error {
	if err := errors.Join(refuseOver("--report", c.Report, input{"--config", file}), canWrite(c.Report)); err != nil {
		return usage(err)
	}
	stop, release := a.stopping(cmd.Context())
	defer release()
	write, err := a.reportWriter(stop.hard, c.ReportTo, &c.Connect)
	if err != nil {
		return &push.Error{Outcome: report.PreflightFailed, Err: err}
	}
	r, err := a.runPush(stop, *c, cmd.Flags(), explicit)
	if line := next(cmd.Name(), r, foundBy(cmd.Flags())); line != "" {
		fmt.Fprintln(a.terminal, line)
	}
	if r != nil && c.Report != "" {
		err = errors.Join(err, writePage(c.Report, results.Tables, results.Of(*r)))
	}
	err = errors.Join(err, write(context.WithoutCancel(stop.hard), r, err))
	switch {
	case err != nil || c.FailBelow == 0 || r.Result.Attempts == 0: // a run that had nothing left to send was not slow
	case r.Unmeasured():
		return tooSlowError(fmt.Sprintf("nothing to compare with --fail-below: the push ended within --warm-up %s", c.WarmUp))
	default:
		return tooSlow(r.Result.BytesPerSecond, c)
	}
	return err
}

// tooSlow returns an error if a rate of payload is below --fail-below.
func tooSlow(rate float64, c *config.Push) error {
	if rate >= float64(c.FailBelow) {
		return nil
	}
	return tooSlowError(fmt.Sprintf("%s/s of payload is below --fail-below %s", units.Bytes(int64(rate)), &c.FailBelow))
}

// addConfig adds the flag of a file with flags.
func addConfig(f *pflag.FlagSet, file *string) {
	config.Group(f, config.GroupGlobal, func(f *pflag.FlagSet) {
		f.StringVar(file, "config", "", "YAML file with the names of flags as keys")
	})
}

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

// misspelled returns a sentence for each variable that is nearly that of a flag of any command. It is no error: the
// variable may be another program's.
func (a *app) misspelled() (all []string) {
	if a.Environ == nil {
		return nil
	}
	var names []string
	for _, c := range a.commands.Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	}
	return config.Misspelled(a.Environ(), names)
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
	if explicit("like") && explicit("dataset") {
		return nil, errors.New("--like makes rows for a table, and --dataset names others: give one of them")
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
		return fmt.Errorf("run %s is a load: terapush load %s --resume %s", r.Run, quote(r.Target), r.Run)
	case resumes && c.Files != nil && !isLoad:
		return fmt.Errorf("run %s is a push: terapush push %s --resume %s", r.Run, quote(r.Target), r.Run)
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

// runPush pushes with progress and metrics, and prints the report.
func (a *app) runPush(s stop, c config.Push, f *pflag.FlagSet, explicit func(string) bool) (*report.Report, error) {
	j := push.Job{Config: c, Given: config.Given(f), Explicit: explicit}
	return a.execute(s, j, func(r *report.Report) error { return a.printRun(r, c.JSON) })
}

// execute is runPush for a job that says what is pushed, with another way to print the report.
func (a *app) execute(s stop, j push.Job, print func(*report.Report) error) (*report.Report, error) {
	c := &j.Config
	w, err := newWatcher(s.hard, c.Output, a.terminal)
	if err != nil {
		return nil, &push.Error{Outcome: report.PreflightFailed, Err: err}
	}
	defer w.close()

	j.Drivers, j.Drain, j.Log, j.Watch, j.Ceilings = a.drivers, s.drain, a.log(), w.watch, c.State
	j.StateStore, j.Buckets = a.stateStore(c.Shared, &c.Connect), files.Buckets{Open: a.openStore(&c.Connect)}
	r, err := push.Run(s.hard, j)
	a.folding.Close()
	outcome := push.OutcomeOf(err)
	if outcome == push.Usage {
		return nil, err
	}
	printed := print(r)
	w.linger(s)
	return r, errors.Join(err, printed)
}

// print prints a result.
func (a *app) print(r interface {
	WriteText(w io.Writer) error
	WriteJSON(w io.Writer) error
}, asJSON bool,
) error {
	if asJSON {
		return r.WriteJSON(a.Stdout)
	}
	var text bytes.Buffer
	err := r.WriteText(&text)
	if err == nil {
		_, err = a.Stdout.Write(a.colored(text.Bytes()))
	}
	return err
}

// printRun prints the report of a run that has just ended. Its error is left to stderr, and so are its warnings if that
// is the same terminal or file, so that nobody reads them twice.
func (a *app) printRun(r *report.Report, asJSON bool) error {
	if !asJSON {
		shown := *r
		shown.Result.Error = ""
		if n := len(r.Warnings); n > 0 && a.together && a.log().Enabled(context.Background(), slog.LevelWarn) {
			shown.Warnings = []string{english.Plural(n, "line", "") + " of the log above"}
		}
		r = &shown
	}
	return a.print(r, asJSON)
}

func (a *app) demo() *cobra.Command {
	var keep, stop bool
	var c config.Push
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Download and start a PostgreSQL, push a gigabyte into it, and remove it",
		Args:  exactly(0, "demo takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if keep && stop {
				return usage(errors.New("either --keep or --stop"))
			}
			if stop {
				return a.stopDemos(cmd.Context())
			}
			return a.runDemo(cmd.Context(), c, cmd.Flags(), keep)
		},
	}
	c.Flags(cmd.Flags(), a.drivers)
	showOnly(cmd.Flags(), "bytes", "verify", "json", "workers")
	cmd.Flags().BoolVar(&keep, "keep", false, "leave the server running, and print how to connect")
	cmd.Flags().BoolVar(&stop, "stop", false, "only stop the servers that --keep left, and remove their data")
	return cmd
}

func (a *app) stopDemos(ctx context.Context) error {
	stopped, err := demo.StopKept(ctx, "")
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Stdout, "%s stopped and removed\n", english.Plural(stopped, "server", ""))
	return nil
}

// demoTable is the demo's: a push into a kept server finds the default table free.
const demoTable = "demo"

// runDemo starts a server, pushes into it and removes it.
func (a *app) runDemo(ctx context.Context, c config.Push, f *pflag.FlagSet, keep bool) (err error) {
	stop, release := a.stopping(ctx)
	defer release()
	told := io.Writer(a.terminal)
	if a.logging.Quiet {
		told, c.Progress = io.Discard, string(live.None)
	}
	server, err := demo.Start(stop.hard, "", told)
	if err != nil {
		return &push.Error{Outcome: report.PreflightFailed, Err: err}
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	c.Table, c.Target, c.State = demoTable, server.URL(), filepath.Join(server.Dir(), "runs")
	if _, err := a.runPush(stop, c, f, func(string) bool { return true }); err != nil {
		return err
	}
	if !keep {
		return nil
	}
	if err := server.Keep(); err != nil {
		return err
	}
	out := a.Stdout
	if c.JSON { // which is for programs
		out = a.terminal
	}
	url, password := server.Access()
	fmt.Fprintf(out, "\nthe server keeps running:\nexport DATABASE_URL=%s\nexport TERAPUSH_PASSWORD=%s\n"+
		"to stop it and remove its data: terapush demo --stop\n", quote(url), quote(password))
	return nil
}

// watcher shows a run's progress on stderr and its metrics on --metrics-addr.
type watcher struct {
	output   config.Output
	terminal *live.Terminal
	server   *live.Server // nil without --metrics-addr
	passing  bool         // the bar is removed at the end
}

// newWatcher listens on --metrics-addr, before the run begins.
func newWatcher(ctx context.Context, o config.Output, t *live.Terminal) (*watcher, error) {
	w := &watcher{output: o, terminal: t}
	var err error
	if o.MetricsAddr != "" {
		w.server, err = live.Listen(ctx, o.MetricsAddr)
	}
	return w, err
}

func (w *watcher) watch(run push.Watched) (done func(), err error) {
	if w.server != nil {
		v, shard := buildVersion(), run.Plan.Sends()
		info := live.Info{
			Version: v.Version, Commit: v.Commit, Run: run.Run, Shard: shard.String(), Backend: run.Backend,
			Method: run.Plan.Method, Format: string(run.Plan.Format), Delivery: string(run.Plan.Delivery),
		}
		if err := w.server.Serve(live.NewMetrics(info, run.Snapshot)); err != nil {
			return nil, err
		}
	}
	p := live.StartProgress(live.ProgressOptions{
		Mode: live.Mode(w.output.Progress), Terminal: w.terminal, Snapshot: run.Snapshot, Transient: w.passing,
	})
	return p.Stop, nil
}

// linger serves metrics after the end of the run; a signal ends it.
func (w *watcher) linger(s stop) {
	if w.server == nil || w.output.MetricsLinger == 0 {
		return
	}
	ctx, cancel := s.soft()
	defer cancel()
	w.server.Linger(ctx, w.output.MetricsLinger)
}

func (w *watcher) close() {
	if w.server != nil {
		_ = w.server.Close() // the run is over
	}
}

// next returns what to do after a run of a command that did not succeed, or "". found are the flags that find the run.
func next(command string, r *report.Report, found string) string {
	if r == nil {
		return ""
	}
	switch {
	case r.Run.Resumable && config.IsRunName(r.Run.ID):
		return "to resume: run the same command again, here or on another machine"
	case r.Run.Resumable:
		line := fmt.Sprintf("to resume: terapush %s %s --resume %s%s", command, quote(r.Target.URL), r.Run.ID, found)
		switch {
		case command != "load" || !recordsRefused(r) || strings.Contains(found, " --rejects "):
		case r.Plan.Files.Labels:
			line += "\nafter a change of the table, so that it takes the record; corrected files are another load, into a table without these rows"
		default:
			line += "\nto leave out what the server refuses: the same with --rejects refused.jsonl --max-rejects 1000"
		}
		return line
	case command == "load": // whose proof is of the claims
		return ""
	case r.Run.ID != "" && r.Result.Outcome == report.VerificationFailed:
		return fmt.Sprintf("to verify again: terapush verify %s --run %s%s", quote(r.Target.URL), r.Run.ID, found)
	default:
		return ""
	}
}

// recordsRefused reports whether the server did not take some records of files. A new load of files that were corrected
// would double those that are in.
func recordsRefused(r *report.Report) bool {
	for _, class := range []loader.Class{loader.ClassData, loader.ClassConstraint, loader.ClassRows} {
		if r.Result.Errors[string(class)] > 0 {
			return true
		}
	}
	return false
}

// foundBy repeats the flags that the next command needs to find the run and to log in, and that the record does not
// keep.
func foundBy(f *pflag.FlagSet) string {
	var text strings.Builder
	for _, name := range []string{"state-dir", "password-file"} {
		if flag := f.Lookup(name); flag.Changed {
			fmt.Fprintf(&text, " --%s %s", name, quote(flag.Value.String()))
		}
	}
	for _, name := range []string{"rejects", "max-rejects"} { // of a load, which another process goes on with
		flag := f.Lookup(name)
		if flag == nil || !flag.Changed {
			continue
		}
		value := flag.Value.String()
		if path, err := filepath.Abs(value); name == "rejects" && err == nil {
			value = path
		}
		fmt.Fprintf(&text, " --%s %s", name, quote(value))
	}
	return text.String()
}

// quote returns s as one word of a shell.
func quote(s string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@,%+=", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
