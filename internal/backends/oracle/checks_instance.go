package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// number reads a number of a view, which may pad it; 0 where there is none, as for UNLIMITED.
func number(text string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n
}

// sized writes a number of bytes.
func sized(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// spareSessions are those besides the workers': what counts, resolves and proves arrival.
const spareSessions = 4

// onSessions is what bounds the number of sessions, the user's profile and the instance, and who works for them.
func (x *doctor) onSessions() []sqlload.Check {
	limit := func(resource string) sqlload.Check {
		return sqlload.Check{
			Name: "sessions",
			Ask: "SELECT r.resource_name, TO_CHAR(r.current_utilization), r.limit_value FROM v$resource_limit r " +
				"WHERE r.resource_name IN ('processes', 'sessions')",
			Judge: func(values []string) loader.Finding { return x.resource(resource, values) },
		}
	}
	return []sqlload.Check{
		{
			Name:  "sessions per user",
			Ask:   "SELECT r.limit FROM user_resource_limits r WHERE r.resource_name = 'SESSIONS_PER_USER'",
			Judge: x.profile,
		},
		limit("processes"), limit("sessions"),
		{
			Name:  "server process",
			Ask:   "SELECT s.server FROM v$session s WHERE TO_CHAR(s.sid) = SYS_CONTEXT('USERENV', 'SID')",
			Judge: process,
		},
	}
}

// profile compares SESSIONS_PER_USER with the workers. It is in force only with resource_limit = TRUE.
func (x *doctor) profile(row []string) (f loader.Finding) {
	if row == nil {
		return f
	}
	found, need := "SESSIONS_PER_USER of the profile is "+row[0], x.workers()+spareSessions
	if n := number(row[0]); n > 0 && need > n {
		return sqlload.Warn(
			fmt.Sprintf("%s, for %d workers and %d sessions besides (ORA-02391)", found, x.workers(), spareSessions),
			fmt.Sprintf("ALTER PROFILE … LIMIT SESSIONS_PER_USER %d (SELECT profile FROM dba_users WHERE username = '%s'), "+
				"or --workers %d", need, x.user, max(n-spareSessions, 1)))
	}
	return sqlload.OK(found)
}

// resource compares a limit of the instance with what is in use and what comes. What is in use may be gone by then, and who
// gets none tries again.
func (x *doctor) resource(name string, values []string) (f loader.Finding) {
	i := slices.Index(values, name)
	if i < 0 {
		return f
	}
	now, most, workers := number(values[i+1]), number(values[i+2]), x.workers()
	found := fmt.Sprintf("%d of %s are in use", now, strings.TrimSpace(values[i+2]))
	switch {
	case most == 0: // UNLIMITED
		f = sqlload.OK(found)
	case now+workers+spareSessions > most:
		f = sqlload.Warn(
			fmt.Sprintf("%s, and %d workers need as many, and %d besides (ORA-00018, ORA-00020)", found, workers, spareSessions),
			fmt.Sprintf("ALTER SYSTEM SET %s = %d SCOPE = SPFILE, and a restart; or --workers %d",
				name, 2*(now+workers), max(most-now-spareSessions, 1)))
	default:
		f = sqlload.OK(fmt.Sprintf("%s, room for %d workers", found, workers))
	}
	f.Check = name
	return f
}

// process looks whether this connection has a process of its own. Shared and pooled ones take turns on a few.
func process(row []string) (f loader.Finding) {
	if row == nil {
		return f
	}
	switch row[0] {
	case "DEDICATED":
		return sqlload.OK("DEDICATED: each session has one")
	case "SHARED", "NONE": // NONE: of a shared server that is idle
		return sqlload.Warn("SHARED: sessions take turns on a few processes, and arrays go through the dispatchers' memory",
			"name a service without dispatchers, or ALTER SYSTEM SET shared_servers = 0")
	case "POOLED":
		return sqlload.Warn("POOLED (DRCP): a session that loads keeps its process, and the pool has few",
			"name the service without :POOLED, or EXEC DBMS_CONNECTION_POOL.ALTER_PARAM('', 'MAXSIZE', …)")
	}
	return sqlload.OK(row[0])
}

// onSettings is what Open has read of the instance.
func (x *doctor) onSettings() []sqlload.Check {
	return []sqlload.Check{
		{Name: "commit", Judge: x.commits},
		{Name: "character set", Judge: x.characters},
		{Name: "max_string_size", Judge: x.lengths},
	}
}

// commits looks whether a commit waits until it is durable, as the contract says of it.
func (x *doctor) commits([]string) loader.Finding {
	wait, known := x.server.Settings["commit_wait"]
	fix := "--set commit_wait=WAIT"
	switch strings.ToUpper(wait) {
	case "FORCE_NOWAIT":
		fix = "ALTER SYSTEM SET commit_wait = WAIT"
		fallthrough
	case "NOWAIT":
		return sqlload.Warn(fmt.Sprintf("commit_wait = %s, commit_logging = %s: a commit is answered before it is durable, "+
			"and a crash loses batches that were acknowledged",
			wait, cmp.Or(x.server.Settings["commit_logging"], "IMMEDIATE")), fix)
	}
	if known {
		return sqlload.OK("a commit is answered when it is durable")
	}
	return loader.Finding{Grade: loader.GradeUnknown, Found: "V$PARAMETER cannot be read", Fix: x.grant(nil)}
}

// Lengths of values, in bytes, where MAX_STRING_SIZE is STANDARD.
const (
	standardText = 4000
	standardRaw  = 2000
)

// characters looks for what texts would lose of their characters.
func (x *doctor) characters([]string) loader.Finding {
	name := x.server.Settings[settingCharset]
	if unicode(name) {
		return sqlload.OK(name)
	}
	return sqlload.Warn(name+": of texts the database keeps what that has characters for, and verification finds the rest",
		"a database with AL32UTF8: the character set is chosen when it is made (or by DMU)")
}

// lengths looks for a column whose values would not fit.
func (x *doctor) lengths([]string) (f loader.Finding) {
	if !strings.EqualFold(x.server.Settings["max_string_size"], "STANDARD") {
		return f
	}
	for _, c := range x.intent.Schema.Columns {
		most := standardText
		if c.Type == rows.Bytes {
			most = standardRaw
		}
		if !c.Type.Variable() || lengthOf(c) <= most {
			continue
		}
		f = sqlload.Fail(
			fmt.Sprintf("STANDARD: values of column %s have up to %d bytes, and %d fit", c.Name, lengthOf(c), most),
			fmt.Sprintf("--payload-bytes %d, or ALTER SYSTEM SET max_string_size = EXTENDED SCOPE = SPFILE in upgrade mode "+
				"with utl32k.sql", most))
		if x.of.Relation != nil { // its columns may be of another type
			f.Grade = loader.GradeWarn
		}
		return f
	}
	return f
}

// onStorage is where the changes are logged. Redo is the ceiling of every insert but direct ones; a managed service sizes
// it itself.
func (x *doctor) onStorage() (checks []sqlload.Check) {
	if x.managed() {
		return nil
	}
	if x.method == methodDirect {
		checks = append(checks, sqlload.Check{
			Name: "force logging", Ask: "SELECT d.force_logging FROM v$database d", Judge: forceLogging,
		})
	}
	return append(checks, sqlload.Check{
		Name: "redo logs", Ask: "SELECT TO_CHAR(COUNT(*)), TO_CHAR(MIN(l.bytes)) FROM v$log l", Judge: x.redo,
	})
}

func forceLogging(row []string) (f loader.Finding) {
	if row == nil {
		return f
	}
	if strings.EqualFold(row[0], "YES") {
		return sqlload.Warn("YES: direct path writes every block into the redo log as well",
			"ALTER DATABASE NO FORCE LOGGING, where no standby needs it; then ALTER TABLE … NOLOGGING")
	}
	return sqlload.OK(row[0])
}

// A log of which the groups are filled this often during a run, and that is smaller than this, makes loads wait: each
// round has to wait for the checkpoint, and the archiver, of the one before.
const (
	manyRounds = 10
	smallLog   = 1 << 30
)

func (x *doctor) redo(row []string) (f loader.Finding) {
	groups, size, total := number(row[0]), number(row[1]), x.intent.TotalBytes
	if groups == 0 || size == 0 {
		return f
	}
	found := fmt.Sprintf("%d groups of at least %s", groups, sized(size))
	rounds := total / (groups * size)
	if total > 0 {
		found += fmt.Sprintf(", which %s of rows fill %d times over", sized(total), rounds)
	}
	if rounds > manyRounds && size < smallLog {
		return sqlload.Warn(found+": loads wait at each switch until a log is free (\"log file switch\" in V$SESSION_EVENT)",
			"ALTER DATABASE ADD LOGFILE SIZE 4G (four times), ALTER SYSTEM SWITCH LOGFILE, "+
				"then ALTER DATABASE DROP LOGFILE GROUP … for the small ones")
	}
	return sqlload.OK(found)
}
