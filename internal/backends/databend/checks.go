package databend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

var _ loader.Checker = (*opened)(nil)

// CheckServer compares the server's limits with the push, and checks the table and the privileges on it. Open has
// checked that the server takes what the method sends.
func (l *opened) CheckServer(ctx context.Context, i loader.Intent) ([]loader.Finding, error) {
	c := boundedConn{conn{run: l.run}, l.checking}
	findings, err := l.check(ctx, c, i)
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil: // the next check would wait as long
		busy := sqlload.Warn(fmt.Sprintf("no answer within %s, so the remaining checks are skipped: "+
			"the server is busy, or its query queue full", l.checking),
			"SELECT id, user, time, status FROM system.processes shows what is running")
		busy.Check = "answers"
		return append(findings, busy), nil
	case err != nil:
		return findings, failedBefore("check "+l.hosts.Current().address, err)
	case l.store == nil:
		return findings, nil
	}
	ofStore, err := l.store.CheckServer(ctx, i, "Databend")
	return append(findings, ofStore...), err
}

func (l *opened) check(ctx context.Context, c sqlload.Conn, i loader.Intent) ([]loader.Finding, error) {
	fix := func(error) string {
		return "GRANT ROLE account_admin TO USER …; hosted servers hide their configuration from everybody"
	}
	findings, err := l.Ask(ctx, c, i, l.serverChecks(i), fix)
	if err != nil {
		return findings, err
	}
	table, err := l.Check(ctx, c, i)
	findings = append(findings, table.Findings...)
	if err != nil {
		return findings, err
	}
	more, err := l.Ask(ctx, c, i, []sqlload.Check{l.checkPrivileges(table)}, fix)
	return append(findings, more...), err
}

// checkTimeout bounds each question of CheckServer: where the query queue is full, even small questions wait.
const checkTimeout = 4 * time.Second

type boundedConn struct {
	conn
	limit time.Duration
}

func (c boundedConn) Query(ctx context.Context, query string, each func(row [][]byte) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	return c.conn.Query(ctx, query, each)
}

// Everybody may read settings. The configuration of a node takes account_admin.
const (
	queueTimeout   = "statement_queued_timeout_in_seconds"
	executeTimeout = "max_execute_time_in_seconds"
	resultTimeout  = "http_handler_result_timeout_secs"
	fileMemory     = "load_file_metadata_expire_hours"

	selectLimits = "SELECT name, value FROM system.settings WHERE name IN ('" +
		queueTimeout + "', '" + executeTimeout + "', '" + resultTimeout + "', '" + fileMemory + "')"
	selectConfigs = "SELECT `group`, name, value FROM system.configs WHERE `group` = 'query' AND name = " +
		"'max_active_sessions' OR `group` = 'storage' AND name = 'type'"
)

func (l *opened) serverChecks(i loader.Intent) []sqlload.Check {
	hosts, workers := int64(len(l.hosts.List)), int64(i.Workers)
	version, _, _ := strings.Cut(l.server.Version, "(")
	window := int64(labelWindow.Hours())
	const config = "[query] max_active_sessions = %d in databend-query.toml and restart the server, or --workers %d"
	return []sqlload.Check{
		{Name: "version", Judge: func([]string) loader.Finding {
			return sqlload.OK(fmt.Sprintf("Databend %s at %s", strings.TrimSpace(version), l.hosts.Current().address))
		}},
		limitCheck("sessions", selectConfigs, "max_active_sessions", func(limit int64) bool { return workers > limit*hosts },
			"%s = %d on each host: sessions above it are refused", func(limit int64) string {
				return fmt.Sprintf(config, 2*workers, limit*hosts)
			}),
		{Name: "storage", Ask: selectConfigs, Judge: func(values []string) loader.Finding {
			switch i := slices.Index(values, "type"); {
			case i < 0:
				return loader.Finding{}
			case values[i+1] == "memory":
				return sqlload.Warn("type memory: the rows are gone when the server ends",
					`[storage] type = "s3" (or fs) in databend-query.toml`)
			default:
				return sqlload.OK("type " + values[i+1])
			}
		}},
		limitCheck(executeTimeout, selectLimits, executeTimeout, func(seconds int64) bool { return seconds > 0 },
			"%s = %d: the server ends a longer statement, also one that loads", setTo(executeTimeout, 0)),
		limitCheck(queueTimeout, selectLimits, queueTimeout, func(seconds int64) bool { return seconds > 0 },
			"%s = %d: a statement that waits longer for its turn is refused", setTo(queueTimeout, 0)),
		// An answer is polled for at least every ten seconds.
		limitCheck(resultTimeout, selectLimits, resultTimeout, func(seconds int64) bool { return seconds < 30 },
			"%s = %d: the answer of a long statement may be lost between two polls", setTo(resultTimeout, 60)),
		limitCheck("file names", selectLimits, fileMemory, func(hours int64) bool { return l.caps.Staged && hours < window },
			"%s = %d: a run that is resumed later loads files twice", func(int64) string {
				return fmt.Sprintf("SET GLOBAL %s = %d", fileMemory, window)
			}),
	}
}

// limitCheck warns about a value that is bad; found is a format of name and value.
func limitCheck(check, ask, name string, bad func(int64) bool, found string, fix func(int64) string) sqlload.Check {
	return sqlload.Check{Name: check, Ask: ask, Judge: func(values []string) loader.Finding {
		if n, known := setting(values, name); known && bad(n) {
			return sqlload.Warn(fmt.Sprintf(found, name, n), fix(n))
		}
		return loader.Finding{}
	}}
}

func setTo(name string, value int) func(int64) string {
	return func(int64) string { return fmt.Sprintf("--set %s=%d", name, value) }
}

// setting reads the number that follows its name in an answer.
func setting(values []string, name string) (n int64, known bool) {
	i := slices.Index(values, name)
	if i < 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(values[i+1], 10, 64)
	return n, err == nil
}

// privileges asks for the plan of a statement, which checks the privileges of the user and all their roles without
// running it.
func (l *opened) checkPrivileges(table *sqlload.TableCheck) sqlload.Check {
	statement, privileges := fmt.Sprintf("INSERT INTO %s SELECT * FROM %[1]s", l.plan.name.quoted()), "INSERT, SELECT"
	if len(table.Missing) > 0 { // the user who creates a table owns it
		statement, privileges = statements{table.Statements}.createTable(), "CREATE"
	}
	return sqlload.Check{
		Name: "privileges", Ask: "EXPLAIN " + statement,
		Judge: func([]string) loader.Finding { return sqlload.OK(privileges + " on " + l.plan.name.String()) },
		Hidden: func(err error) loader.Finding {
			if is(err, permissionDenied) {
				return sqlload.Fail(loader.Explain(err), l.grant(privileges))
			}
			return loader.Finding{Grade: loader.GradeUnknown, Found: "the server does not say: " + loader.Explain(err)}
		},
	}
}
