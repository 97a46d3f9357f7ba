package sqlload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// Lookups are the questions about one table that a server's catalog answers. Where $schema and $table belong, State
// puts the names as literals, and Relation.ID for $id. "" is not asked: the server has nothing of the kind. Rows come
// in the order in which they are to be told.
//
// They are asked about all tables of a schema at once as Each says, or else with table_name in place of $table, and
// where "$of " is.
type Lookups struct {
	Keys       string // index, PRIMARY KEY or UNIQUE, column, loader.Key.Only and Prefix, or 0; a column a row
	References string // constraint, column, the parent's schema, table and column; a column a row
	Checks     string // condition
	Costs      string // kind, name, what removes it: all that every row pays for
	Triggers   string // name, statement: those on INSERT
	Partitions string // by what the table is divided; no row where it is not
	Bounds     string // conditions of the columns by which it is divided
	Rows       string // how many there are, more or less
	Tables     string // names of a schema's tables that take rows; "" where they cannot be listed
	Others     string // name and kind, as "view", of what takes none
	// StandIn says that only a stand-in for the server has been asked.
	StandIn bool
	// Each is the question that asks $question, in which $id is target.oid, about each table of a schema, and puts its
	// name before each row.
	Each string
}

// InformationSchema asks the views of the standard, with the columns that MySQL has added to them. A server of which
// some are other, or not there, replaces these.
var InformationSchema = Lookups{
	Keys: "SELECT $of index_name, CASE index_name WHEN 'PRIMARY' THEN 'PRIMARY KEY' ELSE 'UNIQUE' END, COALESCE(column_name, ''), " +
		"CASE WHEN column_name IS NULL THEN 'an expression' WHEN sub_part IS NOT NULL " +
		"THEN CONCAT('the first ', sub_part, ' characters of ', column_name) ELSE '' END, COALESCE(sub_part, 0) " +
		"FROM information_schema.statistics WHERE table_schema = $schema AND table_name = $table AND non_unique = 0 " +
		"ORDER BY index_name <> 'PRIMARY', index_name, seq_in_index",
	References: "SELECT $of constraint_name, column_name, referenced_table_schema, referenced_table_name, referenced_column_name " +
		"FROM information_schema.key_column_usage WHERE table_schema = $schema AND table_name = $table " +
		"AND referenced_table_name IS NOT NULL ORDER BY constraint_name, ordinal_position",
	Checks: "SELECT $of c.check_clause FROM information_schema.check_constraints c JOIN information_schema.table_constraints t " +
		"ON t.constraint_schema = c.constraint_schema AND t.constraint_name = c.constraint_name " +
		"WHERE t.constraint_type = 'CHECK' AND t.table_schema = $schema AND t.table_name = $table ORDER BY c.constraint_name",
	Costs: "SELECT $of 'foreign key' AS kind, constraint_name AS name, '--set foreign_key_checks=0, which skips the check' " +
		"FROM information_schema.table_constraints WHERE table_schema = $schema AND table_name = $table " +
		"AND constraint_type = 'FOREIGN KEY' UNION SELECT $of 'index', index_name, CONCAT('ALTER TABLE `', table_schema, '`.`', table_name, " +
		"'` DROP INDEX `', index_name, '`') FROM information_schema.statistics WHERE table_schema = $schema AND table_name = $table " +
		"AND index_name <> 'PRIMARY' UNION SELECT $of 'trigger', trigger_name, CONCAT('DROP TRIGGER `', trigger_schema, '`.`', " +
		"trigger_name, '`') FROM (SELECT trigger_schema, trigger_name, event_object_table AS table_name FROM information_schema.triggers " +
		"WHERE event_object_schema = $schema AND event_manipulation = 'INSERT') t WHERE table_name = $table ORDER BY kind, name",
	Triggers: "SELECT $of trigger_name, action_statement FROM (SELECT trigger_name, action_statement, event_object_table AS table_name " +
		"FROM information_schema.triggers WHERE event_object_schema = $schema AND event_manipulation = 'INSERT') t " +
		"WHERE table_name = $table ORDER BY trigger_name",
	Partitions: "SELECT DISTINCT $of CONCAT(partition_method, ' (', COALESCE(partition_expression, ''), ')') " +
		"FROM information_schema.partitions WHERE table_schema = $schema AND table_name = $table AND partition_name IS NOT NULL",
	// Of lists all values, and of ranges, which have no gaps, the end of the last one: of the usual functions as a day.
	Bounds: "SELECT $of CASE WHEN partition_method LIKE 'LIST%' " +
		"THEN CONCAT(partition_expression, ' in (', GROUP_CONCAT(partition_description ORDER BY partition_description), ')') " +
		"ELSE CONCAT(partition_expression, ' < ', SUBSTRING_INDEX(GROUP_CONCAT(partition_description " +
		"ORDER BY partition_ordinal_position DESC SEPARATOR ';'), ';', 1)) END " +
		"FROM information_schema.partitions WHERE table_schema = $schema AND table_name = $table AND partition_name IS NOT NULL " +
		"AND subpartition_name IS NULL AND (partition_method LIKE 'LIST%' OR partition_method LIKE 'RANGE%') " +
		"AND partition_expression NOT LIKE '%(%' AND partition_expression NOT LIKE '%,%' " +
		"GROUP BY table_schema, table_name, partition_method, partition_expression " +
		"UNION ALL SELECT $of CONCAT(SUBSTRING_INDEX(SUBSTRING_INDEX(partition_expression, '(', -1), ')', 1), ' < ''', " +
		"CASE LOWER(SUBSTRING_INDEX(partition_expression, '(', 1)) WHEN 'year' THEN CONCAT(MAX(partition_description + 0), '-01-01') " +
		"WHEN 'to_days' THEN FROM_DAYS(MAX(partition_description + 0)) ELSE FROM_UNIXTIME(MAX(partition_description + 0)) END, '''') " +
		"FROM information_schema.partitions WHERE table_schema = $schema AND table_name = $table AND partition_method = 'RANGE' " +
		"AND subpartition_name IS NULL AND LOWER(partition_expression) REGEXP '^(year|to_days|unix_timestamp)[(][^(),]+[)]$' " +
		"GROUP BY table_schema, table_name, partition_expression HAVING SUM(partition_description = 'MAXVALUE') = 0",
	Rows:   "SELECT $of COALESCE(table_rows, 0) FROM information_schema.tables WHERE table_schema = $schema AND table_name = $table",
	Tables: "SELECT table_name FROM information_schema.tables WHERE table_schema = $schema AND table_type = 'BASE TABLE' ORDER BY table_name",
	Others: "SELECT table_name, LOWER(table_type) FROM information_schema.tables WHERE table_schema = $schema " +
		"AND table_type <> 'BASE TABLE' ORDER BY table_name",
}

