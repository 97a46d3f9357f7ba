package oracle

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// question is a question to the dictionary, as in like, with the rows of the answer.
type question struct {
	sql  string
	rows func(x *session, m []string) [][]any
}

// fixed returns the same rows always.
func fixed(rows ...[]any) func(*session, []string) [][]any {
	return func(*session, []string) [][]any { return rows }
}

// questions returns the shapes of the questions.
func questions() (all []shape) {
	for _, q := range slices.Concat(asked, lookups()) {
		all = append(all, shape{pattern: like(q.sql), run: func(x *session, m []string) answer {
			return answer{cells: q.rows(x, m)}
		}})
	}
	return all
}

// asked are the questions of the back-end, with the answers of a new Oracle Database Free to a user who has the roles
// CONNECT and RESOURCE. All of their words are in a golden file of the back-end.
var asked = []question{
	{"SELECT product, version_full FROM product_component_version WHERE …",
		fixed([]any{"Oracle Database Free ", "23.0.0.0.0"})},
	{"SELECT product, version FROM product_component_version WHERE …", fixed([]any{"Oracle Database", "12.2.0.1.0"})},
	{"SELECT … FROM nls_database_parameters WHERE …", fixed([]any{"character_set", "AL32UTF8"})},
	{"SELECT 'cloud_service', … FROM DUAL", fixed([]any{"cloud_service", nil})},
	{"SELECT name, value FROM v$parameter WHERE …",
		fixed([]any{"max_string_size", "EXTENDED"}, []any{"commit_logging", nil}, []any{"commit_wait", nil})},
	{"SELECT SYS_CONTEXT('USERENV', 'SESSION_USER'), SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA') FROM DUAL",
		func(x *session, _ []string) [][]any { return [][]any{{user, x.schema()}} }},
	{"SELECT p.privilege FROM session_privs p", fixed([]any{"CREATE TABLE"}, []any{"UNLIMITED TABLESPACE"})},
	{"SELECT p.privilege FROM all_tab_privs p WHERE …", fixed()},
	{"SELECT u.default_tablespace, (SELECT … FROM user_ts_quotas q …) FROM user_users u", fixed([]any{"USERS", nil, nil})},
	{"SELECT r.limit FROM user_resource_limits r WHERE …", fixed([]any{"UNLIMITED"})},
	{"SELECT … FROM v$resource_limit r WHERE …",
		fixed([]any{"processes", "60", "       300"}, []any{"sessions", "70", "       472"})},
	{"SELECT … FROM all_objects o WHERE o.owner = ? AND o.object_name = '?' AND …", (*session).relation},
	{"SELECT … FROM all_tab_columns c WHERE c.owner = ? AND c.table_name = '?' …", func(x *session, m []string) [][]any {
		if t := x.named(m); t != nil {
			return t.columns()
		}
		return nil
	}},
	{"SELECT c.table_name, … FROM all_tab_columns c WHERE c.owner = '?' ORDER BY c.table_name, c.column_id",
		func(x *session, m []string) [][]any { return x.every(m[1], (*table).columns) }},
	{"SELECT 'trigger ' … FROM all_triggers g WHERE … UNION ALL SELECT … FROM all_policies p WHERE …", fixed()},
	{"SELECT k.default_on_null FROM all_tab_identity_cols i … WHERE i.owner = ? AND i.table_name = '?' AND i.column_name = '?' …",
		(*session).identities},
	{"SELECT … FROM all_tables t WHERE t.owner = ? AND t.table_name = '?'", (*session).traits},
	{"SELECT owner FROM all_tables WHERE table_name = '?'", func(x *session, m []string) [][]any {
		if x.server.tables[m[1]] == nil {
			return nil
		}
		return [][]any{{x.server.options.Owner}}
	}},
	{"SELECT … FROM all_tab_partitions p WHERE …", fixed([]any{"0"})},
	{"SELECT … FROM all_indexes i … WHERE i.table_owner = ? AND i.table_name = '?' AND … HAVING COUNT(*) = ? AND " +
		"SUM(CASE WHEN c.column_name IN (?) THEN 1 ELSE 0 END) = ?)", (*session).uniqueIndexes},
	{"SELECT … FROM user_segments g WHERE ? = SYS_CONTEXT('USERENV', 'SESSION_USER') AND (g.segment_name = '?' OR …)",
		func(x *session, m []string) [][]any {
			if t := x.named(m); t != nil && x.ownerOf(m[1]) == user {
				return [][]any{{str(int64(1+len(t.Rows)) << 16)}}
			}
			return [][]any{{"0"}}
		}},
	{"SELECT … FROM v$mystat s JOIN v$statname n …", func(x *session, _ []string) [][]any {
		return [][]any{
			{"redo size", "5000"}, {"SQL*Net roundtrips to/from client", "9"},
			{"bytes received via SQL*Net from client", "3000"}, {"CPU used by this session", "7"},
			{"user commits", str(x.commits)},
		}
	}},
	{"SELECT TO_CHAR(DBMS_MEMOPTIMIZE.GET_WRITE_HWM_SEQID) FROM DUAL", func(x *session, _ []string) [][]any {
		if x.written == 0 {
			return [][]any{{nil}}
		}
		return [][]any{{str(x.written)}}
	}},
	{"SELECT TO_CHAR(DBMS_MEMOPTIMIZE.GET_APPLY_HWM_SEQID) FROM DUAL", func(x *session, _ []string) [][]any {
		return [][]any{{str(x.applied())}}
	}},
}

