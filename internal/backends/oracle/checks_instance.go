package oracle

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

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
func (x *examination) onSessions() []check {
	return []check{
		{
			query: "SELECT r.limit FROM user_resource_limits r WHERE r.resource_name = 'SESSIONS_PER_USER'",
			judge: x.profile,
		},
		{
			name: "sessions", what: "how many sessions the instance takes", view: "V_$RESOURCE_LIMIT",
			query: "SELECT r.resource_name, TO_CHAR(r.current_utilization), r.limit_value FROM v$resource_limit r " +
				"WHERE r.resource_name IN ('processes', 'sessions')",
			judge: x.resources,
		},
		{
			name: "server process", what: "which kind of process the session has", view: "V_$SESSION",
			query: "SELECT s.server FROM v$session s WHERE TO_CHAR(s.sid) = SYS_CONTEXT('USERENV', 'SID')",
			judge: x.process,
		},
	}
}

// profile compares SESSIONS_PER_USER with the workers. It is in force only with resource_limit = TRUE.
func (x *examination) profile(rows [][]string) {
	if len(rows) != 1 {
		return
	}
	found, need := "SESSIONS_PER_USER of the profile is "+rows[0][0], x.workers()+spareSessions
	if n := number(rows[0][0]); n > 0 && need > n {
		x.warn("sessions per user",
			fmt.Sprintf("%s, for %d workers and %d sessions besides (ORA-02391)", found, x.workers(), spareSessions),
			fmt.Sprintf("ALTER PROFILE … LIMIT SESSIONS_PER_USER %d (SELECT profile FROM dba_users WHERE username = '%s'), "+
				"or --workers %d", need, x.user, max(n-spareSessions, 1)))
		return
	}
	x.ok("sessions per user", found)
}

// resources compares the instance's limits with what is in use and what comes. What is in use may be gone by then, and who
// gets none tries again.
func (x *examination) resources(rows [][]string) {
	for _, row := range rows {
		name, now, most, workers := row[0], number(row[1]), number(row[2]), x.workers()
		found := fmt.Sprintf("%d of %s are in use", now, strings.TrimSpace(row[2]))
		switch {
		case most == 0: // UNLIMITED
			x.ok(name, found)
		case now+workers+spareSessions > most:
			x.warn(name,
				fmt.Sprintf("%s, and %d workers need as many, and %d besides (ORA-00018, ORA-00020)", found, workers, spareSessions),
				fmt.Sprintf("ALTER SYSTEM SET %s = %d SCOPE = SPFILE, and a restart; or --workers %d",
					name, 2*(now+workers), max(most-now-spareSessions, 1)))
		default:
			x.ok(name, fmt.Sprintf("%s, room for %d workers", found, workers))
		}
	}
}

// process looks whether this connection has a process of its own. Shared and pooled ones take turns on a few.
func (x *examination) process(rows [][]string) {
	const name = "server process"
	for _, row := range rows {
		switch row[0] {
		case "DEDICATED":
			x.ok(name, "DEDICATED: each session has one")
		case "SHARED", "NONE": // NONE: of a shared server that is idle
			x.warn(name, "SHARED: sessions take turns on a few processes, and arrays go through the dispatchers' memory",
				"name a service without dispatchers, or ALTER SYSTEM SET shared_servers = 0")
		case "POOLED":
			x.warn(name, "POOLED (DRCP): a session that loads keeps its process, and the pool has few",
				"name the service without :POOLED, or EXEC DBMS_CONNECTION_POOL.ALTER_PARAM('', 'MAXSIZE', …)")
		default:
			x.ok(name, row[0])
		}
	}
}

// commits looks whether a commit waits until it is durable, as the contract says of it.
func (x *examination) commits() {
	wait, known := x.server.Settings["commit_wait"]
	fix := "--set commit_wait=WAIT"
	switch strings.ToUpper(wait) {
	case "FORCE_NOWAIT":
		fix = "ALTER SYSTEM SET commit_wait = WAIT"
		fallthrough
	case "NOWAIT":
		x.warn("commit", fmt.Sprintf("commit_wait = %s, commit_logging = %s: a commit is answered before it is durable, "+
			"and a crash loses batches that were acknowledged",
			wait, cmp.Or(x.server.Settings["commit_logging"], "IMMEDIATE")), fix)
	default:
		if known {
			x.ok("commit", "a commit is answered when it is durable")
			return
		}
		x.add("commit", loader.GradeUnknown, "commit_wait and commit_logging cannot be read: the view is not to be seen",
			"GRANT SELECT ON V_$PARAMETER TO "+x.user)
	}
}

// Lengths of values, in bytes, where MAX_STRING_SIZE is STANDARD.
const (
	standardText = 4000
	standardRaw  = 2000
)

// characters looks for what texts would lose: characters, or their ends.
func (x *examination) characters() {
	s := x.server.Settings
	if name := s[settingCharset]; unicode(name) {
		x.ok("character set", name)
	} else {
		x.warn("character set", name+": of texts the database keeps what that has characters for, and verification finds the rest",
			"a database with AL32UTF8: the character set is chosen when it is made (or by DMU)")
	}
	if !strings.EqualFold(s["max_string_size"], "STANDARD") {
		return
	}
	for _, c := range x.intent.Schema.Columns {
		most := standardText
		if c.Type == rows.Bytes {
			most = standardRaw
		}
		if c.Type.Variable() && lengthOf(c) > most {
			grade := loader.GradeFail
			if x.of.Relation != nil { // its columns may be of another type
				grade = loader.GradeWarn
			}
			x.add("max_string_size", grade,
				fmt.Sprintf("STANDARD: values of column %s have up to %d bytes, and %d fit", c.Name, lengthOf(c), most),
				fmt.Sprintf("--payload-bytes %d, or ALTER SYSTEM SET max_string_size = EXTENDED SCOPE = SPFILE in upgrade mode "+
					"with utl32k.sql", most))
			return
		}
	}
}

