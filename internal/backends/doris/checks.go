package doris

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// The statements behind the checks. SHOW BACKEND CONFIG exists since 3.0 and takes one pattern.
const (
	showBackends    = "SHOW BACKENDS"
	showFrontend    = "SHOW FRONTEND CONFIG"
	showBodySize    = "SHOW BACKEND CONFIG LIKE 'streaming_load_max_mb'"
	showMaxVersions = "SHOW BACKEND CONFIG LIKE 'max_tablet_version_num'"
	showGrants      = "SHOW GRANTS"
)

// doctor checks the cluster for one push.
type doctor struct {
	*opened
	intent   loader.Intent
	answers  map[string][]map[string]string // rows by statement
	refused  map[string]error               // by statement
	backend  *url.URL                       // where a frontend redirects a load; nil without a redirect
	routeErr error                          // why there is no redirect
	table    *sqlload.TableCheck
}

// CheckServer compares the push with the cluster's limits, the table and the user's privileges, and dials the backends.
func (l *opened) CheckServer(ctx context.Context, i loader.Intent) ([]loader.Finding, error) {
	d := &doctor{opened: l, intent: i, answers: map[string][]map[string]string{}, refused: map[string]error{}}
	findings, err := d.check(ctx)
	return findings, failed("check "+l.hosts.List[0].address, err)
}

func (d *doctor) check(ctx context.Context) ([]loader.Finding, error) {
	c, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	for _, statement := range []string{showBackends, showFrontend, showBodySize, showMaxVersions, showGrants} {
		bound, cancel := context.WithTimeout(ctx, questionTime)
		d.answers[statement], d.refused[statement], err = ask(bound, c.(sqlload.SQL), statement)
		cancel()
		if err != nil {
			return nil, err
		}
	}
	d.findRoute(ctx)
	cluster, _ := d.Ask(ctx, c, d.intent, slices.Concat(d.serverChecks(ctx), d.limitChecks()), nil)
	bound, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()
	d.table, err = d.Check(bound, c, d.intent)
	if err != nil {
		return append(cluster, d.table.Findings...), err
	}
	table, _ := d.Ask(ctx, c, d.intent, d.tableChecks(), nil)
	return slices.Concat(cluster, d.table.Findings, table), nil
}

// setting reads a setting; of the backends' values it returns the least.
func (d *doctor) setting(name string) (least int64, known bool) {
	for _, row := range slices.Concat(d.answers[showFrontend], d.answers[showBodySize], d.answers[showMaxVersions]) {
		n, err := strconv.ParseInt(row["Value"], 10, 64)
		if row["Key"] == name && err == nil && (!known || n < least) {
			least, known = n, true
		}
	}
	return least, known
}

// takesLoads reports whether a row of SHOW BACKENDS is that of a backend which takes loads.
func takesLoads(b map[string]string) bool {
	return strings.EqualFold(b["Alive"], "true") && !strings.Contains(b["Status"], `"isLoadDisabled":true`) &&
		!strings.EqualFold(b["SystemDecommissioned"], "true")
}

// alive returns the number of backends that take loads; −1 where the user may not list them.
func (d *doctor) alive() (n int64) {
	if d.refused[showBackends] != nil {
		return -1
	}
	for _, b := range d.answers[showBackends] {
		if takesLoads(b) {
			n++
		}
	}
	return n
}

// cloud reports whether the cluster keeps its data in an object store.
func (d *doctor) cloud() bool {
	return slices.ContainsFunc(d.answers[showBackends], func(b map[string]string) bool {
		return strings.Contains(b["Tag"], `"compute_group_name"`)
	})
}

func (d *doctor) serverChecks(ctx context.Context) []sqlload.Check {
	checks := []sqlload.Check{
		{Name: "version", Judge: func([]string) loader.Finding {
			return sqlload.OK(fmt.Sprintf("Apache Doris %s at %s", d.server.Version, d.server.Endpoint))
		}},
		d.hidden("backends", showBackends, d.admin("NODE_PRIV")+", or ADMIN_PRIV"),
		{Name: "backends", Judge: d.checkBackends},
		{Name: "disks", Judge: d.checkDisks},
	}
	if d.method.Name == methodStreamLoad {
		checks = append(checks,
			sqlload.Check{Name: "stream-load route", Judge: d.checkRoute},
			sqlload.Check{Name: "backend ports", Judge: func([]string) loader.Finding { return d.checkPorts(ctx) }})
	}
	return checks
}

