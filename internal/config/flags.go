package config

import (
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Defaults that other packages show, too.
const (
	DefaultPayload  = Bytes(1 << 30)
	DefaultDistinct = Bytes(1 << 30)
	DefaultRetries  = 8
	DefaultRetryFor = 10 * time.Minute
)

// The groups of --help, in its order.
const (
	GroupWhat       = "What"
	GroupHowMuch    = "How much"
	GroupHowFast    = "How fast"
	GroupSafety     = "Safety"
	GroupRuns       = "Runs"
	GroupConnection = "Connection"
	GroupOutput     = "Output"
	GroupGlobal     = "Global"
	GroupMethods    = "Methods" // options of methods, which terapush help methods lists
)

// Groups lists the groups that --help shows.
func Groups() []string {
	return []string{GroupWhat, GroupHowMuch, GroupHowFast, GroupSafety, GroupRuns, GroupConnection, GroupOutput, GroupGlobal}
}

// groupKey is the annotation that holds a flag's group.
const groupKey = "group"

// GroupOf returns the group of a flag, "" if it has none.
func GroupOf(flag *pflag.Flag) string { return strings.Join(flag.Annotations[groupKey], "") }

// Group adds the flags that declare declares, all in one group.
func Group(f *pflag.FlagSet, group string, declare func(*pflag.FlagSet)) {
	part := pflag.NewFlagSet(group, pflag.ContinueOnError)
	part.SortFlags = false
	declare(part)
	part.VisitAll(func(flag *pflag.Flag) { annotate(flag, groupKey, group) })
	f.AddFlagSet(part)
}

func annotate(flag *pflag.Flag, key, value string) {
	if flag.Annotations == nil {
		flag.Annotations = map[string][]string{}
	}
	flag.Annotations[key] = []string{value}
}

// helpPage is every flag of push but the options of methods, in the order of --help. It is not that of Push's groups:
// --help is for who types the flags, those are for who reads them.
var helpPage = []struct{ group, flags string }{
	{GroupWhat, "method table dataset like stats keep-values param format staging payload-bytes payload-kind seed distinct-bytes " +
		"primary-key sync-sequences"},
	{GroupHowMuch, "rows bytes times duration warm-up first-key append"},
	{GroupHowFast, "workers batch-rows batch-bytes commit-batches memory max-rate"},
	{GroupSafety, "delivery create allow-drop verify verify-rows verify-workers retries retry-for batch-timeout"},
	{GroupRuns, "resume run-id shard start-at state-dir"},
	{GroupConnection, "password-file tls tls-ca tls-cert tls-key tls-server-name set"},
	{GroupOutput, "progress json dry-run metrics-addr metrics-linger server-metrics fail-below report report-to"},
}

// Flags declares every flag of push, including those of the drivers' methods, and sets the defaults.
func (p *Push) Flags(f *pflag.FlagSet, drivers *loader.Registry) {
	all := pflag.NewFlagSet("push", pflag.ContinueOnError)
	for _, declare := range []func(*pflag.FlagSet){
		p.Database.flags, p.Data.flags, p.Destination.flags, p.Batches.flags, p.Pace.flags, p.Patience.flags,
		p.Proof.flags, p.Run.flags, p.Output.flags,
	} {
		declare(all)
	}

	for _, part := range helpPage {
		for name := range strings.FieldsSeq(part.flags) {
			flag := all.Lookup(name)
			annotate(flag, groupKey, part.group)
			f.AddFlag(flag)
		}
	}
	Group(f, GroupMethods, func(f *pflag.FlagSet) { p.optionFlags(f, drivers) })
	all.VisitAll(func(flag *pflag.Flag) {
		if GroupOf(flag) == "" {
			panic("--" + flag.Name + " is not on the page of --help")
		}
	})
	f.SortFlags = false
}

// Formats lists the values of --format.
func Formats() []string {
	var names []string
	for _, f := range batch.Formats() {
		names = append(names, string(f))
	}
	return names
}