// ownerOf returns the owner that a question names, as a literal or as the current schema.
func (x *session) ownerOf(expression string) string {
	if expression == "SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA')" {
		return x.schema()
	}
	return strings.Trim(expression, "'")
}

// named returns the table that a question is about, by owner and name; nil if there is none.
func (x *session) named(m []string) *table {
	if x.ownerOf(m[1]) != x.server.options.Owner {
		return nil
	}
	return x.server.tables[m[2]]
}

// relation answers with a table, or with what else has its name.
func (x *session) relation(m []string) [][]any {
	owner := x.server.options.Owner
	if t := x.named(m); t != nil {
		return [][]any{{owner, t.Name, "TABLE", str(t.id), str(t.data), t.Comment, user}}
	}
	if kind := x.server.options.Taken[m[2]]; kind != "" {
		return [][]any{{owner, m[2], kind, "30000", nil, nil, user}}
	}
	return nil
}

// traits answers with as many columns as are asked for.
func (x *session) traits(m []string) [][]any {
	t := x.named(m)
	if t == nil {
		return nil
	}
	traits := []any{"N", nil, nil, "0", "0", "0"}
	if strings.Contains(x.SQL, "t.memoptimize_write") {
		traits = append(traits, map[bool]string{true: "ENABLED", false: "DISABLED"}[t.fast])
	}
	return [][]any{traits}
}

// identities answers for a column that a sequence fills by default, and has not filled.
func (x *session) identities(m []string) (all [][]any) {
	t := x.named(m)
	if t == nil {
		return nil
	}
	for _, c := range t.Columns {
		if c.Name == m[3] && c.Identity == "BY DEFAULT" {
			all = append(all, []any{"NO"})
		}
	}
	return all
}

var numberShape = regexp.MustCompile(`^NUMBER\((\d+)(?:,(\d+))?\)$`)

// columns answers with the types in the parts that ALL_TAB_COLUMNS has them in.
func (t *table) columns() (all [][]any) {
	for _, c := range t.Columns {
		kind, size := c.Type, str(int64(c.Length()))
		var precision, scale, fallback any
		if n := numberShape.FindStringSubmatch(c.Type); n != nil {
			precision, scale = n[1], "0"
			if n[2] != "" {
				scale = n[2]
			}
		}
		if !strings.HasPrefix(kind, "TIMESTAMP") {
			kind, _, _ = strings.Cut(kind, "(")
		}
		if c.Default {
			fallback = "1"
		}
		nullable := map[bool]string{true: "Y", false: "N"}[c.Nullable]
		virtual := map[bool]any{true: "virtual generated", false: nil}[c.Virtual]
		all = append(all, []any{
			c.Name, kind, nullable, fallback, virtual, nil, nil, size, precision, scale, c.Identity,
		})
	}
	return all
}

