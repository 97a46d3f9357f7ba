package oracle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// relation is a table as the catalog has it.
type relation struct {
	owner, name string
	kind        string // TABLE, VIEW, MATERIALIZED VIEW or SYNONYM
	identity    string // object/data object: DROP changes the first, TRUNCATE the second
	comment     string
}

func (f *relation) String() string { return f.owner + "." + f.name }

// locate finds the target table; nil if there is none.
func (r *ready) locate(ctx context.Context, k *link) (*relation, error) {
	found, err := k.texts(ctx, "look for table "+r.Table, r.selectTable())
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, nil
	}
	row := found[0]
	return &relation{owner: row[0], name: row[1], kind: row[2], identity: row[3] + "/" + row[4], comment: row[5]}, nil
}

// selectTable reads owner, name, kind, object number, data object number and comment of what has the table's name. The
// data objects of a partitioned table are its partitions', and the lowest of them stays when partitions are added.
func (s statements) selectTable() string {
	schema, name := unquoted(s.Table)
	return "SELECT o.owner, o.object_name, o.object_type, TO_CHAR(o.object_id), " +
		"(SELECT TO_CHAR(MIN(d.data_object_id)) FROM all_objects d WHERE d.owner = o.owner AND d.object_name = o.object_name " +
		"AND d.object_type IN ('TABLE', 'TABLE PARTITION', 'TABLE SUBPARTITION')), " +
		"(SELECT MAX(c.comments) FROM all_tab_comments c WHERE c.owner = o.owner AND c.table_name = o.object_name) " +
		"FROM all_objects o WHERE o.owner = " + ownerOf(schema) + " AND o.object_name = " + literal(name) +
		" AND o.object_type IN ('MATERIALIZED VIEW', 'SYNONYM', 'TABLE', 'VIEW') ORDER BY o.object_type"
}

// ownerOf is the schema that a name is looked up in: where none is given, the one that --set current_schema may have set.
func ownerOf(schema string) string {
	if schema == "" {
		return "SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA')"
	}
	return literal(schema)
}

// unquoted undoes qualified. Names have no quotation marks, and in quotes they may have dots.
func unquoted(table string) (schema, name string) {
	schema, name, both := strings.Cut(strings.Trim(table, `"`), `"."`)
	if !both {
		return "", schema
	}
	return schema, name
}

type refusal = func(hint, format string, values ...any) error

// fits checks that the table takes the schema's rows as the run will send them.
func (r *ready) fits(ctx context.Context, k *link, found *relation, p loader.Preparation) error {
	refuse := func(hint, format string, values ...any) error {
		return &loader.Error{Op: "check table " + found.String(), Applied: loader.No, Err: fmt.Errorf(format, values...), Hint: hint}
	}
	if found.kind != "TABLE" {
		return refuse("name the table itself with --table", "it is a %s", strings.ToLower(found.kind))
	}
	columns, err := k.texts(ctx, "read the columns of "+r.Table, selectColumns(found))
	if err != nil {
		return err
	}
	if wrong := differences(r.Schema, columns); len(wrong) > 0 {
		return refuse("choose another --table, or use --create recreate", "%s", strings.Join(wrong, "; "))
	}
	traits, err := k.texts(ctx, "read the properties of "+r.Table, r.selectTraits(found))
	if err != nil {
		return err
	}
	if len(traits) != 1 {
		return refuse("GRANT SELECT, INSERT ON "+r.Table+" TO "+r.user, "this user may not see it in ALL_TABLES")
	}
	if wrong, hint := r.unfit(traits[0]); wrong != "" {
		return refuse(hint, "%s", wrong)
	}
	if err := r.partitionFits(ctx, k, found, refuse); err != nil {
		return err
	}
	return r.keyFits(ctx, k, found, p, refuse)
}

// selectColumns reads name, type, bytes, precision, scale, nullable, and whether there is a default: a length of one.
func selectColumns(found *relation) string {
	return "SELECT c.column_name, c.data_type, TO_CHAR(c.data_length), TO_CHAR(c.data_precision), TO_CHAR(c.data_scale), c.nullable, " +
		"TO_CHAR(c.default_length) FROM all_tab_columns c WHERE c.owner = " + literal(found.owner) +
		" AND c.table_name = " + literal(found.name) + " ORDER BY c.column_id"
}

// column is a row of selectColumns.
type column struct {
	name, kind              string
	bytes, precision, scale int
	anyPrecision, anyScale  bool // NUMBER without them
	nullable, fillsItself   bool
}

func readColumn(row []string) column {
	number := func(text string) int { n, _ := strconv.Atoi(text); return n } // "" where the type has no such thing
	return column{
		name: row[0], kind: row[1], bytes: number(row[2]), precision: number(row[3]), scale: number(row[4]),
		anyPrecision: row[3] == "", anyScale: row[4] == "", nullable: row[5] == "Y", fillsItself: row[6] != "",
	}
}

