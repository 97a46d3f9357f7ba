package mysql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// doctor looks at the host of the control connections for one push.
type doctor struct {
	*opened
	intent   loader.Intent
	conn     sqlload.SQL
	of       *sqlload.TableCheck // the tables
	vars     map[string]string   // as they hold for a loading session: with those of --set
	account  string              // quoted, as GRANT wants it
	grants   grants
	findings []loader.Finding
}

// CheckServer implements loader.Checker. What Open has read of the variables is not read again.
func (l *opened) CheckServer(ctx context.Context, i loader.Intent) ([]loader.Finding, error) {
	c, err := l.control.Conn(ctx)
	if err != nil {
		return nil, failed("examine", err)
	}
	defer func() { _ = c.Close() }()
	d := &doctor{opened: l, intent: i, conn: sqlload.SQL{Conn: c}, vars: maps.Clone(l.server.vars)}
	for _, s := range l.target.Settings {
		d.vars[strings.ToLower(s.Name)] = s.Value
	}
	err = d.examine(ctx)
	return d.findings, failed("examine", err)
}

func (d *doctor) examine(ctx context.Context) (err error) {
	if err := d.whoami(ctx); err != nil {
		return err
	}
	if err := d.ask(ctx, d.writable()); err != nil {
		return err
	}
	if err := d.connections(ctx); err != nil {
		return err
	}
	d.of, err = d.Check(ctx, d.conn, d.intent)
	d.findings = append(d.findings, d.of.Findings...)
	if err != nil {
		return err
	}
	return d.ask(ctx, slices.Concat(d.table(), d.settings()))
}

func (d *doctor) ask(ctx context.Context, checks []sqlload.Check) error {
	found, err := d.Ask(ctx, d.conn, checks, func(err error) string {
		if d.server.flavour == tiDB && is(err, accessDenied...) {
			return "GRANT CONFIG ON *.* TO " + d.account + " shows txn-total-size-limit"
		}
		return ""
	})
	d.findings = append(d.findings, found...)
	return err
}

func (d *doctor) add(check string, f loader.Finding) {
	f.Check = check
	d.findings = append(d.findings, f)
}

// unknown adds the finding of a question without an answer. An error says that there is nobody left to ask.
func (d *doctor) unknown(ctx context.Context, check string, err error) error {
	d.add(check, loader.Finding{Grade: loader.GradeUnknown, Found: "the server does not say: " + err.Error()})
	if lost := d.conn.PingContext(ctx); lost != nil {
		return errors.Join(err, lost)
	}
	return nil
}

// on reports whether a variable is switched on, in any of the ways that servers and people write it.
func (d *doctor) on(name string) bool {
	value := strings.ToUpper(d.vars[name])
	return value == "ON" || value == "1" || value == "TRUE"
}

