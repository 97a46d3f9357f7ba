package doris

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

// questionTime bounds each question of CheckServer.
const questionTime = 4 * time.Second

// doctor looks at the cluster for one push.
type doctor struct {
	*opened
	intent   loader.Intent
	backends []map[string]string // SHOW BACKENDS
	config   map[string]string   // of the frontend; of the backends the least of each
	refused  map[string]string   // by what was asked: "backends", "frontend", "backend", "grants"
	loaded   bool                // a frontend sent a load on, so the right to load is there
	makes    bool                // the run makes the table
	findings []loader.Finding
}

// CheckServer asks for the limits that a push meets in this cluster, for rights, and whether the backends can be reached.
func (l *opened) CheckServer(ctx context.Context, i loader.Intent) ([]loader.Finding, error) {
	x := &doctor{opened: l, intent: i, config: make(map[string]string), refused: make(map[string]string)}
	for _, step := range [...]func(context.Context) error{
		x.read, x.cluster, x.route, x.settings, x.table, x.privileges, x.disks,
	} {
		if err := step(ctx); err != nil {
			return x.findings, failed("examine "+l.frontends[0].address, err)
		}
	}
	return x.findings, nil
}

func (x *doctor) add(check string, g loader.Grade, found, fix string) {
	x.findings = append(x.findings, loader.Finding{Check: check, Grade: g, Found: found, Fix: fix})
}

func (x *doctor) ok(check, found string) { x.add(check, loader.GradeOK, found, "") }
func (x *doctor) unknown(check, found, fix string) {
	x.add(check, loader.GradeUnknown, found, fix)
}

// ask reads the answer of a SHOW. A refusal is nobody's error: it is kept, and the answer empty.
func (x *doctor) ask(ctx context.Context, what, query string) ([]map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()
	found, refused, err := ask(ctx, x.control, query)
	if refused != nil {
		x.refused[what] = refused.Error()
	}
	return found, err
}

// What the backends are asked for. SHOW BACKEND CONFIG is there since 3.0, and takes one pattern.
const (
	streamMegabytes = "streaming_load_max_mb"
	tabletVersions  = "max_tablet_version_num"
)

func (x *doctor) read(ctx context.Context) (err error) {
	if x.backends, err = x.ask(ctx, "backends", "SHOW BACKENDS"); err != nil {
		return err
	}
	settings, err := x.ask(ctx, "frontend", "SHOW FRONTEND CONFIG")
	if err != nil {
		return err
	}
	for _, s := range settings {
		x.config[s["Key"]] = s["Value"]
	}
	for _, name := range []string{streamMegabytes, tabletVersions} {
		found, err := x.ask(ctx, "backend", "SHOW BACKEND CONFIG LIKE "+literal(name))
		if err != nil {
			return err
		}
		for _, s := range found {
			n, unreadable := strconv.ParseInt(s["Value"], 10, 64)
			if least, known := x.number(s["Key"]); unreadable == nil && (!known || n < least) {
				x.config[s["Key"]] = s["Value"]
			}
		}
	}
	return nil
}

// number reads a setting.
func (x *doctor) number(name string) (n int64, known bool) {
	n, err := strconv.ParseInt(x.config[name], 10, 64)
	return n, err == nil
}

// transactions is how many of them the run is: one a batch, or one a commit group. 0: not known.
func (x *doctor) transactions() int64 {
	i := x.intent
	if i.TotalBytes <= 0 || i.BatchBytes <= 0 {
		return 0
	}
	size := i.BatchBytes * max(i.Contract.GroupBatches, 1)
	return (i.TotalBytes + size - 1) / size
}

// admin gives the user a right on everything.
func (x *doctor) admin(right string) string {
	return "GRANT " + right + " ON *.*.* TO " + literal(x.target.User)
}

// takesLoads reports whether a backend does.
func takesLoads(b map[string]string) bool {
	return strings.EqualFold(b["Alive"], "true") && !strings.Contains(b["Status"], `"isLoadDisabled":true`) &&
		!strings.EqualFold(b["SystemDecommissioned"], "true")
}

// alive is how many backends take loads; −1 where nobody may say.
func (x *doctor) alive() int64 {
	if x.refused["backends"] != "" {
		return -1
	}
	n := int64(0)
	for _, b := range x.backends {
		if takesLoads(b) {
			n++
		}
	}
	return n
}

// cluster looks at versions, and at the backends that take loads.
func (x *doctor) cluster(context.Context) error {
	x.ok("version", fmt.Sprintf("Apache Doris %s at %s", x.server.Version, x.server.Endpoint))

	const check = "backends"
	if refused := x.refused["backends"]; refused != "" {
		x.unknown(check, "the backends cannot be listed: "+refused, x.admin("NODE_PRIV")+", or ADMIN_PRIV")
		return nil
	}
	found, grade, fix := fmt.Sprintf("%d of %d take loads", x.alive(), len(x.backends)), loader.GradeOK, ""
	var reasons []string
	for _, b := range x.backends {
		if !takesLoads(b) {
			reasons = append(reasons, fmt.Sprintf("%s (alive: %s, %s)", b["Host"], b["Alive"], cmp.Or(b["ErrMsg"], "no error")))
		}
	}
	if len(reasons) > 0 {
		found += ", and not: " + strings.Join(reasons, ", ")
		grade, fix = loader.GradeWarn, "look into be.out and be.INFO there, then SHOW BACKENDS"
	}
	if x.alive() == 0 && !x.cloud() { // a compute group may be asleep, and is woken by the load
		grade = loader.GradeFail
	}
	x.add(check, grade, found, fix)
	return nil
}

// cloud reports whether the cluster keeps its data in an object store.
func (x *doctor) cloud() bool {
	return slices.ContainsFunc(x.backends, func(b map[string]string) bool { return strings.Contains(b["Tag"], `"compute_group_name"`) })
}