func (c column) String() string {
	switch {
	case c.kind == "NUMBER" && c.anyPrecision && c.anyScale:
		return c.kind
	case c.kind == "NUMBER" && c.anyPrecision:
		return fmt.Sprintf("NUMBER(*,%d)", c.scale)
	case c.kind == "NUMBER":
		return fmt.Sprintf("NUMBER(%d,%d)", c.precision, c.scale)
	case c.kind == "VARCHAR2" || c.kind == "CHAR":
		return fmt.Sprintf("%s(%d BYTE)", c.kind, c.bytes)
	case c.kind == "RAW" || c.kind == "NVARCHAR2" || c.kind == "NCHAR":
		return fmt.Sprintf("%s(%d)", c.kind, c.bytes)
	}
	return c.kind
}

// digits are those of a NUMBER, which has 38 where none are given.
func (c column) digits() int {
	if c.anyPrecision {
		return 38
	}
	return c.precision
}

// takes tells whether a column takes values of ours as they are: without padding, rounding or a conversion.
func (c column) takes(want rows.Column) bool {
	switch want.Type {
	case rows.Int64: // a negative scale rounds to tens
		return c.kind == "NUMBER" && (c.anyPrecision && c.anyScale || c.scale >= 0 && c.digits()-c.scale >= 19)
	case rows.Decimal: // another scale would round, or be read back otherwise
		return c.kind == "NUMBER" && !c.anyPrecision && c.precision == want.Digits && c.scale == want.Scale
	case rows.Bytes:
		return c.kind == "RAW" && c.bytes >= want.MaxBytes
	case rows.Text:
		return c.kind == "VARCHAR2" && c.bytes >= want.MaxBytes
	case rows.Date:
		return c.kind == "DATE"
	default:
		digits, isTimestamp := strings.CutPrefix(c.kind, "TIMESTAMP(")
		return isTimestamp && (digits == "6)" || digits == "7)" || digits == "8)" || digits == "9)")
	}
}

// differences compares the table's columns with the schema's by name and type. More columns are fine where the server
// can fill them itself.
func differences(s rows.Schema, found [][]string) (wrong []string) {
	have := make([]column, len(found))
	for i, row := range found {
		have[i] = readColumn(row)
	}
	for _, want := range s.Columns {
		name := strings.ToUpper(want.Name)
		i := slices.IndexFunc(have, func(c column) bool { return c.name == name })
		switch {
		case i < 0:
			wrong = append(wrong, fmt.Sprintf("column %s %s is missing", name, columnType(want)))
		case !have[i].takes(want):
			wrong = append(wrong, fmt.Sprintf("column %s is %s, and the dataset needs %s", name, have[i], columnType(want)))
		}
	}
	for _, c := range have {
		ours := slices.ContainsFunc(s.Columns, func(want rows.Column) bool { return strings.ToUpper(want.Name) == c.name })
		if !ours && !c.nullable && !c.fillsItself {
			wrong = append(wrong, fmt.Sprintf("column %s needs a value, which the dataset does not have", c.name))
		}
	}
	return wrong
}

