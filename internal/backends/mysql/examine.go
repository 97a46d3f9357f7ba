package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

var _ loader.Checker = (*database)(nil)

// examination looks at the host of the control connections for one push.
type examination struct {
	*database
	statements
	intent   loader.Intent
	vars     map[string]string // as they hold for a loading session: with those of --set
	account  string            // quoted, as GRANT wants it
	grants   grants
	found    *found // the table, nil if there is none
	unmade   bool   // there is no claim table, and the push needs one
	findings []loader.Finding
}

// CheckServer asks in a dozen short statements; what Open has read of the variables is not read again.
func (db *database) CheckServer(ctx context.Context, i loader.Intent) ([]loader.Finding, error) {
	e := &examination{database: db, intent: i, vars: make(map[string]string), statements: newStatements(db.name, db.server.flavour, i.Schema)}
	for name, value := range db.server.vars {
		e.vars[name] = value
	}
	for _, s := range db.target.Settings {
		e.vars[strings.ToLower(s.Name)] = s.Value
	}
	for _, step := range []func(context.Context) error{
		e.whoami, e.reachable, e.infile, e.connections, e.table, e.claims, e.privileges, e.burden, e.size, e.writing, e.timeouts, e.cluster,
	} {
		err := step(ctx)
		if err == nil {
			continue
		}
		// What a step could not find out is a finding already, unless there is nobody left to ask.
		if lost := db.control.PingContext(ctx); lost != nil {
			return e.findings, failed("examine", errors.Join(err, lost))
		}
	}
	return e.findings, nil
}

func (e *examination) add(check string, g loader.Grade, found, fix string) {
	e.findings = append(e.findings, loader.Finding{Check: check, Grade: g, Found: found, Fix: fix})
}

func (e *examination) ok(check, found string)        { e.add(check, loader.GradeOK, found, "") }
func (e *examination) warn(check, found, fix string) { e.add(check, loader.GradeWarn, found, fix) }
func (e *examination) fail(check, found, fix string) { e.add(check, loader.GradeFail, found, fix) }

func (e *examination) unknown(check string, err error, fix string) {
	e.add(check, loader.GradeUnknown, "the server does not say: "+err.Error(), fix)
}

// refused is the finding of what Prepare would say. An end of the time or of the connection is no refusal.
func (e *examination) refused(ctx context.Context, check string, err error) {
	if ctx.Err() != nil || verdict(err).Class == loader.ClassConnection {
		e.unknown(check, err, "")
		return
	}
	told := (*loader.Error)(nil)
	if errors.As(err, &told) && told.Err != nil {
		e.fail(check, told.Err.Error(), told.Hint)
		return
	}
	e.fail(check, err.Error(), hint(err))
}

// on tells whether a variable is switched on, in any of the ways that servers and people write it.
func (e *examination) on(name string) bool {
	value := strings.ToUpper(e.vars[name])
	return value == "ON" || value == "1" || value == "TRUE"
}

// number is a variable's, 0 where there is none. The largest values of some do not fit an int64: they bound nothing.
func (e *examination) number(name string) int64 {
	n, err := strconv.ParseInt(e.vars[name], 10, 64)
	if errors.Is(err, strconv.ErrRange) {
		return n
	}
	if err != nil {
		return 0
	}
	return n
}

func (e *examination) aurora() bool { _, is := e.vars["aurora_version"]; return is }

// change is how a variable of the whole server is changed.
func (e *examination) change(name, value string) string {
	if e.aurora() {
		return fmt.Sprintf("set %s to %s in the parameter group", name, value)
	}
	return fmt.Sprintf("SET GLOBAL %s = %s", name, value)
}

// whoami reads the account and its privileges.
func (e *examination) whoami(ctx context.Context) error {
	var err error
	if e.account, err = e.database.account(ctx); err != nil {
		e.unknown("privileges", err, "")
		return err
	}
	lines, err := column[string](ctx, e.control, "SHOW GRANTS")
	if err != nil {
		e.unknown("privileges", err, "")
		return err
	}
	e.grants = parseGrants(lines)
	return nil
}

