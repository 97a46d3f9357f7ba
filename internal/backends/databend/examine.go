package databend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

var _ loader.Checker = (*database)(nil)

// questionTime bounds each question of CheckServer: a server whose query queue is full lets even small ones wait.
const questionTime = 4 * time.Second

// examination is one call of CheckServer with what the server has said.
type examination struct {
	db       *database
	intent   loader.Intent
	settings map[string]string
	configs  map[string]string // by group.name; nil: not to be read
	refused  error             // why they cannot be read
}

// CheckServer asks for the limits that a push meets on this server, for rights, and for the way to its storage.
func (db *database) CheckServer(ctx context.Context, i loader.Intent) ([]loader.Finding, error) {
	x := &examination{db: db, intent: i}
	var all []loader.Finding
	for _, look := range []func(context.Context) ([]loader.Finding, error){
		x.version, x.read, x.nodes, x.slots, x.timeouts, x.route, x.memory, x.privileges, x.storage,
	} {
		inTime, cancel := context.WithTimeout(ctx, questionTime)
		found, err := look(inTime)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return append(all, slowAnswer()), nil // the next question would wait as long
		}
		if err != nil {
			return all, failedBefore("examine "+db.control().address, err)
		}
		all = append(all, found...)
	}
	if db.objects == nil {
		return all, nil
	}
	found, err := db.objects.CheckServer(ctx, i, "Databend")
	return append(all, found...), err
}

// slowAnswer is the finding of a server that lets small questions wait.
func slowAnswer() loader.Finding {
	return loader.Finding{Check: "answers", Grade: loader.GradeWarn,
		Found: fmt.Sprintf("a small question was not answered within %s, and no other was asked: the server is busy, or its query queue full", questionTime),
		Fix:   "SELECT id, user, time, status FROM system.processes shows what is at work",
	}
}

// said tells whether an error is the server's answer, and not the loss of the connection.
func said(err error) bool {
	var server *serverError
	return errors.As(err, &server)
}

func (x *examination) version(context.Context) ([]loader.Finding, error) {
	number, _, _ := strings.Cut(x.db.server.Version, "(")
	return []loader.Finding{{Check: "version", Grade: loader.GradeOK,
		Found: fmt.Sprintf("Databend %s at %s", strings.TrimSpace(number), x.db.control().address)}}, nil
}

// What is read: settings, which everybody may, and the configuration of a node, which needs account_admin.
const (
	queueTimeout   = "statement_queued_timeout_in_seconds"
	executeTimeout = "max_execute_time_in_seconds"
	resultTimeout  = "http_handler_result_timeout_secs"
	fileMemory     = "load_file_metadata_expire_hours"

	selectConfigs = "SELECT `group`, name, value FROM system.configs WHERE `group` = 'query' AND name IN " +
		"('max_running_queries', 'max_active_sessions') OR `group` = 'storage' AND name = 'type'"
	selectNodes = "SELECT cluster, host FROM system.clusters"
)

func selectLimits() string {
	return "SELECT name, value FROM system.settings WHERE name IN (" + literals([]string{queueTimeout, executeTimeout, resultTimeout, fileMemory}) + ")"
}

// read fills in settings and configs.
func (x *examination) read(ctx context.Context) (all []loader.Finding, err error) {
	x.settings = make(map[string]string)
	err = x.db.run(ctx, statement{sql: selectLimits()}, func(r row) error {
		if v := r.texts(); len(v) == 2 {
			x.settings[v[0]] = v[1]
		}
		return nil
	})
	if err != nil && !said(err) {
		return nil, err
	}
	configs := make(map[string]string)
	err = x.db.run(ctx, statement{sql: selectConfigs}, func(r row) error {
		if v := r.texts(); len(v) == 3 {
			configs[v[0]+"."+v[1]] = v[2]
		}
		return nil
	})
	switch {
	case err == nil:
		x.configs = configs
	case said(err):
		x.refused, err = err, nil
	}
	return nil, err
}

// config reads a number of the configuration.
func (x *examination) config(name string) (n int64, known bool) {
	n, err := strconv.ParseInt(x.configs[name], 10, 64)
	return n, err == nil
}

func (x *examination) setting(name string) (n int64, known bool) {
	n, err := strconv.ParseInt(x.settings[name], 10, 64)
	return n, err == nil
}

// unreadable is the finding for what only an administrator may see.
func (x *examination) unreadable(check, what string) loader.Finding {
	why := "system.configs does not have it"
	if x.refused != nil {
		why = x.refused.Error()
	}
	return loader.Finding{Check: check, Grade: loader.GradeUnknown, Found: what + " cannot be read: " + why,
		Fix: "GRANT ROLE account_admin TO USER …; hosted servers hide their configuration from everybody"}
}

// nodes compares the hosts of the target with those of the cluster.
func (x *examination) nodes(ctx context.Context) ([]loader.Finding, error) {
	const check = "cluster"
	var cluster string
	var hosts []string
	err := x.db.run(ctx, statement{sql: selectNodes}, func(r row) error {
		if v := r.texts(); len(v) == 2 {
			cluster, hosts = v[0], append(hosts, v[1])
		}
		return nil
	})
	switch {
	case said(err):
		return []loader.Finding{{Check: check, Grade: loader.GradeUnknown, Found: "the nodes cannot be listed: " + err.Error(),
			Fix: "GRANT SELECT ON system.clusters TO USER …"}}, nil
	case err != nil:
		return nil, err
	}
	return []loader.Finding{clusterFinding(cluster, hosts, x.db.nodes)}, nil
}

// clusterFinding warns where nodes are left out: rows are parsed on the node that they are sent to. A target whose host is
// none of the nodes' is a balancer, or a name for them.
func clusterFinding(cluster string, hosts []string, named []*node) loader.Finding {
	f := loader.Finding{Check: "cluster", Grade: loader.GradeOK,
		Found: fmt.Sprintf("%s: %s, and the target names %d", cmp.Or(cluster, "no name"), nodesOf(len(hosts)), len(named))}
	one := ""
	for _, n := range named {
		host, _, _ := net.SplitHostPort(n.address)
		for _, h := range hosts {
			if h == host {
				one = h
			}
		}
	}
	if one != "" && len(hosts) > len(named) {
		f.Grade = loader.GradeWarn
		f.Found += fmt.Sprintf(", by its own address %s: the others parse no rows", one)
		f.Fix = "name them all: databend://user@" + strings.Join(hosts, ",") + "/…"
	}
	return f
}

func nodesOf(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}
