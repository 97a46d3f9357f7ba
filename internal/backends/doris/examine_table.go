package doris

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/pkg/loader"
)

// table compares replicas and buckets with the backends, of the table that is there or of the one that will be made.
func (x *examination) table(ctx context.Context) ([]loader.Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()
	definition, err := x.db.definition(ctx)
	var refused *mysql.MySQLError
	if err != nil && !errors.As(err, &refused) {
		return nil, err
	}
	if refused != nil && verdict(refused).Class == loader.ClassPermission {
		return []loader.Finding{{Check: "table", Grade: loader.GradeUnknown, Found: "the table cannot be looked at: " + refused.Error(),
			Fix: fmt.Sprintf("GRANT SELECT_PRIV ON %s.* TO %s", x.db.name.schema, x.user())}}, nil
	}
	if definition == "" {
		all := []loader.Finding{x.planned()}
		if x.db.options.group.on() {
			all = append(all, groupFinding(x.db.options, "", ""))
		}
		return all, nil
	}
	all := []loader.Finding{x.replicas(definition)}
	if x.db.options.group.on() {
		all = append(all, groupFinding(x.db.options, propertyOf(definition, "group_commit_interval_ms"), propertyOf(definition, "group_commit_data_bytes")))
	}
	return all, nil
}

// planned is the shape of a table that will be made.
func (x *examination) planned() loader.Finding {
	n := x.count()
	h := plannedShape(x.db.options, x.intent.Preparation).fill(int64(n))
	f := loader.Finding{Check: "table", Grade: loader.GradeOK,
		Found: fmt.Sprintf("%s will be made with %d buckets and %d replicas", x.db.name, h.buckets, h.replication)}
	switch {
	case h.replication == 0:
		f.Found = fmt.Sprintf("%s will be made with %d buckets and the server's number of replicas", x.db.name, h.buckets)
	case n >= 0 && h.replication > int64(n) && computeGroup(x.backends) == "": // in cloud mode it counts for nothing
		f.Grade, f.Fix = loader.GradeWarn, fmt.Sprintf("--%s %d", optReplication, max(n, 1))
		f.Found += fmt.Sprintf(", and %d backends take loads", n)
		if forced, _ := x.number("force_olap_table_replication_num"); forced <= 0 && h.replication > int64(len(x.backends)) {
			f.Grade = loader.GradeFail
			f.Found += ": the server refuses to make it"
		}
	}
	return f
}

func propertyOf(definition, name string) string {
	m := regexp.MustCompile(`"` + name + `"\s*=\s*"([^"]*)"`).FindStringSubmatch(definition)
	if m == nil {
		return ""
	}
	return m[1]
}

var (
	bucketShape     = regexp.MustCompile(`(?i)\bBUCKETS\s+(\w+)`)
	allocationShape = regexp.MustCompile(`:\s*(\d+)`)
)

// replicas compares a table that is there with the backends.
func (x *examination) replicas(definition string) loader.Finding {
	replicas, _ := strconv.ParseInt(propertyOf(definition, "replication_num"), 10, 64)
	for _, m := range allocationShape.FindAllStringSubmatch(propertyOf(definition, "replication_allocation"), -1) {
		n, _ := strconv.ParseInt(m[1], 10, 64)
		replicas += n
	}
	buckets := "an unknown number of"
	if m := bucketShape.FindStringSubmatch(definition); m != nil {
		buckets = m[1]
	}
	f := loader.Finding{Check: "table", Grade: loader.GradeOK,
		Found: fmt.Sprintf("%s has %s buckets a partition and %d replicas", x.db.name, buckets, replicas)}
	alive, lowered := int64(x.count()), propertyOf(definition, "min_load_replica_num")
	least, _ := x.number("min_load_replica_num")
	if alive < 0 || computeGroup(x.backends) != "" {
		return f
	}
	n, err := strconv.ParseInt(buckets, 10, 64)
	switch {
	case replicas > 0 && alive < replicas/2+1:
		f.Grade = loader.GradeFail
		f.Found += fmt.Sprintf(", and %d backends take loads: a load needs more than half of the replicas", alive)
		f.Fix = "bring the backends back: SHOW BACKENDS"
		if least > 0 || lowered != "" && lowered != "-1" { // which may let fewer do
			f.Grade = loader.GradeWarn
		}
	case replicas > alive:
		f.Grade = loader.GradeWarn
		f.Found += fmt.Sprintf(", and %d backends take loads: replicas are behind until the others are back", alive)
		f.Fix = "bring the backends back: SHOW BACKENDS"
	case err == nil && n*max(replicas, 1) < alive:
		f.Grade = loader.GradeWarn
		f.Found += fmt.Sprintf(", which is fewer than the %d backends: some take no rows", alive)
		f.Fix = fmt.Sprintf("make it anew with --%s %d", optBuckets, bucketsPerBackend*alive)
	}
	return f
}

