package databend

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

const (
	userStage       = "~" // the stage that every user has
	defaultDatabase = "default"
	defaultUser     = "root"
)

// options are those of the methods that upload files.
type options struct {
	Stage string `option:"stage" default:"~" help:"stage of the server that files are uploaded to; ~ is the user's own"`
}

// plan is what a target asks for.
type plan struct {
	options // a stage is of use where no object store is named
	method  loader.Method
	name    tableName
	user    string
	tls     loader.TLSMode
}

// planOf reads a target. Its error names everything that cannot work on any server.
func planOf(t loader.Target) (plan, error) {
	p := plan{user: cmp.Or(t.User, defaultUser)}
	var noMethod, noTable, noMode error
	p.method, noMethod = loader.ReadOptions(New(), t, &p.options)
	p.name, noTable = targetTable(t)
	p.tls, noMode = tlsMode(t)
	return p, errors.Join(noMethod, noTable, p.checkStage(t), checkVia(t, p.method), checkParams(t),
		checkSettings(t.Settings), noMode)
}

// checkVia refuses an object store that the method has no use for.
func checkVia(t loader.Target, m loader.Method) error {
	switch {
	case t.Via == nil:
		return nil
	case m.Name != methodStageLoad:
		return fmt.Errorf("method %s puts nothing into an object store: --staging is for %s", m.Name, methodStageLoad)
	}
	return objstore.Check(*t.Via)
}

// plainName is a name without quotation marks: the server takes no other one for a stage.
var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (o options) checkStage(t loader.Target) error {
	switch {
	case o.Stage == userStage:
	case !plainName.MatchString(o.Stage):
		return fmt.Errorf("option stage: %q is not the name of a stage: letters, digits and underscores, "+
			"or ~ for the user's own", o.Stage)
	case t.Via != nil:
		return errors.New("--staging and --stage name two places for the same files; give one of them")
	}
	return nil
}

// checkParams refuses unknown parameters: users would rely on one that is ignored.
func checkParams(t loader.Target) error {
	known := []string{"sslmode", "tenant", "warehouse", "role"}
	for name := range t.Params {
		if !slices.Contains(known, name) {
			return fmt.Errorf("parameter %q of the target is unknown; valid are %s; session settings go into --set %s=…; "+
				"log in with user and password", name, strings.Join(known, ", "), name)
		}
	}
	return nil
}

// tlsMode reads the drivers' usual sslmode parameter. --tls wins.
func tlsMode(t loader.Target) (loader.TLSMode, error) {
	if t.TLS != loader.TLSAuto {
		return t.TLS, nil
	}
	value := t.Params.Get("sslmode")
	mode, known := map[string]loader.TLSMode{
		"": loader.TLSAuto, "disable": loader.TLSOff, "prefer": loader.TLSPrefer, "require": loader.TLSRequire,
		"verify-ca": loader.TLSVerifyCA, "enable": loader.TLSVerify, "verify-full": loader.TLSVerify,
	}[value]
	if !known {
		return "", fmt.Errorf("sslmode=%s of the target is unknown; valid are disable, prefer, require, verify-ca, verify-full", value)
	}
	return mode, nil
}

// tableName is a table with its database, unquoted.
type tableName struct{ schema, table string }

// targetTable reads the target's table: table or database.table.
func targetTable(t loader.Target) (tableName, error) {
	name := tableName{schema: cmp.Or(t.Database, defaultDatabase), table: t.Table}
	if database, table, found := strings.Cut(t.Table, "."); found {
		name = tableName{schema: cmp.Or(database, defaultDatabase), table: table}
	}
	switch {
	case strings.Contains(t.Table, ","):
		return name, fmt.Errorf("table %q: one run fills one table; push into several with a run each", t.Table)
	case name.table == "", strings.Contains(name.table, "."):
		return name, fmt.Errorf("table %q: write it as table or as database.table", t.Table)
	case !isASCII(name.schema + name.table):
		return name, fmt.Errorf("table %q: streaming loads carry it in a header, which must be ASCII", name)
	}
	return name, sqlload.CheckTable(sqlload.Length{}, name.schema, name.table)
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// String is the name as Table.Name shows it and Preparation.MayDrop gives it.
func (n tableName) String() string { return n.schema + "." + n.table }

func (n tableName) quoted() string { return quote(n.schema) + "." + quote(n.table) }
