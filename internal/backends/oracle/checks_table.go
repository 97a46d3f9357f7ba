package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// tableChecks are about privileges and space for the table. Every user can read their views.
func (d *doctor) tableChecks() []sqlload.Check {
	checks := []sqlload.Check{{
		Name: "privileges", Ask: "SELECT p.privilege FROM session_privs p", Judge: d.checkCreate, // some two hundred rows
	}}
	if d.checked.Relation != nil && d.intent.Create != loader.CreateRecreate {
		checks = append(checks, d.CheckEffects(d.checked.State))
	}
	if r := d.checked.Relation; r != nil && r.Schema != d.user {
		checks = append(checks, sqlload.Check{
			Name: "privileges",
			Ask: "SELECT p.privilege FROM all_tab_privs p WHERE p.table_schema = " + sqlload.Literal(r.Schema) +
				" AND p.table_name = " + sqlload.Literal(r.Name) + // or on columns
				" UNION ALL SELECT q.privilege FROM all_col_privs q WHERE q.table_schema = " + sqlload.Literal(r.Schema) +
				" AND q.table_name = " + sqlload.Literal(r.Name),
			Judge: d.checkPrivileges,
		})
	}
	if d.owner == d.user { // the quota of another owner cannot be read
		checks = append(checks, sqlload.Check{
			Name: "quota",
			Ask: "SELECT u.default_tablespace, " +
				"(SELECT TO_CHAR(MAX(q.bytes)) FROM user_ts_quotas q WHERE q.tablespace_name = u.default_tablespace), " +
				"(SELECT TO_CHAR(MAX(q.max_bytes)) FROM user_ts_quotas q WHERE q.tablespace_name = u.default_tablespace) " +
				"FROM user_users u",
			Judge: d.checkQuota,
		})
	}
	return checks
}

// checkCreate compares the session's privileges with the tables that the run creates.
func (d *doctor) checkCreate(privileges []string) loader.Finding {
	d.privileges = privileges
	create := "CREATE TABLE"
	if d.owner != d.user {
		create = "CREATE ANY TABLE"
	}
	if len(d.checked.Missing) == 0 || slices.Contains(privileges, create) ||
		slices.Contains(privileges, "CREATE ANY TABLE") {
		return sqlload.OK(fmt.Sprintf("as %s, into schema %s", d.user, d.owner))
	}
	fix := fmt.Sprintf("GRANT %s TO %s", create, d.user)
	if slices.Equal(d.checked.Missing, []string{d.checked.Claims}) {
		fix += ", or --delivery at-least-once"
	}
	return d.missing(fmt.Sprintf("the run creates %s in schema %s, for which %s needs %s",
		strings.Join(d.checked.Missing, " and "), d.owner, d.user, create), fix)
}

// missing is the finding of a missing privilege. In another schema it may have been granted for the whole schema (23ai,
// SESSION_SCHEMA_PRIVS), which is not read.
func (d *doctor) missing(found, fix string) loader.Finding {
	if d.owner != d.user {
		return sqlload.Warn(found, fix)
	}
	return sqlload.Fail(found, fix)
}

// checkPrivileges checks the privileges on another user's table.
func (d *doctor) checkPrivileges(granted []string) (f loader.Finding) {
	if slices.Contains(granted, "INSERT") && (slices.Contains(granted, "SELECT") || slices.Contains(granted, "READ")) ||
		slices.Contains(d.privileges, "INSERT ANY TABLE") {
		return f
	}
	table := d.checked.Relation.String()
	return d.missing(fmt.Sprintf("%s lacks INSERT or SELECT on %s: it has %s", d.user, table,
		cmp.Or(strings.Join(granted, ", "), "nothing")), fmt.Sprintf("GRANT SELECT, INSERT ON %s TO %s", table, d.user))
}

// checkQuota compares the user's quota with the rows. Without a quota the first row fails (ORA-01950).
func (d *doctor) checkQuota(row []string) (f loader.Finding) {
	if row == nil {
		return f
	}
	space, fix := row[0], fmt.Sprintf("ALTER USER %s QUOTA UNLIMITED ON %s", d.user, row[0])
	used, most := sqlload.Integer(row[1]), sqlload.Integer(row[2])
	switch {
	case most < 0 || slices.Contains(d.privileges, "UNLIMITED TABLESPACE"):
		return sqlload.OK("unlimited on " + space)
	case most == 0 && d.checked.Relation == nil:
		return sqlload.Fail(fmt.Sprintf("%s has no quota on %s: the first row would fail (ORA-01950)", d.user, space), fix)
	case most-used < max(d.intent.TotalBytes, 1): // an existing table may be in another tablespace
		return sqlload.Warn(fmt.Sprintf("%s of quota are left on %s, for %s of rows",
			sized(most-used), space, sized(d.intent.TotalBytes)), fix)
	}
	return sqlload.OK(fmt.Sprintf("%s left on %s", sized(most-used), space))
}
