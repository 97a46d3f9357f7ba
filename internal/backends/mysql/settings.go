package mysql

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
	"github.com/terapush/terapush/pkg/sqlload"
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
	// transactionIdle is for the next packet of a transaction, on TiDB, where nothing else ends one: see opened.endRun.
	// It has room for a long packet on a slow link.
	transactionIdle = 30
)

const (
	// strict is the sql_mode of all sessions. NO_AUTO_VALUE_ON_ZERO keeps row 0 from becoming the next number where the
	// key is AUTO_INCREMENT. NO_BACKSLASH_ESCAPES and ANSI_QUOTES are left out: they change what literals mean.
	strict = "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION'"
	// singleStoreStrict is the only one of these modes that SingleStore knows.
	singleStoreStrict = "SET SESSION sql_mode = 'STRICT_ALL_TABLES'"
	// noLimit lets a query, and a SHOW, answer with all of its rows. DEFAULT would be the server's own limit.
	noLimit = "sql_select_limit = 18446744073709551615"
)

// setup is what a session says first.
type setup struct {
	// wishes are assignments to variables that only make a session better. Who speaks MySQL's protocol need not know
	// them.
	wishes     []string
	statements []string // the user's settings among them, which come last and win
}

// sessionSetup is that of a loading session. Without moments its time zone is the server's, for the values that it
// fills in itself.
func (f flavour) sessionSetup(settings []loader.Setting, moments bool) setup {
	first := f.strict()
	if moments {
		first += f.inUTC()
	}
	s := setup{statements: append([]string{first}, sessionSettings(settings)...)}
	wait := func(variable string, seconds int) {
		s.wishes = append(s.wishes, fmt.Sprintf("%s = %d", variable, seconds))
	}
	if f == singleStore { // where the timeouts have other names
		return s
	}
	wait("innodb_lock_wait_timeout", lockWait)
	if f == tiDB {
		wait("tidb_idle_transaction_timeout", transactionIdle)
		// A column of AUTO_RANDOM takes the run's keys. Without it TiDB 8.4 ends LOAD DATA with error 1105, index out of
		// range.
		s.wishes = append(s.wishes, "allow_auto_random_explicit_insert = 1")
	} else {
		wait("lock_wait_timeout", lockWait)
		wait("net_read_timeout", transferIdle)
		wait("net_write_timeout", transferIdle)
	}
	wait("wait_timeout", sessionIdle)
	s.wishes = append(s.wishes, f.unlimited()...)
	return s
}

// recordSetup is setup of a session. What the records of users' files mean is not left to the server: times are in UTC,
// and as many warnings are kept as a trial looks at.
func (s *session) recordSetup() setup {
	records := false
	if st, err := s.owner.State(); err == nil {
		records = st.Want.Records
	}
	first := s.flavour.sessionSetup(s.owner.target.Settings, records || hasMoments(s.Schema))
	if records {
		first.wishes = append(first.wishes, fmt.Sprintf("max_error_count = %d", maxTold), "sql_notes = 1")
	}
	return first
}

// controlSetup is that of all other sessions, with what one of them says besides. The user's settings hold there, too:
// a limit on the time of statements is one on the proof.
func (f flavour) controlSetup(settings []loader.Setting, besides ...string) setup {
	s := setup{
		statements: slices.Concat([]string{f.strict() + f.inUTC()}, sessionSettings(settings), []string{autocommit(true)}, besides),
	}
	if f == singleStore {
		return s
	}
	s.wishes = append([]string{fmt.Sprintf("innodb_lock_wait_timeout = %d", lockWait)}, f.unlimited()...)
	if f == mySQL {
		// MySQL 8 and later show sizes and times of tables that are up to a day old by default. Earlier versions lack
		// the variable.
		s.wishes = append(s.wishes, "information_schema_stats_expiry = 0")
	}
	return s
}

// inUTC goes on with what strict sets. It lets a session write and read moments as they are: it converts a TIMESTAMP
// from and to its time zone, and of an hour that a summer has twice there is no way back. SingleStore has no moments,
// and no time zone of a session.
func (f flavour) inUTC() string {
	if f == singleStore {
		return ""
	}
	return ", time_zone = '+00:00'"
}

// strict sets what is no wish: without the sql_mode a value that does not fit is bent.
func (f flavour) strict() string {
	switch f {
	case singleStore:
		return singleStoreStrict
	case tiDB: // under optimistic locking a second claim of a batch would fail only at its commit
		return strict + ", tidb_txn_mode = 'pessimistic'"
	}
	return strict
}

// unlimited lifts limits that are meant for people's queries, and cut answers off, end or refuse them. MariaDB's limit
// on time holds for loads too, MySQL's for SELECT; the engine has its own deadline for a batch.
func (f flavour) unlimited() []string {
	all := []string{noLimit, "group_concat_max_len = 1048576"}
	switch f {
	case singleStore: // which has no such limits
		return nil
	case tiDB:
		return append(all, "max_execution_time = 0")
	case mariaDB:
		return append(all, "max_statement_time = 0", "sql_big_selects = 1", "sql_safe_updates = 0")
	case oceanBase:
		// Its own time limit, of every statement, is 10 s by default and 102 years at most; unless it has one of its
		// own, a statement waits for a lock as long. The limit on rows is signed.
		return []string{
			"sql_select_limit = 9223372036854775807", "group_concat_max_len = 1048576",
			"ob_query_timeout = 3216672000000000", fmt.Sprintf("ob_trx_lock_timeout = %d", lockWait*1_000_000),
		}
	}
	return append(all, "max_execution_time = 0", "sql_big_selects = 1", "sql_safe_updates = 0")
}

// sessionSettings sets the variables of --set. Numbers and DEFAULT are bare: '0' is no boolean and 'DEFAULT' a string.
func sessionSettings(settings []loader.Setting) []string {
	return sqlload.SetEach("SET SESSION", settings, bareValue, literal)
}

// dirtyReads lets a session see uncommitted rows, where the server can.
func (f flavour) dirtyReads() []string {
	if f == mySQL || f == mariaDB {
		return []string{mysqlconn.ReadUncommitted}
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

var bareValue = regexp.MustCompile(`(?i)^(-?[0-9]+(\.[0-9]+)?|default)$`)

// checkSettings refuses settings that break a session's promises.
func checkSettings(settings []loader.Setting) error {
	for _, s := range settings {
		if strings.EqualFold(s.Name, "autocommit") {
			return errors.New("--set autocommit is refused: where a transaction ends follows from --delivery")
		}
	}
	return mysqlconn.CheckSettings(settings)
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