// fill puts the names of a relation into a question.
func (s *State) fill(question string, r *Relation) string {
	return strings.NewReplacer("$of ", "", "$schema", s.literal(r.Schema), "$table", s.literal(r.Name), "$id", r.ID).Replace(question)
}

// fillAll makes a question about one table one about all of a schema, which puts the table's name before each row.
func (s *State) fillAll(l *Lookups, question, schema string) string {
	if l.Each != "" {
		question = strings.NewReplacer("$question", question).Replace(l.Each)
	}
	return strings.NewReplacer("$of ", "table_name, ", "$schema", s.literal(schema), "$table", "table_name", "$id", "target.oid").Replace(question)
}

// CheckCosts says what every row pays for, and with advice, which is the doctor's, how to remove it.
func (t *Table) CheckCosts(s *State, advice bool) Check {
	name := s.Relation.String()
	return Check{Name: "indexes, triggers", Ask: s.fill(t.Lookups.Costs, s.Relation), Judge: func(all []string) (none loader.Finding) {
		switch {
		case len(all) == 0 && !advice:
			return none
		case len(all) == 0:
			return OK(name + " has no secondary index, no trigger on INSERT and no foreign key")
		}
		var has, fixes []string
		for row := range slices.Chunk(all, 3) {
			has, fixes = append(has, row[0]+" "+row[1]), append(fixes, row[2])
		}
		found := fmt.Sprintf("%s has %s: every row pays for them", name, strings.Join(has, ", "))
		if !advice {
			return Warn(found, "terapush doctor has the statements")
		}
		return Warn(found, strings.Join(slices.Compact(fixes), "; ")+"; after the load create again what was dropped")
	}}
}

func (t *Table) describable() error {
	if t.Lookups == nil {
		return Refuse("write the file by hand, as docs/DATASETS.md says", "the tables of this server cannot be described")
	}
	return nil
}

