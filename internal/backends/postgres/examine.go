package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/pkg/loader"
)

var _ loader.Checker = (*opened)(nil)

// examination looks at one server for one push.
type examination struct {
	*ready
	owner    *opened
	intent   loader.Intent
	conn     *pgconn.PgConn
	at       endpoint
	facts    facts
	settings map[string]setting
	table    *relation // nil: there is none
	findings []loader.Finding
}

// CheckServer asks in a handful of round trips, which the preflight's time bounds through ctx. Of several hosts the first
// that answers stands for all.
func (l *opened) CheckServer(ctx context.Context, i loader.Intent) (findings []loader.Finding, err error) {
	name := l.target.Table
	if name == "" {
		name = i.Schema.Dataset
	}
	r := &ready{run: i.Run, asked: name, statements: statementsFor(name, i.Schema, l.method, l.options, l.flavour), contract: i.Contract}
	r.primaryKey = i.PrimaryKey || i.Contract.Dedup == loader.DedupRange
	err = l.somewhere(ctx, func(c *pgconn.PgConn, at endpoint) error {
		e := &examination{ready: r, owner: l, intent: i, conn: c, at: at}
		err := e.all(ctx)
		findings = e.findings
		return err
	})
	return findings, err
}

func (e *examination) all(ctx context.Context) error {
	if err := e.look(ctx); err != nil {
		e.unknown("server", err)
		return e.gone(ctx)
	}
	e.server()
	if e.flavour != redshift { // which shows nobody else's sessions, and pools none
		e.pooler()
		e.connections()
	}
	e.timeouts()
	for _, step := range [...]func(context.Context) error{e.target, e.claims, e.onTable, e.wal} {
		// What a step could not find out is a finding already.
		if err := step(ctx); err != nil && e.gone(ctx) != nil {
			return errors.Join(err, e.gone(ctx))
		}
	}
	return nil
}

// gone is the error of an examination that cannot go on, nil while there is a connection.
func (e *examination) gone(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.conn.IsClosed() {
		return errDead()
	}
	return nil
}

func (e *examination) add(check string, g loader.Grade, found, fix string) {
	e.findings = append(e.findings, loader.Finding{Check: check, Grade: g, Found: found, Fix: fix})
}

func (e *examination) ok(check, found string)        { e.add(check, loader.GradeOK, found, "") }
func (e *examination) warn(check, found, fix string) { e.add(check, loader.GradeWarn, found, fix) }
func (e *examination) fail(check, found, fix string) { e.add(check, loader.GradeFail, found, fix) }

// unknown is of a question that the server does not answer. What monitoring views hide, pg_monitor shows.
func (e *examination) unknown(check string, err error) {
	fix := ""
	if is(err, "42501") {
		fix = "GRANT pg_monitor TO " + e.user()
	}
	e.add(check, loader.GradeUnknown, "the server does not say: "+err.Error(), fix)
}

// refused is the finding of what Prepare would say. An end of the time or of the connection is no refusal.
func (e *examination) refused(ctx context.Context, check string, err error) {
	if e.gone(ctx) != nil {
		e.unknown(check, err)
		return
	}
	told := (*loader.Error)(nil)
	if errors.As(err, &told) && told.Err != nil {
		e.fail(check, told.Err.Error(), told.Hint)
		return
	}
	e.fail(check, err.Error(), "")
}

// facts are what the first look finds.
type facts struct {
	user, session, database string
	schema                  string // the first of search_path that exists
	standby                 bool
	pid                     string
	super                   bool
	roleLimit, baseLimit    int // connections; −1: no limit
	open, ofRole, ofBase    int // connections, this one included
}

// setting is a row of pg_settings.
type setting struct{ value, unit, source string }

// looked are the settings that a check reads. A name that the version does not know is not there.
var looked = [...]string{
	"max_connections", "superuser_reserved_connections", "reserved_connections", "rds.rds_superuser_reserved_connections",
	"transaction_read_only", "statement_timeout", "transaction_timeout", "idle_session_timeout",
	"max_wal_size", "checkpoint_timeout", "checkpoint_completion_target", "fsync", "full_page_writes", "synchronous_commit",
	"synchronous_standby_names", "archive_mode", "max_slot_wal_keep_size", "yb_default_copy_from_rows_per_transaction", "rds.extensions",
}

