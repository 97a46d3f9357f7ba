package doris

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

func (d *doctor) tableChecks() []sqlload.Check {
	return []sqlload.Check{
		{Name: "buckets and replicas", Judge: d.checkShape},
		{Name: "group commit", Judge: d.checkGroupCommit},
		{Name: "privileges", Judge: d.checkPrivileges},
	}
}

// definition returns the CREATE TABLE of the table; "" if the run makes it.
func (d *doctor) definition() string {
	if d.table.Relation == nil || len(d.table.Missing) > 0 {
		return ""
	}
	return d.table.Relation.Traits[0]
}

// checkShape compares the table, or the one that the run makes, with the backends. In cloud mode replicas do not matter.
func (d *doctor) checkShape([]string) (none loader.Finding) {
	definition, alive := d.definition(), d.alive()
	h, makes := plannedShape(d.options, d.intent.Preparation).fill(alive), len(d.table.Missing) > 0
	enough := h.replication <= int64(len(d.answers[showBackends])) // else the server refuses to make the table
	fix := fmt.Sprintf("--replication %d", max(alive, 1))
	if !makes {
		h = readShape(definition)
		least, _ := d.setting("min_load_replica_num")
		lowered := max(least, sqlload.Integer(property(definition, "min_load_replica_num"))) > 0
		enough = alive > h.replication/2 || lowered // a load needs more than half of the replicas
		fix = "bring the backends back: SHOW BACKENDS"
	}
	found := fmt.Sprintf("%s: %d buckets a partition, %d replicas, %d backends", d.name, h.buckets, h.replication, alive)
	switch {
	case alive < 0 || !makes && definition == "":
		return none
	case d.cloud():
	case h.replication > alive && !enough:
		return sqlload.Fail(found+", too few to make the table or to load it", fix)
	case h.replication > alive:
		return sqlload.Warn(found+": some replicas stay behind", fix)
	}
	return sqlload.OK(found)
}

var bucketCount = regexp.MustCompile(`(?i)\bBUCKETS\s+(\w+)`)

// readShape reads buckets and replicas out of a CREATE TABLE; 0 buckets are AUTO.
func readShape(definition string) (h shape) {
	if m := bucketCount.FindStringSubmatch(definition); m != nil {
		h.buckets = sqlload.Integer(m[1])
	}
	h.replication = sqlload.Integer(property(definition, "replication_num"))
	for part := range strings.SplitSeq(property(definition, "replication_allocation"), ",") { // tag.location.default: 3
		_, n, _ := strings.Cut(part, ":")
		h.replication += sqlload.Integer(n)
	}
	return h
}

// slowCommit is the interval of merged commits, in milliseconds, above which checkGroupCommit warns. A load takes a fraction
// of a second, and its worker waits for all of the interval.
const slowCommit = 1000

func (d *doctor) checkGroupCommit([]string) (none loader.Finding) {
	own := sqlload.Integer(property(d.definition(), propInterval))
	interval := cmp.Or(d.options.GroupInterval, own, groupInterval.Milliseconds())
	if d.options.group != groupSync || interval <= slowCommit {
		return none
	}
	return sqlload.Warn(fmt.Sprintf("a load is answered when its interval of %d ms is over, and workers wait that long", interval),
		fmt.Sprintf("--group-commit-interval-ms %d, or --group-commit off with batches of 10 MB and more", slowCommit))
}

// checkPrivileges looks for the rights in the list of grants. Others may decide, such as Apache Ranger: a frontend that
// redirects a load has checked the right to load.
func (d *doctor) checkPrivileges([]string) loader.Finding {
	rights := []string{"LOAD_PRIV", "SELECT_PRIV"}
	if len(d.table.Missing) > 0 {
		rights = append(rights, "CREATE_PRIV")
	} else if len(d.options.changes(d.definition())) > 0 {
		rights = append(rights, "ALTER_PRIV")
	}
	grants, config, loads := d.answers[showGrants], d.answers[showFrontend], d.backend != nil
	missing := slices.DeleteFunc(slices.Clone(rights), func(right string) bool {
		return granted(grants, right, d.name) || right == "LOAD_PRIV" && loads
	})
	if len(missing) == 0 {
		return sqlload.OK(strings.Join(rights, ", ") + " on " + d.name.String())
	}
	list := strings.Join(missing, ", ")
	f := sqlload.Fail(list+" on "+d.name.String()+" is not granted", d.grant(list))
	elsewhere := loads && !granted(grants, "LOAD_PRIV", d.name) || slices.ContainsFunc(config, func(s map[string]string) bool {
		return s["Key"] == "access_controller_type" && strings.HasPrefix(s["Value"], "ranger")
	})
	if refused := d.refused[showGrants]; refused != nil {
		f.Grade, f.Found = loader.GradeUnknown, showGrants+": "+loader.Explain(refused)
	} else if elsewhere {
		f.Grade, f.Found = loader.GradeUnknown, f.Found+" by Doris, but something else decides, such as Apache Ranger"
	}
	return f
}

// rightName finds the names in a list of rights.
var rightName = regexp.MustCompile(`\w+`)

// granted reads the rows of SHOW GRANTS, which hold the rights of all roles of the user: lists of rights on everything,
// and "name: right,right; name: …" for catalogs, databases and tables.
func granted(rows []map[string]string, right string, on tableName) bool {
	has := func(rights string) bool {
		return slices.ContainsFunc(rightName.FindAllString(rights, -1), func(name string) bool {
			return strings.EqualFold(name, "ADMIN_PRIV") || strings.EqualFold(name, right)
		})
	}
	for _, row := range rows {
		if has(row["GlobalPrivs"]) {
			return true
		}
		for column, level := range map[string]string{
			"CatalogPrivs": "internal", "DatabasePrivs": "internal." + on.schema, "TablePrivs": "internal." + on.String(),
		} {
			for entry := range strings.SplitSeq(row[column], ";") {
				name, rights, _ := strings.Cut(strings.TrimSpace(entry), ": ")
				if (name == level || "internal."+name == level) && has(rights) {
					return true
				}
			}
		}
	}
	return false
}
