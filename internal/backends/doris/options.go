package doris

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
	"github.com/terapush/terapush/pkg/sqlload"
)

// Properties of a table.
const (
	propInterval = "group_commit_interval_ms"
	propBytes    = "group_commit_data_bytes"
)

// tableOptions are of all methods.
type tableOptions struct {
	Buckets     int64 `option:"buckets" help:"buckets of a new table; 0: four for each live backend"`
	Replication int64 `option:"replication" help:"replicas of a new table; 0: one for each live backend, at most three"`
}

// groupOptions are of stream-load and insert.
type groupOptions struct {
	GroupCommit   string `option:"group-commit" default:"off" help:"let the server merge loads: off, sync (answer after the merged commit), async (answer after the write-ahead log); at least once unless off"`
	GroupInterval int64  `option:"group-commit-interval-ms" help:"group_commit_interval_ms of the table, altered if it exists; 0: its own, or the server's default"`
	GroupBytes    int64  `option:"group-commit-data-bytes" help:"group_commit_data_bytes of the table, altered if it exists; 0: its own, or the server's default"`
}

// insertOptions are of insert.
type insertOptions struct {
	Prepared bool `option:"prepared" help:"prepare the INSERT on the server and send binary parameters; needs --group-commit"`
}

// routeOptions are of stream-load.
type routeOptions struct {
	RedirectPolicy string `option:"redirect-policy" help:"which address of a backend the frontend names: direct, public, private, public-private, random-be (Doris 3.1 and later)"`
	Backends       string `option:"backend-hosts" help:"backends' HTTP addresses: host:port,… sends straight to them in turn; named=reachable,… replaces what a redirect names"`
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

// options are those of all methods, and what they mean.
type options struct {
	tableOptions
	groupOptions
	insertOptions
	routeOptions

	group     groupCommit
	direct    []string          // backends to send to without asking a frontend
	reachable map[string]string // address a frontend names → address to use
}

// planOf reads method and options of a target. Its error names all that cannot work on any server.
func planOf(t loader.Target) (m loader.Method, o options, err error) {
	m, unread := loader.ReadOptions(New(), t, &o)
	_, noTable := targetTable(t)
	problems := []error{unread, noTable, checkParams(t), checkSettings(t), checkVia(t)}
	choice := func(name, value string, known ...string) {
		if value != "" && !slices.Contains(known, value) {
			problems = append(problems, fmt.Errorf("--%s %s: want one of %s", name, value, strings.Join(known, ", ")))
		}
	}
	choice("group-commit", o.GroupCommit, "off", "sync", "async")
	choice("redirect-policy", o.RedirectPolicy, "direct", "public", "private", "public-private", "random-be")

	o.group = groupCommit(o.GroupCommit + "_mode")
	if o.Prepared && !o.group.on() {
		problems = append(problems, errors.New(
			"--prepared: Doris prepares no INSERT with a label; take --group-commit sync or async"))
	}
	return m, o, errors.Join(append(problems, o.readBackends())...)
}

// readBackends parses --backend-hosts: addresses, and pairs of addresses. There may be both: a backend may redirect as
// well.
func (o *options) readBackends() error {
	if o.Backends == "" {
		return nil
	}
	o.reachable = make(map[string]string)
	for entry := range strings.SplitSeq(o.Backends, ",") {
		named, reachable, pair := strings.Cut(strings.TrimSpace(entry), "=")
		if !pair {
			reachable = named
		}
		for _, address := range []string{named, reachable} {
			if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
				return fmt.Errorf("--backend-hosts %s: want addresses as host:port", address)
			}
		}
		if pair {
			o.reachable[named] = reachable
		} else {
			o.direct = append(o.direct, named)
		}
	}
	return nil
}

// Bounds of a prepared INSERT.
const (
	// maxParameters is what the MySQL protocol counts in 16 bits.
	maxParameters = 1<<16 - 1
	// mostColumns is how many columns the widest dataset has: people.
	mostColumns = 23
	// parameterGrowth is the most by which values become longer as parameters: a time has 8 bytes in a batch, and 26 as
	// text, with its length, its type and a bit for NULL.
	parameterGrowth = 4
)

// caps returns those of a method under the options: group commit drops labels, and a prepared INSERT has few rows.
func (o options) caps(c loader.Caps) loader.Caps {
	if o.group.on() {
		c.Dedup, c.Window = loader.DedupNone, 0
		c.Reason = "group commit merges loads under labels of the server's own, " +
			"so it is not known whether a batch whose answer was lost is applied"
	}
	if o.Prepared {
		c.Formats, c.MaxRows = []batch.Format{batch.ColumnArrays}, maxParameters/mostColumns
		c.MaxBytes /= parameterGrowth
	}
	return c
}

// properties returns the table properties that the options ask for.
func (o options) properties() map[string]string {
	all := make(map[string]string)
	for name, value := range map[string]int64{propInterval: o.GroupInterval, propBytes: o.GroupBytes} {
		if value > 0 {
			all[name] = strconv.FormatInt(value, 10)
		}
	}
	return all
}

// changes returns the names of the properties that a table's definition has otherwise than the options ask for.
func (o options) changes(definition string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(o.properties())), func(name string) bool {
		return property(definition, name) == o.properties()[name]
	})
}

// targetTable parses the target's table.
func targetTable(t loader.Target) (tableName, error) {
	schema, table, err := sqlload.SplitTable(t, sqlload.Length{})
	return tableName{schema, table}, err
}

// checkParams refuses unknown parameters: users would rely on one that is ignored.
func checkParams(t loader.Target) error {
	const port = "http_port"
	p, err := mysqlconn.ReadParams(t.Params)
	if err = errors.Join(err, p.Unknown(port)); err != nil {
		return err
	}
	if n, err := strconv.Atoi(cmp.Or(t.Params.Get(port), httpPort)); err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("%s=%s is not a port", port, t.Params.Get(port))
	}
	return nil
}

// checkVia refuses s3-load without an object store, and a prefix that Doris would read as a pattern or that would end
// the literal.
func checkVia(t loader.Target) error {
	if t.Method != methodS3Load {
		return nil
	}
	if t.Via == nil {
		return fmt.Errorf("method %s needs an object store that Doris can read from: --staging s3://bucket/prefix", methodS3Load)
	}
	if err := objstore.Check(*t.Via); err != nil {
		return err
	}
	path := t.Via.Hosts[0] + "/" + t.Via.Database
	if i := strings.IndexAny(path, "*?[]{}\\\"'`\n"); i >= 0 {
		return fmt.Errorf("--staging: Doris reads %q as part of a pattern or the end of a literal: choose another prefix", path[i])
	}
	return nil
}

// tableName is an unquoted table with its database.
type tableName struct{ schema, table string }

// String returns the name as Table.Name and Preparation.MayDrop have it.
func (n tableName) String() string { return n.schema + "." + n.table }

func (n tableName) quoted() string { return quote(n.schema) + "." + quote(n.table) }
