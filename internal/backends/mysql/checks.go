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

var _ loader.Examiner = (*opened)(nil)

// check is one question of the doctor's.
type check struct {
	name  string
	query string // "" where the server's variables, which Open has read, say enough
	// judge gives the findings, without their names. Of what the server has nothing of there are none.
	judge func(found [][]string) []loader.Finding
	fix   string // lets this account ask
}

func ok(found string) []loader.Finding {
	return []loader.Finding{{Grade: loader.GradeOK, Found: found}}
}

func warn(found, fix string) []loader.Finding {
	return []loader.Finding{{Grade: loader.GradeWarn, Found: found, Fix: fix}}
}

func fail(found, fix string) []loader.Finding {
	return []loader.Finding{{Grade: loader.GradeFail, Found: found, Fix: fix}}
}

func unsure(found, fix string) []loader.Finding {
	return []loader.Finding{{Grade: loader.GradeUnknown, Found: found, Fix: fix}}
}

// checker looks at the host of the control connections for one push.
type checker struct {
	*opened
	of      *sqlload.Checked // the tables
	intent  loader.Intent
	vars    map[string]string // as they hold for a loading session: with those of --set
	account string            // quoted, as GRANT wants it
	grants  grants
	// Connections that are open: of all, −1 where the server does not tell, and of this account.
	connected, own int64
}

// Examine asks in a dozen short statements over one connection.
func (l *opened) Examine(ctx context.Context, i loader.Intent) (all []loader.Finding, err error) {
	conn, err := l.control.Conn(ctx)
	if err != nil {
		return nil, withHint("examine", err)
	}
	defer func() { _ = conn.Close() }()
	c := sqlload.SQL{Conn: conn}
	k := &checker{opened: l, intent: i, vars: maps.Clone(l.server.vars), account: accountIn(nil), connected: -1}
	for _, s := range l.target.Settings {
		k.vars[strings.ToLower(s.Name)] = s.Value
	}
	var lost error
	ask := func(checks []check) {
		for _, one := range checks {
			if lost == nil {
				all, lost = one.ask(ctx, c, all)
			}
		}
	}
	ask(k.ofServer())
	if lost == nil {
		k.of, lost = l.Check(ctx, c, i)
		all = append(all, k.of.Findings...)
		lost = gone(ctx, c, lost)
	}
	if lost == nil {
		ask(k.ofTable())
		ask(k.ofSettings())
	}
	return all, withHint("examine", lost)
}

// ask adds the findings to those before. What could not be found out is one as well, unless there is nobody left to ask.
func (one check) ask(ctx context.Context, c sqlload.SQL, all []loader.Finding) ([]loader.Finding, error) {
	var found [][]string
	var err error
	if one.query != "" {
		found, err = sqlload.Rows(ctx, c, one.query)
	}
	if err != nil {
		f := loader.Finding{Check: one.name, Grade: loader.GradeUnknown, Found: "the server does not say: " + err.Error(), Fix: one.fix}
		return append(all, f), gone(ctx, c, err)
	}
	for _, f := range one.judge(found) {
		f.Check = one.name
		all = append(all, f)
	}
	return all, nil
}

// gone is nil where err has left the connection alive.
func gone(ctx context.Context, c sqlload.SQL, err error) error {
	if err == nil {
		return nil
	}
	if lost := c.PingContext(ctx); lost != nil {
		return errors.Join(err, lost)
	}
	return nil
}

// on reports whether a variable is switched on, in any of the ways that servers and people write it.
func (k *checker) on(name string) bool {
	value := strings.ToUpper(k.vars[name])
	return value == "ON" || value == "1" || value == "TRUE"
}

