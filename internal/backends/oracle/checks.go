package oracle

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
)

// checkTime bounds CheckServer: a dozen small queries on one connection.
const checkTime = 8 * time.Second

// extraSessions are those beside the workers', which count, resolve and verify.
const extraSessions = 4

// doctor is one call of CheckServer.
type doctor struct {
	*opened
	intent     loader.Intent
	checked    *sqlload.TableCheck // the table
	user       string              // of the session
	owner      string              // of the table, whether it exists or not
	privileges []string            // of the session
}

// CheckServer implements loader.Checker: it compares the push with the user's privileges and the server's limits.
func (l *opened) CheckServer(ctx context.Context, i loader.Intent) (findings []loader.Finding, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	err = l.withConn(ctx, func(k *conn) error {
		who, err := sqlload.Rows(ctx, k, "SELECT SYS_CONTEXT('USERENV', 'SESSION_USER'), "+ownerOf("")+" FROM DUAL")
		if err != nil || len(who) != 1 {
			return err
		}
		d := &doctor{opened: l, intent: i, user: who[0][0], owner: who[0][1]}
		findings = append(findings, d.version())
		d.checked, err = l.Check(ctx, k, i)
		findings = append(findings, d.checked.Findings...)
		if err != nil {
			return err
		}
		schema, _ := sqlload.Unquoted(d.checked.Table)
		d.owner = cmp.Or(schema, d.owner)
		more, err := l.Ask(ctx, k, i, slices.Concat(d.tableChecks(), d.serverChecks()), d.grant)
		findings = append(findings, more...)
		return err
	})
	return findings, failed("check the server", err)
}

// grant is the fix for a view that cannot be read.
func (d *doctor) grant(error) string { return "GRANT SELECT_CATALOG_ROLE TO " + d.user }

// workers is how many sessions load at a time.
func (d *doctor) workers() int64 {
	if most := d.Caps().MaxInFlight; most > 0 {
		return int64(min(d.intent.Workers, most))
	}
	return int64(d.intent.Workers)
}

func (d *doctor) version() loader.Finding {
	s := d.server
	found := fmt.Sprintf("%s %s at %s, by %s", s.Product, s.Version, s.Endpoint, s.Settings["driver"])
	if cloud := s.Settings[settingCloud]; cloud != "" {
		found += "; a managed service (" + cloud + ")"
	}
	return loader.Finding{Check: "version", Grade: loader.GradeOK, Found: found}
}

// serverChecks compare the workers with the limits of profile and instance, and the rows with its settings.
func (d *doctor) serverChecks() []sqlload.Check {
	limit := func(resource string) sqlload.Check {
		return sqlload.Check{
			Name: resource,
			Ask: "SELECT r.resource_name, TO_CHAR(r.current_utilization), r.limit_value FROM v$resource_limit r " +
				"WHERE r.resource_name IN ('processes', 'sessions')",
			Judge: func(values []string) loader.Finding { return d.checkLimit(resource, values) },
		}
	}
	return []sqlload.Check{
		{
			Name:  "sessions per user",
			Ask:   "SELECT r.limit FROM user_resource_limits r WHERE r.resource_name = 'SESSIONS_PER_USER'",
			Judge: d.checkProfile,
		},
		limit("processes"), limit("sessions"),
		{Name: "commit", Judge: d.checkCommit},
		{Name: "character set", Judge: d.checkCharset},
		{Name: "max_string_size", Judge: d.checkStringSize},
	}
}

// checkProfile compares SESSIONS_PER_USER with the workers. It is enforced only with resource_limit = TRUE.
func (d *doctor) checkProfile(row []string) (f loader.Finding) {
	if row == nil {
		return f
	}
	need := d.workers() + extraSessions
	if n := sqlload.Integer(row[0]); n > 0 && need > n {
		return sqlload.Warn(fmt.Sprintf("the profile allows %s, and the push needs %d (ORA-02391)", row[0], need),
			fmt.Sprintf("ALTER PROFILE … LIMIT SESSIONS_PER_USER %d (SELECT profile FROM dba_users WHERE username = '%s'), "+
				"or --workers %d", need, d.user, max(n-extraSessions, 1)))
	}
	return sqlload.OK(row[0])
}

// checkLimit compares a limit of the instance with what is in use and what the push adds.
func (d *doctor) checkLimit(name string, values []string) (f loader.Finding) {
	i := slices.Index(values, name)
	if i < 0 {
		return f
	}
	used, limit, need := sqlload.Integer(values[i+1]), sqlload.Integer(values[i+2]), d.workers()+extraSessions
	found := fmt.Sprintf("%d of %s are in use, and the push needs %d", used, strings.TrimSpace(values[i+2]), need)
	if limit == 0 || used+need <= limit { // 0: UNLIMITED
		return sqlload.OK(found)
	}
	return sqlload.Warn(found+" (ORA-00018, ORA-00020)",
		fmt.Sprintf("ALTER SYSTEM SET %s = %d SCOPE = SPFILE, and a restart; or --workers %d",
			name, 2*(used+need), max(limit-used-extraSessions, 1)))
}

// checkCommit checks that a commit is acknowledged only when it is durable, as the contract says.
func (d *doctor) checkCommit([]string) loader.Finding {
	wait, known := d.server.Settings["commit_wait"]
	const found = "commit_wait = %s: a commit is acknowledged before it is durable, and a crash loses acknowledged batches"
	switch {
	case !known:
		return loader.Finding{Grade: loader.GradeUnknown, Found: "V$PARAMETER cannot be read", Fix: d.grant(nil)}
	case strings.EqualFold(wait, "NOWAIT"):
		return sqlload.Warn(fmt.Sprintf(found, wait), "--set commit_wait=WAIT")
	case strings.EqualFold(wait, "FORCE_NOWAIT"):
		return sqlload.Warn(fmt.Sprintf(found, wait), "ALTER SYSTEM SET commit_wait = WAIT")
	}
	return sqlload.OK("acknowledged when durable")
}

// checkCharset warns of a character set that cannot store all texts.
func (d *doctor) checkCharset([]string) loader.Finding {
	switch name := d.server.Settings[settingCharset]; name {
	case "", "AL32UTF8", "UTF8":
		return sqlload.OK(name)
	default:
		return sqlload.Warn(name+": the server replaces characters that it cannot store, and verification finds that late",
			"a database with AL32UTF8: the character set is chosen when it is created (or changed by DMU)")
	}
}

// checkStringSize checks that the columns can be as long as their values: a text of MAX_STRING_SIZE = STANDARD has 4000
// bytes, a RAW 2000.
func (d *doctor) checkStringSize([]string) (f loader.Finding) {
	if !strings.EqualFold(d.server.Settings["max_string_size"], "STANDARD") {
		return f
	}
	for _, c := range d.intent.Schema.Columns {
		most := 4000
		if c.Type == rows.Bytes {
			most = 2000
		}
		if !c.Type.Variable() || lengthOf(c) <= most {
			continue
		}
		f = sqlload.Fail(
			fmt.Sprintf("STANDARD: values of column %s have up to %d bytes, and %d fit", c.Name, lengthOf(c), most),
			fmt.Sprintf("--payload-bytes %d, or ALTER SYSTEM SET max_string_size = EXTENDED SCOPE = SPFILE in upgrade mode "+
				"with utl32k.sql", most))
		if d.checked.Relation != nil { // its columns may be of another type
			f.Grade = loader.GradeWarn
		}
		return f
	}
	return f
}

func sized(bytes int64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}
