package databend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

var _ loader.Checker = (*opened)(nil)

// questionTime bounds each step of CheckServer: a server whose query queue is full lets even small questions wait.
const questionTime = 4 * time.Second

// examination looks at one server for one push.
type examination struct {
	*opened
	intent   loader.Intent
	limits   map[string]string // settings
	configs  map[string]string // of a node, by group.name; nil: they cannot be read
	hidden   error             // why not
	there    bool              // the table is there, and stays
	findings []loader.Finding
}

// CheckServer asks for the limits that a push meets on this server, for the table and the privileges on it, and for the way
// to the server's storage.
func (l *opened) CheckServer(ctx context.Context, i loader.Intent) ([]loader.Finding, error) {
	e := &examination{opened: l, intent: i}
	for _, step := range [...]func(context.Context) error{
		e.product, e.readLimits, e.readConfigs, e.cluster, e.slots, e.timeouts, e.route, e.memory, e.table,
		e.privileges, e.storage,
	} {
		bound, cancel := context.WithTimeout(ctx, questionTime)
		err := step(bound)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil { // the next question would wait as long
			e.warn("answers", fmt.Sprintf("a small question was not answered within %s, and no other was asked: "+
				"the server is busy, or its query queue full", questionTime),
				"SELECT id, user, time, status FROM system.processes shows what is at work")
			return e.findings, nil
		}
		if err != nil {
			return e.findings, failedBefore("examine "+l.host().address, err)
		}
	}
	if l.store == nil {
		return e.findings, nil
	}
	found, err := l.store.CheckServer(ctx, i, "Databend")
	return append(e.findings, found...), err
}

func (e *examination) add(check string, g loader.Grade, found, fix string) {
	e.findings = append(e.findings, loader.Finding{Check: check, Grade: g, Found: found, Fix: fix})
}

func (e *examination) ok(check, found string)        { e.add(check, loader.GradeOK, found, "") }
func (e *examination) warn(check, found, fix string) { e.add(check, loader.GradeWarn, found, fix) }
func (e *examination) fail(check, found, fix string) { e.add(check, loader.GradeFail, found, fix) }
func (e *examination) unknown(check, found, fix string) {
	e.add(check, loader.GradeUnknown, found, fix)
}

// said reports whether an error is the server's answer, and not the loss of the connection.
func said(err error) bool {
	var server *serverError
	return errors.As(err, &server)
}

// lost is an error that says that the server could not be asked; nil for an answer.
func lost(err error) error {
	if said(err) {
		return nil
	}
	return err
}

func (e *examination) product(context.Context) error {
	number, _, _ := strings.Cut(e.server.Version, "(")
	e.ok("version", fmt.Sprintf("Databend %s at %s", strings.TrimSpace(number), e.host().address))
	return nil
}

// What is read: settings, which everybody may, and the configuration of a node, which needs account_admin.
const (
	queueTimeout   = "statement_queued_timeout_in_seconds"
	executeTimeout = "max_execute_time_in_seconds"
	resultTimeout  = "http_handler_result_timeout_secs"
	fileMemory     = "load_file_metadata_expire_hours"

	selectLimits = "SELECT name, value FROM system.settings WHERE name IN ('" +
		queueTimeout + "', '" + executeTimeout + "', '" + resultTimeout + "', '" + fileMemory + "')"
	selectConfigs = "SELECT `group`, name, value FROM system.configs WHERE `group` = 'query' AND name IN " +
		"('max_running_queries', 'max_active_sessions') OR `group` = 'storage' AND name = 'type'"
	selectNodes = "SELECT cluster, host FROM system.clusters"
)

func (e *examination) readLimits(ctx context.Context) (err error) {
	e.limits, err = e.settings(ctx, selectLimits)
	return lost(err)
}

func (e *examination) readConfigs(ctx context.Context) error {
	found, err := e.rows(ctx, selectConfigs)
	if err != nil {
		e.hidden = err
		return lost(err)
	}
	e.configs = make(map[string]string)
	for _, row := range found {
		e.configs[row[0]+"."+row[1]] = row[2]
	}
	return nil
}

func number(of map[string]string, name string) (n int64, known bool) {
	n, err := strconv.ParseInt(of[name], 10, 64)
	return n, err == nil
}

// notShown is the finding for what only an administrator may read.
func (e *examination) notShown(check, what string) {
	why := "system.configs does not have it"
	if e.hidden != nil {
		why = e.hidden.Error()
	}
	e.unknown(check, what+" cannot be read: "+why,
		"GRANT ROLE account_admin TO USER …; hosted servers hide their configuration from everybody")
}

