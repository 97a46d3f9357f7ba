package mysql

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/sqlload"
)

// account is whose connection this is, quoted as GRANT wants it.
func account(ctx context.Context, c sqlload.Conn) (string, error) {
	user, err := answer(ctx, c, "SELECT CURRENT_USER()")
	host := ""
	if at := strings.LastIndexByte(user, '@'); at >= 0 {
		user, host = user[:at], user[at+1:]
	}
	return literal(user) + "@" + literal(host), err
}

// grants are an account's privileges, as SHOW GRANTS tells them: with those of the roles that are active, in MySQL and
// MariaDB (tried on 9.7 and 10.11).
type grants struct {
	given, revoked []grant
	roles          bool // some were granted
}

// grant is one line.
type grant struct {
	privileges    []string // in capitals; one on some columns counts as one on all
	schema, table string   // "*" is all; a schema that is granted as a whole is a pattern of LIKE
}

const everything = "*"

var (
	// grantLine takes privileges, schema and table from a line. A partial REVOKE comes from MySQL 8.0.16 and later.
	grantLine = regexp.MustCompile("^(GRANT|REVOKE) (.+?) ON (" + identifier + `)\.(` + identifier + ")")
	// columnList is what stands behind a privilege on some columns, whose names may hold commas and parentheses.
	columnList = regexp.MustCompile(`\((` + quotedName + `|[^)])*\)`)
)

const (
	quotedName = "`(?:[^`]|``)*`|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""
	identifier = quotedName + "|[^`'\". ]+"
)

// parseGrants leaves out what is about no table: proxies, routines, what follows WITH.
func parseGrants(lines []string) (g grants) {
	for _, line := range lines {
		line = columnList.ReplaceAllString(line, "")
		found := grantLine.FindStringSubmatch(line)
		if found == nil {
			g.roles = g.roles || strings.HasPrefix(line, "GRANT ") && !strings.Contains(line, " ON ")
			continue
		}
		one := grant{schema: bare(found[3]), table: bare(found[4])}
		for privilege := range strings.SplitSeq(found[2], ",") {
			one.privileges = append(one.privileges, strings.ToUpper(strings.TrimSpace(privilege)))
		}
		if found[1] == "REVOKE" {
			g.revoked = append(g.revoked, one)
		} else {
			g.given = append(g.given, one)
		}
	}
	return g
}

// bare is an identifier without its quotation marks.
func bare(name string) string {
	if mark := name[:1]; strings.Contains("`'\"", mark) {
		return strings.ReplaceAll(name[1:len(name)-1], mark+mark, mark)
	}
	return name
}

// known is false where nothing could be read: every account has at least USAGE.
func (g grants) known() bool { return len(g.given) > 0 || g.roles }

// hold reports whether a privilege is there on a table, or on everything where the table's name is empty.
func (g grants) hold(privilege string, name tableName) bool {
	covers := func(o grant) bool { return o.has(privilege) && o.covers(name) }
	return slices.ContainsFunc(g.given, func(o grant) bool {
		return covers(o) && (o.schema != everything || name.schema == "" || !slices.ContainsFunc(g.revoked, covers))
	})
}

func (g grant) has(privilege string) bool {
	return slices.ContainsFunc(g.privileges, func(p string) bool { return p == privilege || p == "ALL PRIVILEGES" || p == "ALL" })
}

func (g grant) covers(name tableName) bool {
	switch {
	case g.schema == everything:
		return g.table == everything
	case name.schema == "":
		return false
	case g.table == everything:
		return like(g.schema, name.schema)
	}
	return strings.EqualFold(g.schema, name.schema) && strings.EqualFold(g.table, name.table)
}

// likePart is a character of a pattern, with the backslash before those that mean themselves.
var likePart = regexp.MustCompile(`(?s)\\.|.`)

// like matches a pattern with % and _, whatever the case of letters.
func like(pattern, text string) bool {
	matcher, err := regexp.Compile("(?is)^" + likePart.ReplaceAllStringFunc(pattern, func(part string) string {
		switch part {
		case "%":
			return ".*"
		case "_":
			return "."
		}
		if len(part) > 1 && part[0] == '\\' {
			part = part[1:]
		}
		return regexp.QuoteMeta(part)
	}) + "$")
	return err == nil && matcher.MatchString(text)
}