// selectTraits reads what decides how rows can go in: temporary, index-organized, cluster, enabled triggers, enabled
// foreign keys, external; and for Fast Ingest whether the table is made for it, in a column that ALL_TABLES has since 18c.
func (s statements) selectTraits(found *relation) string {
	count := func(of, owner, condition string) string {
		return fmt.Sprintf("(SELECT TO_CHAR(COUNT(*)) FROM %s x WHERE x.%s = t.owner AND x.table_name = t.table_name%s)", of, owner, condition)
	}
	columns := []string{
		"t.temporary", "t.iot_type", "t.cluster_name",
		count("all_triggers", "table_owner", " AND x.status = 'ENABLED'"),
		count("all_constraints", "owner", " AND x.constraint_type = 'R' AND x.status = 'ENABLED'"),
		count("all_external_tables", "owner", ""),
	}
	if s.method == methodFast {
		columns = append(columns, "t.memoptimize_write")
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM all_tables t WHERE t.owner = " + literal(found.owner) +
		" AND t.table_name = " + literal(found.name)
}

// unfit tells from a row of selectTraits why the method cannot be had on the table. Where the server does not support
// Fast Ingest or direct path it inserts conventionally and says nothing. Compression is not among the reasons: a server
// that knows no Fast Ingest into compressed tables lets nobody make such a table (ORA-62146).
func (s statements) unfit(row []string) (reason, hint string) {
	temporary, organized, cluster, triggers, foreign, external := row[0], row[1], row[2], row[3], row[4], row[5]
	const another = "choose another --table"
	switch {
	case external != "0":
		return "it is an external table", another
	case temporary == "Y":
		return "it is temporary: each session has its own rows", another
	case s.method != methodFast && s.method != methodDirect:
		return "", ""
	case triggers != "0":
		reason, hint = "it has enabled triggers", "ALTER TABLE "+s.Table+" DISABLE ALL TRIGGERS"
	case foreign != "0":
		reason, hint = "it has enabled foreign keys", "ALTER TABLE "+s.Table+" DISABLE CONSTRAINT …"
	case cluster != "":
		reason, hint = "it lies in a cluster", another
	case organized != "":
		reason, hint = "it is organized as an index", another
	case s.method == methodFast && row[6] != "ENABLED":
		reason, hint = "it is not made for Fast Ingest", "ALTER TABLE "+s.Table+" MEMOPTIMIZE FOR WRITE, or use --create recreate"
	default:
		return "", ""
	}
	return fmt.Sprintf("%s, so that method %s would insert conventionally and nobody would say so", reason, s.method),
		hint + ", or use method " + methodArray
}

// selectSessionUser is who has logged on, whatever current_schema is.
const selectSessionUser = "SELECT SYS_CONTEXT('USERENV', 'SESSION_USER') FROM DUAL"

// warnOfTriggers says what unfit cannot see: ALL_TRIGGERS has the triggers of one's own tables, and of those of others to
// nobody but holders of CREATE ANY TRIGGER. With a trigger the rows would go in conventionally, and nobody would say so.
func (l *opened) warnOfTriggers(ctx context.Context, k *link, table string) error {
	if l.method != methodFast && l.method != methodDirect {
		return nil
	}
	found, err := k.texts(ctx, "ask for the session's user", selectSessionUser)
	if err != nil {
		return err
	}
	if owner, _ := unquoted(table); len(found) == 1 && found[0][0] != owner {
		l.deps.Log.Warn("the table is another user's, so its triggers may be invisible: with an enabled one the server inserts conventionally",
			"table", table, "method", l.method)
	}
	return nil
}

// partitionFits looks for the partition of option partition.
func (r *ready) partitionFits(ctx context.Context, k *link, found *relation, refuse refusal) error {
	if r.options.partition == "" {
		return nil
	}
	n, err := k.number(ctx, "read the partitions of "+r.Table, r.selectPartition(found))
	if err != nil {
		return err
	}
	if n == 0 {
		return refuse("see ALL_TAB_PARTITIONS for their names", "it has no partition %s", strings.ToUpper(r.options.partition))
	}
	return nil
}

func (s statements) selectPartition(found *relation) string {
	return "SELECT TO_CHAR(COUNT(*)) FROM all_tab_partitions p WHERE p.table_owner = " + literal(found.owner) + " AND p.table_name = " +
		literal(found.name) + " AND p.partition_name = " + literal(strings.ToUpper(s.options.partition))
}

// keyFits checks the primary key where one was asked for.
func (r *ready) keyFits(ctx context.Context, k *link, found *relation, p loader.Preparation, refuse refusal) error {
	if !p.PrimaryKey {
		return nil
	}
	names := make([]string, len(r.Schema.Number))
	for i, t := range r.Schema.Number {
		names[i] = r.Schema.Columns[t.Column].Name
	}
	n, err := k.number(ctx, "read the keys of "+r.Table, selectKeyed(found, names...))
	if err != nil {
		return err
	}
	if n == 0 {
		return refuse("add it, or use --create recreate", "a primary key was asked for, and its is not (%s)", strings.ToUpper(strings.Join(names, ", ")))
	}
	return nil
}

// selectKeyed counts the unique indexes on exactly the given columns. A deferrable constraint has an index that is not
// unique, and finds duplicates at the commit only: too late to tell a claim that is taken. The status of a partitioned
// index is that of its partitions, N/A, and one that is unusable takes no rows.
func selectKeyed(of *relation, columns ...string) string {
	names := make([]string, len(columns))
	for i, name := range columns {
		names[i] = literal(strings.ToUpper(name))
	}
	return "SELECT TO_CHAR(COUNT(*)) FROM (SELECT i.index_name FROM all_indexes i JOIN all_ind_columns c " +
		"ON c.index_owner = i.owner AND c.index_name = i.index_name WHERE i.table_owner = " + literal(of.owner) +
		" AND i.table_name = " + literal(of.name) + " AND i.uniqueness = 'UNIQUE' AND i.status IN ('VALID', 'N/A') GROUP BY i.owner, i.index_name " +
		fmt.Sprintf("HAVING COUNT(*) = %d AND SUM(CASE WHEN c.column_name IN (%s) THEN 1 ELSE 0 END) = %[1]d)", len(names), strings.Join(names, ", "))
}

// carries refuses values for which Oracle has no type, before anything is sent.
func carries(s rows.Schema) error {
	var bad []error
	for _, c := range s.Columns {
		if c.Type.Variable() && lengthOf(c) > maxValueBytes {
			bad = append(bad, fmt.Errorf("values of column %s have up to %d bytes, and a VARCHAR2 or RAW has %d at most",
				c.Name, lengthOf(c), maxValueBytes))
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return &loader.Error{Op: "prepare", Applied: loader.No, Err: errors.Join(bad...), Hint: "make rows smaller with --payload-bytes"}
}
