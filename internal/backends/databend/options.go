package databend

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

const (
	optionStage = "stage"
	// userStage is the stage that every user has.
	userStage = "~"
	// defaultDatabase is the server's own default.
	defaultDatabase = "default"
	// defaultUser is the one a new server has.
	defaultUser = "root"
)

// plan is what a target asks for, read once.
type plan struct {
	method loader.Method
	name   tableName
	stage  string // of the server, where no object store is named
	user   string // who logs in
	tls    loader.TLSMode
}

// planOf reads a target and refuses what cannot work on any server, all of it at once.
func planOf(t loader.Target) (plan, error) {
	var bad []error
	refuse := func(format string, values ...any) { bad = append(bad, fmt.Errorf(format, values...)) }

	p := plan{stage: userStage, user: cmp.Or(t.User, defaultUser)}
	var found bool
	if p.method, found = loader.FindMethod(New(), t.Method); !found {
		return p, fmt.Errorf("databend: method %q does not exist", t.Method)
	}
	var err error
	if p.name, err = targetTable(t); err != nil {
		bad = append(bad, err)
	}
	for name, value := range t.Options {
		switch {
		case !slices.ContainsFunc(p.method.Options, func(o loader.Option) bool { return o.Name == name }):
			refuse("method %s has no option %q", p.method.Name, name)
		case value != userStage && !isPlainName(value):
			// The server takes no quotes around the name of a stage.
			refuse("option %s: %q is no name of a stage: letters, digits and underscores, or ~ for the user's own", name, value)
		case t.Via != nil && value != userStage:
			refuse("--via and --%s name two places for the same files; give one of them", name)
		default:
			p.stage = value
		}
	}
	switch {
	case t.Via == nil:
	case p.method.Name != stageLoad:
		refuse("method %s puts nothing into an object store: --via is for %s", p.method.Name, stageLoad)
	default:
		bad = append(bad, objstore.Check(*t.Via))
	}
	bad = append(bad, checkParams(t), checkSettings(t.Settings))
	if p.tls, err = tlsMode(t); err != nil {
		bad = append(bad, err)
	}
	return p, errors.Join(bad...)
}

func isPlainName(s string) bool { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(s) }

// checkParams refuses what it does not know: a parameter that is silently ignored is a setting that somebody trusts.
func checkParams(t loader.Target) error {
	known := []string{"sslmode", "tenant", "warehouse", "role"}
	for name := range t.Params {
		switch {
		case slices.Contains([]string{"access_token", "access_token_file"}, name):
			return fmt.Errorf("parameter %s of the target is not known: terapush logs in with user and password", name)
		case !slices.Contains(known, name):
			return fmt.Errorf("parameter %q of the target is not known; there are: %s; session settings go into --set %s=…",
				name, strings.Join(known, ", "), name)
		}
	}
	for _, name := range known[1:] {
		if value := t.Params.Get(name); !isASCII(value) {
			return fmt.Errorf("parameter %s of the target: %q does not fit into an HTTP header", name, value)
		}
	}
	return nil
}

// checkSettings refuses what would break the promises of a load, and what is no setting's name.
func checkSettings(settings []loader.Setting) error {
	for _, s := range settings {
		switch {
		case !isPlainName(s.Name):
			return fmt.Errorf("--set %s: not the name of a setting", s.Name)
		case !isASCII(s.Value):
			return fmt.Errorf("--set %s: %q does not fit into an HTTP header", s.Name, s.Value)
		case strings.EqualFold(s.Name, "deduplicate_label"):
			return fmt.Errorf("--set deduplicate_label is refused: every batch has a label of its own")
		case strings.EqualFold(s.Name, "timezone"):
			return fmt.Errorf("--set timezone is refused: timestamps are sent and read back in UTC")
		case pinned()[strings.ToLower(s.Name)] != "":
			return fmt.Errorf("--set %s is refused: "+
				"rows that are counted and read back have to be all of those in the table", s.Name)
		}
	}
	return nil
}

// isASCII reports whether a text fits into an HTTP header of this server, which takes visible ASCII and nothing else.
func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// tlsMode reads the drivers' usual sslmode parameter. What the user says beside the URL wins.
func tlsMode(t loader.Target) (loader.TLSMode, error) {
	if t.TLS != loader.TLSAuto {
		return t.TLS, nil
	}
	value := t.Params.Get("sslmode")
	mode, known := map[string]loader.TLSMode{
		"": loader.TLSAuto, "disable": loader.TLSOff, "prefer": loader.TLSPrefer, "require": loader.TLSRequire,
		"enable": loader.TLSVerify, "verify-full": loader.TLSVerify,
	}[value]
	if !known {
		return "", fmt.Errorf("sslmode=%s of the target is not known; there are disable, prefer, require, verify-full", value)
	}
	return mode, nil
}

// tableName is a table with its database, as the server writes them, unquoted.
type tableName struct{ database, table string }

// targetTable reads the target's table: table or database.table.
func targetTable(t loader.Target) (tableName, error) {
	if strings.Contains(t.Table, ",") {
		return tableName{}, fmt.Errorf("table %q: one run fills one table; push into several with a run each", t.Table)
	}
	name := tableName{database: cmp.Or(t.Database, defaultDatabase), table: t.Table}
	if database, table, found := strings.Cut(t.Table, "."); found {
		name = tableName{database: cmp.Or(database, defaultDatabase), table: table}
	}
	if name.table == "" || strings.Contains(name.table, ".") {
		return name, fmt.Errorf("table %q: write it as table or as database.table", t.Table)
	}
	if !isASCII(name.database + name.table) {
		// A streaming load carries its SQL in a header.
		return name, fmt.Errorf("table %q: the server takes visible ASCII only in the headers that name it", name)
	}
	return name, sqlload.CheckTable(sqlload.Length{}, name.database, name.table)
}

// String is the name as Table.Name shows it and Preparation.MayDrop gives it.
func (n tableName) String() string { return n.database + "." + n.table }

func (n tableName) quoted() string { return quote(n.database) + "." + quote(n.table) }
