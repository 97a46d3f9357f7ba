package doris

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/terapush/terapush/internal/standin"
	"github.com/terapush/terapush/pkg/rows"
)

// shape is a statement that terapush sends. run gets what its pattern matched; no result is OK.
type shape struct {
	pattern *regexp.Regexp
	run     func(s *session, m []string) *result
}

// of makes a shape; the pattern is of the whole statement, without flags.
func of(pattern string, run func(s *session, m []string) *result) shape {
	return shape{regexp.MustCompile(`(?s)^` + pattern + `$`), run}
}

// asked makes the shape of a question to information_schema about a table, or about all of a database, of which each row
// then begins with the table's name.
func asked(fields, more string, f func(*table) [][]any) shape {
	from := ` FROM information_schema\.\w+ WHERE table_schema = '([^']*)'(?: AND table_name = (?:'([^']*)'|table_name))?`
	return of(`SELECT (table_name, )?`+fields+from+more, func(s *session, m []string) *result {
		r := &result{names: make([]string, 6)}
		for _, name := range slices.Sorted(maps.Keys(s.tables)) {
			if m[2] != Database || m[1] == "" && name != m[3] {
				continue
			}
			for _, row := range f(s.tables[name]) {
				if m[1] != "" {
					row = append([]any{name}, row...)
				}
				r.rows = append(r.rows, row)
				r.names = r.names[:len(row)]
			}
		}
		return r
	})
}

// shapes are all but INSERT and the statements of verification.
var shapes = []shape{
	of(`SELECT @@(\w+)`, (*session).showVariable),
	of(`SET (\w+) = '?(\w+)'?`, (*session).setVariable),
	of(`SET NAMES utf8mb4`, func(*session, []string) *result { return nil }),
	of(`SHOW BACKENDS`, (*session).showBackends),
	of(`SHOW FRONTEND CONFIG`, (*session).showFrontendConfig),
	of(`SHOW BACKEND CONFIG LIKE '(\w+)'`, (*session).showBackendConfig),
	of(`SHOW GRANTS`, (*session).showGrants),
	of(`SHOW LAST INSERT`, (*session).showLast),
	asked(`table_type, table_comment, create_time`, ``, func(t *table) [][]any {
		return [][]any{{"BASE TABLE", t.Comment, "2026-01-01 00:00:00"}}
	}),
	asked(`COALESCE\(SUM\(data_length\), 0\)`, ``, func(t *table) [][]any {
		return [][]any{{strconv.Itoa(100 * len(t.Rows))}}
	}),
	asked(`COALESCE\(table_rows, 0\)`, ``, func(t *table) [][]any { return [][]any{{strconv.Itoa(len(t.Rows))}} }),
	of(`SELECT table_name FROM information_schema\.tables WHERE table_schema = '`+Database+`'`+
		` AND table_type = 'BASE TABLE' ORDER BY table_name`, (*session).showTables),
	asked(`column_name, LOWER\(COALESCE\(NULLIF\(column_type, ''\), data_type\)\), is_nullable, column_default`,
		` ORDER BY (?:table_name, )?ordinal_position`, (*table).schemaColumns),
	asked(`'PRIMARY', 'PRIMARY KEY', column_name, '', 0`, ` AND column_key IN \('UNI', 'AGG', 'PRI'\) ORDER BY ordinal_position`,
		(*table).uniqueKey),
	of(`SHOW CREATE TABLE (\S+)`, onTable(func(_ *session, t *table) *result {
		return &result{[]string{"Table", "Create Table"}, [][]any{{t.Name, t.ddl()}}}
	})),
	of(`SHOW PARTITIONS FROM (\S+)`, onTable(func(_ *session, t *table) *result {
		return &result{[]string{"PartitionId", "PartitionName"}, [][]any{{strconv.FormatInt(t.partition, 10), t.Name}}}
	})),
	of(`SELECT 1 FROM (\S+) LIMIT 1`, onTable(func(_ *session, t *table) *result {
		return &result{[]string{"1"}, slices.Repeat([][]any{{"1"}}, min(len(t.Rows), 1))}
	})),
	of(`TRUNCATE TABLE (\S+)`, onTable(func(s *session, t *table) *result {
		t.Rows, t.partition = nil, s.newID()
		return nil
	})),
	of(`DROP TABLE (\S+)`, onTable(func(s *session, t *table) *result {
		delete(s.tables, t.Name)
		return nil
	})),
	of(`ALTER TABLE (\S+) SET \(("group_commit_\w+" = "[^"]*")\)`, (*session).alterTable),
	of(`ALTER TABLE (\S+) MODIFY COMMENT '(.*)'`, func(s *session, m []string) *result {
		s.find(m[1]).Comment = m[2]
		return nil
	}),
	of("CREATE TABLE `"+Database+"`.`([^`]+)` LIKE (\\S+)", (*session).createLike),
	of("CREATE TABLE IF NOT EXISTS `"+Database+"`.`([^`]+)` \\(\n(.+)\n\\)\n(DUPLICATE|UNIQUE) KEY\\((.+?)\\)\nCOMMENT '(.*)'\n"+
		"DISTRIBUTED BY HASH\\((.+?)\\) BUCKETS (\\d+)(?:\nPROPERTIES \\((.+)\\))?", (*session).createTable),
}

