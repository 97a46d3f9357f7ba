package doris

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/pkg/loader"
)

var (
	_ loader.Checker = (*database)(nil)
	_ loader.Checker = staged{}
)

// questionTime bounds each question of CheckServer.
const questionTime = 4 * time.Second

// examination is one call of CheckServer with what the cluster has said. What could not be asked is nil, with the reason.
type examination struct {
	db       *database
	intent   loader.Intent
	backends []map[string]string // SHOW BACKENDS
	config   map[string]string   // of the frontend
	limits   map[string]int64    // of the backends: the least of each
	refused  map[string]error    // by what was asked: "backends", "frontend", "backend"
	loaded   bool                // a frontend sent a load on, so the right to load is there
}

// CheckServer asks for the limits that a push meets in this cluster, for rights, and whether the backends can be reached.
func (db *database) CheckServer(ctx context.Context, i loader.Intent) ([]loader.Finding, error) {
	x := &examination{db: db, intent: i, refused: make(map[string]error)}
	if err := x.read(ctx); err != nil {
		return nil, failed("examine "+db.frontends[0].address, err)
	}
	all := append(x.version(), x.alive()...)
	all = append(all, x.route(ctx)...)
	all = append(all, x.frontend()...)
	all = append(all, x.backend()...)
	for _, look := range []func(context.Context) ([]loader.Finding, error){x.table, x.privileges} {
		found, err := look(ctx)
		if err != nil {
			return all, failed("examine "+db.frontends[0].address, err)
		}
		all = append(all, found...)
	}
	return append(all, x.disks()...), nil
}

// CheckServer adds what is to be said of the store.
func (db staged) CheckServer(ctx context.Context, i loader.Intent) ([]loader.Finding, error) {
	all, err := db.database.CheckServer(ctx, i)
	if err != nil {
		return all, err
	}
	found, err := db.store.CheckServer(ctx, i, "Doris")
	return append(all, found...), err
}

// ask reads the answer of a SHOW. A refusal is nobody's error: it is kept, and the answer empty.
func (x *examination) ask(ctx context.Context, what, query string) ([]map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()
	found, err := shown(ctx, x.db.control, query)
	var refused *mysql.MySQLError
	if errors.As(err, &refused) {
		x.refused[what] = refused
		return nil, nil
	}
	return found, err
}

// What the backends are asked for. SHOW BACKEND CONFIG is there since 3.0, and takes one pattern.
const (
	streamMegabytes = "streaming_load_max_mb"
	tabletVersions  = "max_tablet_version_num"
)

func (x *examination) read(ctx context.Context) (err error) {
	if x.backends, err = x.ask(ctx, "backends", "SHOW BACKENDS"); err != nil {
		return err
	}
	settings, err := x.ask(ctx, "frontend", "SHOW FRONTEND CONFIG")
	if err == nil && x.refused["frontend"] != nil { // before 2.1 it was a statement of administrators
		refused := x.refused["frontend"]
		delete(x.refused, "frontend")
		if settings, err = x.ask(ctx, "frontend", "ADMIN SHOW FRONTEND CONFIG"); x.refused["frontend"] != nil {
			x.refused["frontend"] = refused
		}
	}
	if err != nil {
		return err
	}
	x.config = make(map[string]string)
	for _, s := range settings {
		x.config[s["Key"]] = s["Value"]
	}
	x.limits = make(map[string]int64)
	for _, name := range []string{streamMegabytes, tabletVersions} {
		found, err := x.ask(ctx, "backend", "SHOW BACKEND CONFIG LIKE "+literal(name))
		if err != nil {
			return err
		}
		for _, s := range found {
			n, unreadable := strconv.ParseInt(s["Value"], 10, 64)
			if least, known := x.limits[s["Key"]]; unreadable == nil && (!known || n < least) {
				x.limits[s["Key"]] = n
			}
		}
	}
	return nil
}

