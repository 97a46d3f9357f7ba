package mysql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// creates reports whether the run creates the table.
func (d *doctor) creates() bool { return slices.Contains(d.tables.Missing, d.name.quoted()) }

// checkKey finds servers that refuse a table without a primary key, if that is what the run creates.
func (d *doctor) checkKey() {
	keyed := d.intent.PrimaryKey || len(d.intent.Schema.Primary) > 0 || d.intent.Like.Name != ""
	if !d.creates() || keyed || d.on("sql_generate_invisible_primary_key") {
		return
	}
	for name, wanted := range map[string]bool{
		"sql_require_primary_key":  d.on("sql_require_primary_key"),
		"innodb_force_primary_key": d.on("innodb_force_primary_key"),
		"pxc_strict_mode":          slices.Contains([]string{"ENFORCING", "MASTER"}, d.vars["pxc_strict_mode"]),
		"wsrep_mode":               strings.Contains(d.vars["wsrep_mode"], "REQUIRED_PRIMARY_KEY"),
	} {
		if wanted {
			d.note("primary key", sqlload.Fail(name+" is "+d.vars[name]+", and the run creates a table without a key", "--primary-key"))
			return
		}
	}
	if d.vars["group_replication_group_name"] != "" {
		d.warn("primary key", "--primary-key", "group replication takes no rows into a table without a primary key")
	}
}

// checkPrivileges compares the account's privileges with those that the run takes.
func (d *doctor) checkPrivileges() {
	if !d.grants.known() {
		return // SHOW GRANTS has a finding
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
	if d.creates() {
		onTable = append(onTable, "CREATE")
	}
	if d.tables.Relation != nil && (d.intent.Create == loader.CreateRecreate || d.intent.Create == loader.CreateTruncate) {
		onTable = append(onTable, "DROP") // TRUNCATE takes it, too
	}
	want(d.name, onTable...)
	fills := len(missing) == 0
	claims, claiming := d.name.claimsTable(), d.intent.Contract.Dedup == loader.DedupTx
	if claiming {
		locks := []string{}
		if d.server.flavour.locksTables() {
			locks = append(locks, "LOCK TABLES")
		}
		makes := func(name tableName, privileges ...string) {
			if slices.Contains(d.tables.Missing, name.quoted()) {
				privileges = append(privileges, "CREATE")
			}
			want(name, privileges...)
		}
		makes(claims, "SELECT", "INSERT")
		makes(d.name.runs(), "SELECT", "INSERT", "UPDATE", "DELETE")
		want(tableName{d.name.schema, everything}, locks...)
	}
	if fills && len(missing) > 0 {
		fixes = append(fixes, "or --delivery at-least-once")
	}
	finding := sqlload.OK("this account has the privileges of the run")
	switch {
	case len(missing) == 0 && claiming && !d.grants.hold("DELETE", claims):
		finding = sqlload.Warn("this account lacks DELETE on "+claims.String()+
			": the run works, but terapush forget cannot remove its claims",
			fmt.Sprintf("GRANT DELETE ON %s TO %s", claims.quoted(), d.account))
	case len(missing) > 0:
		finding = sqlload.Fail("this account lacks "+strings.Join(missing, " and "), strings.Join(fixes, "; "))
		if d.server.flavour == singleStore || d.server.flavour == tiDB && d.grants.roles {
			finding.Grade = loader.GradeUnknown
			finding.Found = "SHOW GRANTS does not name " + strings.Join(missing, " nor ") + ", which a role or group may give"
		}
	}
	d.note("privileges", finding)
}

// tableChecks ask what makes the rows of an existing table expensive.
func (d *doctor) tableChecks() (checks []sqlload.Check) {
	if d.tables.Relation == nil || d.creates() {
		return nil
	}
	if d.Effects != nil {
		checks = append(checks, d.CheckEffects(d.tables.State))
	}
	if d.Lookups != nil {
		checks = append(checks, d.CheckCosts(d.tables.State, d.intent.Advice))
	}
	if d.server.flavour == tiDB {
		query := "SELECT COALESCE(tidb_row_id_sharding_info, '') FROM information_schema.tables WHERE " + d.name.where()
		checks = append(checks, sqlload.Check{Name: "hot region", Advice: true, Ask: query, Judge: d.regions})
	}
	return checks
}

// regions finds tables whose rows, coming in order, all go to one region and so to one server (TiDB manual,
// "Troubleshoot Hotspot Issues").
func (d *doctor) regions(row []string) (none loader.Finding) {
	if len(row) == 0 || !strings.HasPrefix(row[0], "NOT_SHARDED") {
		return none
	}
	fix := "ALTER TABLE " + d.name.quoted() + " SHARD_ROW_ID_BITS = 4"
	if row[0] != "NOT_SHARDED" { // the key is the row's place
		fix = "create the table with PRIMARY KEY … NONCLUSTERED and SHARD_ROW_ID_BITS = 4"
	}
	return sqlload.Warn(fmt.Sprintf("%s stores rows in their order of arrival (%s): all sessions write to one region",
		d.name, row[0]), fix)
}
