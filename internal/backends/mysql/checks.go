package mysql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// doctor checks the host of the control connections for one push.
type doctor struct {
	*opened
	intent   loader.Intent
	conn     sqlload.Conn
	vars     map[string]string // of a loading session: with those of --set
	account  string            // quoted for GRANT
	grants   grants
	tables   *sqlload.TableCheck
	findings []loader.Finding
}

// CheckServer implements loader.Checker. It takes the variables that Open has read.
func (l *opened) CheckServer(ctx context.Context, i loader.Intent) ([]loader.Finding, error) {
	c, err := l.connect(ctx)
	if err != nil {
		return nil, failed("check the server", err)
	}
	defer func() { _ = c.Close() }()
	d := &doctor{opened: l, intent: i, conn: c, vars: maps.Clone(l.server.vars)}
	loader.ApplySettings(d.vars, l.target.Settings)
	err = d.run(ctx)
	return d.findings, failed("check the server", err)
}

func (d *doctor) run(ctx context.Context) (err error) {
	if d.account, err = account(ctx, d.conn); err != nil {
		return err
	}
	err = d.ask(ctx,
		sqlload.Check{Name: "privileges", Ask: "SHOW GRANTS", Judge: func(lines []string) (none loader.Finding) {
			d.grants = parseGrants(lines) // for checkPrivileges
			return none
		}},
		sqlload.Check{Name: "server", Judge: d.product},
		sqlload.Check{Name: "connection limit", Ask: "SHOW GLOBAL STATUS LIKE 'Threads_connected'", Judge: d.connections},
	)
	if err != nil {
		return err
	}
	d.checkMethod()
	d.tables, err = d.Check(ctx, d.conn, d.intent)
	d.findings = append(d.findings, d.tables.Findings...)
	if err != nil {
		return err
	}
	d.checkKey()
	d.checkPrivileges()
	d.checkSizes()
	if f := d.server.flavour; f == mySQL || f == mariaDB { // the others show these variables for compatibility only
		d.checkTransaction()
		d.checkDurability()
	}
	return d.ask(ctx, d.tableChecks()...)
}

// ask adds the findings of questions to the server.
func (d *doctor) ask(ctx context.Context, checks ...sqlload.Check) error {
	found, err := d.Ask(ctx, d.conn, d.intent, checks, func(error) string { return "" })
	d.findings = append(d.findings, found...)
	return err
}

// note adds the finding of a check.
func (d *doctor) note(check string, f loader.Finding) {
	f.Check = check
	d.findings = append(d.findings, f)
}

func (d *doctor) warn(check, fix, format string, values ...any) {
	d.note(check, sqlload.Warn(fmt.Sprintf(format, values...), fix))
}

// on reports whether a variable is switched on. MariaDB 12 has more values of read_only than two.
func (d *doctor) on(name string) bool {
	return !slices.Contains([]string{"", "OFF", "0", "FALSE"}, strings.ToUpper(d.vars[name]))
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

// change says how to set a variable of the whole server.
func (d *doctor) change(name string, value int64) string {
	if d.aurora() {
		return fmt.Sprintf("set %s to %d in the parameter group", name, value)
	}
	return fmt.Sprintf("SET GLOBAL %s = %d", name, value)
}

// checkMethod finds what keeps the method from loading, or from loading exactly once.
func (d *doctor) checkMethod() {
	if d.caps.Reason != "" {
		fix := "ALTER TABLE " + d.name.quoted() + " ENGINE = InnoDB"
		if d.server.flavour == tiDB || d.server.flavour == oceanBase {
			fix = "--method " + methodInsert
		}
		d.warn("delivery", fix, "a push is at least once here: %s", d.caps.Reason)
	}
	if d.method.Name == methodLoadData && d.server.infileOff() {
		d.note("local_infile", sqlload.Fail("OFF, so the server refuses LOAD DATA LOCAL", localInfileHint))
	}
}

// product names the server, and what keeps everybody, or this account, from writing.
func (d *doctor) product([]string) loader.Finding {
	found := fmt.Sprintf("%s %s at %s", d.server.flavour, d.server.version, d.home.config.Addr)
	for _, name := range []string{
		"super_read_only", "innodb_read_only", "tidb_super_read_only", "tidb_restricted_read_only", "read_only",
	} {
		if !d.on(name) || name == "read_only" && d.exempt() {
			continue
		}
		f := sqlload.Fail(fmt.Sprintf("%s takes no rows: %s is %s; is it a replica?", found, name, d.vars[name]),
			"name the primary in the target, or SET GLOBAL "+name+" = OFF")
		if name == "read_only" && !d.grants.known() { // the account may be exempt
			f.Grade = loader.GradeUnknown
		}
		return f
	}
	for _, name := range []string{"transaction_read_only", "tx_read_only"} { // which bind every account
		if f := d.server.flavour; d.on(name) && f != tiDB && f != singleStore { // they only show them
			found += fmt.Sprintf(" takes no rows: %s is %s, so transactions are read-only unless they say otherwise",
				name, d.vars[name])
			return sqlload.Fail(found, "--set "+name+"=0")
		}
	}
	return sqlload.OK(found)
}

// exempt reports whether this account may write in spite of read_only. In MariaDB SUPER no longer suffices from 10.11
// on.
func (d *doctor) exempt() bool {
	enough := []string{"CONNECTION_ADMIN", "READ_ONLY ADMIN", "READ ONLY ADMIN"}
	if d.server.flavour != mariaDB || d.server.before(10, 11) {
		enough = append(enough, "SUPER")
	}
	return slices.ContainsFunc(enough, func(p string) bool { return d.grants.hold(p, tableName{}) })
}

// connections compares the limits with what the run opens on a host: its share of the sessions, and the control
// connections. Too few stop no push: a refused session is retried while the others load.
func (d *doctor) connections(status []string) loader.Finding {
	sessions, hosts := max(d.intent.Workers, 1), len(d.hosts.List)
	if d.method.Caps.Staged { // whose sessions go to the store
		sessions = 0
	}
	need := int64((sessions+hosts-1)/hosts + controlConns)
	free, limit, fix := int64(math.MaxInt64), "", ""
	if most := d.number("max_connections"); most > 0 && len(status) == 2 {
		used, _ := strconv.ParseInt(status[1], 10, 64)
		used-- // this one
		free, limit = most-used, fmt.Sprintf("max_connections %d, %d in use", most, used)
		fix = d.change("max_connections", used+need)
	}
	// A session's max_user_connections is the account's own limit, where it has one.
	if own := d.number("max_user_connections"); own > 0 && own < free {
		free, limit = own, fmt.Sprintf("this account has max_user_connections %d", own)
		fix = fmt.Sprintf("ALTER USER %s WITH MAX_USER_CONNECTIONS %d", d.account, need)
	}
	found := fmt.Sprintf("%d free (%s), and the run opens %d: %d workers and up to %d for everything else",
		max(free, 0), limit, need, need-controlConns, controlConns)
	switch {
	case limit == "":
		return sqlload.OK(fmt.Sprintf("none is set; the run opens %d", need))
	case free >= need:
		return sqlload.OK(found)
	}
	if fewer := (free - controlConns) * int64(hosts); fewer > 0 && sessions > 0 {
		fix += fmt.Sprintf(", or --workers %d", fewer)
	}
	return sqlload.Warn(found+": refused sessions are retried", fix)
}
