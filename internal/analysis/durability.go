package analysis

import (
	"maps"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/report"
)

// decides lists the settings that decide what a crash of the server may take, and the values that let it take rows which
// were acknowledged. A setting without such values is shown and compared and not judged: it may be right either way.
func decides() map[string][]string {
	return map[string][]string{
		// PostgreSQL and what speaks like it
		"fsync": {"off"}, "synchronous_commit": {"off"}, "full_page_writes": {"off"}, "wal_level": nil, "unlogged": {"true", "on"},
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

// durability is all settings of a run that decide durability, in one line: fsync=on, synchronous_commit=off.
func durability(r *report.Report) string {
	var parts []string
	known := decides()
	for _, name := range slices.Sorted(maps.Keys(r.Target.Settings)) {
		if _, ok := known[strings.ToLower(name)]; ok {
			parts = append(parts, name+"="+r.Target.Settings[name])
		}
	}
	return strings.Join(parts, ", ")
}

// unsafeSettings are the settings of a run with which the server may lose rows that it has acknowledged.
func unsafeSettings(r *report.Report) []string {
	var found []string
	known := decides()
	for _, name := range slices.Sorted(maps.Keys(r.Target.Settings)) {
		if slices.Contains(known[strings.ToLower(name)], strings.ToLower(r.Target.Settings[name])) {
			found = append(found, name+"="+r.Target.Settings[name])
		}
	}
	return found
}