// cluster compares the hosts of the target with those of the cluster, and warns where nodes are left out: rows are
// parsed on the node that they are sent to. A target whose host is none of the nodes' is a balancer, or a name for
// them.
func (e *examination) cluster(ctx context.Context) error {
	const check = "cluster"
	nodes, err := e.rows(ctx, selectNodes)
	if err != nil {
		if said(err) {
			e.unknown(check, "the nodes cannot be listed: "+err.Error(), "GRANT SELECT ON system.clusters TO USER …")
		}
		return lost(err)
	}
	name, addresses := "", make([]string, len(nodes))
	for i, row := range nodes {
		name, addresses[i] = row[0], row[1]
	}
	counted := "1 node"
	if len(nodes) != 1 {
		counted = fmt.Sprintf("%d nodes", len(nodes))
	}
	found := fmt.Sprintf("%s: %s, and the target names %d", cmp.Or(name, "no name"), counted, len(e.hosts))
	for _, h := range e.hosts {
		host, _, _ := net.SplitHostPort(h.address)
		if len(nodes) > len(e.hosts) && slices.Contains(addresses, host) {
			e.warn(check, fmt.Sprintf("%s, by its own address %s: the others parse no rows", found, host),
				"name them all: databend://user@"+strings.Join(addresses, ",")+"/…")
			return nil
		}
	}
	e.ok(check, found)
	return nil
}

// slots compares how many statements run at a time with the workers. Uploads to a stage take none of them.
func (e *examination) slots(context.Context) error {
	const check = "running queries"
	hosts, workers := int64(len(e.hosts)), int64(e.intent.Workers)
	running, known := number(e.configs, "query.max_running_queries")
	found := fmt.Sprintf("max_running_queries = %d on each host, %d in all", running, running*hosts)
	switch {
	case e.configs == nil:
		e.notShown(check, "how many queries run at a time")
	case !known:
		e.notShown(check, "max_running_queries")
	case running == 0:
		e.ok(check, "max_running_queries = 0: as many as come")
	case e.caps.Staged:
		e.ok(check, found+", and uploads take none of them")
	case workers > running*hosts:
		e.warn(check, fmt.Sprintf("%s: of %d workers %d wait at any time", found, workers, workers-running*hosts),
			fmt.Sprintf("[query] max_running_queries = %d in databend-query.toml, and a restart; or --workers %d",
				(workers+hosts-1)/hosts, running*hosts))
	case workers > 0:
		e.ok(check, fmt.Sprintf("%s, enough for %d workers", found, workers))
	default:
		e.ok(check, found)
	}
	most, known := number(e.configs, "query.max_active_sessions")
	found = fmt.Sprintf("max_active_sessions = %d on each host", most)
	switch {
	case !known:
	case workers > most*hosts:
		e.warn("sessions", fmt.Sprintf("%s: %d workers are more, and what comes above it is refused", found, workers),
			fmt.Sprintf("[query] max_active_sessions = %d in databend-query.toml, and a restart; or --workers %d",
				2*workers, most*hosts))
	default:
		e.ok("sessions", found)
	}
	return nil
}

// timeouts looks for settings that would end a load which is only slow. An answer is asked for again within ten seconds, so
// it has to be kept for some time longer.
func (e *examination) timeouts(context.Context) error {
	const check = "timeouts"
	if len(e.limits) == 0 {
		e.unknown(check, "system.settings cannot be read", "GRANT SELECT ON system.settings TO USER …")
		return nil
	}
	before := len(e.findings)
	bounded := func(seconds int64) bool { return seconds > 0 }
	short := func(seconds int64) bool { return seconds < 30 }
	for _, t := range [...]struct {
		name   string
		bad    func(seconds int64) bool
		found  string
		wanted int
	}{
		{executeTimeout, bounded, "a statement is ended after %d s, also one that loads", 0},
		{queueTimeout, bounded, "a statement that has waited %d s for its turn is refused", 0},
		{resultTimeout, short,
			"an answer is forgotten after %d s: that of a long statement may be lost between two looks at it", 60},
	} {
		if n, known := number(e.limits, t.name); known && t.bad(n) {
			e.warn(t.name, fmt.Sprintf(t.found, n), fmt.Sprintf("--set %s=%d", t.name, t.wanted))
		}
	}
	if len(e.findings) == before {
		e.ok(check, fmt.Sprintf("statements may wait and run for as long as they need; answers are kept for %s s",
			e.limits[resultTimeout]))
	}
	return nil
}

// memory says for how long the server recognises what it has loaded.
func (e *examination) memory(context.Context) error {
	const check = "file names"
	hours, known := number(e.limits, fileMemory)
	found := fmt.Sprintf("COPY remembers for %d hours which files it has loaded", hours)
	switch window := int64(labelWindow.Hours()); {
	case !e.caps.Staged:
		e.ok("labels", "a batch's label is remembered for 24 hours; "+
			"a run that is resumed later has to look for the rows themselves")
	case !known:
		e.unknown(check, fileMemory+" cannot be read", "")
	case hours < window:
		e.warn(check, found+", and a run counts on 24: one that is resumed later than that loads files twice",
			fmt.Sprintf("SET GLOBAL %s = %d", fileMemory, window))
	default:
		e.ok(check, found)
	}
	return nil
}

// storage looks at where the server keeps tables and stages.
func (e *examination) storage(context.Context) error {
	const check = "storage"
	switch kind := e.configs["storage.type"]; kind {
	case "":
		e.notShown(check, "what lies below tables and stages")
	case "memory":
		e.warn(check, "type memory: the rows are gone when the server ends",
			`[storage] type = "s3" (or fs) in databend-query.toml`)
	case "fs":
		e.ok(check, "type fs: files of that machine, whose disk is part of what is measured")
	default:
		e.ok(check, "type "+kind)
	}
	return nil
}
