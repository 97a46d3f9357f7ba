package oracle

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// What bounds the number of sessions: the instance, for which a privilege is needed, and the user's profile.
const (
	selectResources = "SELECT r.resource_name, TO_CHAR(r.current_utilization), r.limit_value FROM v$resource_limit r WHERE r.resource_name IN ('processes', 'sessions')"
	selectProfile   = "SELECT r.limit FROM user_resource_limits r WHERE r.resource_name = 'SESSIONS_PER_USER'"
	selectServer    = "SELECT s.server FROM v$session s WHERE TO_CHAR(s.sid) = SYS_CONTEXT('USERENV', 'SID')"
)

// spareSessions are those besides the workers': what counts, resolves and proves arrival.
const spareSessions = 4

func (x *examination) sessions(ctx context.Context) ([]loader.Finding, error) {
	var all []loader.Finding
	found, refused, err := x.ask(ctx, selectProfile)
	switch {
	case err != nil:
		return nil, err
	case refused == "" && len(found) == 1:
		all = append(all, profileFinding(x.user, found[0][0], x.workers()))
	}
	found, refused, err = x.ask(ctx, selectResources)
	switch {
	case err != nil:
		return nil, err
	case refused != "":
		return append(all, x.hidden("sessions", "how many sessions the instance takes", "V_$RESOURCE_LIMIT", refused)...), nil
	}
	for _, r := range found {
		all = append(all, resourceFinding(r[0], r[1], r[2], x.workers()))
	}
	return all, nil
}

// profileFinding compares SESSIONS_PER_USER with the workers.
func profileFinding(user, limit string, workers int64) loader.Finding {
	f := loader.Finding{Check: "sessions per user", Grade: loader.GradeOK, Found: "SESSIONS_PER_USER of the profile is " + limit}
	if n, err := parseInt(limit); err == nil && workers+spareSessions > n { // in force only with resource_limit = TRUE
		f.Grade = loader.GradeWarn
		f.Found += fmt.Sprintf(", for %d workers and %d sessions besides (ORA-02391)", workers, spareSessions)
		f.Fix = fmt.Sprintf("ALTER PROFILE … LIMIT SESSIONS_PER_USER %d (SELECT profile FROM dba_users WHERE username = '%s'), or --workers %d",
			workers+spareSessions, user, max(n-spareSessions, 1))
	}
	return f
}

// resourceFinding compares one of the instance's limits with what is in use and what comes.
func resourceFinding(name, used, limit string, workers int64) loader.Finding {
	f := loader.Finding{Check: name, Grade: loader.GradeOK, Found: fmt.Sprintf("%s of %s are in use", used, strings.TrimSpace(limit))}
	now, err := parseInt(strings.TrimSpace(used))
	if err != nil {
		return f
	}
	most, err := parseInt(strings.TrimSpace(limit))
	switch {
	case err != nil: // UNLIMITED
	case now+workers+spareSessions > most:
		f.Grade = loader.GradeWarn // what is in use may be gone, and who gets none tries again
		f.Found += fmt.Sprintf(", and %d workers need as many, and %d besides (ORA-00018, ORA-00020)", workers, spareSessions)
		f.Fix = fmt.Sprintf("ALTER SYSTEM SET %s = %d SCOPE = SPFILE, and a restart; or --workers %d", name, 2*(now+workers), max(most-now-spareSessions, 1))
	default:
		f.Found += fmt.Sprintf(", room for %d workers", workers)
	}
	return f
}

// server tells whether this connection has a process of its own. Shared and pooled ones take turns on a few.
func (x *examination) server(ctx context.Context) ([]loader.Finding, error) {
	const check = "server process"
	found, refused, err := x.ask(ctx, selectServer)
	if err != nil || refused != "" {
		return x.hidden(check, "which kind of process the session has", "V_$SESSION", refused), err
	}
	if len(found) == 0 {
		return nil, nil
	}
	f := loader.Finding{Check: check, Grade: loader.GradeOK, Found: found[0][0]}
	switch found[0][0] {
	case "DEDICATED":
		f.Found += ": each session has one"
	case "SHARED", "NONE": // NONE: of a shared server that is idle
		f.Grade = loader.GradeWarn
		f.Found = "SHARED: sessions take turns on a few processes, and arrays go through the dispatchers' memory"
		f.Fix = "name a service without dispatchers, or ALTER SYSTEM SET shared_servers = 0"
	case "POOLED":
		f.Grade = loader.GradeWarn
		f.Found = "POOLED (DRCP): a session that loads keeps its process, and the pool has few"
		f.Fix = "name the service without :POOLED, or EXEC DBMS_CONNECTION_POOL.ALTER_PARAM('', 'MAXSIZE', …)"
	}
	return []loader.Finding{f}, nil
}

// commits tells whether a commit waits until it is durable, as the contract says of it.
func (x *examination) commits(context.Context) ([]loader.Finding, error) {
	s := x.opened.server.Settings
	wait, known := s["commit_wait"]
	logging := s["commit_logging"]
	if !known {
		return x.hidden("commit", "commit_wait and commit_logging", "V_$PARAMETER", "the view is not to be seen"), nil
	}
	f := loader.Finding{Check: "commit", Grade: loader.GradeOK, Found: "a commit is answered when it is durable"}
	if strings.EqualFold(wait, "NOWAIT") || strings.EqualFold(wait, "FORCE_NOWAIT") {
		f.Grade, f.Fix = loader.GradeWarn, "--set commit_wait=WAIT"
		f.Found = fmt.Sprintf("commit_wait = %s, commit_logging = %s: a commit is answered before it is durable, and a crash loses batches that were acknowledged", wait, cmp.Or(logging, "IMMEDIATE"))
		if strings.EqualFold(wait, "FORCE_NOWAIT") {
			f.Fix = "ALTER SYSTEM SET commit_wait = WAIT"
		}
	}
	return []loader.Finding{f}, nil
}

// Lengths of values, in bytes, where MAX_STRING_SIZE is STANDARD.
const (
	standardText = 4000
	standardRaw  = 2000
)

// characters looks for what texts would lose: characters, or their ends.
func (x *examination) characters(context.Context) ([]loader.Finding, error) {
	s := x.opened.server.Settings
	f := loader.Finding{Check: "character set", Grade: loader.GradeOK, Found: s["character_set"]}
	if name := s["character_set"]; name != "AL32UTF8" && name != "UTF8" {
		f.Grade = loader.GradeWarn
		f.Found = name + ": of texts the database keeps what that has characters for, and verification finds the rest"
		f.Fix = "a database with AL32UTF8: the character set is chosen when it is made (or by DMU)"
	}
	all := []loader.Finding{f}
	if !strings.EqualFold(s["max_string_size"], "STANDARD") {
		return all, nil
	}
	for _, c := range x.intent.Schema.Columns {
		most := standardText
		if c.Type == rows.Bytes {
			most = standardRaw
		}
		if c.Type.Variable() && lengthOf(c) > most {
			grade := loader.GradeFail
			if x.there { // its columns may be of another type
				grade = loader.GradeWarn
			}
			return append(all, loader.Finding{Check: "max_string_size", Grade: grade,
				Found: fmt.Sprintf("STANDARD: values of column %s have up to %d bytes, and %d fit", c.Name, lengthOf(c), most),
				Fix:   fmt.Sprintf("--payload-bytes %d, or ALTER SYSTEM SET max_string_size = EXTENDED SCOPE = SPFILE in upgrade mode with utl32k.sql", most)}), nil
		}
	}
	return all, nil
}