// number is a variable's, 0 where there is none. The largest values of some do not fit an int64: they bound nothing.
func (d *doctor) number(name string) int64 {
	n, err := strconv.ParseInt(d.vars[name], 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return n
}

func (d *doctor) aurora() bool { _, is := d.vars["aurora_version"]; return is }

// change is how a variable of the whole server is changed.
func (d *doctor) change(name string, value int64) string {
	if d.aurora() {
		return fmt.Sprintf("set %s to %d in the parameter group", name, value)
	}
	return fmt.Sprintf("SET GLOBAL %s = %d", name, value)
}

// whoami reads the account and its privileges.
func (d *doctor) whoami(ctx context.Context) (err error) {
	var lines [][]string
	if d.account, err = account(ctx, d.conn); err == nil {
		lines, err = sqlload.Rows(ctx, d.conn, "SHOW GRANTS")
	}
	if err != nil {
		err = d.unknown(ctx, "privileges", err)
	}
	d.grants = parseGrants(firsts(lines))
	return err
}

// writable is about what keeps everybody, or this account, from writing, or from writing exactly once.
func (d *doctor) writable() []sqlload.Check {
	return []sqlload.Check{
		{Name: "server", Judge: d.product},
		{Name: "delivery", Judge: func([]string) (none loader.Finding) {
			fix := "ALTER TABLE " + d.name.quoted() + " ENGINE = InnoDB"
			if d.server.flavour == tiDB {
				fix = "--method " + insert
			}
			if d.caps.Reason == "" {
				return none
			}
			return sqlload.Warn("a push is at least once here: "+d.caps.Reason, fix)
		}},
		{Name: "local_infile", Judge: func([]string) (none loader.Finding) {
			switch f := d.server.flavour; {
			case d.method.Name != loadData || f == tiDB || f == singleStore:
				return none
			case d.server.infileOff():
				return sqlload.Fail("OFF, so the server refuses LOAD DATA LOCAL", localInfileHint)
			}
			return sqlload.OK("ON: LOAD DATA LOCAL is allowed")
		}},
	}
}

func (d *doctor) product([]string) loader.Finding {
	found := fmt.Sprintf("%s %s at %s", d.server.flavour, d.server.version, d.home.address)
	const fix = "name the primary in the target, or SET GLOBAL %s = OFF"
	for _, name := range []string{
		"super_read_only", "innodb_read_only", "tidb_super_read_only", "tidb_restricted_read_only",
	} {
		if d.on(name) {
			return sqlload.Fail(found+" takes no rows: "+name+" is ON; is it a replica?", fmt.Sprintf(fix, name))
		}
	}
	switch value := strings.ToUpper(d.vars["read_only"]); { // MariaDB 12 has more values than two
	case value == "" || value == "OFF" || value == "0" || d.exempt():
		return sqlload.OK(found)
	case !d.grants.known():
		return loader.Finding{
			Grade: loader.GradeUnknown,
			Found: found + ": read_only is " + value + ", and whether this account is exempt is not to be seen",
		}
	default:
		return sqlload.Fail(found+" takes no rows from this account: read_only is "+value+"; is it a replica?",
			fmt.Sprintf(fix, "read_only"))
	}
}

// exempt reports whether this account may write in spite of read_only. In MariaDB SUPER does no more from 10.11 on.
func (d *doctor) exempt() bool {
	enough := []string{"CONNECTION_ADMIN", "READ_ONLY ADMIN", "READ ONLY ADMIN"}
	if d.server.flavour != mariaDB || d.server.before(10, 11) {
		enough = append(enough, "SUPER")
	}
	return slices.ContainsFunc(enough, func(p string) bool { return d.grants.hold(p, tableName{}) })
}

// connections compares what is free with what the run opens: a connection for each worker, in turn on each host, and
// those of the control pool on the first. Too few stop no push: those that get none try again, and the others load
// meanwhile.
func (d *doctor) connections(ctx context.Context) error {
	const name = "connection limit"
	sessions := max(d.intent.Workers, 1)
	if d.method.Caps.Staged {
		sessions = 0 // they go to the store
	}
	hosts := len(d.endpoints)
	need := int64((sessions+hosts-1)/hosts + controlConns)
	// A session's max_user_connections is the account's own limit, where it has one.
	most, own := d.number("max_connections"), d.number("max_user_connections")
	free, says, fix := most, "", ""
	if most > 0 {
		open, err := sqlload.Rows(ctx, d.conn, "SHOW GLOBAL STATUS LIKE 'Threads_connected'")
		if err != nil {
			return d.unknown(ctx, name, err)
		}
		says = fmt.Sprintf("max_connections %d, and the server does not tell how many are in use", most)
		if len(open) > 0 {
			n, _ := strconv.ParseInt(open[0][1], 10, 64)
			n = max(n-1, 0) // this one
			free, says = most-n, fmt.Sprintf("max_connections %d, %d in use", most, n)
		}
		fix = d.change("max_connections", most-free+need)
	}
	if own > 0 {
		// Everybody sees their own. SHOW is asked for the reason that atWork gives.
		others := int64(-1) // without this one
		err := d.conn.Query(ctx, "SHOW PROCESSLIST", func(row [][]byte) error {
			if strings.HasPrefix(d.account, literal(string(row[1]))+"@") {
				others++
			}
			return nil
		})
		if err != nil {
			return d.unknown(ctx, name, err)
		}
		if left := own - others; left < free || most <= 0 {
			free, says = left, fmt.Sprintf("this account has max_user_connections %d, %d in use", own, others)
			fix = fmt.Sprintf("ALTER USER %s WITH MAX_USER_CONNECTIONS %d", d.account, need+others)
		}
	}
	text := fmt.Sprintf("%d free (%s), and the run opens %d: %d workers and up to %d for everything else",
		max(free, 0), says, need, need-controlConns, controlConns)
	if fewer := (free - controlConns) * int64(hosts); fewer > 0 && sessions > 0 {
		fix += fmt.Sprintf(", or --workers %d", fewer)
	}
	switch {
	case most <= 0 && own <= 0:
		d.add(name, sqlload.OK(fmt.Sprintf("none is set; the run opens %d", need)))
	case free >= need:
		d.add(name, sqlload.OK(text))
	default:
		d.add(name, sqlload.Warn(text+": the others wait, and try again", fix))
	}
	return nil
}
