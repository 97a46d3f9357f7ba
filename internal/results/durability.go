package results

import (
	"maps"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/report"
)

// decides lists the settings and options that decide what a crash of the server may take, and the values that let it take rows which
// were acknowledged. A setting without such values is shown and compared and not judged: it may be right either way.
func decides() map[string][]string {
	return map[string][]string{
		// PostgreSQL and what speaks like it
		"fsync": {"off"}, "synchronous_commit": {"off"}, "full_page_writes": {"off"}, "wal_level": nil, "unlogged": {"true"},
		"synchronous_standby_names": nil,
		// the MySQL family
		"innodb_flush_log_at_trx_commit": {"0", "2"}, "sync_binlog": nil, "log_bin": nil, "sql_log_bin": nil,
		"innodb_doublewrite": {"off", "0"}, "innodb_flush_method": {"nosync"},
		// Doris
		"group_commit": {"async_mode", "async"}, "replication_num": nil, "replication_allocation": nil,
		// Oracle
		"commit_wait": {"nowait"}, "commit_write": nil, "commit_logging": nil, "memoptimize_write": nil,
		// YugabyteDB
		"yb_disable_transactional_writes": nil,
	}
}

// decisive are the settings of a run that decide durability, by name: those of the server and the method's options. Where
// both are of one name the server's is what holds.
func decisive(r *report.Report) map[string]string {
	found := map[string]string{}
	known := decides()
	for _, all := range []map[string]string{r.Plan.Options, r.Target.Settings} {
		for name, v := range all {
			name = strings.ReplaceAll(name, "-", "_") // as servers write it; options have dashes
			if _, ok := known[strings.ToLower(name)]; ok {
				found[name] = v
			}
		}
	}
	return found
}

// durability is all settings of a run that decide durability, in one line: fsync=on, synchronous_commit=off.
func durability(r *report.Report) string {
	var parts []string
	settings := decisive(r)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		parts = append(parts, name+"="+settings[name])
	}
	return strings.Join(parts, ", ")
}

// unsafeSettings are the settings of a run with which the server may lose rows that it has acknowledged.
func unsafeSettings(r *report.Report) []string {
	var found []string
	known, settings := decides(), decisive(r)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if slices.Contains(known[strings.ToLower(name)], strings.ToLower(settings[name])) {
			found = append(found, name+"="+settings[name])
		}
	}
	return found
}
