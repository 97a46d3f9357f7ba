package oracle

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// examineTime bounds all of an examination: its questions are a dozen small ones on one connection.
const examineTime = 8 * time.Second

// examination is one call of CheckServer on its connection.
type examination struct {
	*opened
	link     *link
	intent   loader.Intent
	of       *sqlload.Checked // the table
	user     string           // who has logged on
	owner    string           // of the table, there or not
	rights   []string         // system privileges of the session
	findings []loader.Finding
}

// check is a question to one view. What takes a privilege to see is unknown without it; most are views of the instance.
type check struct {
	name       string
	what, view string // what cannot be read where the view is hidden, and what to grant then; "" is no finding
	query      string
	judge      func(rows [][]string)
	skip       bool
}

// CheckServer implements loader.Checker: it asks for the limits that a push meets on this server, and for rights.
func (l *opened) CheckServer(ctx context.Context, i loader.Intent) ([]loader.Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, examineTime)
	defer cancel()
	x := &examination{opened: l, intent: i}
	err := l.somewhere(ctx, func(k *link) error {
		x.link = k
		return x.all(ctx)
	})
	return x.findings, failed("examine the server", err)
}

func (x *examination) all(ctx context.Context) error {
	who, err := sqlload.Rows(ctx, x.link, "SELECT SYS_CONTEXT('USERENV', 'SESSION_USER'), "+ownerOf("")+" FROM DUAL")
	if err != nil || len(who) != 1 {
		return err
	}
	x.user, x.owner = who[0][0], who[0][1]
	x.version()
	x.of, err = x.Check(ctx, x.link, x.intent)
	x.findings = append(x.findings, x.of.Findings...)
	if err != nil {
		return err
	}
	schema, _ := unquoted(x.of.Table)
	x.owner = cmp.Or(schema, x.owner)
	for _, c := range slices.Concat(x.onTable(), x.onSessions(), x.onStorage()) {
		if c.skip {
			continue
		}
		rows, err := sqlload.Rows(ctx, x.link, c.query)
		switch {
		case err == nil:
			c.judge(rows)
		case x.link.dead || ctx.Err() != nil:
			return err
		case c.view != "":
			x.add(c.name, loader.GradeUnknown, c.what+" cannot be read: "+err.Error(),
				fmt.Sprintf("GRANT SELECT ON %s TO %s", c.view, x.user))
		}
	}
	x.commits()
	x.characters()
	return nil
}

func (x *examination) add(check string, g loader.Grade, found, fix string) {
	x.findings = append(x.findings, loader.Finding{Check: check, Grade: g, Found: found, Fix: fix})
}

func (x *examination) ok(check, found string)        { x.add(check, loader.GradeOK, found, "") }
func (x *examination) warn(check, found, fix string) { x.add(check, loader.GradeWarn, found, fix) }

// managed reports whether somebody else runs the instance, so that its files are not the user's to change.
func (x *examination) managed() bool { return x.server.Settings[settingCloud] != "" }

// workers is how many sessions load at a time. It is 1 where the method locks the table.
func (x *examination) workers() int64 {
	if most := x.Caps().MaxInFlight; most > 0 {
		return int64(min(x.intent.Workers, most))
	}
	return int64(x.intent.Workers)
}

func (x *examination) version() {
	s := x.server
	found := fmt.Sprintf("%s %s at %s, by %s", s.Product, s.Version, s.Endpoint, s.Settings["driver"])
	if x.managed() {
		found += "; a managed service (" + s.Settings[settingCloud] + "), whose files and logs are the provider's"
	}
	x.ok("version", found)
}

