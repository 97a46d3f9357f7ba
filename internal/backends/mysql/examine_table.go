package mysql

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// privileges compares what the run does with what the account may.
func (e *examination) privileges(context.Context) error {
	const check = "privileges"
	if !e.grants.known() {
		return nil // whoami has said that they could not be read
	}
	var missing, fixes []string
	want := func(name tableName, privileges ...string) {
		privileges = slices.DeleteFunc(privileges, func(p string) bool { return e.grants.hold(p, name) })
		if len(privileges) > 0 {
			list := strings.Join(privileges, ", ")
			missing = append(missing, fmt.Sprintf("%s on %s", list, name))
			fixes = append(fixes, fmt.Sprintf("GRANT %s ON %s TO %s", list, name.quoted(), e.account))
		}
	}
	onTable := []string{"SELECT", "INSERT"}
	if e.making() {
		onTable = append(onTable, "CREATE")
	}
	if e.found != nil && (e.intent.Create == loader.CreateRecreate || e.intent.Create == loader.CreateTruncate) {
		onTable = append(onTable, "DROP") // TRUNCATE wants it, too
	}
	want(e.name(), onTable...)
	if e.intent.Contract.Dedup == loader.DedupTx {
		onClaims := []string{"SELECT", "INSERT"}
		if e.unmade {
			onClaims = append(onClaims, "CREATE")
		}
		want(e.claimsName(), onClaims...)
	}
	if name := e.claimsName(); e.intent.Contract.Dedup == loader.DedupTx && !e.grants.hold("DELETE", name) && len(missing) == 0 {
		e.warn(check, "this account lacks DELETE on "+name.String()+": the run works, and terapush forget cannot remove its claims afterwards",
			fmt.Sprintf("GRANT DELETE ON %s TO %s", name.quoted(), e.account))
		return nil
	}
	switch {
	case len(missing) == 0:
		e.ok(check, "this account may do what the run does")
	case e.server.flavour == singleStore || e.server.flavour == tiDB && e.grants.roles:
		e.add(check, loader.GradeUnknown, "SHOW GRANTS does not name "+strings.Join(missing, " nor ")+", which a role or group may give all the same", strings.Join(fixes, "; "))
	default:
		e.fail(check, "this account lacks "+strings.Join(missing, " and "), strings.Join(fixes, "; "))
	}
	return nil
}

func (e *examination) claimsThere(ctx context.Context) (there bool, err error) {
	err = e.control.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ? AND table_name = ?",
		e.name().schema, sqlload.ClaimsTable).Scan(&there)
	return there, err
}

// burden tells what makes every row dearer than the row. SingleStore lists its shard and sort keys as indexes: they are
// how the table is stored, and cost nothing besides.
func (e *examination) burden(ctx context.Context) error {
	const check = "indexes, triggers"
	if e.found == nil || e.making() || e.server.flavour == singleStore {
		return nil
	}
	list, err := column[string](ctx, e.control, "SELECT DISTINCT CONCAT('index ', index_name) FROM information_schema.statistics"+
		" WHERE table_schema = ? AND table_name = ? AND index_name <> 'PRIMARY'"+
		" UNION ALL SELECT CONCAT('trigger ', trigger_name) FROM information_schema.triggers"+
		" WHERE event_object_schema = ? AND event_object_table = ? AND event_manipulation = 'INSERT'"+
		" UNION ALL SELECT CONCAT('foreign key ', constraint_name) FROM information_schema.table_constraints"+
		" WHERE table_schema = ? AND table_name = ? AND constraint_type = 'FOREIGN KEY'",
		e.name().schema, e.name().table, e.name().schema, e.name().table, e.name().schema, e.name().table)
	if err != nil {
		e.unknown(check, err, "")
		return err
	}
	if len(list) == 0 {
		e.ok(check, e.name().String()+" has no secondary index, no trigger on INSERT and no foreign key")
		return nil
	}
	slices.Sort(list)
	var fixes []string
	for _, one := range list {
		if name, is := strings.CutPrefix(one, "index "); is {
			fixes = append(fixes, fmt.Sprintf("ALTER TABLE %s DROP INDEX %s", e.Table, quote(name)))
		} else if name, is := strings.CutPrefix(one, "trigger "); is {
			fixes = append(fixes, "DROP TRIGGER "+tableName{e.name().schema, name}.quoted())
		} else {
			fixes = append(fixes, "--set foreign_key_checks=0, which checks none")
		}
	}
	e.warn(check, fmt.Sprintf("%s has %s: every row pays for them, in log and in look-ups", e.name(), strings.Join(list, ", ")),
		strings.Join(slices.Compact(fixes), "; ")+"; make again after the load what was dropped")
	return nil
}