// number is a variable's, 0 where there is none. The largest values of some do not fit an int64: they bound nothing.
func (k *checker) number(name string) int64 {
	n, err := strconv.ParseInt(k.vars[name], 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return n
}

func (k *checker) aurora() bool { _, is := k.vars["aurora_version"]; return is }

// change is how a variable of the whole server is changed.
func (k *checker) change(name string, value int64) string {
	if k.aurora() {
		return fmt.Sprintf("set %s to %d in the parameter group", name, value)
	}
	return fmt.Sprintf("SET GLOBAL %s = %d", name, value)
}

// ofServer asks who this is and what keeps everybody, or this account, from writing.
func (k *checker) ofServer() []check {
	checks := []check{
		{name: "privileges", query: currentUser, judge: func(found [][]string) []loader.Finding {
			k.account = accountIn(found)
			return nil
		}},
		{name: "privileges", query: "SHOW GRANTS", judge: func(found [][]string) []loader.Finding {
			k.grants = parseGrants(firsts(found))
			return nil
		}},
		{name: "server", judge: k.writable},
		{name: "delivery", judge: k.delivery},
		{name: "local_infile", judge: k.infile},
	}
	if k.number("max_connections") > 0 {
		checks = append(checks, check{
			name: "connection limit", query: "SHOW GLOBAL STATUS LIKE 'Threads_connected'",
			judge: func(found [][]string) []loader.Finding {
				if len(found) > 0 {
					k.connected, _ = strconv.ParseInt(found[0][1], 10, 64)
				}
				return nil
			},
		})
	}
	if k.number("max_user_connections") > 0 {
		// Everybody sees their own. SHOW is asked for the reason that atWork gives.
		checks = append(checks, check{name: "connection limit", query: "SHOW PROCESSLIST", judge: func(found [][]string) []loader.Finding {
			for _, row := range found {
				if literal(row[1]) == k.account[:strings.LastIndexByte(k.account, '@')] {
					k.own++
				}
			}
			return nil
		}})
	}
	return append(checks, check{name: "connection limit", judge: k.connections})
}

func (k *checker) writable([][]string) []loader.Finding {
	found := fmt.Sprintf("%s %s at %s", k.server.flavour, k.server.version, k.home.address)
	for _, name := range []string{"super_read_only", "innodb_read_only", "tidb_super_read_only", "tidb_restricted_read_only"} {
		if k.on(name) {
			return fail(found+" takes no rows: "+name+" is ON; is it a replica?", "name the primary in the target, or SET GLOBAL "+name+" = OFF")
		}
	}
	switch value := strings.ToUpper(k.vars["read_only"]); { // MariaDB 12 has more values than two
	case value == "" || value == "OFF" || value == "0" || k.exempt():
		return ok(found)
	case !k.grants.known():
		return unsure(found+": read_only is "+value+", and whether this account is exempt is not to be seen", "")
	default:
		return fail(found+" takes no rows from this account: read_only is "+value+"; is it a replica?",
			"name the primary in the target, or SET GLOBAL read_only = OFF")
	}
}

// exempt reports whether this account may write in spite of read_only. In MariaDB SUPER does no more from 10.11 on.
func (k *checker) exempt() bool {
	enough := []string{"CONNECTION_ADMIN", "READ_ONLY ADMIN", "READ ONLY ADMIN"}
	if k.server.flavour != mariaDB || k.server.before(10, 11) {
		enough = append(enough, "SUPER")
	}
	return slices.ContainsFunc(enough, func(p string) bool { return k.grants.hold(p, tableName{}) })
}

// delivery says what would make a push exactly once that is not.
func (k *checker) delivery([][]string) []loader.Finding {
	fix := fmt.Sprintf("ALTER TABLE %s ENGINE = InnoDB", k.name.quoted())
	if k.server.flavour == tiDB {
		fix = "--method " + insert
	}
	if k.caps.Reason == "" {
		return nil
	}
	return warn("a push is at least once here: "+k.caps.Reason, fix)
}

func (k *checker) infile([][]string) []loader.Finding {
	switch f := k.server.flavour; {
	case k.method.Name != loadData || f == tiDB || f == singleStore:
		return nil
	case k.server.infileOff():
		return fail("OFF, so the server refuses LOAD DATA LOCAL", localInfileHint)
	}
	return ok("ON: LOAD DATA LOCAL is allowed")
}

// connections compares what is free with what the run opens: a connection for each worker, in turn on each host, and
// those of the control pool on the first. Too few stop no push: those that get none try again, and the others load
// meanwhile.
func (k *checker) connections([][]string) []loader.Finding {
	sessions := max(k.intent.Workers, 1)
	if k.method.Caps.Staged {
		sessions = 0 // they go to the store
	}
	hosts := len(k.endpoints)
	need := int64((sessions+hosts-1)/hosts + controlConns)
	most, own := k.number("max_connections"), k.number("max_user_connections")
	if most <= 0 && own <= 0 {
		return ok(fmt.Sprintf("none is set; the run opens %d", need))
	}
	free, says, fix := most, "", ""
	if most > 0 {
		others := max(k.connected-1, 0) // without this one
		free, says = most-others, fmt.Sprintf("max_connections %d, %d in use", most, others)
		fix = k.change("max_connections", others+need)
	}
	if most > 0 && k.connected < 0 {
		says = fmt.Sprintf("max_connections %d, and the server does not tell how many are in use", most)
	}
	if left := own - k.own + 1; own > 0 && (left < free || most <= 0) { // the session's value is the account's own limit, where it has one
		free, says = left, fmt.Sprintf("this account has max_user_connections %d, %d in use", own, k.own-1)
		fix = fmt.Sprintf("ALTER USER %s WITH MAX_USER_CONNECTIONS %d", k.account, need+k.own-1)
	}
	text := fmt.Sprintf("%d free (%s), and the run opens %d: %d workers and up to %d for everything else",
		max(free, 0), says, need, need-controlConns, controlConns)
	if free >= need {
		return ok(text)
	}
	if fewer := (free - controlConns) * int64(hosts); fewer > 0 && sessions > 0 {
		fix += fmt.Sprintf(", or --workers %d", fewer)
	}
	return warn(text+": the others wait, and try again", fix)
}
