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

// checkTime bounds all that a doctor does: its questions are a dozen small ones on one connection.
const checkTime = 8 * time.Second

// doctor is one call of CheckServer on its connection.
type doctor struct {
	*opened
	intent loader.Intent
	of     *sqlload.Checked // the table
	user   string           // who has logged on
	owner  string           // of the table, there or not
	rights []string         // system privileges of the session
}

// CheckServer implements loader.Checker: it asks for the limits that a push meets on this server, and for rights.
func (l *opened) CheckServer(ctx context.Context, i loader.Intent) (findings []loader.Finding, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	err = l.somewhere(ctx, func(k *link) error {
		who, err := sqlload.Rows(ctx, k, "SELECT SYS_CONTEXT('USERENV', 'SESSION_USER'), "+ownerOf("")+" FROM DUAL")
		if err != nil || len(who) != 1 {
			return err
		}
		x := &doctor{opened: l, intent: i, user: who[0][0], owner: who[0][1]}
		findings = append(findings, x.version())
		x.of, err = l.Check(ctx, k, i)
		findings = append(findings, x.of.Findings...)
		if err != nil {
			return err
		}
		schema, _ := unquoted(x.of.Table)
		x.owner = cmp.Or(schema, x.owner)
		found, err := l.Ask(ctx, k, slices.Concat(x.onTable(), x.onSessions(), x.onStorage(), x.onSettings()), x.grant)
		findings = append(findings, found...)
		return err
	})
	return findings, failed("check the server", err)
}

// grant lets the user see the instance.
func (x *doctor) grant(error) string { return "GRANT SELECT_CATALOG_ROLE TO " + x.user }

// managed reports whether somebody else runs the instance, so that its files are not the user's to change.
func (x *doctor) managed() bool { return x.server.Settings[settingCloud] != "" }

// workers is how many sessions load at a time. It is 1 where the method locks the table.
func (x *doctor) workers() int64 {
	if most := x.Caps().MaxInFlight; most > 0 {
		return int64(min(x.intent.Workers, most))
	}
	return int64(x.intent.Workers)
}

func (x *doctor) version() loader.Finding {
	s := x.server
	found := fmt.Sprintf("%s %s at %s, by %s", s.Product, s.Version, s.Endpoint, s.Settings["driver"])
	if x.managed() {
		found += "; a managed service (" + s.Settings[settingCloud] + "), whose files and logs are the provider's"
	}
	return loader.Finding{Check: "version", Grade: loader.GradeOK, Found: found}
}

// onTable is what decides whether rows can be put into the table, and a table be made. Everybody may ask for it.
func (x *doctor) onTable() []sqlload.Check {
	checks := []sqlload.Check{{
		Name: "privileges", Ask: "SELECT p.privilege FROM session_privs p", // some two hundred at the most
		Judge: x.privileges,
	}}
	if r := x.of.Relation; r != nil && r.Schema != x.user {
		checks = append(checks, sqlload.Check{
			Name: "privileges",
			Ask: "SELECT p.privilege FROM all_tab_privs p WHERE p.table_schema = " + sqlload.Literal(r.Schema) +
				" AND p.table_name = " + sqlload.Literal(r.Name),
			Judge: x.granted,
		})
	}
	if x.owner == x.user { // of another's table it is the owner's that counts, which nobody else may see
		checks = append(checks, sqlload.Check{
			Name: "quota",
			Ask: "SELECT u.default_tablespace, " +
				"(SELECT TO_CHAR(MAX(q.bytes)) FROM user_ts_quotas q WHERE q.tablespace_name = u.default_tablespace), " +
				"(SELECT TO_CHAR(MAX(q.max_bytes)) FROM user_ts_quotas q WHERE q.tablespace_name = u.default_tablespace) " +
				"FROM user_users u",
			Judge: x.quota,
		})
	}
	return checks
}

func (x *doctor) privileges(rights []string) loader.Finding {
	x.rights = rights
	create := "CREATE TABLE"
	if x.owner != x.user {
		create = "CREATE ANY TABLE"
	}
	if len(x.of.Missing) == 0 || slices.Contains(x.rights, create) || slices.Contains(x.rights, "CREATE ANY TABLE") {
		return sqlload.OK(fmt.Sprintf("as %s, into schema %s", x.user, x.owner))
	}
	fix := fmt.Sprintf("GRANT %s TO %s", create, x.user)
	if slices.Equal(x.of.Missing, []string{x.of.Claims}) {
		fix += ", or --delivery at-least-once"
	}
	return x.lacks(fmt.Sprintf("the run makes %s in schema %s, and %s may not: %s is missing",
		strings.Join(x.of.Missing, " and "), x.owner, x.user, create), fix)
}

// lacks is the finding of a right that is not listed. On the schema of somebody else it may have been granted as a whole
// (Oracle 23ai, SESSION_SCHEMA_PRIVS), which is not looked at.
func (x *doctor) lacks(found, fix string) loader.Finding {
	if x.owner != x.user {
		return sqlload.Warn(found, fix)
	}
	return sqlload.Fail(found, fix)
}

// granted looks at the rights on a table of another user's.
func (x *doctor) granted(all []string) (f loader.Finding) {
	if slices.Contains(all, "INSERT") && (slices.Contains(all, "SELECT") || slices.Contains(all, "READ")) ||
		slices.Contains(x.rights, "INSERT ANY TABLE") {
		return f
	}
	table := x.of.Relation.String()
	has := cmp.Or(strings.Join(all, ", "), "nothing")
	return x.lacks(fmt.Sprintf("%s lacks INSERT or SELECT on %s: it has %s", x.user, table, has),
		fmt.Sprintf("GRANT SELECT, INSERT ON %s TO %s", table, x.user))
}

// quota is the room that the user has for tables of his own: without any the first row fails (ORA-01950).
func (x *doctor) quota(row []string) (f loader.Finding) {
	if row == nil {
		return f
	}
	space, fix := row[0], fmt.Sprintf("ALTER USER %s QUOTA UNLIMITED ON %s", x.user, row[0])
	used, most := number(row[1]), number(row[2])
	switch left := most - used; {
	case slices.Contains(x.rights, "UNLIMITED TABLESPACE"):
		return sqlload.OK("unlimited on every tablespace; the default one is " + space)
	case most < 0:
		return sqlload.OK("unlimited on " + space)
	case left > 0 && left >= x.intent.TotalBytes:
		return sqlload.OK(fmt.Sprintf("%s left on %s", sized(left), space))
	case row[2] != "" && left < x.intent.TotalBytes:
		return sqlload.Warn(
			fmt.Sprintf("%s of quota are left on %s, for %s of rows", sized(left), space, sized(x.intent.TotalBytes)), fix)
	}
	found := fmt.Sprintf("%s has no quota on %s: the first row would fail (ORA-01950)", x.user, space)
	if x.of.Relation != nil { // in another tablespace, perhaps
		return sqlload.Warn(found, fix)
	}
	return sqlload.Fail(found, fix)
}
