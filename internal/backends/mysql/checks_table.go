package mysql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// table lists the checks of the table: whether the run may make it, what this account may do with it, and what makes its
// rows dear.
func (d *doctor) table() (checks []sqlload.Check) {
	if d.making() && !d.intent.PrimaryKey && !d.on("sql_generate_invisible_primary_key") {
		checks = append(checks, sqlload.Check{Name: "primary key", Judge: d.keyless})
	}
	checks = append(checks, sqlload.Check{Name: "privileges", Judge: d.privileges})
	if d.of.Relation == nil || d.making() {
		return checks
	}
	// SingleStore lists its shard and sort keys as indexes: they are how the table is stored, and cost nothing besides.
	if d.server.flavour != singleStore {
		list := func(name, table, where string) string {
			return fmt.Sprintf("(SELECT GROUP_CONCAT(DISTINCT %[1]s ORDER BY %[1]s SEPARATOR '\\n') FROM information_schema.%s WHERE %s)",
				name, table, where)
		}
		query := "SELECT " + list("index_name", "statistics", d.name.where()+" AND index_name <> 'PRIMARY'") + ", " +
			list("trigger_name", "triggers", "event_object_schema = "+literal(d.name.schema)+
				" AND event_object_table = "+literal(d.name.table)+" AND event_manipulation = 'INSERT'") + ", " +
			list("constraint_name", "table_constraints", d.name.where()+" AND constraint_type = 'FOREIGN KEY'")
		checks = append(checks, sqlload.Check{Name: "indexes, triggers", Ask: query, Judge: d.burden})
	}
	if d.server.flavour == tiDB {
		query := "SELECT COALESCE(tidb_row_id_sharding_info, '') FROM information_schema.tables WHERE " + d.name.where()
		checks = append(checks, sqlload.Check{Name: "hot region", Ask: query, Judge: d.regions})
	}
	return checks
}

// making reports whether the run makes the table.
func (d *doctor) making() bool { return slices.Contains(d.of.Missing, d.name.quoted()) }

// keyless finds servers that refuse a table without a primary key, which is how the run makes it.
func (d *doctor) keyless([]string) (none loader.Finding) {
	for _, name := range []string{"sql_require_primary_key", "innodb_force_primary_key"} {
		if d.on(name) {
			return sqlload.Fail(name+" is ON, and the run would make a table without a key", "--primary-key")
		}
	}
	if d.vars["group_replication_group_name"] != "" {
		return sqlload.Warn("the server is set up to replicate in a group, which writes to no table without a primary key, "+
			"and the run would make one", "--primary-key")
	}
	return none
}

// privileges compares what the run does with what the account may.
func (d *doctor) privileges([]string) (none loader.Finding) {
	if !d.grants.known() {
		return none // whoami has said that they could not be read
	}
	var missing, fixes []string
	want := func(name tableName, privileges ...string) {
		privileges = slices.DeleteFunc(privileges, func(p string) bool { return d.grants.hold(p, name) })
		if len(privileges) > 0 {
			list := strings.Join(privileges, ", ")
			missing = append(missing, fmt.Sprintf("%s on %s", list, name))
			fixes = append(fixes, fmt.Sprintf("GRANT %s ON %s TO %s", list, name.quoted(), d.account))
		}
	}
	onTable := []string{"SELECT", "INSERT"}
	if d.making() {
		onTable = append(onTable, "CREATE")
	}
	if d.of.Relation != nil && (d.intent.Create == loader.CreateRecreate || d.intent.Create == loader.CreateTruncate) {
		onTable = append(onTable, "DROP") // TRUNCATE wants it, too
	}
	want(d.name, onTable...)
	claims, claiming := d.name.claims(), d.intent.Contract.Dedup == loader.DedupTx
	if claiming {
		onClaims := []string{"SELECT", "INSERT"}
		if slices.Contains(d.of.Missing, claims.quoted()) {
			onClaims = append(onClaims, "CREATE")
		}
		want(claims, onClaims...)
	}
	switch {
	case len(missing) == 0 && claiming && !d.grants.hold("DELETE", claims):
		return sqlload.Warn("this account lacks DELETE on "+claims.String()+
			": the run works, and terapush forget cannot remove its claims afterwards",
			fmt.Sprintf("GRANT DELETE ON %s TO %s", claims.quoted(), d.account))
	case len(missing) == 0:
		return sqlload.OK("this account may do what the run does")
	case d.server.flavour == singleStore || d.server.flavour == tiDB && d.grants.roles:
		return loader.Finding{
			Grade: loader.GradeUnknown, Fix: strings.Join(fixes, "; "),
			Found: "SHOW GRANTS does not name " + strings.Join(missing, " nor ") + ", which a role or group may give all the same",
		}
	}
	return sqlload.Fail("this account lacks "+strings.Join(missing, " and "), strings.Join(fixes, "; "))
}

// burden tells what makes every row dearer than the row.
func (d *doctor) burden(row []string) (none loader.Finding) {
	if len(row) == 0 {
		return none
	}
	var has, fixes []string
	note := func(what, names string, fix func(name string) string) {
		for name := range strings.SplitSeq(names, "\n") {
			if name != "" {
				has, fixes = append(has, what+" "+name), append(fixes, fix(name))
			}
		}
	}
	table := d.name.quoted()
	note("foreign key", row[2], func(string) string { return "--set foreign_key_checks=0, which checks none" })
	note("index", row[0], func(name string) string { return "ALTER TABLE " + table + " DROP INDEX " + quote(name) })
	note("trigger", row[1], func(name string) string { return "DROP TRIGGER " + tableName{d.name.schema, name}.quoted() })
	if len(has) == 0 {
		return sqlload.OK(d.name.String() + " has no secondary index, no trigger on INSERT and no foreign key")
	}
	return sqlload.Warn(fmt.Sprintf("%s has %s: every row pays for them, in log and in look-ups",
		d.name, strings.Join(has, ", ")),
		strings.Join(slices.Compact(fixes), "; ")+"; make again after the load what was dropped")
}

// regions finds tables whose rows, coming in order, all go to one region and so to one server (TiDB manual,
// "Troubleshoot Hotspot Issues").
func (d *doctor) regions(row []string) (none loader.Finding) {
	if len(row) == 0 || row[0] == "" {
		return none
	}
	switch row[0] {
	case "NOT_SHARDED":
		return sqlload.Warn(d.name.String()+" numbers its rows in order (NOT_SHARDED): all sessions write to one region at a time",
			"ALTER TABLE "+d.name.quoted()+" SHARD_ROW_ID_BITS = 4")
	case "NOT_SHARDED(PK_IS_HANDLE)":
		return sqlload.Warn(d.name.String()+" is stored in the order of its key (PK_IS_HANDLE), and rows come in that order:"+
			" all sessions write to few regions",
			"make the table with PRIMARY KEY … NONCLUSTERED and SHARD_ROW_ID_BITS = 4")
	}
	return sqlload.OK(fmt.Sprintf("%s spreads its rows (%s)", d.name, row[0]))
}