// reachable is about what keeps everybody, or this account, from writing.
func (e *examination) reachable(context.Context) error {
	const check = "server"
	found := fmt.Sprintf("%s %s at %s", e.server.flavour, e.server.version, e.home.address)
	for _, name := range []string{"super_read_only", "innodb_read_only", "tidb_super_read_only", "tidb_restricted_read_only"} {
		if e.on(name) {
			e.fail(check, found+" takes no rows: "+name+" is ON; is it a replica?", "name the primary in the target, or SET GLOBAL "+name+" = OFF")
			return nil
		}
	}
	switch value := strings.ToUpper(e.vars["read_only"]); { // MariaDB 12 has more values than two
	case value != "" && value != "OFF" && value != "0" && !e.grants.known():
		e.add(check, loader.GradeUnknown, found+": read_only is "+value+", and whether this account is exempt is not to be seen", "")
	case value != "" && value != "OFF" && value != "0" && !e.exempt():
		e.fail(check, found+" takes no rows from this account: read_only is "+value+"; is it a replica?", "name the primary in the target, or SET GLOBAL read_only = OFF")
	default:
		e.ok(check, found)
	}
	if e.caps.Reason != "" {
		e.warn("delivery", "a push is at least once here: "+e.caps.Reason, e.exact())
	}
	return nil
}

// exempt tells whether this account may write in spite of read_only. In MariaDB SUPER does no more from 10.11 on.
func (e *examination) exempt() bool {
	enough := []string{"CONNECTION_ADMIN", "READ_ONLY ADMIN", "READ ONLY ADMIN"}
	if e.server.flavour != mariaDB || e.server.before(10, 11) {
		enough = append(enough, "SUPER")
	}
	return slices.ContainsFunc(enough, func(p string) bool { return e.grants.hold(p, tableName{}) })
}

// exact is what would make a push exactly once that is not.
func (e *examination) exact() string {
	if e.server.flavour == tiDB {
		return "--method " + insert
	}
	return fmt.Sprintf("ALTER TABLE %s ENGINE = InnoDB", e.Table)
}

func (e *examination) infile(ctx context.Context) error {
	if e.method.Name != loadData || e.server.flavour == tiDB || e.server.flavour == singleStore {
		return nil
	}
	if err := e.server.localInfile(); err != nil {
		e.refused(ctx, "local_infile", err)
	} else {
		e.ok("local_infile", "ON: LOAD DATA LOCAL is allowed")
	}
	return nil
}

// connections compares what is free with what the run opens: a connection for each worker, in turn on each host, and
// those of the control pool on the first. Too few stop no push: those that get none try again, and the others load
// meanwhile.
func (e *examination) connections(ctx context.Context) error {
	const check = "connection limit"
	sessions := max(e.intent.Workers, 1)
	if e.method.Caps.Staged {
		sessions = 0 // they go to the store
	}
	hosts := len(e.endpoints)
	need := int64((sessions+hosts-1)/hosts + controlConns)
	most, own := e.number("max_connections"), e.number("max_user_connections")
	free, says, fix := most, "no max_connections", ""
	if most > 0 {
		var name string
		var open int64
		err := e.control.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Threads_connected'").Scan(&name, &open)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			says = fmt.Sprintf("max_connections %d, and the server does not tell how many are in use", most)
		case err != nil:
			e.unknown(check, err, "")
			return err
		default:
			open = max(open-1, 0) // this one
			free, says = most-open, fmt.Sprintf("max_connections %d, %d in use", most, open)
		}
		fix = e.change("max_connections", strconv.FormatInt(most-free+need, 10))
	}
	if own > 0 { // the session's value is the account's own limit, where it has one
		open, err := e.ownConnections(ctx)
		if err != nil {
			e.unknown(check, err, "")
			return err
		}
		if left := own - open + 1; left < free || most <= 0 {
			free, says = left, fmt.Sprintf("this account has max_user_connections %d, %d in use", own, open-1)
			fix = fmt.Sprintf("ALTER USER %s WITH MAX_USER_CONNECTIONS %d", e.account, need+open-1)
		}
	}
	if most <= 0 && own <= 0 {
		e.ok(check, fmt.Sprintf("none is set; the run opens %d", need))
		return nil
	}
	text := fmt.Sprintf("%d free (%s), and the run opens %d: %d workers and up to %d for everything else", max(free, 0), says, need, need-controlConns, controlConns)
	if free >= need {
		e.ok(check, text)
		return nil
	}
	if fewer := (free - controlConns) * int64(hosts); fewer > 0 && sessions > 0 {
		fix += fmt.Sprintf(", or --workers %d", fewer)
	}
	e.warn(check, text+": the others wait, and try again", fix)
	return nil
}

