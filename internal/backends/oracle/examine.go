package oracle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

var (
	_ loader.Checker = (*opened)(nil)
	_ loader.Checker = (*staged)(nil)
)

// examineTime bounds all of an examination: its questions are a dozen small ones on one connection.
const examineTime = 8 * time.Second

// examination is one call of CheckServer on its connection.
type examination struct {
	*opened
	link   *link
	intent loader.Intent
	user   string // who has logged on
	schema string // where a table is looked for that is named without one
	table  *ready // the table's names and statements
	rights map[string]bool
	there  bool // the table
}

// CheckServer asks for the limits that a push meets on this server, and for rights. What takes a privilege to see is unknown
// without it; most are views of the instance.
func (l *opened) CheckServer(ctx context.Context, i loader.Intent) (all []loader.Finding, err error) {
	ctx, cancel := context.WithTimeout(ctx, examineTime)
	defer cancel()
	err = l.somewhere(ctx, func(k *link) error {
		all, err = l.examine(ctx, k, i)
		return err
	})
	return all, failed("examine the server", err)
}

func (l *opened) examine(ctx context.Context, k *link, i loader.Intent) ([]loader.Finding, error) {
	x := &examination{opened: l, link: k, intent: i}
	name := l.target.Table
	if name == "" {
		name = i.Schema.Dataset
	}
	x.table = &ready{asked: name, statements: statementsFor(name, i.Schema, l.method, l.options), contract: i.Contract, user: l.target.User}
	found, err := k.texts(ctx, "ask for the session's user", selectIdentity)
	if err != nil {
		return nil, err
	}
	if len(found) == 1 {
		x.user, x.schema = found[0][0], found[0][1]
	}
	all := []loader.Finding{x.version()}
	for _, look := range []func(context.Context) ([]loader.Finding, error){
		x.privileges, x.quota, x.sessions, x.server, x.commits, x.characters, x.redo, x.undo, x.fast,
	} {
		more, err := look(ctx)
		if err != nil {
			return all, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// CheckServer adds what is to be said of the store.
func (l *staged) CheckServer(ctx context.Context, i loader.Intent) ([]loader.Finding, error) {
	all, err := l.opened.CheckServer(ctx, i)
	if err != nil {
		return all, err
	}
	found, err := l.store.CheckServer(ctx, i, "Oracle")
	return append(all, found...), err
}

// ask reads rows that a privilege may be missing for: refused is why there are none, in the server's words.
func (x *examination) ask(ctx context.Context, query string) (rows [][]string, refused string, err error) {
	rows, err = x.link.texts(ctx, "ask the server", query)
	if err == nil || x.link.dead || ctx.Err() != nil {
		return rows, "", err
	}
	_, text, said := numberOf(err)
	if !said {
		return nil, "", err
	}
	return nil, text, nil
}

// hidden is the finding for a view that the user may not see.
func (x *examination) hidden(check, what, view, refused string) []loader.Finding {
	return []loader.Finding{{Check: check, Grade: loader.GradeUnknown, Found: what + " cannot be read: " + refused,
		Fix: fmt.Sprintf("GRANT SELECT ON %s TO %s", view, x.user)}}
}

// managed tells whether somebody else runs the instance, so that its files are not the user's to change.
func (x *examination) managed() bool { return x.opened.server.Settings["cloud_service"] != "" }

// workers is how many sessions load at a time. It is 1 where the method locks the table.
func (x *examination) workers() int64 {
	n := int64(x.intent.Workers)
	if most := int64(x.Caps().MaxInFlight); most > 0 {
		n = min(n, most)
	}
	return n
}

func (x *examination) version() loader.Finding {
	s := x.opened.server
	f := loader.Finding{Check: "version", Grade: loader.GradeOK, Found: fmt.Sprintf("%s %s at %s, by %s", s.Product, s.Version, s.Endpoint, s.Settings["driver"])}
	if x.managed() {
		f.Found += "; a managed service (" + s.Settings["cloud_service"] + "), whose files and logs are the provider's"
	}
	return f
}

// What decides whether rows can be put into a table, and a table be made. Everybody may ask for it.
const (
	selectIdentity   = "SELECT SYS_CONTEXT('USERENV', 'SESSION_USER'), SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA') FROM DUAL"
	selectPrivileges = "SELECT p.privilege FROM session_privs p" // some two hundred at the most
	selectTablespace = "SELECT u.default_tablespace FROM user_users u"
	selectQuotas     = "SELECT q.tablespace_name, TO_CHAR(q.bytes), TO_CHAR(q.max_bytes) FROM user_ts_quotas q"
)

func (s statements) selectTableRights(found *relation) string {
	return "SELECT p.privilege FROM all_tab_privs p WHERE p.table_schema = " + literal(found.owner) + " AND p.table_name = " + literal(found.name)
}

// claims tells whether the run keeps claims, in a table that it may have to make.
func (x *examination) claims() bool {
	return x.Caps().Dedup == loader.DedupTx && x.intent.Contract.Delivery != loader.AtLeastOnce
}

func (x *examination) privileges(ctx context.Context) ([]loader.Finding, error) {
	const check = "privileges"
	rows, refused, err := x.ask(ctx, selectPrivileges)
	if err != nil || refused != "" {
		return x.hidden(check, "the session's privileges", "SESSION_PRIVS", refused), err
	}
	x.rights = make(map[string]bool)
	for _, r := range rows {
		x.rights[r[0]] = true
	}
	found, err := x.table.locate(ctx, x.link)
	if err != nil {
		return nil, err
	}
	x.there = found != nil
	owner, name := unquoted(x.table.Table)
	owner = cmp.Or(owner, x.schema)
	if found != nil {
		owner = found.owner
	}
	f := loader.Finding{Check: check, Grade: loader.GradeOK, Found: fmt.Sprintf("as %s, into %s.%s", x.user, owner, name)}
	create := "CREATE TABLE"
	if owner != x.user {
		create = "CREATE ANY TABLE"
	}
	missing := !x.rights[create] && !x.rights["CREATE ANY TABLE"]
	switch {
	case found == nil && missing:
		f.Grade = x.elsewhere(owner)
		f.Found = fmt.Sprintf("%s may not make table %s.%s: %s is missing", x.user, owner, name, create)
		f.Fix = fmt.Sprintf("GRANT %s TO %s", create, x.user)
	case missing && x.claims():
		f.Grade = loader.GradeWarn
		f.Found = fmt.Sprintf("%s may not make the table of claims in %s, which has to be there then: %s is missing", x.user, owner, create)
		f.Fix = fmt.Sprintf("GRANT %s TO %s, or --delivery at-least-once", create, x.user)
	}
	if found == nil || owner == x.user || x.rights["INSERT ANY TABLE"] {
		return []loader.Finding{f}, nil
	}
	rights, refused, err := x.ask(ctx, x.table.selectTableRights(found))
	if err != nil || refused != "" {
		return x.hidden(check, "the rights on "+found.String(), "ALL_TAB_PRIVS", refused), err
	}
	var granted []string
	for _, r := range rights {
		granted = append(granted, r[0])
	}
	if all := strings.Join(granted, ", "); !strings.Contains(all, "INSERT") || !strings.Contains(all, "SELECT") && !strings.Contains(all, "READ") {
		f.Grade = x.elsewhere(owner)
		f.Found = fmt.Sprintf("%s lacks INSERT or SELECT on %s: it has %s", x.user, found, cmp.Or(all, "nothing"))
		f.Fix = fmt.Sprintf("GRANT SELECT, INSERT ON %s TO %s", found, x.user)
	}
	return []loader.Finding{f}, nil
}

// elsewhere grades a right that is not listed. On the schema of somebody else it may have been granted as a whole (Oracle 23ai,
// SESSION_SCHEMA_PRIVS), which is not looked at.
func (x *examination) elsewhere(owner string) loader.Grade {
	if owner != x.user {
		return loader.GradeWarn
	}
	return loader.GradeFail
}

// quota is the room that the user has for tables of his own: without any the first row fails (ORA-01950).
func (x *examination) quota(ctx context.Context) ([]loader.Finding, error) {
	const check = "quota"
	if owner, _ := unquoted(x.table.Table); cmp.Or(owner, x.schema) != x.user {
		return nil, nil // it is the owner's that counts, which nobody else may see
	}
	spaces, refused, err := x.ask(ctx, selectTablespace)
	if err != nil || refused != "" || len(spaces) == 0 {
		return x.hidden(check, "the default tablespace", "USER_USERS", refused), err
	}
	space := spaces[0][0]
	if x.rights["UNLIMITED TABLESPACE"] {
		return []loader.Finding{{Check: check, Grade: loader.GradeOK, Found: "unlimited on every tablespace; the default one is " + space}}, nil
	}
	quotas, refused, err := x.ask(ctx, selectQuotas)
	if err != nil || refused != "" {
		return x.hidden(check, "the quotas", "USER_TS_QUOTAS", refused), err
	}
	f := quotaFinding(x.user, space, quotas, x.intent.TotalBytes)
	if f.Grade == loader.GradeFail && x.there { // in another tablespace, perhaps
		f.Grade = loader.GradeWarn
	}
	return []loader.Finding{f}, nil
}

func quotaFinding(user, space string, quotas [][]string, total int64) loader.Finding {
	f := loader.Finding{Check: "quota", Grade: loader.GradeFail, Found: fmt.Sprintf("%s has no quota on %s: the first row would fail (ORA-01950)", user, space),
		Fix: fmt.Sprintf("ALTER USER %s QUOTA UNLIMITED ON %s", user, space)}
	for _, q := range quotas {
		used, err := parseInt(q[1])
		most, err2 := parseInt(q[2])
		switch {
		case q[0] != space || errors.Join(err, err2) != nil:
			continue
		case most < 0:
			return loader.Finding{Check: "quota", Grade: loader.GradeOK, Found: "unlimited on " + space}
		case most-used < total:
			f.Grade = loader.GradeWarn
			f.Found = fmt.Sprintf("%s of quota are left on %s, for %s of rows", sized(most-used), space, sized(total))
			return f
		case most > used:
			return loader.Finding{Check: "quota", Grade: loader.GradeOK, Found: fmt.Sprintf("%s left on %s", sized(most-used), space)}
		}
	}
	return f
}

// sized writes a number of bytes.
func sized(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
