package doris

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// table looks whether Prepare would succeed, and compares replicas and buckets with the backends, of the table that is
// there or of the one that will be made.
func (x *doctor) table(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()
	c, err := x.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	k, err := x.Check(ctx, c, x.intent)
	x.findings = append(x.findings, k.Findings...)
	if err != nil {
		return err
	}
	x.makes = len(k.Missing) > 0
	definition := ""
	if k.Relation != nil {
		definition = k.Relation.Traits[0]
	}
	switch {
	case x.makes:
		x.planned()
		definition = ""
	case definition != "":
		x.replicas(definition)
	}
	if x.options.group == groupSync {
		x.groupCommit(property(definition, propInterval))
	}
	return nil
}

const checkShape = "buckets and replicas"

// planned looks at the shape of a table that will be made.
func (x *doctor) planned() {
	alive := x.alive()
	h := plannedShape(x.options, x.intent.Preparation).fill(alive)
	if alive < 0 {
		return
	}
	found := fmt.Sprintf("%s will be made with %d buckets and %d replicas", x.name, h.buckets, h.replication)
	if h.replication <= alive || x.cloud() { // in cloud mode it counts for nothing
		x.ok(checkShape, found)
		return
	}
	grade := loader.GradeWarn
	found += fmt.Sprintf(", and %d backends take loads", alive)
	if h.replication > int64(len(x.backends)) {
		grade = loader.GradeFail
		found += ": the server refuses to make it"
	}
	x.add(checkShape, grade, found, fmt.Sprintf("--%s %d", optReplication, max(alive, 1)))
}

// replicas compares a table that is there with the backends.
func (x *doctor) replicas(definition string) {
	replicas, _ := strconv.ParseInt(property(definition, "replication_num"), 10, 64)
	for part := range strings.SplitSeq(property(definition, "replication_allocation"), ",") { // tag.location.default: 3
		_, number, _ := strings.Cut(part, ":")
		n, _ := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		replicas += n
	}
	buckets := "an unknown number of"
	if m := regexp.MustCompile(`(?i)\bBUCKETS\s+(\w+)`).FindStringSubmatch(definition); m != nil {
		buckets = m[1]
	}
	found := fmt.Sprintf("%s has %s buckets a partition and %d replicas", x.name, buckets, replicas)
	alive := x.alive()
	n, _ := strconv.ParseInt(buckets, 10, 64)
	const back = "bring the backends back: SHOW BACKENDS"
	switch {
	case alive < 0 || x.cloud():
		x.ok(checkShape, found)
	case replicas > alive:
		grade := loader.GradeWarn
		least, _ := x.number("min_load_replica_num")
		lowered := property(definition, "min_load_replica_num")
		if alive < replicas/2+1 && least <= 0 && (lowered == "" || lowered == "-1") { // else fewer may do
			grade = loader.GradeFail
		}
		found += fmt.Sprintf(", and %d backends take loads: a load needs more than half of the replicas", alive)
		x.add(checkShape, grade, found, back)
	case n > 0 && n*max(replicas, 1) < alive:
		found += fmt.Sprintf(", which is fewer than the %d backends: some take no rows", alive)
		x.add(checkShape, loader.GradeWarn, found, fmt.Sprintf("make it anew with --%s %d", optBuckets, bucketsPerBackend*alive))
	default:
		x.ok(checkShape, found)
	}
}

// slowCommit is the wait for a merged commit, in milliseconds, that is worth a word.
const slowCommit = 1000

// groupCommit says what it does to each load; "" is not known.
func (x *doctor) groupCommit(interval string) {
	interval = cmp.Or(interval, strconv.FormatInt(x.options.groupInterval, 10))
	if ms, err := strconv.ParseInt(interval, 10, 64); err == nil && (ms == 0 || ms > slowCommit) {
		found := fmt.Sprintf("sync, every %s ms (0: the server's default, 10000 ms): "+
			"a load is answered when its interval is over, so that workers wait for most of the time", interval)
		const fix = `ALTER TABLE … SET ("%s" = "%d"), or --%s off with batches of 10 MB and more`
		x.add("group commit", loader.GradeWarn, found, fmt.Sprintf(fix, propInterval, slowCommit, optGroupCommit))
	}
}

// privileges looks for the rights in the list of grants.
func (x *doctor) privileges(ctx context.Context) error {
	const check = "privileges"
	rows, err := x.ask(ctx, "grants", "SHOW GRANTS")
	if err != nil {
		return err
	}
	want := []string{"LOAD_PRIV", "SELECT_PRIV"}
	if x.makes {
		want = append(want, "CREATE_PRIV")
	}
	var missing []string
	for _, right := range want {
		if !granted(rows, right, x.name) && (right != "LOAD_PRIV" || !x.loaded) {
			missing = append(missing, right)
		}
	}
	list := strings.Join(missing, ", ")
	if list == "" {
		x.ok(check, fmt.Sprintf("%s on %s", strings.Join(want, ", "), x.name))
		return nil
	}
	found, fix := fmt.Sprintf("%s on %s is not granted", list, x.name), x.grant(list)
	switch why := x.refused["grants"]; {
	case strings.HasPrefix(x.config["access_controller_type"], "ranger"):
		x.unknown(check, found+", and Apache Ranger decides here", fix)
	case why != "":
		x.unknown(check, "the grants cannot be listed: "+why, fix)
	case x.loaded && !granted(rows, "LOAD_PRIV", x.name):
		// The frontend has let a load pass that the list does not allow: somebody else decides, such as Ranger.
		x.unknown(check, found+", and a load was let pass all the same: rights are given elsewhere", fix)
	default:
		x.add(check, loader.GradeFail, found, fix)
	}
	return nil
}

// granted reads the rows of SHOW GRANTS, which hold what all roles of the user bring: lists of rights for everything,
// and for catalogues, databases and tables "name: right,right; name: …".
func granted(rows []map[string]string, right string, on tableName) bool {
	has := func(list string) bool {
		for p := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ' ' }) {
			if strings.EqualFold(p, right) || strings.EqualFold(p, "ADMIN_PRIV") {
				return true
			}
		}
		return false
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
				name = strings.TrimSpace(name)
				if (name == level || "internal."+name == level) && has(rights) {
					return true
				}
			}
		}
	}
	return false
}