// ownConnections counts this account's: everybody sees their own. SHOW is asked for the reason that shownAtWork gives.
func (e *examination) ownConnections(ctx context.Context) (n int64, err error) {
	list, err := e.control.QueryContext(ctx, "SHOW PROCESSLIST")
	if err != nil {
		return 0, err
	}
	defer func() { _ = list.Close() }()
	columns, err := list.Columns()
	if err != nil {
		return 0, err
	}
	fields, into := make([]sql.RawBytes, len(columns)), make([]any, len(columns))
	for i := range fields {
		into[i] = &fields[i]
	}
	for list.Next() {
		if err := list.Scan(into...); err != nil {
			return 0, err
		}
		if literal(string(fields[1])) == e.account[:strings.LastIndexByte(e.account, '@')] {
			n++
		}
	}
	return n, list.Err()
}

// table checks it as Prepare would.
func (e *examination) table(ctx context.Context) (err error) {
	const check = "table"
	if e.found, err = e.inspect(ctx); err != nil {
		e.refused(ctx, check, err)
		return err
	}
	create := e.intent.Create
	switch {
	case e.found == nil && create == loader.CreateNever:
		e.fail(check, fmt.Sprintf("there is no table %s, or this account may not see it", e.name()), "--create if-missing makes it")
		return nil
	case e.found == nil:
		e.ok(check, fmt.Sprintf("there is no table %s; the run makes it", e.name()))
	case create == loader.CreateRecreate || create == loader.CreateTruncate:
		if err := e.intent.MayRemove(e.name().String(), e.found.comment, e.name().String(), e.name().table); err != nil {
			e.refused(ctx, check, err)
			return nil
		}
	}
	switch {
	case e.making():
		if e.found != nil {
			e.ok(check, fmt.Sprintf("%s is there; the run drops it and makes it anew", e.name()))
		}
		e.keyless()
	default:
		if err := e.checkColumns(ctx, e.intent.Schema); err != nil {
			e.refused(ctx, check, &loader.Error{Err: err, Hint: otherTable})
			return err
		}
		e.ok(check, fmt.Sprintf("%s is there and takes the rows of dataset %s", e.name(), e.intent.Schema.Dataset))
	}
	return nil
}

func (e *examination) name() tableName { return e.database.name }

// making tells whether the run makes the table.
func (e *examination) making() bool {
	return e.found == nil && e.intent.Create != loader.CreateNever || e.intent.Create == loader.CreateRecreate
}

// keyless finds servers that refuse a table without a primary key, which is how the run makes it.
func (e *examination) keyless() {
	if e.intent.PrimaryKey || e.on("sql_generate_invisible_primary_key") {
		return
	}
	for _, name := range []string{"sql_require_primary_key", "innodb_force_primary_key"} {
		if e.on(name) {
			e.fail("primary key", name+" is ON, and the run would make a table without a key", "--primary-key")
		}
	}
	if e.vars["group_replication_group_name"] != "" {
		e.warn("primary key", "the server is set up to replicate in a group, which writes to no table without a primary key, and the run would make one", "--primary-key")
	}
}

// claims checks the claim table, if the push has one and it is there.
func (e *examination) claims(ctx context.Context) error {
	const check = "claim table"
	if e.intent.Contract.Dedup != loader.DedupTx {
		return nil
	}
	there, err := e.claimsThere(ctx)
	e.unmade = err == nil && !there
	switch {
	case err != nil:
		e.unknown(check, err, "")
		return err
	case there:
		if err := e.checkClaims(ctx, e.statements); err != nil {
			e.refused(ctx, check, err)
			return nil
		}
		e.ok(check, e.Claims+" is there and keyed")
	case e.intent.Resume:
		e.fail(check, "the claim table "+e.Claims+" is gone, or this account may not see it: nobody can tell which batches are in",
			fmt.Sprintf("start a new run into another table, or GRANT SELECT, INSERT, DELETE ON %s TO %s", e.Claims, e.account))
	}
	return nil
}

// claimsName is the claim table's.
func (e *examination) claimsName() tableName { return tableName{e.name().schema, sqlload.ClaimsTable} }