// onTable runs f on the table that the statement names.
func onTable(f func(*session, *table) *result) func(*session, []string) *result {
	return func(s *session, m []string) *result { return f(s, s.find(m[1])) }
}

// unknown is the server's syntax error for a statement that is none of the shapes.
func unknown(sql string) {
	refuse(mysql.ER_PARSE_ERROR, "Syntax error, or a statement that this stand-in does not know: %s", sql)
}

// statement runs one. The cluster is locked.
func (s *session) statement(sql string) *result {
	for _, known := range shapes {
		if m := known.pattern.FindStringSubmatch(sql); m != nil {
			return known.run(s, m)
		}
	}
	find := func(name string) (*standin.Table, error) { return s.find(name).Table, nil }
	// An empty string would become a NULL on its way into the packet.
	answer, known, err := standin.Select(sql, find, func(c rows.Column, v any) any { return []byte(standin.Text(c, v)) })
	fails(err)
	if !known {
		unknown(sql)
	}
	most := 1 // also where there is no row
	for _, row := range answer {
		most = max(most, len(row))
	}
	return &result{make([]string, most), answer}
}

func (s *session) showVariable(m []string) *result {
	value, known := s.variables[m[1]]
	if !known {
		refuse(mysql.ER_UNKNOWN_SYSTEM_VARIABLE, "Unknown system variable '%s'", m[1])
	}
	return &result{[]string{"@@" + m[1]}, [][]any{{value}}}
}

func (s *session) setVariable(m []string) *result {
	s.showVariable(m)
	s.variables[m[1]] = m[2]
	return nil
}

// says replaces values of columns by those of Options.Shows.
func (s *session) says(r *result) *result {
	for i, name := range r.names {
		if v, is := s.options.Shows[name]; is {
			for _, row := range r.rows {
				row[i] = v
			}
		}
	}
	return r
}

func (s *session) showBackends([]string) *result {
	r := &result{names: []string{
		"Host", "HttpPort", "Alive", "SystemDecommissioned", "AvailCapacity", "MaxDiskUsedPct", "Tag", "ErrMsg", "Status",
	}}
	for _, address := range s.Backends {
		host, port, _ := net.SplitHostPort(address)
		r.rows = append(r.rows, []any{
			host, port, "true", "false", "100.000 GB", "0.00 %", `{"location" : "default"}`, "", `{"isLoadDisabled":false}`,
		})
	}
	return s.says(r)
}

// The settings that the doctor reads, with their defaults in release 3.1.
var (
	frontendConfig = map[string]string{
		"max_running_txn_num_per_db": "10000", "streaming_label_keep_max_second": "43200", "label_num_threshold": "2000",
	}
	backendConfig = map[string]string{"streaming_load_max_mb": "10240", "max_tablet_version_num": "2000"}
)

func (s *session) showFrontendConfig([]string) *result {
	r := &result{names: []string{"Key", "Value"}}
	for name, value := range frontendConfig {
		r.rows = append(r.rows, []any{name, cmp.Or(s.options.Shows[name], value)})
	}
	return r
}

func (s *session) showBackendConfig(m []string) *result {
	value := cmp.Or(s.options.Shows[m[1]], backendConfig[m[1]])
	return &result{[]string{"Key", "Value"}, slices.Repeat([][]any{{m[1], value}}, len(s.Backends))}
}

// showGrants lists those of the only user, who is an administrator.
func (s *session) showGrants([]string) *result {
	return s.says(&result{
		[]string{"UserIdentity", "GlobalPrivs", "CatalogPrivs", "DatabasePrivs", "TablePrivs"},
		[][]any{{"'root'@'%'", "Node_priv,Admin_priv", nil, "internal.information_schema: Select_priv", nil}},
	})
}

func (s *session) showLast([]string) *result {
	r := &result{names: []string{"Label", "TransactionStatus", "LoadedRows", "FilteredRows"}}
	if l := s.last; l != nil && !s.options.Follower {
		r.rows = append(r.rows, []any{l.label, string(l.status), strconv.Itoa(l.loaded), "0"})
	}
	return r
}

func (s *session) showTables([]string) *result {
	r := &result{names: []string{"table_name"}}
	for _, name := range slices.Sorted(maps.Keys(s.tables)) {
		r.rows = append(r.rows, []any{name})
	}
	return r
}

