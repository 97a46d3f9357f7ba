package oracle

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// question is a question to the dictionary: its text, in which each ? stands for anything, and the rows of the answer.
type question struct {
	sql  string
	rows func(x *session, m []string) [][]any
}

// fixed returns the same rows always.
func fixed(rows ...[]any) func(*session, []string) [][]any {
	return func(*session, []string) [][]any { return rows }
}

var viewShape = regexp.MustCompile(`(?:FROM|JOIN) ((?:all|user|session|product|nls|dba)_\w+|v\$\w+)|(DBMS_MEMOPTIMIZE\.\w+)`)

// questions returns the shapes of the questions. Options.Denied and Options.Answers apply to their views.
func questions() (all []shape) {
	for _, q := range asked {
		var views []string
		for _, m := range viewShape.FindAllStringSubmatch(q.sql, -1) {
			views = append(views, strings.ToUpper(m[1]+m[2]))
		}
		all = append(all, shape{like(q.sql), func(x *session, m []string) (answer, error) {
			for _, view := range views {
				if err := x.server.denied(view); err != nil {
					return answer{}, err
				}
				if said, is := x.server.options.Answers[view]; is {
					return answer{cells: said}, nil
				}
			}
			return answer{cells: q.rows(x, m)}, nil
		}})
	}
	return all
}

