package mysql

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/sqlload"
)

// account reads the connection's account, quoted for GRANT.
func account(ctx context.Context, c sqlload.Conn) (string, error) {
	name, err := value(ctx, c, "SELECT CURRENT_USER()")
	user, host := name, ""
	if at := strings.LastIndexByte(name, '@'); at >= 0 {
		user, host = name[:at], name[at+1:]
	}
	return literal(user) + "@" + literal(host), err
}

// grants are an account's privileges by SHOW GRANTS, which includes those of active roles (tried on MySQL 9.7 and
// MariaDB 10.11).
type grants struct {
	given, revoked []grant
	roles          bool // some were granted
}

// grant is one line.
type grant struct {
	privileges    []string // in capitals; one on some columns counts as one on all
	schema, table string   // "*" is all; a schema granted as a whole is a pattern of LIKE
}

const (
	everything = "*"
	quotedName = "`(?:[^`]|``)*`|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""
	identifier = quotedName + "|[^`'\". ]+"
)

var (
	// grantLine takes privileges, schema and table from a line. MySQL 8.0.16 and later have partial REVOKEs.
	grantLine = regexp.MustCompile("^(GRANT|REVOKE) (.+?) ON (" + identifier + `)\.(` + identifier + ")")
	// columnList follows a privilege on some columns, whose names may hold commas and parentheses.
	columnList = regexp.MustCompile(`\((` + quotedName + `|[^)])*\)`)
)

// parseGrants reads the lines about tables.
func parseGrants(lines []string) (g grants) {
	for _, line := range lines {
		line = columnList.ReplaceAllString(line, "")
		m := grantLine.FindStringSubmatch(line)
		if m == nil { // a role, a proxy, a routine
			g.roles = g.roles || strings.HasPrefix(line, "GRANT ") && !strings.Contains(line, " ON ")
			continue
		}
		one := grant{strings.Split(strings.ToUpper(m[2]), ","), unquote(m[3]), unquote(m[4])}
		for i, p := range one.privileges {
			one.privileges[i] = strings.TrimSpace(p)
		}
		if m[1] == "REVOKE" {
			g.revoked = append(g.revoked, one)
		} else {
			g.given = append(g.given, one)
		}
	}
	return g
}

func unquote(name string) string {
	if mark := name[:1]; strings.Contains("`'\"", mark) {
		return strings.ReplaceAll(name[1:len(name)-1], mark+mark, mark)
	}
	return name
}

// known reports whether SHOW GRANTS was readable: every account has at least USAGE.
func (g grants) known() bool { return len(g.given) > 0 || g.roles }

// hold reports whether the account has a privilege on a table, or on everything for an empty name.
func (g grants) hold(privilege string, name tableName) bool {
	gives := func(one grant) bool { return one.gives(privilege, name) }
	return slices.ContainsFunc(g.given, func(one grant) bool {
		return gives(one) && (one.schema != everything || name.schema == "" || !slices.ContainsFunc(g.revoked, gives))
	})
}

func (g grant) gives(privilege string, name tableName) bool {
	has := func(p string) bool { return p == privilege || p == "ALL PRIVILEGES" || p == "ALL" }
	switch {
	case !slices.ContainsFunc(g.privileges, has):
		return false
	case g.schema == everything:
		return g.table == everything
	case g.table == everything:
		return name.schema != "" && like(g.schema, name.schema)
	}
	return strings.EqualFold(g.schema, name.schema) && strings.EqualFold(g.table, name.table)
}

// like matches a pattern with % and _, each meaning itself after a backslash, ignoring case.
func like(pattern, text string) bool {
	expression := strings.NewReplacer(`\\%`, "%", `\\_`, "_", "%", ".*", "_", ".").Replace(regexp.QuoteMeta(pattern))
	matched, err := regexp.MatchString("(?is)^"+expression+"$", text)
	return err == nil && matched
}