// admin returns the statement that grants the user a right on everything.
func (d *doctor) admin(right string) string {
	return "GRANT " + right + " ON *.*.* TO " + literal(d.target.User)
}

// hidden reports a statement that the server refuses.
func (d *doctor) hidden(name, statement, fix string) sqlload.Check {
	return sqlload.Check{Name: name, Judge: func([]string) (none loader.Finding) {
		if d.refused[statement] == nil {
			return none
		}
		return loader.Finding{Grade: loader.GradeUnknown, Found: statement + ": " + loader.Explain(d.refused[statement]), Fix: fix}
	}}
}

func (d *doctor) checkBackends([]string) (none loader.Finding) {
	if d.alive() < 0 {
		return none
	}
	found := fmt.Sprintf("%d of %d take loads", d.alive(), len(d.answers[showBackends]))
	var down []string
	for _, b := range d.answers[showBackends] {
		if !takesLoads(b) {
			down = append(down, fmt.Sprintf("%s (alive: %s, %s)", b["Host"], b["Alive"], cmp.Or(b["ErrMsg"], "no error")))
		}
	}
	if len(down) == 0 && d.alive() > 0 {
		return sqlload.OK(found)
	}
	f := sqlload.Warn(found+"; not "+strings.Join(down, ", "), "read be.out and be.INFO there, then SHOW BACKENDS")
	if d.alive() == 0 && !d.cloud() { // a compute group may be asleep, and a load wakes it up
		f.Grade = loader.GradeFail
	}
	return f
}

// Use of a disk in percent, by default: at the first the balancer stops moving data there, at the second loads are
// refused (storage_high_watermark_usage_percent, storage_flood_stage_usage_percent).
const (
	highUse  = 85
	floodUse = 95
)

// checkDisks looks for full disks, and for room for all rows. In cloud mode they go into an object store.
func (d *doctor) checkDisks([]string) (none loader.Finding) {
	fullest, where, free := -1.0, "", uint64(0)
	for _, b := range d.answers[showBackends] {
		used := 0.0
		if _, err := fmt.Sscan(cmp.Or(b["MaxDiskUsedPct"], b["UsedPct"]), &used); err == nil && used > fullest {
			fullest, where = used, b["Host"]
		}
		n, _ := humanize.ParseBytes(strings.Replace(b["AvailCapacity"], "B", "iB", 1)) // Doris' GB has 2^30 bytes
		free += n
	}
	found := fmt.Sprintf("the fullest is %.0f %% full (%s), and %s are free on all of them", fullest, where, humanize.IBytes(free))
	switch need := uint64(d.intent.TotalBytes); {
	case where == "" || d.cloud():
		return none
	case fullest >= highUse: // no failure: other backends may hold enough replicas
		return sqlload.Warn(found, fmt.Sprintf("make room on %s: loads are refused from %d %% on", where, floodUse))
	case need > free:
		return sqlload.Warn(found+", for "+humanize.IBytes(need)+" of rows, times the replicas, before compression",
			"add backends or disks, or push less with --bytes")
	}
	return sqlload.OK(found)
}

// limit is a setting of the cluster that must be at least what the push needs. It does not apply if the need is 0.
type limit struct {
	check, setting string
	need           int64
	grade          loader.Grade
	warning, fix   string
}

