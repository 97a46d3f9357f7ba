package mysql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// ofTable asks about the table, what this account may do with it, and what makes its rows dear.
func (k *checker) ofTable() []check {
	checks := []check{{name: "primary key", judge: k.keyless}, {name: "privileges", judge: k.privileges}}
	if k.of.Relation == nil || k.making() {
		return checks
	}
	// SingleStore lists its shard and sort keys as indexes: they are how the table is stored, and cost nothing besides.
	if k.server.flavour != singleStore {
		query := "SELECT DISTINCT CONCAT('index ', index_name) FROM information_schema.statistics" +
			" WHERE " + k.name.where() + " AND index_name <> 'PRIMARY'" +
			" UNION ALL SELECT CONCAT('trigger ', trigger_name) FROM information_schema.triggers" +
			" WHERE event_object_schema = " + literal(k.name.schema) + " AND event_object_table = " + literal(k.name.table) +
			" AND event_manipulation = 'INSERT'" +
			" UNION ALL SELECT CONCAT('foreign key ', constraint_name) FROM information_schema.table_constraints" +
			" WHERE " + k.name.where() + " AND constraint_type = 'FOREIGN KEY'"
		checks = append(checks, check{name: "indexes, triggers", query: query, judge: k.burden})
	}
	if k.server.flavour == tiDB {
		query := "SELECT COALESCE(tidb_row_id_sharding_info, '') FROM information_schema.tables WHERE " + k.name.where()
		checks = append(checks, check{name: "hot region", query: query, judge: k.regions})
	}
	return checks
}

// making reports whether the run makes the table.
func (k *checker) making() bool { return slices.Contains(k.of.Missing, k.name.quoted()) }

// keyless finds servers that refuse a table without a primary key, which is how the run makes it.
func (k *checker) keyless([][]string) (all []loader.Finding) {
	if !k.making() || k.intent.PrimaryKey || k.on("sql_generate_invisible_primary_key") {
		return nil
	}
	for _, name := range []string{"sql_require_primary_key", "innodb_force_primary_key"} {
		if k.on(name) {
			all = append(all, fail(name+" is ON, and the run would make a table without a key", "--primary-key")...)
		}
	}
	if k.vars["group_replication_group_name"] != "" {
		all = append(all, warn("the server is set up to replicate in a group, which writes to no table without a primary key, "+
			"and the run would make one", "--primary-key")...)
	}
	return all
}

// privileges compares what the run does with what the account may.
func (k *checker) privileges([][]string) []loader.Finding {
	if !k.grants.known() {
		return nil // it was said that they could not be read
	}
	var missing, fixes []string
	want := func(name tableName, privileges ...string) {
		privileges = slices.DeleteFunc(privileges, func(p string) bool { return k.grants.hold(p, name) })
		if len(privileges) > 0 {
			list := strings.Join(privileges, ", ")
			missing = append(missing, fmt.Sprintf("%s on %s", list, name))
			fixes = append(fixes, fmt.Sprintf("GRANT %s ON %s TO %s", list, name.quoted(), k.account))
		}
	}
	onTable := []string{"SELECT", "INSERT"}
	if k.making() {
		onTable = append(onTable, "CREATE")
	}
	if k.of.Relation != nil && (k.intent.Create == loader.CreateRecreate || k.intent.Create == loader.CreateTruncate) {
		onTable = append(onTable, "DROP") // TRUNCATE wants it, too
	}
	want(k.name, onTable...)
	claims, claiming := k.name.claims(), k.intent.Contract.Dedup == loader.DedupTx
	if claiming {
		onClaims := []string{"SELECT", "INSERT"}
		if slices.Contains(k.of.Missing, claims.quoted()) {
			onClaims = append(onClaims, "CREATE")
		}
		want(claims, onClaims...)
	}
	switch {
	case len(missing) == 0 && claiming && !k.grants.hold("DELETE", claims):
		return warn("this account lacks DELETE on "+claims.String()+": the run works, and terapush forget cannot remove its claims afterwards",
			fmt.Sprintf("GRANT DELETE ON %s TO %s", claims.quoted(), k.account))
	case len(missing) == 0:
		return ok("this account may do what the run does")
	case k.server.flavour == singleStore || k.server.flavour == tiDB && k.grants.roles:
		return unsure("SHOW GRANTS does not name "+strings.Join(missing, " nor ")+", which a role or group may give all the same",
			strings.Join(fixes, "; "))
	}
	return fail("this account lacks "+strings.Join(missing, " and "), strings.Join(fixes, "; "))
}

// burden tells what makes every row dearer than the row.
func (k *checker) burden(found [][]string) []loader.Finding {
	list := slices.Sorted(slices.Values(firsts(found)))
	if len(list) == 0 {
		return ok(k.name.String() + " has no secondary index, no trigger on INSERT and no foreign key")
	}
	var fixes []string
	for _, one := range list {
		if name, is := strings.CutPrefix(one, "index "); is {
			fixes = append(fixes, fmt.Sprintf("ALTER TABLE %s DROP INDEX %s", k.name.quoted(), quote(name)))
		} else if name, is := strings.CutPrefix(one, "trigger "); is {
			fixes = append(fixes, "DROP TRIGGER "+tableName{k.name.schema, name}.quoted())
		} else {
			fixes = append(fixes, "--set foreign_key_checks=0, which checks none")
		}
	}
	return warn(fmt.Sprintf("%s has %s: every row pays for them, in log and in look-ups", k.name, strings.Join(list, ", ")),
		strings.Join(slices.Compact(fixes), "; ")+"; make again after the load what was dropped")
}

// regions finds tables whose rows, coming in order, all go to one region and so to one server (TiDB manual,
// "Troubleshoot Hotspot Issues").
func (k *checker) regions(found [][]string) []loader.Finding {
	if len(found) == 0 {
		return nil
	}
	switch sharding := found[0][0]; sharding {
	case "":
		return nil
	case "NOT_SHARDED":
		return warn(k.name.String()+" numbers its rows in order (NOT_SHARDED): all sessions write to one region at a time",
			fmt.Sprintf("ALTER TABLE %s SHARD_ROW_ID_BITS = 4", k.name.quoted()))
	case "NOT_SHARDED(PK_IS_HANDLE)":
		return warn(k.name.String()+" is stored in the order of its key (PK_IS_HANDLE), and rows come in that order: all sessions write to few regions",
			"make the table with PRIMARY KEY … NONCLUSTERED and SHARD_ROW_ID_BITS = 4")
	default:
		return ok(fmt.Sprintf("%s spreads its rows (%s)", k.name, sharding))
	}
}
