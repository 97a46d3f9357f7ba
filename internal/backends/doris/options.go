package doris

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

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
		{Name: optBuckets, Kind: loader.IntOption, Default: "0", Help: "buckets of a table that is made; 0: four for each alive backend"},
		{Name: optReplication, Kind: loader.IntOption, Default: "0", Help: "replicas of a table that is made; 0: one for each alive backend, at most three"},
	}
}

func groupCommitOptions() []loader.Option {
	return []loader.Option{
		{Name: optGroupCommit, Kind: loader.StringOption, Default: "off",
			Help: "let the server merge loads: off, sync (answer after the merged commit), async (answer after the write-ahead log); at least once unless off"},
		{Name: optGroupInterval, Kind: loader.IntOption, Default: "0", Help: "group_commit_interval_ms of a table that is made; 0: the server's default"},
		{Name: optGroupBytes, Kind: loader.IntOption, Default: "0", Help: "group_commit_data_bytes of a table that is made; 0: the server's default"},
	}
}

func routeOptions() []loader.Option {
	return []loader.Option{
		{Name: optRedirectPolicy, Kind: loader.StringOption,
			Help: "which address of a backend the frontend names: direct, public, private, public-private, random-be (Doris 3.1 and later)"},
		{Name: optBackends, Kind: loader.StringOption,
			Help: "backends' HTTP addresses: host:port,… sends straight to them in turn; named=reachable,… replaces what a redirect names"},
	}
}

// groupCommit is a mode as Doris writes it, in the header and in the session variable.
type groupCommit string

const (
	groupOff   groupCommit = "off_mode"
	groupSync  groupCommit = "sync_mode"
	groupAsync groupCommit = "async_mode"
)

// on tells whether loads are merged, and so have no label.
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
	switch mode := t.Options[optGroupCommit]; mode {
	case "", "off":
		o.group = groupOff
	case "sync":
		o.group = groupSync
	case "async":
		o.group = groupAsync
	default:
		problems = append(problems, fmt.Errorf("--%s %s: there is off, sync, async", optGroupCommit, mode))
	}
	o.redirectPolicy = t.Options[optRedirectPolicy]
	known := []string{"", "direct", "public", "private", "public-private", "random-be"}
	if !slices.Contains(known, o.redirectPolicy) {
		problems = append(problems, fmt.Errorf("--%s %s: there is %s", optRedirectPolicy, o.redirectPolicy, strings.Join(known[1:], ", ")))
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
		for _, address := range []string{named, reachable}[:1+asInt(pair)] {
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

func asInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// refine takes the label away where group commit does.
func (o options) refine(c loader.Caps) loader.Caps {
	if o.group.on() {
		c.Dedup, c.Window = loader.DedupNone, 0
		c.Reason = "group commit merges loads under labels of the server's own, so nobody can tell whether a batch whose answer was lost is in"
	}
	return c
}

// properties are the table properties that the options ask for.
func (o options) properties() map[string]string {
	all := make(map[string]string)
	if o.groupInterval > 0 {
		all["group_commit_interval_ms"] = strconv.FormatInt(o.groupInterval, 10)
	}
	if o.groupBytes > 0 {
		all["group_commit_data_bytes"] = strconv.FormatInt(o.groupBytes, 10)
	}
	return all
}