// look reads the settings as they hold for this session, and whose session it is.
func (e *examination) look(ctx context.Context) error {
	unit := "COALESCE(unit, '')"
	if e.flavour == redshift {
		unit = "''" // it comes from a PostgreSQL of before there were units
	}
	found, err := rowsOf(ctx, e.conn, "SELECT name, setting, "+unit+", source FROM pg_settings WHERE name IN ("+literals(looked[:])+
		") OR name LIKE 'apg\\_%' OR name LIKE 'aurora%'")
	if err != nil {
		return err
	}
	e.settings = make(map[string]setting)
	for _, row := range found {
		e.settings[row[0]] = setting{row[1], row[2], row[3]}
	}
	if e.flavour == redshift {
		found, err = rowsOf(ctx, e.conn, "SELECT current_user, current_user, current_database(), COALESCE(current_schema(), '')")
		if err == nil {
			e.facts = facts{user: found[0][0], session: found[0][1], database: found[0][2], schema: found[0][3]}
		}
		return err
	}
	// A row of pg_stat_activity shows everybody its database and user, and only its own user the rest.
	const counted = "(SELECT count(*) FROM pg_stat_activity a WHERE a.datid IS NOT NULL AND " +
		"COALESCE(a.backend_type, 'client backend') = 'client backend'"
	// What is found out from here on is not to be ended by the timeout that was just read.
	found, err = rowsOf(ctx, e.conn, "SET statement_timeout = 0; SELECT current_user, session_user, d.datname, COALESCE(current_schema(), ''), pg_is_in_recovery(), "+
		"pg_backend_pid(), r.rolsuper, r.rolconnlimit, d.datconnlimit, "+
		counted+"), "+counted+" AND a.usesysid = r.oid), "+counted+" AND a.datid = d.oid) "+
		"FROM pg_roles r, pg_database d WHERE r.rolname = session_user AND d.datname = current_database()")
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return errors.New("pg_roles does not list this user")
	}
	row, numbers := found[0], make([]int, 5)
	for i := range numbers {
		if numbers[i], err = strconv.Atoi(row[7+i]); err != nil {
			return err
		}
	}
	e.facts = facts{
		user: row[0], session: row[1], database: row[2], schema: row[3], standby: row[4] == "t", pid: row[5], super: row[6] == "t",
		roleLimit: numbers[0], baseLimit: numbers[1], open: numbers[2], ofRole: numbers[3], ofBase: numbers[4],
	}
	return nil
}

func (e *examination) user() string { return qualified("", e.facts.user) }

// number is a setting without a unit, 0 where there is none.
func (e *examination) number(name string) int {
	n, _ := strconv.Atoi(e.settings[name].value)
	return n
}

// oldest is the first major version with what the statements here are made of (identity columns in the catalog).
const oldest = 10

// extension is the first major version in which sessions that load one table add pages to it side by side (release notes
// of PostgreSQL 16, "Performance": concurrent bulk loading).
const extension = 16

// crowd is how many sessions on one table were worth it before (measured by others, 8 to 16).
const crowd = 16

func (e *examination) server() {
	found := fmt.Sprintf("%s %s at %s", e.owner.server.Product, e.owner.server.Version, e.at)
	number, _, _ := strings.Cut(e.owner.server.Version, ".")
	major, _ := strconv.Atoi(number) // 0 for a version that is not out yet, "17beta1"
	switch {
	case e.facts.standby:
		e.fail("server", found+" is a standby, which takes no rows", "name the primary in the target")
	case e.settings["transaction_read_only"].value == "on":
		e.fail("server", found+": transactions are read-only for this user (default_transaction_read_only)",
			"--set default_transaction_read_only=off")
	case e.flavour == postgreSQL && major > 0 && major < oldest:
		e.fail("server", fmt.Sprintf("%s is too old: terapush needs PostgreSQL %d", found, oldest), "upgrade the server")
	case e.flavour == postgreSQL && major > 0 && major < extension && e.sessions() > crowd:
		e.warn("server", fmt.Sprintf("%s: before version %d sessions that load one table wait for each other to extend it, so beyond %d of them little is gained; the run has %d",
			found, extension, crowd, e.sessions()), fmt.Sprintf("--workers %d, or upgrade the server", crowd))
	default:
		e.ok("server", found)
	}
}

