package postgres

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// doctor looks at one server for one push.
type doctor struct {
	*opened
	intent   loader.Intent
	conn     *pgconn.PgConn
	at       endpoint
	facts    facts
	settings map[string]setting
	of       *sqlload.TableCheck // the table
}

// CheckServer implements loader.Checker. Of several hosts the first that answers stands for all.
func (l *opened) CheckServer(ctx context.Context, i loader.Intent) (findings []loader.Finding, err error) {
	err = l.somewhere(ctx, func(c *pgconn.PgConn, at endpoint) error {
		d := &doctor{opened: l, intent: i, conn: c, at: at}
		if err := d.look(ctx); err != nil {
			findings = []loader.Finding{{Check: "server", Grade: loader.GradeUnknown, Found: "the server does not say: " + err.Error(), Fix: d.monitor(err)}}
			return d.gone(ctx)
		}
		ask := func(checks []sqlload.Check) error {
			found, err := l.Ask(ctx, conn{c}, checks, d.monitor)
			findings = append(findings, found...)
			return err
		}
		if err := ask(d.session()); err != nil {
			return err
		}
		if d.of, err = l.Check(ctx, conn{c}, i); d.of != nil {
			findings = append(findings, d.of.Findings...)
		}
		if err != nil {
			return err
		}
		return ask(slices.Concat(d.creation(), d.table(), d.log()))
	})
	return findings, err
}

// gone is the error of a doctor who can ask no more, nil while there is a connection.
func (d *doctor) gone(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.conn.IsClosed() {
		return errDead()
	}
	return nil
}

// monitor is the fix of a question that the server does not answer: what monitoring views hide, pg_monitor shows.
func (d *doctor) monitor(err error) string {
	if is(err, "42501") {
		return "GRANT pg_monitor TO " + d.user()
	}
	return ""
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
func (d *doctor) look(ctx context.Context) error {
	unit := "COALESCE(unit, '')"
	if d.flavour == redshift {
		unit = "''" // it comes from a PostgreSQL of before there were units
	}
	found, err := rowsOf(ctx, d.conn, "SELECT name, setting, "+unit+", source FROM pg_settings WHERE name IN ("+sqlload.Literals(looked[:])+
		") OR name LIKE 'apg\\_%' OR name LIKE 'aurora%'")
	if err != nil {
		return err
	}
	d.settings = make(map[string]setting)
	for _, row := range found {
		d.settings[row[0]] = setting{row[1], row[2], row[3]}
	}
	if d.flavour == redshift {
		found, err = rowsOf(ctx, d.conn, "SELECT current_user, current_user, current_database(), COALESCE(current_schema(), '')")
		if err == nil {
			d.facts = facts{user: found[0][0], session: found[0][1], database: found[0][2], schema: found[0][3]}
		}
		return err
	}
	// A row of pg_stat_activity shows everybody its database and user, and only its own user the rest.
	const counted = "(SELECT count(*) FROM pg_stat_activity a WHERE a.datid IS NOT NULL AND " +
		"COALESCE(a.backend_type, 'client backend') = 'client backend'"
	// What is found out from here on is not to be ended by the timeout that was just read.
	found, err = rowsOf(ctx, d.conn, "SET statement_timeout = 0; SELECT current_user, session_user, d.datname, COALESCE(current_schema(), ''), pg_is_in_recovery(), "+
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
	d.facts = facts{
		user: row[0], session: row[1], database: row[2], schema: row[3], standby: row[4] == "t", pid: row[5], super: row[6] == "t",
		roleLimit: numbers[0], baseLimit: numbers[1], open: numbers[2], ofRole: numbers[3], ofBase: numbers[4],
	}
	return nil
}

func (d *doctor) user() string { return qualified("", d.facts.user) }

// number is a setting without a unit, 0 where there is none.
func (d *doctor) number(name string) int {
	n, _ := strconv.Atoi(d.settings[name].value)
	return n
}
