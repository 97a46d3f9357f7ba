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

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

var _ loader.Checker = (*opened)(nil)

// questionTime bounds each step of CheckServer: a server whose query queue is full lets even small questions wait.
const questionTime = 4 * time.Second

// doctor looks at one server for one push.
type doctor struct {
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
	e := &doctor{opened: l, intent: i}
	for _, step := range [...]struct {
		check string
		// find returns a finding, one without a grade if there is none. An error says that the server could not be asked.
		find func(context.Context) (loader.Finding, error)
	}{
		{"version", known(e.product)},
		{"", e.readLimits},
		{"", e.readConfigs},
		{"cluster", e.cluster},
		{"running queries", known(e.slots)},
		{"sessions", known(e.connections)},
		{"timeouts", known(e.timeouts)},
		{"streaming load", e.streaming},
		{"presigned uploads", e.presigned},
		{"file names", known(e.memory)},
		{"", e.table},
		{"privileges", e.privileges},
		{"storage", known(e.storage)},
	} {
		bound, cancel := context.WithTimeout(ctx, questionTime)
		f, err := step.find(bound)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil { // the next question would wait as long
			e.add("answers", sqlload.Warn(fmt.Sprintf("a small question was not answered within %s, and no other was asked: "+
				"the server is busy, or its query queue full", questionTime),
				"SELECT id, user, time, status FROM system.processes shows what is at work"))
			return e.findings, nil
		}
		if err != nil {
			return e.findings, failedBefore("examine "+l.host().address, err)
		}
		e.add(step.check, f)
	}
	if l.store == nil {
		return e.findings, nil
	}
	found, err := l.store.CheckServer(ctx, i, "Databend")
	return append(e.findings, found...), err
}

// known is a step that asks nothing.
func known(judge func() loader.Finding) func(context.Context) (loader.Finding, error) {
	return func(context.Context) (loader.Finding, error) { return judge(), nil }
}

// add keeps a finding, unless it has no grade. One without a name has the check's.
func (e *doctor) add(check string, f loader.Finding) {
	if f.Check = cmp.Or(f.Check, check); f.Grade != "" {
		e.findings = append(e.findings, f)
	}
}

