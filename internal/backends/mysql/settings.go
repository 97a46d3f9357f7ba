package mysql

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// Seconds that a server waits for a loading session. A vanished client holds its claim no longer than that; Resolve
// ends it sooner.
const (
	// lockWait is for a row or a table that another session has locked: an overlapping attempt, an ALTER TABLE.
	lockWait = 60
	// transferIdle is for the next packet of a statement. A congested link can use up the default of 30.
	transferIdle = 300
	// sessionIdle is for the next statement.
	sessionIdle = 600
)

const (
	// strict is the sql_mode of all sessions. NO_AUTO_VALUE_ON_ZERO keeps row 0 from becoming the next number where the
	// key is AUTO_INCREMENT. NO_BACKSLASH_ESCAPES and ANSI_QUOTES are left out: they change what literals mean.
	strict = "STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION"
	// singleStoreStrict is the only one of these modes that SingleStore knows.
	singleStoreStrict = "SET SESSION sql_mode = 'STRICT_ALL_TABLES'"
	// noLimit lets a query, and a SHOW, answer with all of its rows. DEFAULT would be the server's own limit.
	noLimit = "sql_select_limit = 18446744073709551615"
)

// setup lists the first statements of a loading session. The user's settings come last and win.
func (f flavour) setup(settings []loader.Setting) []string {
	var first string
	switch f {
	case singleStore: // where the timeouts have other names
		first = singleStoreStrict
	case tiDB:
		// Under optimistic locking a second claim of a batch would fail only at its commit.
		first = fmt.Sprintf("SET SESSION sql_mode = '%s', innodb_lock_wait_timeout = %d, wait_timeout = %d,"+
			" tidb_txn_mode = 'pessimistic'", strict, lockWait, sessionIdle)
	default:
		first = fmt.Sprintf("SET SESSION sql_mode = '%s', innodb_lock_wait_timeout = %d, lock_wait_timeout = %d,"+
			" net_read_timeout = %d, net_write_timeout = %d, wait_timeout = %d",
			strict, lockWait, lockWait, transferIdle, transferIdle, sessionIdle)
	}
	return append([]string{first + f.unlimited()}, sessionSettings(settings)...)
}

// controlSetup lists the first statements of all other sessions. The user's settings hold there, too: a limit on the
// time of statements is one on the proof.
func (f flavour) controlSetup(settings []loader.Setting) []string {
	first := fmt.Sprintf("SET SESSION sql_mode = '%s', innodb_lock_wait_timeout = %d", strict, lockWait) + f.unlimited()
	switch f {
	case mySQL:
		// MySQL 8 and later show sizes and times of tables that are up to a day old by default. Earlier versions lack
		// the variable and skip the comment.
		first += " /*!80000 , information_schema_stats_expiry = 0 */"
	case singleStore:
		first = singleStoreStrict
	}
	return append(append([]string{first}, sessionSettings(settings)...), autocommit(true))
}

// unlimited lifts limits that are meant for people's queries, and cut answers off, end or refuse them. MariaDB's limit on
// time holds for loads too, MySQL's for SELECT; the engine has its own deadline for a batch.
func (f flavour) unlimited() string {
	const all = ", " + noLimit + ", group_concat_max_len = 1048576"
	switch f {
	case singleStore: // which has no such limits
		return ""
	case tiDB:
		return all + ", max_execution_time = 0"
	case mariaDB:
		return all + ", max_statement_time = 0, sql_big_selects = 1, sql_safe_updates = 0"
	}
	return all + ", max_execution_time = 0, sql_big_selects = 1, sql_safe_updates = 0"
}

// sessionSettings sets the variables of --set.
func sessionSettings(settings []loader.Setting) (all []string) {
	for _, s := range settings {
		all = append(all, fmt.Sprintf("SET SESSION %s = %s", s.Name, settingValue(s.Value)))
	}
	return all
}

// dirtyReads lets a session see uncommitted rows, where the server can.
func (f flavour) dirtyReads() []string {
	if f == mySQL || f == mariaDB {
		return []string{"SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"}
	}
	return nil
}

// autocommit is set in every session, since a server's default may be either.
func autocommit(on bool) string {
	if on {
		return "SET SESSION autocommit = 1"
	}
	return "SET SESSION autocommit = 0"
}

var (
	settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	bareValue   = regexp.MustCompile(`(?i)^(-?[0-9]+(\.[0-9]+)?|default)$`)
)

// checkSettings refuses settings that break a session's promises, and names that are none of a variable.
func checkSettings(settings []loader.Setting) error {
	for _, s := range settings {
		switch {
		case !settingName.MatchString(s.Name):
			return fmt.Errorf("--set %s: not the name of a session variable", s.Name)
		case strings.EqualFold(s.Name, "autocommit"):
			return fmt.Errorf("--set autocommit is refused: where a transaction ends follows from --delivery")
		case strings.EqualFold(s.Name, "sql_mode") && strings.Contains(strings.ToUpper(s.Value), "NO_BACKSLASH_ESCAPES"):
			return fmt.Errorf("--set sql_mode with NO_BACKSLASH_ESCAPES is refused: the rows are escaped with backslashes")
		}
	}
	return sqlload.CheckSettings(settings)
}

// uncheckedHelp warns of a pair of settings that every tuning guide recommends.
const uncheckedHelp = "on MariaDB unique_checks=0 together with foreign_key_checks=0 locks an empty table for the first" +
	" worker that loads it, lets the others wait, and makes the server misreport row counts; set one of them, or neither"

// locksEmptyTable reports whether the settings are the pair that uncheckedHelp warns of.
func (f flavour) locksEmptyTable(settings []loader.Setting) bool {
	off := make(map[string]bool)
	for _, s := range settings {
		off[strings.ToLower(s.Name)] = s.Value == "0" || strings.EqualFold(s.Value, "off")
	}
	return f == mariaDB && off["unique_checks"] && off["foreign_key_checks"]
}

// settingValue writes numbers and DEFAULT bare, since '0' is no boolean and 'DEFAULT' a string; anything else as a
// string.
func settingValue(value string) string {
	if bareValue.MatchString(value) {
		return value
	}
	return literal(value)
}