// limitChecks compare settings with the push. Every load is a new version of every tablet that it touches, and loads
// are refused (-235) when compaction does not merge versions as fast as they come. The smaller
// streaming_load_json_max_mb does not apply to JSON with one row a line.
func (d *doctor) limitChecks() []sqlload.Check {
	const (
		running, age, number = "max_running_txn_num_per_db", "streaming_label_keep_max_second", "label_num_threshold"
		bodySize, versions   = "streaming_load_max_mb", "max_tablet_version_num"
	)
	i, workers, loads := d.intent, int64(d.intent.Workers), int64(0)
	if size := i.BatchBytes * max(i.Contract.GroupBatches, 1); size > 0 { // one load a batch or group
		loads = (max(i.TotalBytes, 0) + size - 1) / size
	}
	labels, labelSeconds, newVersions, body := loads, int64(labelLife.Seconds()), loads, int64(0)
	if d.options.group.on() { // has no labels, and merges loads into fewer versions
		labels, labelSeconds, newVersions = 0, 0, 0
	}
	if d.method.Name == methodStreamLoad {
		body = (i.BatchBytes + 1<<20 - 1) >> 20
	}
	maxBody, _ := d.setting(bodySize)
	maxVersions, _ := d.setting(versions)
	fewer := fmt.Sprintf("--batch-bytes %dMiB", min(i.TotalBytes/max(maxVersions/2, 1)>>20+1, maxStreamBytes>>20))
	if d.method.Name == methodInsert {
		fewer = "--method " + methodStreamLoad + " " + fewer
	}
	set := func(setting string, value int64) string {
		return fmt.Sprintf(`ADMIN SET ALL FRONTENDS CONFIG ("%s" = "%d"), and the same in fe.conf`, setting, value)
	}
	const update = "--batch-bytes %dMiB, or on every backend: " +
		"curl -X POST 'http://BACKEND:8040/api/update_config?%s=%d&persist=true'"
	checks := []sqlload.Check{
		d.hidden("frontend settings", showFrontend, d.admin("ADMIN_PRIV")),
		d.hidden("backend settings", showMaxVersions, d.admin("ADMIN_PRIV")+"; before Doris 3.0: curl http://BACKEND:8040/varz"),
	}
	for _, l := range []limit{
		{"transactions", running, workers, loader.GradeWarn,
			fmt.Sprintf("the server refuses some loads of %d workers, which are sent again", workers), set(running, 2*workers)},
		{"labels", age, labelSeconds, loader.GradeWarn,
			fmt.Sprintf("a run relies on %d: one resumed too late may load batches twice", labelSeconds), set(age, labelSeconds)},
		{"labels", number, labels, loader.GradeWarn,
			fmt.Sprintf("the run has %d loads: a batch that is resolved too late is not recognized", labels), set(number, 2*labels)},
		{"body size", bodySize, body, loader.GradeFail,
			fmt.Sprintf("batches have %dMiB, so every load is refused", body), fmt.Sprintf(update, maxBody, bodySize, body+1)},
		{"tablet versions", versions, newVersions, loader.GradeWarn,
			fmt.Sprintf("%d loads are as many versions of each tablet: if compaction does not merge %d of them during the run, "+
				"loads are refused (-235)", newVersions, newVersions-maxVersions), fewer},
	} {
		checks = append(checks, sqlload.Check{Name: l.check, Judge: func([]string) (none loader.Finding) {
			n, known := d.setting(l.setting)
			found := fmt.Sprintf("%s = %d", l.setting, n)
			switch {
			case !known || n <= 0 || l.need <= 0:
				return none
			case n >= l.need:
				return sqlload.OK(found)
			}
			return loader.Finding{Grade: l.grade, Found: found + ", and " + l.warning, Fix: l.fix}
		}})
	}
	if d.method.Name == methodInsert {
		checks = append(checks, sqlload.Check{Name: "statement size", Judge: d.checkPacket})
	}
	return checks
}

// checkPacket compares a batch with the frontend's max_allowed_packet.
func (d *doctor) checkPacket([]string) loader.Finding {
	most, batch := d.caps.MaxBytes, d.intent.BatchBytes
	found := fmt.Sprintf("max_allowed_packet leaves %s for the rows of an INSERT", humanize.IBytes(uint64(most)))
	if batch <= most {
		return sqlload.OK(found)
	}
	return sqlload.Fail(fmt.Sprintf("%s, and batches have %s", found, humanize.IBytes(uint64(batch))),
		fmt.Sprintf("--batch-bytes %d, or SET GLOBAL max_allowed_packet = %d", most, batch+packetRoom))
}
