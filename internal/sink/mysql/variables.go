package mysql

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// variables returns those that clients and their tools ask for when they connect, or after a load.
func (s *session) variables() map[string]string {
	all := map[string]string{
		"version": s.version, "version_comment": "counts and forgets", "license": "Apache-2.0",
		"max_allowed_packet": fmt.Sprint(maxMessage), "autocommit": fmt.Sprint(s.status & statusAutocommit / statusAutocommit),
		"local_infile": "1", "auto_increment_increment": "1", "lower_case_table_names": "0", "performance_schema": "0",
		"warning_count": "0", "error_count": "0", "query_cache_size": "0", "query_cache_type": "", "init_connect": "", "sql_mode": "",
		"interactive_timeout": "28800", "wait_timeout": "28800", "net_read_timeout": "60", "net_write_timeout": "60",
		"time_zone": "UTC", "system_time_zone": "UTC", "transaction_isolation": "REPEATABLE-READ", "tx_isolation": "REPEATABLE-READ",
	}
	for _, of := range []string{"client", "connection", "results", "server", "database"} {
		all["character_set_"+of] = "utf8mb4"
	}
	for _, of := range []string{"connection", "server", "database"} {
		all["collation_"+of] = "utf8mb4_general_ci"
	}
	return all
}

// variable returns what a SELECT of it gives.
func (s *session) variable(item string) (string, bool) {
	switch item {
	case "version()":
		return s.version, true
	case "connection_id()":
		return fmt.Sprint(s.id), true
	case "database()", "schema()", "user()", "current_user()":
		return "sink", true
	}
	name, ok := strings.CutPrefix(item, "@@")
	if !ok {
		return "", false
	}
	for _, scope := range []string{"session.", "local.", "global."} {
		name = strings.TrimPrefix(name, scope)
	}
	value, ok := s.variables()[name]
	return value, ok
}

var (
	showVariables = regexp.MustCompile(`(?i)^SHOW\s+(?:(?:SESSION|GLOBAL|LOCAL)\s+)?VARIABLES\b`)
	quoted        = regexp.MustCompile(`'([^']*)'`)
)

// showVariables answers SHOW VARIABLES: all of them, or those that a LIKE or WHERE behind it names in quotes.
func (s *session) showVariables(sql string) outcome {
	var wanted []*regexp.Regexp
	for _, m := range quoted.FindAllStringSubmatch(sql, -1) {
		pattern := strings.NewReplacer("%", ".*", `\\_`, "_", "_", ".").Replace(regexp.QuoteMeta(m[1]))
		wanted = append(wanted, regexp.MustCompile("(?i)^"+pattern+"$"))
	}
	all := s.variables()
	o := outcome{columns: []string{"Variable_name", "Value"}}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		is := func(r *regexp.Regexp) bool { return r.MatchString(name) }
		if wanted != nil && !slices.ContainsFunc(wanted, is) {
			continue
		}
		value := all[name]
		if name == "local_infile" || name == "autocommit" { // a SELECT gives numbers, SHOW does not
			value = map[string]string{"0": "OFF", "1": "ON"}[value]
		}
		o.rows = append(o.rows, []string{name, value})
	}
	return o
}