// Describe implements loader.Describer.
func (t *Table) Describe(ctx context.Context) (*loader.Description, error) {
	if err := t.describable(); err != nil {
		return nil, err
	}

	s := t.Plan(loader.Preparation{Create: loader.CreateNever})
	var d *loader.Description
	err := t.connect(ctx, func(c Conn) error {
		r, err := t.Locate(ctx, c, s)
		if errors.Is(err, loader.ErrNoTable) {
			return &loader.Error{
				Op: "describe", Applied: loader.No, Err: fmt.Errorf("table %s %w", s.Table, loader.ErrNoTable),
				Hint: "give the name of a table that is there, with its schema; case matters",
			}
		}
		if err != nil {
			return err
		}
		d, err = t.describe(ctx, c, s, r)
		return t.Failed("describe "+s.Table, err)
	})
	if err != nil {
		return nil, err
	}

	for i := range d.References {
		t.countParents(ctx, s, d, &d.References[i])
	}
	return d, nil
}

// topic is one of the questions of Describe, and what a row of its answer adds.
type topic struct {
	name, question string
	add            func(d *loader.Description, row []string)
}

func (l *Lookups) topics() []topic {
	all := []topic{
		{"keys", l.Keys, addKey},
		{"foreign keys", l.References, addReference},
		{"CHECKs", l.Checks, addCheck}, {"bounds of partitions", l.Bounds, addCheck},
		{"indexes and triggers", l.Costs, func(d *loader.Description, row []string) { d.Costs = append(d.Costs, row[0]+" "+row[1]) }},
		{"triggers", l.Triggers, func(d *loader.Description, row []string) {
			d.Triggers = append(d.Triggers, loader.Trigger{Name: row[0], Statement: row[1]})
		}},
		{"partitions", l.Partitions, func(d *loader.Description, row []string) { d.Partitions = row[0] }},
		{"number of rows", l.Rows, func(d *loader.Description, row []string) { d.Rows = max(Integer(row[0]), 0) }},
	}
	return slices.DeleteFunc(all, func(t topic) bool { return t.question == "" })
}

func (t *Table) describe(ctx context.Context, c Conn, s *State, r *Relation) (*loader.Description, error) {
	columns, err := t.Catalog.Columns(ctx, c, s, r)
	if err != nil {
		return nil, err
	}

	d := &loader.Description{Schema: r.Schema, Table: r.Name, Escapes: s.Backslash, StandIn: t.Lookups.StandIn}
	for _, one := range t.Lookups.topics() {
		found, err := Rows(ctx, c, s.fill(one.question, r))
		if err != nil && !t.refused(err) {
			return nil, err
		}
		if err != nil {
			d.Hidden = append(d.Hidden, one.name)
		}
		for _, row := range found {
			one.add(d, row)
		}
	}
	s.addColumns(d, columns)
	return d, nil
}

func (s *State) addColumns(d *loader.Description, columns []Column) {
	for _, column := range columns {
		column.Values = s.Types.ours(column)
		d.Columns = append(d.Columns, column.Column)
	}
}

func addKey(d *loader.Description, row []string) {
	last := len(d.Keys) - 1
	if last < 0 || d.Keys[last].Name != row[0] {
		d.Keys = append(d.Keys, loader.Key{Name: row[0], Primary: row[1] == "PRIMARY KEY"})
		last++
	}
	k := &d.Keys[last]
	if row[2] != "" {
		k.Columns = append(k.Columns, row[2])
	}
	if k.Only == "" {
		k.Only = row[3]
	}
	if prefix := int(Integer(row[4])); prefix > 0 && (k.Prefix == 0 || prefix < k.Prefix) {
		k.Prefix = prefix
	}
}

func addCheck(d *loader.Description, row []string) { d.Checks = append(d.Checks, row[0]) }

func addReference(d *loader.Description, row []string) {
	last := len(d.References) - 1
	if last < 0 || d.References[last].Name != row[0] {
		d.References = append(d.References, loader.Reference{Name: row[0], Schema: row[2], Table: row[3]})
		last++
	}
	r := &d.References[last]
	r.Columns, r.Of = append(r.Columns, row[1]), append(r.Of, row[4])
}

// parentTime is how long the keys of a parent may be counted: without them a user has to say what they are.
const parentTime = 5 * time.Second

// maxGrid is how many columns a reference may have whose parents are counted.
const maxGrid = 4

