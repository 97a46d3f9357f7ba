package mysql

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// Seconds that a server waits for a loading session. A client that vanished without a word holds its claim no longer
// than that; Resolve ends it sooner.
const (
	// lockWait is for a row or a table that another session has locked: an overlapping attempt, an ALTER TABLE.
	lockWait = 60
	// transferIdle is for the next packet of a statement. A congested link can use up the default of 30.
	transferIdle = 300
	// sessionIdle is for the next statement.
	sessionIdle = 600
)

// strict is the sql_mode of all sessions. NO_AUTO_VALUE_ON_ZERO keeps row 0 from becoming the next number where the
// key is AUTO_INCREMENT. Left out on purpose: NO_BACKSLASH_ESCAPES and ANSI_QUOTES, which change what literals mean.
const strict = "STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION"

// setup lists what a loading session says before its first batch. The user's settings come later than ours and win.
func (f flavour) setup(settings []loader.Setting) []string {
	first := fmt.Sprintf("SET SESSION sql_mode = '%s', innodb_lock_wait_timeout = %d, lock_wait_timeout = %d,"+
		" net_read_timeout = %d, net_write_timeout = %d, wait_timeout = %d",
		strict, lockWait, lockWait, transferIdle, transferIdle, sessionIdle)
	switch f {
	case tiDB:
		// Under optimistic locking a second claim of a batch would fail only at its commit.
		first = fmt.Sprintf("SET SESSION sql_mode = '%s', innodb_lock_wait_timeout = %d, wait_timeout = %d,"+
			" tidb_txn_mode = 'pessimistic'", strict, lockWait, sessionIdle)
	case singleStore:
		// It knows one of the modes, and waits by other names.
		first = "SET SESSION sql_mode = 'STRICT_ALL_TABLES'"
	}
	return append([]string{first + f.whole()}, sessionSettings(settings)...)
}

// noLimit lets a query, and a SHOW, answer with all of its rows.
const noLimit = "sql_select_limit = 18446744073709551615"

// whole keeps answers from being cut off or refused by limits that are meant for people's queries. DEFAULT would be the
// server's own value, which may be such a limit.
func (f flavour) whole() string {
	const all = ", " + noLimit + ", group_concat_max_len = 1048576"
	switch f {
	case singleStore: // which has no such limits
		return ""
	case tiDB:
		return all
	}
	return all + ", sql_big_selects = 1, sql_safe_updates = 0"
}

// sessionSettings lists what sets the variables of --set.
func sessionSettings(settings []loader.Setting) (all []string) {
	for _, s := range settings {
		all = append(all, fmt.Sprintf("SET SESSION %s = %s", s.Name, settingValue(s.Value)))
	}
	return all
}

// controlSetup lists what a session for everything but loading says. What the user sets holds there, too: a limit on the
// time of statements is one on the proof.
func (f flavour) controlSetup(settings []loader.Setting) []string {
	first := fmt.Sprintf("SET SESSION sql_mode = '%s', innodb_lock_wait_timeout = %d", strict, lockWait) + f.whole()
	switch f {
	case mySQL:
		// MySQL 8 and later show sizes and times of tables up to a day old, unless told otherwise. Before, the variable
		// does not exist, and the version comment hides it.
		first += " /*!80000 , information_schema_stats_expiry = 0 */"
	case singleStore:
		first = "SET SESSION sql_mode = 'STRICT_ALL_TABLES'"
	}
	return append(append([]string{first}, sessionSettings(settings)...), autocommit(true))
}

// dirtyReads lists what a session says that wants to see what is not committed: nothing where no session can.
func (f flavour) dirtyReads() []string {
	if f == mySQL || f == mariaDB {
		return []string{"SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"}
	}
	return nil
}

// autocommit is said in every session, since a server's default may be either.
func autocommit(on bool) string {
	if on {
		return "SET SESSION autocommit = 1"
	}
	return "SET SESSION autocommit = 0"
}

// checkSettings refuses what would break the promises of a session, and what is no variable's name.
func checkSettings(settings []loader.Setting) error {
	name := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	for _, s := range settings {
		switch {
		case !name.MatchString(s.Name):
			return fmt.Errorf("--set %s: not the name of a session variable", s.Name)
		case strings.EqualFold(s.Name, "autocommit"):
			return fmt.Errorf("--set autocommit is refused: where a transaction ends follows from --delivery")
		case strings.EqualFold(s.Name, "sql_mode") && strings.Contains(strings.ToUpper(s.Value), "NO_BACKSLASH_ESCAPES"):
			return fmt.Errorf("--set sql_mode with NO_BACKSLASH_ESCAPES is refused: the rows are escaped with backslashes")
		}
	}
	return nil
}

// locksEmptyTable reports whether the settings are the pair that SettingsHelp warns of.
func (f flavour) locksEmptyTable(settings []loader.Setting) bool {
	off := make(map[string]bool)
	for _, s := range settings {
		off[strings.ToLower(s.Name)] = s.Value == "0" || strings.EqualFold(s.Value, "off")
	}
	return f == mariaDB && off["unique_checks"] && off["foreign_key_checks"]
}

// settingValue writes a value as the server wants it: numbers and DEFAULT bare, since '0' is no boolean and 'DEFAULT'
// a string; anything else as a string.
func settingValue(value string) string {
	if strings.EqualFold(value, "default") || regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`).MatchString(value) {
		return value
	}
	return literal(value)
}
