package doris

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// Names of the options; they are flags as well.
const (
	optGroupCommit    = "group-commit"
	optGroupInterval  = "group-commit-interval-ms"
	optGroupBytes     = "group-commit-data-bytes"
	optBuckets        = "buckets"
	optReplication    = "replication"
	optRedirectPolicy = "redirect-policy"
	optBackends       = "be"
)

func tableOptions() []loader.Option {
	return []loader.Option{
		number(optBuckets, "buckets of a table that is made; 0: four for each alive backend"),
		number(optReplication, "replicas of a table that is made; 0: one for each alive backend, at most three"),
	}
}

func number(name, help string) loader.Option {
	return loader.Option{Name: name, Kind: loader.IntOption, Default: "0", Help: help}
}

func groupCommitOptions() []loader.Option {
	return []loader.Option{
		{Name: optGroupCommit, Kind: loader.StringOption, Default: "off",
			Help: "let the server merge loads: off, sync (answer after the merged commit), " +
				"async (answer after the write-ahead log); at least once unless off"},
		number(optGroupInterval, propInterval+" of a table that is made; 0: the server's default"),
		number(optGroupBytes, propBytes+" of a table that is made; 0: the server's default"),
	}
}

func routeOptions() []loader.Option {
	return []loader.Option{
		{Name: optRedirectPolicy, Kind: loader.StringOption,
			Help: "which address of a backend the frontend names: " +
				"direct, public, private, public-private, random-be (Doris 3.1 and later)"},
		{Name: optBackends, Kind: loader.StringOption,
			Help: "backends' HTTP addresses: host:port,… sends straight to them in turn; " +
				"named=reachable,… replaces what a redirect names"},
	}
}

// groupCommit is a mode as Doris writes it, in the header and in the session variable.
type groupCommit string

const (
	groupOff   groupCommit = "off_mode"
	groupSync  groupCommit = "sync_mode"
	groupAsync groupCommit = "async_mode"
)

// on reports whether loads are merged, and so have no label.
func (g groupCommit) on() bool { return g == groupSync || g == groupAsync }

// options are those of the target, read.
type options struct {
	group                groupCommit
	groupInterval        int64 // milliseconds; 0: the server's default
	groupBytes           int64 // 0: the server's default
	buckets, replication int64 // 0: from the number of backends
	redirectPolicy       string
	direct               []string          // backends to send to without asking a frontend
	reachable            map[string]string // address a frontend names → address to use
}

// readOptions reads what the target's options say; it returns all problems.
func readOptions(t loader.Target) (o options, err error) {
	var problems []error
	number := func(name string, most int64) int64 {
		text := t.Options[name]
		if text == "" {
			return 0
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || n > most {
			problems = append(problems, fmt.Errorf("--%s %s: it is a number from 0 to %d", name, text, most))
		}
		return n
	}
	o.buckets, o.replication = number(optBuckets, 768), number(optReplication, 32767)
	o.groupInterval, o.groupBytes = number(optGroupInterval, 1<<31-1), number(optGroupBytes, 1<<40)
	modes := map[string]groupCommit{"": groupOff, "off": groupOff, "sync": groupSync, "async": groupAsync}
	mode := t.Options[optGroupCommit]
	if o.group = modes[mode]; o.group == "" {
		problems = append(problems, fmt.Errorf("--%s %s: there is off, sync, async", optGroupCommit, mode))
	}
	o.redirectPolicy = t.Options[optRedirectPolicy]
	known := []string{"", "direct", "public", "private", "public-private", "random-be"}
	if !slices.Contains(known, o.redirectPolicy) {
		problems = append(problems,
			fmt.Errorf("--%s %s: there is %s", optRedirectPolicy, o.redirectPolicy, strings.Join(known[1:], ", ")))
	}
	problems = append(problems, o.readBackends(t.Options[optBackends]))
	return o, errors.Join(problems...)
}

// readBackends reads --be: addresses, and pairs of addresses. Both may be given: a backend that is sent to straight can
// redirect as well.
func (o *options) readBackends(text string) error {
	if text == "" {
		return nil
	}
	for entry := range strings.SplitSeq(text, ",") {
		named, reachable, pair := strings.Cut(strings.TrimSpace(entry), "=")
		if !pair {
			reachable = named
		}
		for _, address := range []string{named, reachable} {
			if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
				return fmt.Errorf("--%s %s: an address is host:port", optBackends, address)
			}
		}
		if !pair {
			o.direct = append(o.direct, named)
			continue
		}
		if o.reachable == nil {
			o.reachable = make(map[string]string)
		}
		o.reachable[named] = reachable
	}
	return nil
}