// countParents reads the keys of a reference of a few integer columns, over a connection of its own, which may have
// to be cut off.
func (t *Table) countParents(ctx context.Context, s *State, d *loader.Description, r *loader.Reference) {
	if len(r.Columns) > maxGrid || slices.ContainsFunc(r.Columns, func(name string) bool { return !hasIntegers(d, name) }) {
		return
	}

	texts := []string{s.digits("COUNT(*)")}
	for _, name := range r.Of {
		key := s.Quoted(name)
		texts = append(texts, s.digits("MIN("+key+")"), s.digits("MAX("+key+")"))
	}
	ctx, cancel := context.WithTimeout(ctx, parentTime)
	defer cancel()
	err := t.connect(ctx, func(c Conn) error {
		found, err := Rows(ctx, c, fmt.Sprintf("SELECT %s FROM %s.%s",
			strings.Join(texts, ", "), s.Quoted(r.Schema), s.Quoted(r.Table)))
		if err == nil && len(found) == 1 {
			addParents(r, found[0])
		}
		return err
	})
	if err != nil && t.Log != nil {
		t.Log.Debug("the keys of a parent were not read", "table", r.Table, "error", err)
	}
}

// hasIntegers reports whether a column of the table has integers.
func hasIntegers(d *loader.Description, name string) bool {
	at := slices.IndexFunc(d.Columns, func(c loader.Column) bool { return c.Name == name })
	return at >= 0 && d.Columns[at].Values != nil && d.Columns[at].Values.Type.IsInteger()
}

// addParents adds the number of a parent's rows, and the least and the most of each column of its key.
func addParents(r *loader.Reference, row []string) {
	count := Integer(row[0])
	if len(r.Of) == 1 {
		r.Keys = &loader.ParentKeys{Min: Integer(row[1]), Max: Integer(row[2]), Count: count}
		return
	}

	grid := make([]loader.ParentKeys, len(r.Of))
	rest := count // divided by the width of each column
	for i := range grid {
		least, most := Integer(row[1+2*i]), Integer(row[2+2*i])
		grid[i] = loader.ParentKeys{Min: least, Max: most, Count: most - least + 1}
		if count == 0 || grid[i].Count < 1 || rest%grid[i].Count != 0 {
			return
		}
		rest /= grid[i].Count
	}
	if rest == 1 {
		r.Grid = grid
	}
}

// readDigits sets the digits of a column of decimals, and its type: 18 at most unless the server takes more, and two
// after the point where the column takes any.
func (all Types) readDigits(c *rows.Column, params []int) {
	const narrow, cents = 18, 2
	c.Type, c.Digits, c.Scale = rows.Decimal, narrow, cents
	if len(params) == 0 {
		return
	}

	digits, scale := decimalParams(params)
	c.Digits, c.Scale = min(digits, narrow), scale
	wide := rows.Column{Type: rows.Wide, Digits: min(digits, rows.WideDigits), Scale: scale}
	if digits > narrow && scale <= wide.Digits && all.made(wide) != nil {
		c.Type, c.Digits = wide.Type, wide.Digits
	}
}

// ours returns how an existing column is read as one of ours; nil if there is no such type. A time has the digits that
// the column stores.
func (all Types) ours(column Column) *rows.Column {
	if is, array := all.element(column.Is); array {
		of := all.ours(Column{Column: loader.Column{}, Is: is})
		if of == nil || !of.Type.IsElement() || all.made(*of) == nil || all.made(*of).Name != is.Name {
			return nil
		}
		return &rows.Column{Name: column.Name, Type: rows.Arrays, Of: of}
	}
	for _, t := range all {
		if t.Name != column.Is.Name && !slices.Contains(t.Also, column.Is.Name) {
			continue
		}
		c := rows.Column{Name: column.Name, Type: t.Ours, Labels: column.Is.Labels, Least: t.Least, Most: t.Largest}
		c.ASCII = c.Type.IsText() && c.Type != rows.JSON && c.Type != rows.Enum // some values are
		params := column.Is.Params
		switch {
		case c.Type.IsDecimal():
			all.readDigits(&c, params)
		case c.Type == rows.Float32s && len(params) == 0: // of any number of dimensions
			continue
		case c.Type == rows.Float32s:
			c.MaxBytes = params[0] * rows.FloatBytes
		case c.Type.Variable() && len(params) > 0:
			c.MaxBytes = max(params[0], 0)
		}
		for c.Type.HasSeconds() && c.Scale < rows.SecondDigits && t.Fits != nil && !t.Fits(params, c) {
			c.Scale++
		}
		if c.Type.IsDecimal() && (c.Scale < 0 || c.Scale > c.Digits) { // numeric(5,-2), numeric(3,5)
			continue
		}
		if t.Fits == nil || t.Fits(params, c) {
			return &c
		}
	}
	return nil
}