// onTable is what decides whether rows can be put into the table, and a table be made. Everybody may ask for it.
func (x *examination) onTable() []check {
	rights := check{name: "privileges", what: "the rights on the table", view: "ALL_TAB_PRIVS", judge: x.granted, skip: true}
	if r := x.of.Relation; r != nil && r.Schema != x.user {
		rights.skip = false
		rights.query = "SELECT p.privilege FROM all_tab_privs p WHERE p.table_schema = " + literal(r.Schema) +
			" AND p.table_name = " + literal(r.Name)
	}
	return []check{
		{
			name: "privileges", what: "the session's privileges", view: "SESSION_PRIVS",
			query: "SELECT p.privilege FROM session_privs p", // some two hundred at the most
			judge: x.privileges,
		},
		rights,
		{
			// Of another's table it is the owner's that counts, which nobody else may see.
			name: "quota", what: "the quota on the default tablespace", view: "USER_TS_QUOTAS", skip: x.owner != x.user,
			query: "SELECT u.default_tablespace, " +
				"(SELECT TO_CHAR(MAX(q.bytes)) FROM user_ts_quotas q WHERE q.tablespace_name = u.default_tablespace), " +
				"(SELECT TO_CHAR(MAX(q.max_bytes)) FROM user_ts_quotas q WHERE q.tablespace_name = u.default_tablespace) " +
				"FROM user_users u",
			judge: x.quota,
		},
	}
}

func (x *examination) privileges(rows [][]string) {
	for _, row := range rows {
		x.rights = append(x.rights, row[0])
	}
	create := "CREATE TABLE"
	if x.owner != x.user {
		create = "CREATE ANY TABLE"
	}
	if len(x.of.Missing) == 0 || slices.Contains(x.rights, create) || slices.Contains(x.rights, "CREATE ANY TABLE") {
		x.ok("privileges", fmt.Sprintf("as %s, into schema %s", x.user, x.owner))
		return
	}
	fix := fmt.Sprintf("GRANT %s TO %s", create, x.user)
	if slices.Equal(x.of.Missing, []string{x.of.Claims}) {
		fix += ", or --delivery at-least-once"
	}
	x.add("privileges", x.elsewhere(), fmt.Sprintf("the run makes %s in schema %s, and %s may not: %s is missing",
		strings.Join(x.of.Missing, " and "), x.owner, x.user, create), fix)
}

// elsewhere grades a right that is not listed. On the schema of somebody else it may have been granted as a whole (Oracle
// 23ai, SESSION_SCHEMA_PRIVS), which is not looked at.
func (x *examination) elsewhere() loader.Grade {
	if x.owner != x.user {
		return loader.GradeWarn
	}
	return loader.GradeFail
}

// granted looks at the rights on a table of another user's.
func (x *examination) granted(rows [][]string) {
	all := slices.Concat(rows...)
	if slices.Contains(all, "INSERT") && (slices.Contains(all, "SELECT") || slices.Contains(all, "READ")) ||
		slices.Contains(x.rights, "INSERT ANY TABLE") {
		return
	}
	table := x.of.Relation.String()
	has := cmp.Or(strings.Join(all, ", "), "nothing")
	x.add("privileges", x.elsewhere(), fmt.Sprintf("%s lacks INSERT or SELECT on %s: it has %s", x.user, table, has),
		fmt.Sprintf("GRANT SELECT, INSERT ON %s TO %s", table, x.user))
}

// quota is the room that the user has for tables of his own: without any the first row fails (ORA-01950).
func (x *examination) quota(rows [][]string) {
	if len(rows) == 0 {
		return
	}
	space, fix := rows[0][0], fmt.Sprintf("ALTER USER %s QUOTA UNLIMITED ON %s", x.user, rows[0][0])
	used, most := number(rows[0][1]), number(rows[0][2])
	switch left := most - used; {
	case slices.Contains(x.rights, "UNLIMITED TABLESPACE"):
		x.ok("quota", "unlimited on every tablespace; the default one is "+space)
	case most < 0:
		x.ok("quota", "unlimited on "+space)
	case left > 0 && left >= x.intent.TotalBytes:
		x.ok("quota", fmt.Sprintf("%s left on %s", sized(left), space))
	case rows[0][2] != "" && left < x.intent.TotalBytes:
		x.warn("quota",
			fmt.Sprintf("%s of quota are left on %s, for %s of rows", sized(left), space, sized(x.intent.TotalBytes)), fix)
	default:
		grade := loader.GradeFail
		if x.of.Relation != nil { // in another tablespace, perhaps
			grade = loader.GradeWarn
		}
		x.add("quota", grade, fmt.Sprintf("%s has no quota on %s: the first row would fail (ORA-01950)", x.user, space), fix)
	}
}