// pooler finds what stands in between: whoever answers in the server's place hands out process numbers of its own. Whether
// it pools sessions or transactions it does not tell.
func (e *examination) pooler() {
	if given := strconv.FormatUint(uint64(e.conn.PID()), 10); given != e.facts.pid {
		e.warn("pooler", fmt.Sprintf("a connection pooler stands in front of the server (this connection was given number %s, and the server knows it as %s): "+
			"one that pools transactions hands a session's settings to others, and Resolve cannot tell whose session is whose", given, e.facts.pid),
			"name the server itself in the target, or let the pooler pool sessions (PgBouncer: pool_mode = session, default_pool_size of at least "+
				strconv.Itoa(e.sessions()+besides)+")")
	}
}

// sessions is how many connections load at the same time, on all hosts together. Of a staged method workers go to the
// store, and commits to the server.
func (e *examination) sessions() int {
	if e.owner.Caps().Staged {
		return max(e.intent.Contract.Commits, 1)
	}
	return max(e.intent.Workers, 1)
}

// besides are the connections of a run that load nothing: one holds the table, one is for everything else (somewhere).
const besides = 2

// connections compares what is free with what the run opens: its sessions, and those besides.
// Loading sessions go round the hosts, each of which has its own max_connections. Too few stop no push: those that get none
// try again, and the others load meanwhile.
func (e *examination) connections() {
	hosts := len(e.owner.hosts)
	need := (e.sessions()+hosts-1)/hosts + besides
	most, others := e.number("max_connections"), e.facts.open-1
	reserved := e.number("superuser_reserved_connections") + e.number("reserved_connections") + e.number("rds.rds_superuser_reserved_connections")
	if e.facts.super {
		reserved = 0
	}
	limits := []limit{{
		free: most - reserved - others,
		says: fmt.Sprintf("max_connections %d, %d reserved, %d in use", most, reserved, others),
		fix:  e.changed("max_connections", strconv.Itoa(reserved+others+need), ", and restart the server"),
	}}
	if n := e.facts.roleLimit; n >= 0 && !e.facts.super {
		limits = append(limits, limit{
			free: n - e.facts.ofRole + 1, says: fmt.Sprintf("role %s has CONNECTION LIMIT %d, %d in use", e.facts.session, n, e.facts.ofRole-1),
			fix: fmt.Sprintf("ALTER ROLE %s CONNECTION LIMIT %d", qualified("", e.facts.session), need+e.facts.ofRole-1),
		})
	}
	if n := e.facts.baseLimit; n >= 0 && !e.facts.super {
		limits = append(limits, limit{
			free: n - e.facts.ofBase + 1, says: fmt.Sprintf("database %s has CONNECTION LIMIT %d, %d in use", e.facts.database, n, e.facts.ofBase-1),
			fix: fmt.Sprintf("ALTER DATABASE %s CONNECTION LIMIT %d", qualified("", e.facts.database), need+e.facts.ofBase-1),
		})
	}
	tight := limits[0]
	for _, l := range limits {
		if l.free < tight.free {
			tight = l
		}
	}
	text := fmt.Sprintf("%d free (%s), and the run opens %d", max(tight.free, 0), tight.says, need)
	if tight.free >= need {
		e.ok("connection limit", text)
		return
	}
	fix := tight.fix
	if fewer := (tight.free - besides) * hosts; fewer > 0 && !e.owner.Caps().Staged {
		fix += fmt.Sprintf(", or --workers %d", fewer)
	}
	e.warn("connection limit", text+": the others wait, and try again", fix)
}

// limit is a bound on connections.
type limit struct {
	free      int
	says, fix string
}