// slowCommit is the wait for a merged commit, in milliseconds, that is worth a word.
const slowCommit = 1000

// groupFinding says what group commit does to each load.
func groupFinding(o options, interval, bytes string) loader.Finding {
	if interval == "" {
		interval = fmt.Sprint(max(o.groupInterval, 0))
	}
	f := loader.Finding{Check: "group commit", Grade: loader.GradeOK,
		Found: fmt.Sprintf("%s, every %s ms or %s bytes (0 or nothing: the server's default, 10000 ms)", o.group, interval, firstOf(bytes, fmt.Sprint(o.groupBytes)))}
	ms, err := strconv.ParseInt(interval, 10, 64)
	if o.group == groupSync && err == nil && (ms == 0 || ms > slowCommit) {
		f.Grade = loader.GradeWarn
		f.Found += ": a load is answered when its interval is over, so that workers wait for most of the time"
		f.Fix = fmt.Sprintf(`ALTER TABLE … SET ("group_commit_interval_ms" = "%d"), or --%s off with batches of 10 MB and more`, slowCommit, optGroupCommit)
	}
	return f
}

// privileges looks for the rights in the list of grants.
func (x *examination) privileges(ctx context.Context) ([]loader.Finding, error) {
	const check = "privileges"
	rows, err := x.ask(ctx, "grants", "SHOW GRANTS")
	if err != nil {
		return nil, err
	}
	want := []string{"LOAD", "SELECT"}
	inspecting, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()
	there, err := x.db.inspect(inspecting)
	var refused *mysql.MySQLError
	if err != nil && !errors.As(err, &refused) {
		return nil, err
	}
	if there == nil && refused == nil && x.intent.Create != loader.CreateNever {
		want = append(want, "CREATE")
	}
	var missing []string
	for _, p := range want {
		if !granted(rows, p, x.db.name) && (p != "LOAD" || !x.loaded) {
			missing = append(missing, p+"_PRIV")
		}
	}
	f := loader.Finding{Check: check, Grade: loader.GradeOK, Found: fmt.Sprintf("%s_PRIV on %s", strings.Join(want, "_PRIV, "), x.db.name)}
	if len(missing) > 0 {
		f.Grade = loader.GradeFail
		f.Found = fmt.Sprintf("%s on %s is not granted", strings.Join(missing, ", "), x.db.name)
		f.Fix = fmt.Sprintf("GRANT %s ON %s.* TO %s", strings.Join(missing, ", "), x.db.name.schema, x.user())
	}
	switch why := x.refused["grants"]; {
	case len(missing) == 0:
	case strings.HasPrefix(x.config["access_controller_type"], "ranger"):
		f.Grade = loader.GradeUnknown
		f.Found += ", and Apache Ranger decides here"
	case why != nil:
		f.Grade, f.Found = loader.GradeUnknown, "the grants cannot be listed: "+why.Error()
	case x.loaded && !granted(rows, "LOAD", x.db.name):
		// The frontend has let a load pass that the list does not allow: somebody else decides, such as Ranger.
		f.Grade = loader.GradeUnknown
		f.Found += ", and a load was let pass all the same: rights are given elsewhere"
	}
	return []loader.Finding{f}, nil
}

// granted reads the rows of SHOW GRANTS, which hold what all roles of the user bring: lists of rights for everything, and
// for catalogues, databases and tables "name: right,right; name: …".
func granted(rows []map[string]string, right string, on tableName) bool {
	has := func(list string) bool {
		for p := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ' ' }) {
			if strings.EqualFold(p, right+"_priv") || strings.EqualFold(p, "admin_priv") {
				return true
			}
		}
		return false
	}
	for _, row := range rows {
		if has(row["GlobalPrivs"]) {
			return true
		}
		for _, level := range []struct{ column, name string }{
			{"CatalogPrivs", "internal"}, {"DatabasePrivs", "internal." + on.schema}, {"TablePrivs", "internal." + on.schema + "." + on.table},
		} {
			for entry := range strings.SplitSeq(row[level.column], ";") {
				name, rights, _ := strings.Cut(strings.TrimSpace(entry), ": ")
				name = strings.TrimSpace(name)
				if (name == level.name || "internal."+name == level.name) && has(rights) {
					return true
				}
			}
		}
	}
	return false
}