// asked are the questions of the back-end, with the answers of a new Oracle Database Free to a user who has the roles
// CONNECT and RESOURCE.
var asked = []question{
	{"SELECT product, version_full FROM product_component_version WHERE product LIKE 'Oracle%'",
		fixed([]any{"Oracle Database Free ", "23.0.0.0.0"})},
	{"SELECT product, version FROM product_component_version WHERE product LIKE 'Oracle%'",
		fixed([]any{"Oracle Database", "12.2.0.1.0"})},
	{"SELECT 'character_set', value FROM nls_database_parameters WHERE parameter = 'NLS_CHARACTERSET'",
		fixed([]any{"character_set", "AL32UTF8"})},
	{"SELECT 'cloud_service', SYS_CONTEXT('USERENV', 'CLOUD_SERVICE') FROM DUAL", fixed([]any{"cloud_service", nil})},
	{"SELECT name, value FROM v$parameter WHERE name IN ('commit_logging', 'commit_wait', 'cpu_count', " +
		"'db_block_size', 'log_buffer', 'max_string_size', 'memoptimize_pool_size', 'memoptimize_write_area_size', 'sga_target')",
		fixed([]any{"max_string_size", "EXTENDED"}, []any{"commit_logging", nil}, []any{"commit_wait", nil})},
	{"SELECT SYS_CONTEXT('USERENV', 'SESSION_USER'), SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA') FROM DUAL",
		func(x *session, _ []string) [][]any { return [][]any{{user, x.schema()}} }},
	{"SELECT p.privilege FROM session_privs p", fixed([]any{"CREATE TABLE"}, []any{"UNLIMITED TABLESPACE"})},
	{"SELECT p.privilege FROM all_tab_privs p WHERE p.table_schema = '?' AND p.table_name = '?'", fixed()},
	{"SELECT u.default_tablespace, " +
		"(SELECT TO_CHAR(MAX(q.bytes)) FROM user_ts_quotas q WHERE q.tablespace_name = u.default_tablespace), " +
		"(SELECT TO_CHAR(MAX(q.max_bytes)) FROM user_ts_quotas q WHERE q.tablespace_name = u.default_tablespace) FROM user_users u",
		fixed([]any{"USERS", nil, nil})},
	{"SELECT r.limit FROM user_resource_limits r WHERE r.resource_name = 'SESSIONS_PER_USER'", fixed([]any{"UNLIMITED"})},
	{"SELECT r.resource_name, TO_CHAR(r.current_utilization), r.limit_value FROM v$resource_limit r " +
		"WHERE r.resource_name IN ('processes', 'sessions')",
		fixed([]any{"processes", "60", "       300"}, []any{"sessions", "70", "       472"})},
	{"SELECT s.server FROM v$session s WHERE TO_CHAR(s.sid) = SYS_CONTEXT('USERENV', 'SID')", fixed([]any{"DEDICATED"})},
	{"SELECT d.force_logging FROM v$database d", fixed([]any{"NO"})},
	{"SELECT TO_CHAR(COUNT(*)), TO_CHAR(MIN(l.bytes)) FROM v$log l", fixed([]any{"3", "209715200"})},
	{"SELECT TO_CHAR(COUNT(*)) FROM all_objects o WHERE o.object_name = 'DBMS_CLOUD' AND o.object_type IN ('PACKAGE', 'SYNONYM')",
		func(x *session, _ []string) [][]any {
			return [][]any{{number(x.server.denied("DBMS_CLOUD") == nil)}}
		}},
	{`SELECT t.table_name FROM all_external_tables t WHERE t.owner = ? AND t.table_name LIKE '?%' ESCAPE '\'`,
		(*session).externals},
	{"SELECT o.owner, o.object_name, o.object_type, TO_CHAR(o.object_id), " +
		"(SELECT TO_CHAR(MIN(d.data_object_id)) FROM all_objects d WHERE d.owner = o.owner " +
		"AND d.object_name = o.object_name AND d.object_type IN ('TABLE', 'TABLE PARTITION', 'TABLE SUBPARTITION')), " +
		"(SELECT MAX(c.comments) FROM all_tab_comments c WHERE c.owner = o.owner AND c.table_name = o.object_name), " +
		"SYS_CONTEXT('USERENV', 'SESSION_USER') FROM all_objects o WHERE o.owner = ? AND o.object_name = '?' " +
		"AND o.object_type IN ('FUNCTION', 'MATERIALIZED VIEW', 'OPERATOR', 'PACKAGE', 'PROCEDURE', 'SEQUENCE', 'SYNONYM', " +
		"'TABLE', 'TYPE', 'VIEW') ORDER BY o.object_type", (*session).relation},
	{"SELECT c.column_name, c.data_type, TO_CHAR(c.data_length), TO_CHAR(c.data_precision), TO_CHAR(c.data_scale), " +
		"c.nullable, TO_CHAR(c.default_length) FROM all_tab_columns c WHERE c.owner = ? AND c.table_name = '?' " +
		"ORDER BY c.column_id", (*session).columns},
	{"SELECT t.temporary, t.iot_type, t.cluster_name, " + count("all_triggers", "table_owner", " AND x.status = 'ENABLED'") +
		count("all_constraints", "owner", " AND x.constraint_type = 'R' AND x.status = 'ENABLED'") +
		strings.TrimSuffix(count("all_external_tables", "owner", ""), ", ") +
		"? FROM all_tables t WHERE t.owner = ? AND t.table_name = '?'", (*session).traits},
	{"SELECT TO_CHAR(COUNT(*)) FROM all_tab_partitions p WHERE p.table_owner = ? AND p.table_name = '?' " +
		"AND p.partition_name = '?'",
		func(x *session, m []string) [][]any {
			t := x.named(m)
			return [][]any{{number(t != nil && slices.Contains(t.partitions, m[3]))}}
		}},
	{"SELECT TO_CHAR(COUNT(*)) FROM (SELECT i.index_name FROM all_indexes i " +
		"JOIN all_ind_columns c ON c.index_owner = i.owner AND c.index_name = i.index_name " +
		"WHERE i.table_owner = ? AND i.table_name = '?' AND i.uniqueness = 'UNIQUE' AND i.status IN ('VALID', 'N/A') " +
		"GROUP BY i.owner, i.index_name " +
		"HAVING COUNT(*) = ? AND SUM(CASE WHEN c.column_name IN (?) THEN 1 ELSE 0 END) = ?)", (*session).uniqueIndexes},
	{"SELECT TO_CHAR(NVL(SUM(g.bytes), 0)) FROM user_segments g WHERE ? = SYS_CONTEXT('USERENV', 'SESSION_USER') " +
		"AND (g.segment_name = '?' OR g.segment_name IN (SELECT i.index_name FROM user_indexes i WHERE i.table_name = '?'))",
		func(x *session, m []string) [][]any {
			if t := x.named(m); t != nil && x.ownerOf(m[1]) == user {
				return [][]any{{str(int64(1+len(t.Rows)) << 16)}}
			}
			return [][]any{{"0"}}
		}},
	{"SELECT n.name, TO_CHAR(s.value) FROM v$mystat s JOIN v$statname n ON n.statistic# = s.statistic# WHERE n.name IN (" +
		"'redo size', 'SQL*Net roundtrips to/from client', 'bytes received via SQL*Net from client', 'CPU used by this session', " +
		"'user commits')", func(x *session, _ []string) [][]any {
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

func count(view, owner, condition string) string {
	return fmt.Sprintf("(SELECT TO_CHAR(COUNT(*)) FROM %s x WHERE x.%s = t.owner AND x.table_name = t.table_name%s), ",
		view, owner, condition)
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

func (x *session) externals(m []string) (all [][]any) {
	for name, t := range x.server.tables {
		if t.external != nil && strings.HasPrefix(name, strings.ReplaceAll(m[2], `\_`, "_")) {
			all = append(all, []any{name})
		}
	}
	return all
}

// traits answers with as many columns as are asked for.
func (x *session) traits(m []string) [][]any {
	t := x.named(m[1:])
	if t == nil {
		return nil
	}
	traits := []any{"N", nil, nil, "0", "0", number(t.external != nil)}
	if m[1] != "" {
		traits = append(traits, map[bool]string{true: "ENABLED", false: "DISABLED"}[t.fast])
	}
	return [][]any{traits}
}

var numberShape = regexp.MustCompile(`^NUMBER\((\d+)(?:,(\d+))?\)$`)

// columns answers with the types in the parts that ALL_TAB_COLUMNS has them in.
func (x *session) columns(m []string) (all [][]any) {
	t := x.named(m)
	if t == nil {
		return nil
	}
	for _, c := range t.Columns {
		kind, size := c.Type, str(int64(length(c.Type)))
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
		all = append(all, []any{c.Name, kind, size, precision, scale, nullable, fallback})
	}
	return all
}

// uniqueIndexes counts the unique indexes on exactly the columns that are named.
func (x *session) uniqueIndexes(m []string) [][]any {
	t := x.named(m)
	is := t != nil && m[3] == m[5] && m[3] == fmt.Sprint(len(t.key))
	for i := 0; is && i < len(t.key); i++ {
		is = strings.Contains(","+strings.ReplaceAll(m[4], " ", "")+",", ",'"+t.Columns[t.key[i]].Name+"',")
	}
	return [][]any{{number(is)}}
}

func number(is bool) string {
	if is {
		return "1"
	}
	return "0"
}