func unknown(found, fix string) loader.Finding {
	return loader.Finding{Grade: loader.GradeUnknown, Found: found, Fix: fix}
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

func (e *doctor) product() loader.Finding {
	number, _, _ := strings.Cut(e.server.Version, "(")
	return sqlload.OK(fmt.Sprintf("Databend %s at %s", strings.TrimSpace(number), e.host().address))
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

func (e *doctor) readLimits(ctx context.Context) (none loader.Finding, err error) {
	e.limits, err = e.settings(ctx, selectLimits)
	return none, lost(err)
}

func (e *doctor) readConfigs(ctx context.Context) (none loader.Finding, err error) {
	found, err := e.rows(ctx, selectConfigs)
	if err != nil {
		e.hidden = err
		return none, lost(err)
	}
	e.configs = make(map[string]string)
	for _, row := range found {
		e.configs[row[0]+"."+row[1]] = row[2]
	}
	return none, nil
}

func number(of map[string]string, name string) (n int64, known bool) {
	n, err := strconv.ParseInt(of[name], 10, 64)
	return n, err == nil
}

// notShown is the finding for what only an administrator may read.
func (e *doctor) notShown(what string) loader.Finding {
	why := "system.configs does not have it"
	if e.hidden != nil {
		why = e.hidden.Error()
	}
	return unknown(what+" cannot be read: "+why,
		"GRANT ROLE account_admin TO USER …; hosted servers hide their configuration from everybody")
}

// cluster compares the hosts of the target with those of the cluster, and warns where nodes are left out: rows are
// parsed on the node that they are sent to. A target whose host is none of the nodes' is a balancer, or a name for
// them.
func (e *doctor) cluster(ctx context.Context) (loader.Finding, error) {
	nodes, err := e.rows(ctx, selectNodes)
	if err != nil {
		return unknown("the nodes cannot be listed: "+err.Error(), "GRANT SELECT ON system.clusters TO USER …"), lost(err)
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
			return sqlload.Warn(fmt.Sprintf("%s, by its own address %s: the others parse no rows", found, host),
				"name them all: databend://user@"+strings.Join(addresses, ",")+"/…"), nil
		}
	}
	return sqlload.OK(found), nil
}

// slots compares how many statements run at a time with the workers. Uploads to a stage take none of them.
func (e *doctor) slots() loader.Finding {
	hosts, workers := int64(len(e.hosts)), int64(e.intent.Workers)
	running, known := number(e.configs, "query.max_running_queries")
	found := fmt.Sprintf("max_running_queries = %d on each host, %d in all", running, running*hosts)
	switch {
	case e.configs == nil:
		return e.notShown("how many queries run at a time")
	case !known:
		return e.notShown("max_running_queries")
	case running == 0:
		return sqlload.OK("max_running_queries = 0: as many as come")
	case e.caps.Staged:
		return sqlload.OK(found + ", and uploads take none of them")
	case workers > running*hosts:
		return sqlload.Warn(fmt.Sprintf("%s: of %d workers %d wait at any time", found, workers, workers-running*hosts),
			fmt.Sprintf("[query] max_running_queries = %d in databend-query.toml, and a restart; or --workers %d",
				(workers+hosts-1)/hosts, running*hosts))
	case workers > 0:
		return sqlload.OK(fmt.Sprintf("%s, enough for %d workers", found, workers))
	}
	return sqlload.OK(found)
}

func (e *doctor) connections() (none loader.Finding) {
	hosts, workers := int64(len(e.hosts)), int64(e.intent.Workers)
	most, known := number(e.configs, "query.max_active_sessions")
	found := fmt.Sprintf("max_active_sessions = %d on each host", most)
	switch {
	case !known:
		return none
	case workers > most*hosts:
		return sqlload.Warn(fmt.Sprintf("%s: %d workers are more, and what comes above it is refused", found, workers),
			fmt.Sprintf("[query] max_active_sessions = %d in databend-query.toml, and a restart; or --workers %d",
				2*workers, most*hosts))
	}
	return sqlload.OK(found)
}

// timeouts looks for settings that would end a load which is only slow. An answer is asked for again within ten seconds, so
// it has to be kept for some time longer.
func (e *doctor) timeouts() (none loader.Finding) {
	if len(e.limits) == 0 {
		return unknown("system.settings cannot be read", "GRANT SELECT ON system.settings TO USER …")
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
			e.add(t.name, sqlload.Warn(fmt.Sprintf(t.found, n), fmt.Sprintf("--set %s=%d", t.name, t.wanted)))
		}
	}
	if len(e.findings) > before {
		return none
	}
	return sqlload.OK(fmt.Sprintf("statements may wait and run for as long as they need; answers are kept for %s s",
		e.limits[resultTimeout]))
}

// memory says for how long the server recognises what it has loaded.
func (e *doctor) memory() loader.Finding {
	hours, known := number(e.limits, fileMemory)
	found := fmt.Sprintf("COPY remembers for %d hours which files it has loaded", hours)
	switch window := int64(labelWindow.Hours()); {
	case !e.caps.Staged:
		return loader.Finding{Check: "labels", Grade: loader.GradeOK, Found: "a batch's label is remembered for 24 hours; " +
			"a run that is resumed later has to look for the rows themselves"}
	case !known:
		return unknown(fileMemory+" cannot be read", "")
	case hours < window:
		return sqlload.Warn(found+", and a run counts on 24: one that is resumed later than that loads files twice",
			fmt.Sprintf("SET GLOBAL %s = %d", fileMemory, window))
	}
	return sqlload.OK(found)
}

// storage looks at where the server keeps tables and stages.
func (e *doctor) storage() loader.Finding {
	switch kind := e.configs["storage.type"]; kind {
	case "":
		return e.notShown("what lies below tables and stages")
	case "memory":
		return sqlload.Warn("type memory: the rows are gone when the server ends",
			`[storage] type = "s3" (or fs) in databend-query.toml`)
	case "fs":
		return sqlload.OK("type fs: files of that machine, whose disk is part of what is measured")
	default:
		return sqlload.OK("type " + kind)
	}
}
