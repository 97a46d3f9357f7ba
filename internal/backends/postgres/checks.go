package postgres

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// doctor checks one server for one push.
type doctor struct {
	*opened
	intent   loader.Intent
	pid      uint32 // of the connection, as the client knows it
	endpoint endpoint
	facts    facts
	settings map[string]setting
	aurora   bool
	table    *sqlload.TableCheck
}

// CheckServer implements loader.Checker. It checks the first host that answers.
func (l *opened) CheckServer(ctx context.Context, i loader.Intent) (findings []loader.Finding, err error) {
	err = l.somewhere(ctx, func(c *pgconn.PgConn, e endpoint) error {
		d := &doctor{opened: l, intent: i, pid: c.PID(), endpoint: e}
		ask := func(checks []sqlload.Check) error {
			answers, err := l.Ask(ctx, conn{PgConn: c}, i, checks, d.monitor)
			findings = append(findings, answers...)
			return err
		}
		if err := ask(d.factChecks()); err != nil || d.facts.user == "" {
			return err
		}
		if err := ask(d.sessionChecks()); err != nil {
			return err
		}
		d.table, err = l.Check(ctx, conn{PgConn: c}, i)
		findings = append(findings, d.table.Findings...)
		if err != nil {
			return err
		}
		return ask(slices.Concat(d.createChecks(), d.publicationChecks(), d.tableChecks(), d.logChecks()))
	})
	return findings, err
}

// monitor is the fix of an unanswered question: pg_monitor may read all monitoring views.
func (d *doctor) monitor(err error) string {
	if is(err, "42501") {
		return "GRANT pg_monitor TO " + d.user()
	}
	return ""
}

// facts describe session, user and connections.
type facts struct {
	user, sessionUser, database string
	schema                      string // the first of search_path that exists
	standby, superuser          bool
	pid                         string // of the connection, as the server knows it
	roleLimit, databaseLimit    int    // of connections; -1: none
	total, ofRole, ofDatabase   int    // connections, without this one
}

// setting is a row of pg_settings. The amount is in bytes or nanoseconds where the setting has a unit.
type setting struct {
	text   string
	amount int64
	source string
}

// settingUnits are the units of pg_settings.
var settingUnits = map[string]int64{
	"": 1, "B": 1, "kB": 1 << 10, "8kB": 8 << 10, "MB": 1 << 20, "16MB": 16 << 20, "ms": 1e6, "s": 1e9, "min": 60e9,
}

// settingNames are the settings that checks read, of all versions.
var settingNames = [...]string{
	"max_connections", "superuser_reserved_connections", "reserved_connections", "rds.rds_superuser_reserved_connections",
	"transaction_read_only", "fsync", "full_page_writes", "synchronous_commit",
	"synchronous_standby_names", "archive_mode", "max_slot_wal_keep_size", "rds.extensions", "server_version_num",
}

// factChecks read what all other checks depend on. Settings are read as they hold for this session; the timeout among
// them must not end the checks.
func (d *doctor) factChecks() []sqlload.Check {
	unit, reset := "COALESCE(unit, '')", "SET statement_timeout = 0; "
	if d.flavour == redshift { // a fork of PostgreSQL 8.0, which has no column for the unit
		unit, reset = "'ms'", ""
	}
	// pg_stat_activity shows everybody the database and user of all sessions, and the rest of one's own only.
	const count = "(SELECT count(*) FROM pg_stat_activity a WHERE a.datid IS NOT NULL AND " +
		"COALESCE(a.backend_type, 'client backend') = 'client backend'"
	facts := "SELECT current_user, session_user, d.datname, COALESCE(current_schema(), ''), pg_is_in_recovery(), " +
		"pg_backend_pid(), r.rolsuper, r.rolconnlimit, d.datconnlimit, " +
		count + "), " + count + " AND a.usesysid = r.oid), " + count + " AND a.datid = d.oid) " +
		"FROM pg_roles r, pg_database d WHERE r.rolname = session_user AND d.datname = current_database()"
	if d.flavour == redshift {
		facts = "SELECT current_user, current_user, current_database(), COALESCE(current_schema(), '')"
	}
	return []sqlload.Check{
		{
			Name: "server", Judge: d.readSettings,
			Ask: "SELECT name, setting, " + unit + ", source FROM pg_settings WHERE name IN (" + sqlload.Literals(settingNames[:]) +
				") OR name LIKE 'apg\\_%' OR name LIKE 'aurora%'",
		},
		{Name: "server", Ask: reset + facts, Judge: d.readFacts},
	}
}

func (d *doctor) readSettings(values []string) (none loader.Finding) {
	d.settings = make(map[string]setting)
	for row := range slices.Chunk(values, 4) {
		n, _ := strconv.ParseInt(row[1], 10, 64)
		d.settings[row[0]] = setting{text: row[1], amount: n * settingUnits[row[2]], source: row[3]}
		d.aurora = d.aurora || strings.HasPrefix(row[0], "apg_") || strings.HasPrefix(row[0], "aurora")
	}
	return none
}

func (d *doctor) readFacts(row []string) (f loader.Finding) {
	switch len(row) {
	case 4: // Redshift
		d.facts = facts{user: row[0], sessionUser: row[1], database: row[2], schema: row[3]}
	case 12:
		number := func(i int) int { n, _ := strconv.Atoi(row[i]); return n }
		d.facts = facts{
			user: row[0], sessionUser: row[1], database: row[2], schema: row[3],
			standby: row[4] == "t", pid: row[5], superuser: row[6] == "t", roleLimit: number(7), databaseLimit: number(8),
			total: number(9) - 1, ofRole: number(10) - 1, ofDatabase: number(11) - 1,
		}
	default:
		return loader.Finding{Grade: loader.GradeUnknown, Found: "pg_roles does not list this user"}
	}
	return f
}

// user returns the user as GRANT takes it.
func (d *doctor) user() string { return sqlload.Qualified("", d.facts.user) }

func (d *doctor) text(name string) string  { return d.settings[name].text }
func (d *doctor) amount(name string) int64 { return d.settings[name].amount }