// refine takes the label away where group commit does.
func (o options) refine(c loader.Caps) loader.Caps {
	if o.group.on() {
		c.Dedup, c.Window = loader.DedupNone, 0
		c.Reason = "group commit merges loads under labels of the server's own, " +
			"so nobody can tell whether a batch whose answer was lost is in"
	}
	return c
}

// Properties of a table.
const (
	propInterval = "group_commit_interval_ms"
	propBytes    = "group_commit_data_bytes"
)

// properties are the table properties that the options ask for.
func (o options) properties() map[string]string {
	all := make(map[string]string)
	if o.groupInterval > 0 {
		all[propInterval] = strconv.FormatInt(o.groupInterval, 10)
	}
	if o.groupBytes > 0 {
		all[propBytes] = strconv.FormatInt(o.groupBytes, 10)
	}
	return all
}

// targetTable reads the target's table: table or database.table.
func targetTable(t loader.Target) (tableName, error) {
	name := tableName{schema: t.Database, table: t.Table}
	if schema, table, found := strings.Cut(t.Table, "."); found {
		name = tableName{schema: schema, table: table}
	}
	if name.schema == "" {
		return name, errors.New("the target names no database: write it into the URL, as in doris://user@host/database")
	}
	if name.table == "" || strings.ContainsAny(name.table, ".,") {
		return name, fmt.Errorf("table %q: write it as table or as database.table", t.Table)
	}
	return name, sqlload.CheckTable(sqlload.Length{}, name.schema, name.table)
}

// checkParams refuses what it does not know: a parameter that is silently ignored is a setting that somebody trusts.
func checkParams(t loader.Target) error {
	const port = "http_port"
	for name := range t.Params {
		if name != port {
			return fmt.Errorf("parameter %q of the target is not known; there are: %s; session variables go into --set %s=…",
				name, port, name)
		}
	}
	if given := t.Params.Get(port); given != "" {
		if n, err := strconv.Atoi(given); err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("%s=%s is no port", port, given)
		}
	}
	return nil
}

// checkSettings refuses what would break the promises of a session, and what is no variable's name.
func checkSettings(t loader.Target) error {
	name := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	for _, s := range t.Settings {
		switch {
		case t.Method == streamLoad:
			return fmt.Errorf("--set %s: a stream load has no session to set it in; it is for methods %s and %s",
				s.Name, insert, s3Load)
		case !name.MatchString(s.Name):
			return fmt.Errorf("--set %s: not the name of a session variable", s.Name)
		case strings.EqualFold(s.Name, "group_commit"):
			return errors.New("--set group_commit is refused: take --" + optGroupCommit +
				", which knows what it does to the guarantee")
		case strings.EqualFold(s.Name, "sql_mode") && strings.Contains(strings.ToUpper(s.Value), "NO_BACKSLASH_ESCAPES"):
			return fmt.Errorf("--set sql_mode with NO_BACKSLASH_ESCAPES is refused: the rows are escaped with backslashes")
		}
	}
	return nil
}

// checkVia refuses an object store where none is used, or none where one is, and a prefix that Doris would read as a
// pattern, or that would end the literal.
func checkVia(t loader.Target, method string) error {
	switch {
	case method != s3Load && t.Via != nil:
		return fmt.Errorf("method %s sends rows itself: leave --via out, or take --method %s", method, s3Load)
	case method != s3Load:
		return nil
	case t.Via == nil:
		return fmt.Errorf("method %s needs an object store that Doris can read from: --via s3://bucket/prefix", s3Load)
	}
	if err := objstore.Check(*t.Via); err != nil {
		return err
	}
	path := t.Via.Hosts[0] + "/" + t.Via.Database
	if i := strings.IndexAny(path, "*?[]{}\\\"'`\n"); i >= 0 {
		return fmt.Errorf("--via: Doris reads %q in a path as part of a pattern or of a literal: "+
			"choose a prefix without", path[i])
	}
	return nil
}
