package doris

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

func (d *doctor) tableChecks() []sqlload.Check {
	shape := d.checkPlanned
	if len(d.table.Missing) == 0 {
		shape = d.checkShape
	}
	return []sqlload.Check{
		{Name: "buckets and replicas", Judge: shape},
		{Name: "group commit", Judge: d.checkGroupCommit},
		{Name: "privileges", Judge: d.checkPrivileges},
	}
}

// definition returns the CREATE TABLE of the table that the run loads; "" if the run makes it.
func (d *doctor) definition() string {
	if d.table.Relation == nil || len(d.table.Missing) > 0 {
		return ""
	}
	return d.table.Relation.Traits[0]
}

// checkPlanned compares a table that the run makes with the backends. In cloud mode replicas do not matter.
func (d *doctor) checkPlanned([]string) (none loader.Finding) {
	alive := d.alive()
	if alive < 0 {
		return none
	}
	h := plannedShape(d.options, d.intent.Preparation).fill(alive)
	found := fmt.Sprintf("%s will be made with %d buckets and %d replicas", d.name, h.buckets, h.replication)
	if h.replication <= alive || d.cloud() {
		return sqlload.OK(found)
	}
	f := sqlload.Warn(fmt.Sprintf("%s, and %d backends take loads", found, alive), fmt.Sprintf("--%s %d", optReplication, max(alive, 1)))
	if h.replication > int64(len(d.answers[showBackends])) {
		f.Grade, f.Found = loader.GradeFail, f.Found+": the server refuses to make it"
	}
	return f
}

// checkShape compares a table that exists with the backends.
func (d *doctor) checkShape([]string) (none loader.Finding) {
	definition, alive := d.definition(), d.alive()
	if definition == "" || alive < 0 {
		return none
	}
	replicas := integer(property(definition, "replication_num"))
	for part := range strings.SplitSeq(property(definition, "replication_allocation"), ",") { // tag.location.default: 3
		_, n, _ := strings.Cut(part, ":")
		replicas += integer(n)
	}
	buckets := "an unknown number of"
	if m := regexp.MustCompile(`(?i)\bBUCKETS\s+(\w+)`).FindStringSubmatch(definition); m != nil {
		buckets = m[1]
	}
	found := fmt.Sprintf("%s has %s buckets a partition and %d replicas", d.name, buckets, replicas)
	n := integer(buckets)
	switch {
	case d.cloud():
	case replicas > alive:
		f := sqlload.Warn(fmt.Sprintf("%s, and %d backends take loads: a load needs more than half of the replicas", found, alive),
			"bring the backends back: SHOW BACKENDS")
		least, _ := d.setting("min_load_replica_num")
		lowered := max(least, integer(property(definition, "min_load_replica_num"))) > 0
		if alive < replicas/2+1 && !lowered {
			f.Grade = loader.GradeFail
		}
		return f
	case n > 0 && n*max(replicas, 1) < alive:
		return sqlload.Warn(fmt.Sprintf("%s, fewer than the %d backends: some take no rows", found, alive),
			fmt.Sprintf("make it anew with --%s %d", optBuckets, bucketsPerBackend*alive))
	}
	return sqlload.OK(found)
}

// integer reads a whole number; 0 if there is none.
func integer(text string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n
}

// slowCommit is the interval of merged commits, in milliseconds, above which checkGroupCommit warns.
const slowCommit = 1000

func (d *doctor) checkGroupCommit([]string) (none loader.Finding) {
	interval := cmp.Or(integer(property(d.definition(), propInterval)), d.options.groupInterval, groupInterval.Milliseconds())
	if d.options.group != groupSync || interval <= slowCommit {
		return none
	}
	return sqlload.Warn(fmt.Sprintf("a load is answered when its interval of %d ms is over, and workers wait that long", interval),
		fmt.Sprintf(`ALTER TABLE … SET ("%s" = "%d"), or --%s off with batches of 10 MB and more`, propInterval, slowCommit, optGroupCommit))
}

// checkPrivileges looks for the rights in the list of grants. Others may decide, such as Apache Ranger: a frontend that
// redirects a load has checked the right to load.
func (d *doctor) checkPrivileges([]string) loader.Finding {
	rights := []string{"LOAD_PRIV", "SELECT_PRIV"}
	if len(d.table.Missing) > 0 {
		rights = append(rights, "CREATE_PRIV")
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
		f.Grade, f.Found = loader.GradeUnknown, showGrants+": "+refused.Error()
	} else if elsewhere {
		f.Grade, f.Found = loader.GradeUnknown, f.Found+" by Doris, but something else decides, such as Apache Ranger"
	}
	return f
}

// granted reads the rows of SHOW GRANTS, which hold the rights of all roles of the user: lists of rights on everything,
// and "name: right,right; name: …" for catalogs, databases and tables.
func granted(rows []map[string]string, right string, on tableName) bool {
	has := regexp.MustCompile(`(?i)\b(ADMIN_PRIV|` + right + `)\b`).MatchString
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