// onStorage is where the changes are logged, and how the rows of a transaction can be taken back. Redo is the ceiling of
// every insert but direct ones; a managed service sizes it, and undo, itself.
func (x *examination) onStorage() []check {
	return []check{
		{
			name: "archive log", what: "whether redo is archived, and forced,", view: "V_$DATABASE", skip: x.managed(),
			query: "SELECT d.log_mode, d.force_logging FROM v$database d", judge: x.archive,
		},
		{
			name: "redo logs", what: "number and size of the redo logs", view: "V_$LOG", skip: x.managed(),
			query: "SELECT TO_CHAR(COUNT(*)), TO_CHAR(MIN(l.bytes)) FROM v$log l", judge: x.redo,
		},
		{
			name: "undo", what: "the size of the undo tablespace", view: "DBA_DATA_FILES",
			skip: x.managed() || x.method == methodDirect,
			query: "SELECT TO_CHAR(SUM(GREATEST(f.bytes, f.maxbytes))) FROM dba_data_files f " +
				"WHERE f.tablespace_name = (SELECT p.value FROM v$parameter p WHERE p.name = 'undo_tablespace')",
			judge: x.undo,
		},
		{
			name: "fast ingest", what: "the memory of Fast Ingest", view: "V_$MEMOPTIMIZE_WRITE_AREA",
			skip:  x.method != methodFast,
			query: "SELECT TO_CHAR(a.total_size), TO_CHAR(a.free_space), TO_CHAR(a.num_writes) FROM v$memoptimize_write_area a",
			judge: x.writeArea,
		},
	}
}

func (x *examination) archive(rows [][]string) {
	for _, row := range rows {
		found := fmt.Sprintf("%s, force logging %s", row[0], row[1])
		switch {
		case x.method == methodDirect && strings.EqualFold(row[1], "YES"):
			x.warn("archive log", found+": direct path writes every block into the redo log as well",
				"ALTER DATABASE NO FORCE LOGGING, where no standby needs it; then ALTER TABLE … NOLOGGING")
		case row[0] == "ARCHIVELOG":
			x.ok("archive log", found+": the archive grows by at least the rows")
		default:
			x.ok("archive log", found)
		}
	}
}

// A log of which the groups are filled this often during a run, and that is smaller than this, makes loads wait: each
// round has to wait for the checkpoint, and the archiver, of the one before.
const (
	manyRounds = 10
	smallLog   = 1 << 30
)

func (x *examination) redo(rows [][]string) {
	groups, size, total := number(rows[0][0]), number(rows[0][1]), x.intent.TotalBytes
	if groups == 0 || size == 0 {
		return
	}
	found := fmt.Sprintf("%d groups of at least %s", groups, sized(size))
	rounds := total / (groups * size)
	if total > 0 {
		found += fmt.Sprintf(", which %s of rows fill %d times over", sized(total), rounds)
	}
	if rounds > manyRounds && size < smallLog {
		x.warn("redo logs", found+": loads wait at each switch until a log is free (\"log file switch\" in V$SESSION_EVENT)",
			"ALTER DATABASE ADD LOGFILE SIZE 4G (four times), ALTER SYSTEM SWITCH LOGFILE, "+
				"then ALTER DATABASE DROP LOGFILE GROUP … for the small ones")
		return
	}
	x.ok("redo logs", found)
}

// undo compares the room for undo with the transactions that are open at a time. Inserts need far less of it than their
// rows, as an insert is undone by its row's address.
func (x *examination) undo(rows [][]string) {
	size, open := number(rows[0][0]), x.workers()*x.intent.BatchBytes
	found := fmt.Sprintf("the undo tablespace may grow to %s", sized(size))
	switch {
	case size == 0:
		x.add("undo", loader.GradeUnknown, "no data file of the undo tablespace is listed", "")
	case open > size:
		x.warn("undo", fmt.Sprintf("%s, and batches of %s are open at a time (ORA-30036)", found, sized(open)),
			"ALTER TABLESPACE … ADD DATAFILE SIZE 4G AUTOEXTEND ON; or --batch-bytes lower")
	default:
		x.ok("undo", found)
	}
}

// writeArea looks at the memory of Fast Ingest.
func (x *examination) writeArea(rows [][]string) {
	if len(rows) == 0 || number(rows[0][0]) == 0 {
		x.ok("fast ingest", "its memory is taken from the large pool with the first row")
		return
	}
	total, free := number(rows[0][0]), number(rows[0][1])
	found := fmt.Sprintf("%s of %s are free, %s writes are not on disk yet", sized(free), sized(total), rows[0][2])
	if free < total/10 {
		x.warn("fast ingest", found+": inserts wait until it is written",
			"EXEC DBMS_MEMOPTIMIZE_ADMIN.WRITES_FLUSH; or a larger MEMOPTIMIZE_WRITE_AREA_SIZE (LARGE_POOL_SIZE before 26ai)")
		return
	}
	x.ok("fast ingest", found)
}
