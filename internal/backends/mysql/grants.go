package mysql

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/sqlload"
)

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

// parseGrants leaves out what is about no table: proxies, routines, what follows WITH.
func parseGrants(lines []string) (g grants) {
	for _, line := range lines {
		words, revoked := strings.CutPrefix(line, "REVOKE ") // a partial revoke, MySQL 8.0.16 and later
		if !revoked {
			var isGrant bool
			if words, isGrant = strings.CutPrefix(line, "GRANT "); !isGrant {
				continue
			}
		}
		list, object, onSomething := strings.Cut(words, " ON ")
		if !onSomething {
			g.roles = true
			continue
		}
		schema, rest := identifier(object)
		rest, dotted := strings.CutPrefix(rest, ".")
		if !dotted {
			continue
		}
		table, _ := identifier(rest)
		one := grant{privileges: privileges(list), schema: schema, table: table}
		if revoked {
			g.revoked = append(g.revoked, one)
		} else {
			g.given = append(g.given, one)
		}
	}
	return g
}

// identifier reads a name with or without quotes, and what follows it.
func identifier(text string) (name, rest string) {
	if text == "" {
		return "", ""
	}
	quote := text[:1]
	if !strings.Contains("`'\"", quote) {
		if end := strings.IndexAny(text, ". "); end >= 0 {
			return text[:end], text[end:]
		}
		return text, ""
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		if text[i:i+1] != quote {
			b.WriteByte(text[i])
			continue
		}
		if i+1 < len(text) && text[i+1:i+2] == quote { // doubled
			i++
			b.WriteString(quote)
			continue
		}
		return b.String(), text[i+1:]
	}
	return b.String(), ""
}

// privileges splits a list, whose column names may hold commas.
func privileges(list string) (all []string) {
	depth, from := 0, 0
	add := func(one string) {
		one, _, _ = strings.Cut(one, "(")
		all = append(all, strings.ToUpper(strings.TrimSpace(one)))
	}
	for i, r := range list {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			add(list[from:i])
			from = i + 1
		}
	}
	add(list[from:])
	return all
}

const currentUser = "SELECT CURRENT_USER()"

// accountOf is whose connection this is, quoted as GRANT wants it.
func accountOf(ctx context.Context, c sqlload.Conn) (string, error) {
	found, err := sqlload.Rows(ctx, c, currentUser)
	return accountIn(found), err
}

// accountIn reads the answer to currentUser.
func accountIn(found [][]string) string {
	user, host := "", ""
	if len(found) > 0 {
		user = found[0][0]
	}
	if at := strings.LastIndexByte(user, '@'); at >= 0 {
		user, host = user[:at], user[at+1:]
	}
	return literal(user) + "@" + literal(host)
}

// known is false where nothing could be read: every account has at least USAGE.
func (g grants) known() bool { return len(g.given) > 0 || g.roles }

// hold tells whether a privilege is there on a table, or on everything where the table's name is empty.
func (g grants) hold(privilege string, name tableName) bool {
	return slices.ContainsFunc(g.given, func(o grant) bool {
		return o.has(privilege) && o.covers(name) && (o.schema != everything || !g.takenBack(privilege, name))
	})
}

func (g grants) takenBack(privilege string, name tableName) bool {
	return name.schema != "" && slices.ContainsFunc(g.revoked, func(o grant) bool { return o.has(privilege) && o.covers(name) })
}

func (g grant) has(privilege string) bool {
	return slices.Contains(g.privileges, privilege) || slices.Contains(g.privileges, "ALL PRIVILEGES") || slices.Contains(g.privileges, "ALL")
}

func (g grant) covers(name tableName) bool {
	switch {
	case g.schema == everything:
		return g.table == everything
	case name.schema == "":
		return false
	case g.table == everything:
		return like(strings.ToLower(g.schema), strings.ToLower(name.schema))
	}
	return strings.EqualFold(g.schema, name.schema) && strings.EqualFold(g.table, name.table)
}

// like matches a pattern with %, _ and a backslash before those that mean themselves.
func like(pattern, text string) bool {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '%':
			b.WriteString("(?s:.*)")
		case c == '_':
			b.WriteString("(?s:.)")
		case c == '\\' && i+1 < len(pattern):
			i++
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		default:
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}
	matcher, err := regexp.Compile("^" + b.String() + "$")
	return err == nil && matcher.MatchString(text)
}