// uniqueIndexes counts the unique indexes on exactly the columns that are named.
func (x *session) uniqueIndexes(m []string) [][]any {
	t := x.named(m)
	is := t != nil && m[3] == m[5] && m[3] == fmt.Sprint(len(t.Key))
	for i := 0; is && i < len(t.Key); i++ {
		is = strings.Contains(","+strings.ReplaceAll(m[4], " ", "")+",", ",'"+strings.ToUpper(t.Key[i])+"',")
	}
	return [][]any{{number(is)}}
}

func number(is bool) string {
	if is {
		return "1"
	}
	return "0"
}

// lookups are the questions about one table, or about all of a schema, of which each row then begins with its name.
func lookups() (all []question) {
	for _, q := range []struct {
		fields, from, where string
		rows                func(t *table) [][]any
	}{
		{"index_name, kind, …", "(… all_indexes i …)", "table_owner", (*table).keyColumns},
		{"constraint_name, own_column, …", "(… all_constraints f …)", "child_owner", (*table).foreignColumns},
		{"search_condition_vc", "all_constraints", "owner", (*table).conditions},
		{"kind, name, remedy", "(… all_triggers g …)", "of_owner", (*table).costs},
		{"t.partitioning_type …", "all_part_tables t", "t.owner", func(*table) [][]any { return nil }},
		{"TO_CHAR(NVL(num_rows, 0))", "all_tables", "owner", func(t *table) [][]any {
			return [][]any{{str(int64(len(t.Rows)))}}
		}},
	} {
		column := strings.Replace(q.where, "owner", "table_name", 1)
		if !strings.HasPrefix(q.where, "t.") {
			column = "table_name"
		}
		rest := q.fields + " FROM " + q.from + " WHERE " + q.where + " = '?' AND " + column + " = "
		all = append(all, question{"SELECT " + rest + "'?'…", func(x *session, m []string) [][]any {
			if t := x.named(m); t != nil {
				return q.rows(t)
			}
			return nil
		}}, question{"SELECT table_name, " + rest + "table_name…", func(x *session, m []string) [][]any {
			return x.every(m[1], q.rows)
		}})
	}
	tables := "SELECT t.table_name FROM all_tables t WHERE t.owner = '?' AND …"
	return append(all, question{tables, func(x *session, m []string) [][]any {
		return x.every(m[1], func(*table) [][]any { return [][]any{nil} })
	}})
}

// every answers for all tables of an owner.
func (x *session) every(owner string, rows func(t *table) [][]any) (all [][]any) {
	for _, name := range slices.Sorted(maps.Keys(x.server.tables)) {
		if owner != x.server.options.Owner {
			continue
		}
		for _, row := range rows(x.server.tables[name]) {
			all = append(all, append([]any{name}, row...))
		}
	}
	return all
}

func (t *table) keyColumns() (all [][]any) {
	for i, key := range append([][]string{t.Key}, t.unique...) {
		kind, name := "UNIQUE", fmt.Sprintf("UQ_%s_%d", t.Name, i)
		if i == 0 {
			kind, name = "PRIMARY KEY", "PK_"+t.Name
		}
		for _, column := range key {
			all = append(all, []any{name, kind, strings.ToUpper(column), nil, "0"})
		}
	}
	return all
}

func (t *table) foreignColumns() (all [][]any) {
	for i, f := range t.foreign {
		for k, column := range f.columns {
			all = append(all, []any{fmt.Sprintf("FK_%s_%d", t.Name, i), column, user, f.parent, f.of[k]})
		}
	}
	return all
}

// conditions are those of CHECKs, of which NOT NULL is one.
func (t *table) conditions() (all [][]any) {
	for _, c := range t.checks {
		all = append(all, []any{c})
	}
	for _, c := range t.Columns {
		if !c.Nullable {
			all = append(all, []any{`"` + c.Name + `" IS NOT NULL`})
		}
	}
	return all
}

func (t *table) costs() (all [][]any) {
	for i := range t.foreign {
		all = append(all, []any{"foreign key", fmt.Sprintf("FK_%s_%d", t.Name, i), "ALTER TABLE …"})
	}
	for _, name := range t.indexes {
		all = append(all, []any{"index", name, "DROP INDEX …"})
	}
	return all
}