// uniqueKey lists the columns of the key, if rows with the same values become one.
func (t *table) uniqueKey() (all [][]any) {
	for _, name := range t.Key {
		if t.unique {
			all = append(all, []any{"PRIMARY", "PRIMARY KEY", name, "", "0"})
		}
	}
	return all
}

// shown makes a type what information_schema calls it (schema_columns_scanner.cpp).
var shown = strings.NewReplacer(
	"decimal(", "decimalv3(", "boolean", "tinyint(1)", "smallint", "smallint(6)", "bigint", "bigint(20)",
	"largeint", "largeint", "int", "int(11)",
)

func (t *table) schemaColumns() (all [][]any) {
	for _, c := range t.Columns {
		kind := shown.Replace(strings.ToLower(c.Type))
		all = append(all, []any{c.Name, kind, map[bool]string{true: "YES", false: "NO"}[c.Nullable], nil})
	}
	return all
}

// createTable reads name, columns, model, key, comment, distribution, buckets and properties, and refuses what Doris
// would.
func (s *session) createTable(m []string) *result {
	if s.tables[m[1]] != nil {
		return nil
	}
	var columns []standin.Column
	for line := range strings.SplitSeq(m[2], ",\n") {
		name, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		kind, notNull := strings.CutSuffix(kind, " NOT NULL")
		kind = strings.TrimSuffix(kind, " NULL")
		columns = append(columns, standin.Column{Name: strings.Trim(name, "`"), Type: kind, Nullable: !notNull})
	}
	t := &table{
		Table: standin.NewTable(m[1], columns, columnsOf(m[4])...), unique: m[3] == "UNIQUE",
		properties: readProperties(m[8]),
	}
	t.HoldRowsOf(s.schemas)
	t.Comment = m[5]
	t.buckets, _ = strconv.Atoi(m[7])
	for i, key := range t.Key {
		if i >= len(columns) || columns[i].Name != key || columns[i].Type == "STRING" {
			refuse(1105, "Key columns must be a ordered prefix of the schema, and no STRING. KeyColumns[%d] is %s", i, key)
		}
	}
	if !slices.Contains(t.Key, strings.Trim(m[6], "`")) {
		refuse(1105, "Distribution column[%s] is not key column", m[6])
	}
	if n := t.replicas(); n > len(s.Backends) {
		refuse(1105, "replication num should be less than the number of available backends. "+
			"replication num is %d, available backend num is %d", n, len(s.Backends))
	}
	s.add(t)
	return nil
}

// createLike makes an empty table like another, which has its comment as well.
func (s *session) createLike(m []string) *result {
	if s.tables[m[1]] != nil {
		refuse(mysql.ER_TABLE_EXISTS_ERROR, "Table '%s' already exists", m[1])
	}
	model := s.find(m[2])
	t := &table{
		Table:  standin.NewTable(m[1], slices.Clone(model.Columns), model.Key...),
		unique: model.unique, buckets: model.buckets, properties: maps.Clone(model.properties),
	}
	t.HoldRowsOf(s.schemas)
	t.Comment = model.Comment
	s.add(t)
	return nil
}

// alterTable sets a property that can be changed.
func (s *session) alterTable(m []string) *result {
	maps.Copy(s.find(m[1]).properties, readProperties(m[2]))
	return nil
}

// replicas is replication_num, three by default.
func (t *table) replicas() int {
	n, _ := strconv.Atoi(cmp.Or(t.properties["replication_num"], "3"))
	return n
}

// ddl is the text of SHOW CREATE TABLE.
func (t *table) ddl() string {
	var lines []string
	for _, c := range t.Columns {
		null := map[bool]string{true: "NULL", false: "NOT NULL"}[c.Nullable]
		lines = append(lines, fmt.Sprintf("  `%s` %s %s", c.Name, strings.ToLower(c.Type), null))
	}
	all := map[string]string{
		"light_schema_change":    "true",
		"replication_allocation": fmt.Sprintf("tag.location.default: %d", t.replicas()),
	}
	maps.Copy(all, t.properties)
	delete(all, "replication_num")
	var properties []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		properties = append(properties, fmt.Sprintf("%q = %q", name, all[name]))
	}
	return fmt.Sprintf("CREATE TABLE `%s` (\n%s\n) ENGINE=OLAP\n%s KEY(`%s`)\nCOMMENT '%s'\n"+
		"DISTRIBUTED BY HASH(`%s`) BUCKETS %d\nPROPERTIES (\n%s\n);",
		t.Name, strings.Join(lines, ",\n"), map[bool]string{true: "UNIQUE", false: "DUPLICATE"}[t.unique],
		strings.Join(t.Key, "`, `"), t.Comment, t.Key[0], t.buckets, strings.Join(properties, ",\n"))
}