// number reads a setting of the frontend.
func (x *examination) number(name string) (n int64, known bool) {
	n, err := strconv.ParseInt(x.config[name], 10, 64)
	return n, err == nil
}

// loads is how many transactions the run is: one a batch, or one a commit group. 0: not known.
func (x *examination) loads() int64 {
	i := x.intent
	if i.TotalBytes <= 0 || i.BatchBytes <= 0 {
		return 0
	}
	size := i.BatchBytes * max(i.Contract.GroupBatches, 1)
	return (i.TotalBytes + size - 1) / size
}

// user is who logs in, as a GRANT names it.
func (x *examination) user() string { return literal(x.db.target.User) }

func (x *examination) version() []loader.Finding {
	f := loader.Finding{Check: "version", Grade: loader.GradeOK,
		Found: fmt.Sprintf("Apache Doris %s at %s", x.db.found.Version, x.db.found.Endpoint)}
	for _, b := range x.backends {
		if v := version(b["Version"]); b["Version"] != "" && release(v) != release(x.db.found.Version) {
			f.Grade = loader.GradeWarn
			f.Found += fmt.Sprintf("; backend %s is %s: a cluster in the middle of an upgrade", b["Host"], v)
			f.Fix = "finish the upgrade first, backends before frontends"
			break
		}
	}
	return []loader.Finding{f}
}

// release is the number without what stands behind it.
func release(version string) string {
	number, _, _ := strings.Cut(version, "-")
	return number
}

// takes tells whether a backend takes loads.
func takes(b map[string]string) bool {
	return strings.EqualFold(b["Alive"], "true") && !strings.Contains(b["Status"], `"isLoadDisabled":true`) &&
		!strings.EqualFold(b["SystemDecommissioned"], "true")
}

// count is how many backends take loads; −1 where nobody may say.
func (x *examination) count() int {
	if x.refused["backends"] != nil {
		return -1
	}
	n := 0
	for _, b := range x.backends {
		if takes(b) {
			n++
		}
	}
	return n
}

func (x *examination) alive() []loader.Finding {
	const check = "backends"
	if err := x.refused["backends"]; err != nil {
		return []loader.Finding{{Check: check, Grade: loader.GradeUnknown, Found: "the backends cannot be listed: " + err.Error(),
			Fix: "GRANT NODE_PRIV ON *.*.* TO " + x.user() + ", or ADMIN_PRIV"}}
	}
	n, all := x.count(), len(x.backends)
	f := loader.Finding{Check: check, Grade: loader.GradeOK, Found: fmt.Sprintf("%d of %d take loads", n, all)}
	var reasons []string
	for _, b := range x.backends {
		if !takes(b) {
			reasons = append(reasons, fmt.Sprintf("%s (alive: %s, %s)", b["Host"], b["Alive"], firstOf(b["ErrMsg"], "no error")))
		}
	}
	if len(reasons) > 0 {
		f.Grade, f.Fix = loader.GradeWarn, "look into be.out and be.INFO there, then SHOW BACKENDS"
		f.Found += ", and not: " + strings.Join(reasons, ", ")
	}
	group := computeGroup(x.backends)
	if n == 0 && group == "" { // a compute group may be asleep, and is woken by the load
		f.Grade = loader.GradeFail
	}
	if group != "" {
		f.Found += "; cloud mode, compute group " + group
	}
	return []loader.Finding{f}
}

// computeGroup is the name of the group in a cluster that keeps its data in an object store; "" elsewhere.
func computeGroup(backends []map[string]string) string {
	const name = `"compute_group_name" : "`
	for _, b := range backends {
		if _, rest, found := strings.Cut(b["Tag"], name); found {
			group, _, _ := strings.Cut(rest, `"`)
			return group
		}
	}
	return ""
}

// mebibytes writes a size as a flag takes it, rounded up.
func mebibytes(n int64) string {
	return fmt.Sprintf("%.0fMiB", math.Ceil(float64(n)/(1<<20)))
}
