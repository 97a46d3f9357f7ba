package mysql

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
)

// catalog implements sqlload.Catalog and sqlload.Claims.
type catalog struct{ *opened }

// The Traits of a relation.
const (
	traitEngine        = iota
	traitTransactional // YES or NO: MyISAM and Aria cannot roll back
	traitCreated       // the time; "" where the server does not know
)

// Plan implements sqlload.Catalog.
func (l catalog) Plan(p loader.Preparation) sqlload.Statements {
	return newStatements(l.name, l.server.flavour, p.Schema).Statements
}

// selectTable reads kind, comment and traits. TiDB and SingleStore name engines only to look like MySQL; the probe
// finds out whether they roll back.
func (l *opened) selectTable(n tableName) string {
	transactional := "COALESCE((SELECT transactions FROM information_schema.engines e WHERE e.engine = t.engine), 'NO')"
	if f := l.server.flavour; f == tiDB || f == singleStore {
		transactional = "'YES'"
	}
	return "SELECT table_type, COALESCE(table_comment, ''), COALESCE(engine, ''), " + transactional +
		", COALESCE(create_time, '') FROM information_schema.tables t WHERE " + n.where()
}

// relation finds the table without its identity.
func (l *opened) relation(ctx context.Context, c sqlload.Conn) (*sqlload.Relation, error) {
	found, err := sqlload.Rows(ctx, c, l.selectTable(l.name))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	r := &sqlload.Relation{
		Schema: l.name.schema, Name: l.name.table, Comment: found[0][1], Traits: found[0][2:],
		Table: l.name.quoted(), Claims: l.name.claimsTable().quoted(),
	}
	if strings.Contains(found[0][0], "VIEW") {
		r.Kind = "view"
	}
	return r, nil
}

// Locate implements sqlload.Catalog.
func (l catalog) Locate(ctx context.Context, c sqlload.Conn, _ *sqlload.State) (*sqlload.Relation, error) {
	r, err := l.relation(ctx, c)
	if err == nil && r != nil {
		r.Identity, err = l.identity(ctx, c, r.Traits[traitCreated])
	}
	return r, err
}

// identity tells a table from another one of the same name.
//
// Tried on MariaDB 10.11 and MySQL 9.7: InnoDB's table id changes on DROP and CREATE and on TRUNCATE, and stays when an
// index is added; to read it takes the PROCESS privilege. The creation time, which everybody may read, changes on DROP
// and CREATE and also when an index is added, and stays on TRUNCATE: with it alone a resume does not notice that the
// table was emptied, and leaves that to the proof of arrival. TiDB shows its table id to everybody, OceanBase to those
// who may read its catalogue.
func (l catalog) identity(ctx context.Context, c sqlload.Conn, created string) (string, error) {
	name := storageName(l.name.schema) + "/" + storageName(l.name.table)
	if l.server.vars["lower_case_table_names"] != "0" {
		name = strings.ToLower(name)
	}
	// A partition is a table of its own to InnoDB, name#p#…. The comparison is of bytes: to the view's collation T and
	// t are one name, and to LIKE an underscore is any letter.
	named := fmt.Sprintf(" WHERE CAST(name AS BINARY) = %s OR CAST(LEFT(name, %d) AS BINARY) = %s ORDER BY 1",
		literal(name), utf8.RuneCountInString(name)+1, literal(name+"#"))
	query := map[flavour]string{
		tiDB:    "SELECT tidb_table_id FROM information_schema.tables WHERE " + l.name.where(),
		mariaDB: "SELECT table_id FROM information_schema.innodb_sys_tables" + named,
		mySQL:   "SELECT table_id FROM information_schema.innodb_tables" + named,
		// The second number changes on TRUNCATE. Partitions have rows of another type.
		oceanBase: "SELECT CONCAT(object_id, '-', data_object_id) FROM oceanbase.dba_objects WHERE owner = " +
			literal(l.name.schema) + " AND object_name = " + literal(l.name.table) + " AND object_type = 'TABLE'",
	}[l.server.flavour]
	if query != "" {
		found, err := sqlload.Rows(ctx, c, query)
		if err != nil && !is(err, accessDenied...) && !is(err, notThere...) {
			return "", err
		}
		if len(found) > 0 {
			return "table id " + strings.Join(firsts(found), ","), nil
		}
	}
	if created == "" {
		return "", nil
	}
	return "created " + created, nil
}

// punctuation is what InnoDB does not write as it is.
var punctuation = regexp.MustCompile(`\W`)

// storageName is an identifier as InnoDB writes it (MySQL manual, "Mapping of Identifiers to File Names"). Letters
// outside ASCII have codes of their own; tables with them are identified by their creation time.
func storageName(name string) string {
	return punctuation.ReplaceAllStringFunc(name, func(s string) string {
		return fmt.Sprintf("@%04x", []rune(s)[0])
	})
}

// Columns implements sqlload.Catalog. Words of extra as INVISIBLE and "on update CURRENT_TIMESTAMP" leave a column that
// a load omits without a value, and LOAD DATA puts a zero there even in the strict sql_mode (tried on MySQL 9.7).
// MariaDB calls that zero the default of a column with ON UPDATE.
func (l catalog) Columns(ctx context.Context, c sqlload.Conn, _ *sqlload.State, _ *sqlload.Relation) ([]sqlload.Column, error) {
	query := "SELECT " + l.aboutColumns() + "WHERE " + l.name.where() + " ORDER BY ordinal_position"
	return sqlload.ReadColumns(ctx, c, query, readType)
}

// AllColumns implements sqlload.Surveyor.
func (l catalog) AllColumns(
	ctx context.Context, c sqlload.Conn, _ *sqlload.State, schema string,
) (map[string][]sqlload.Column, error) {
	query := "SELECT table_name, " + l.aboutColumns() + "WHERE table_schema = " + literal(schema) + " ORDER BY table_name, ordinal_position"
	return sqlload.ReadAllColumns(ctx, c, query, readType)
}

func (l catalog) aboutColumns() string {
	// Expressions are shown from MySQL 5.7.6 and MariaDB 10.2.5 on, each of which reads one of the comments.
	expression := "COALESCE(/*!50706 generation_expression, */ /*M!100205 generation_expression, */ NULL)"
	if l.server.flavour == singleStore {
		expression = "NULL"
	}
	return "column_name, column_type, is_nullable, column_default, extra, " + expression +
		", column_comment, COALESCE(character_set_name, ''), COALESCE(character_maximum_length, 0)" +
		" FROM information_schema.columns "
}

func readType(column *sqlload.Column, more []string) {
	column.Is = typeOf(column.Type, more[0], more[1])
	if strings.HasSuffix(column.Is.Name, otherCharset) || strings.HasSuffix(column.Is.Name, narrowCharset) {
		column.Type += " of character set " + more[0]
	}
	if column.OnUpdate != "" && strings.Contains(column.Default, "0000-00-00") {
		column.Default = ""
	}
	// LOAD DATA of MySQL 9.7 and MariaDB puts the current time there, without a warning.
	column.NoNull = column.Is.Name == "timestamp" && !column.Nullable
}

// What a text has in its type's name that is not utf8mb4's: of a character set in which ASCII is what it is everywhere,
// as in the latin1 that old servers give to every table, or of another.
const narrowCharset, otherCharset = " of an ASCII character set", " of another character set"

// narrowCharsets are those with one byte for a character of ASCII. What else a value has is another length there, or
// refused.
var narrowCharsets = []string{"ascii", "latin1", "latin2", "utf8", "utf8mb3", "cp1250", "cp1251", "cp1252"}

// labelsOf reads 'a','b') as information_schema writes it, with doubled quotation marks in labels, and escapes.
// OceanBase leaves them as they are (seekdb 1.4.0), so that the labels are not known for sure: nil.
func labelsOf(list string) (labels []string) {
	var quoted []string
	for _, m := range labelPattern.FindAllStringSubmatch(list, -1) {
		labels, quoted = append(labels, unescaped.Replace(m[1])), append(quoted, m[0])
	}
	if strings.Join(quoted, ",") != strings.TrimSuffix(list, ")") {
		return nil
	}
	return labels
}

var unescaped = strings.NewReplacer("''", "'", `\\`, `\`, `\n`, "\n", `\r`, "\r", `\Z`, "\x1a", `\0`, "\x00")

var labelPattern = regexp.MustCompile(`'((?:[^']|'')*)'`)

// typeOf is the type of a column. length is that of a blob or text in bytes, of a varchar in characters, and a
// character set other than utf8mb4 makes another type of a text. MariaDB writes /*M!100301 COMPRESSED*/ behind the type
// of some.
func typeOf(full, charset, length string) sqlload.ServerType {
	const enum = "enum("
	if len(full) > len(enum) && strings.EqualFold(full[:len(enum)], enum) { // a label may hold anything
		return sqlload.ServerType{Name: "enum", Labels: labelsOf(full[len(enum):])}
	}
	full, _, _ = strings.Cut(full, "/*")
	t := sqlload.ParseType(full)
	t.Name = strings.TrimSuffix(t.Name, " zerofill")
	text, sized := slices.Contains(texts, t.Name), slices.Contains(blobs, t.Name)
	switch {
	case !text || charset == "utf8mb4":
	case slices.Contains(narrowCharsets, charset):
		t.Name += narrowCharset
	default:
		t.Name += otherCharset
	}
	if text || sized {
		n, _ := strconv.ParseInt(length, 10, 64)
		t.Params = []int{int(max(min(n, math.MaxInt32), 0))}
	}
	return t
}

// Fits implements sqlload.Catalog: a table whose columns fit will do, but for what the method cannot write into one.
// Caps say what its engine cannot do.
func (l catalog) Fits(_ context.Context, _ sqlload.Conn, s *sqlload.State, r *sqlload.Relation) error {
	if err := l.textsOfVectors(s); err != nil {
		return err
	}
	last := s.Schema.Columns[len(s.Schema.Columns)-1] // every schema has one
	for _, have := range r.Columns {
		want, known := s.Schema.Column(have.Name)
		switch {
		case !known:
		case l.losesEmpty() && want.Name == last.Name && last.Type.Variable() && !last.Derived && have.Nullable:
			return l.lastIsNull(last)
		case want.Type == rows.UUID && have.Is.Name == "binary" && l.method.Name != methodLoadData:
			return sqlload.Refuse("take --method load-data, or make it CHAR(36)",
				"column %s is %s, and method %s sends the text of a UUID", have.Name, have.Type, l.method.Name)
		}
	}
	return nil
}

// textsOfVectors refuses vectors where they would be texts to MySQL, whose VECTOR takes none.
func (l catalog) textsOfVectors(s *sqlload.State) error {
	i := slices.IndexFunc(s.Schema.Columns, func(c rows.Column) bool { return c.Type == rows.Float32s })
	if i < 0 || l.server.flavour != mySQL || l.method.Name == methodLoadData {
		return nil
	}
	return sqlload.Refuse("take --method load-data", "column %s is a VECTOR, and method %s sends the text of a vector",
		s.Schema.Columns[i].Name, l.method.Name)
}

// Create implements sqlload.Catalog.
func (l catalog) Create(_ context.Context, _ sqlload.Conn, s *sqlload.State) ([]string, error) {
	if err := l.textsOfVectors(s); err != nil {
		return nil, err
	}
	if like := s.Want.Like; like.Name != "" {
		return []string{
			"CREATE TABLE " + s.Table + " LIKE " + tableName{like.Schema, like.Name}.quoted(),
			fmt.Sprintf("ALTER TABLE %s COMMENT = %s", s.Table, literal(s.Want.Comment())),
		}, nil
	}
	return []string{l.statements(s).createTable()}, nil
}

// Exists implements sqlload.Catalog. IF NOT EXISTS leaves no such error; a table that is made like another has none, so
// that its comment is given to no other's.
func (catalog) Exists(err error) bool { return mysqlconn.Exists(err) }

// Grant implements sqlload.Catalog. TRUNCATE takes the privilege to drop.
func (catalog) Grant(ctx context.Context, c sqlload.Conn, privileges, table string) string {
	to, err := account(ctx, c)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("GRANT %s ON %s TO %s", strings.ReplaceAll(privileges, "TRUNCATE", "DROP"), table, to)
}

// Stored implements sqlload.Catalog: the table with its indexes. InnoDB's statistics, from which the size comes, may be
// old after a load: 48 KiB were shown for 200 MiB. ANALYZE renews them; it reads a few pages, and spares the first
// queries a bad plan. TiDB would scan the whole table for it, and SingleStore counts by itself.
func (l catalog) Stored(s *sqlload.State) []string {
	size := "SELECT COALESCE(SUM(data_length + index_length), 0) FROM information_schema.tables WHERE " + l.name.where()
	if f := l.server.flavour; f == mySQL || f == mariaDB {
		return []string{"ANALYZE NO_WRITE_TO_BINLOG TABLE " + s.Table, size}
	}
	return []string{size}
}

// lookups are the questions about a table. SingleStore lists its shard and sort keys as indexes, which cost nothing
// extra, and is not asked.
//
// On MySQL 9.7 (a million rows of pairs, one worker, two rounds) an index on random numbers left 27 to 36 % of the rows
// a second, one on rising numbers 92 %.
var lookups = map[flavour]*sqlload.Lookups{
	mySQL: &sqlload.InformationSchema, mariaDB: mariaDBLookups(), tiDB: tiDBLookups(),
	oceanBase: &sqlload.InformationSchema,
}

// tiDBLookups: table_constraints has no CHECKs there.
func tiDBLookups() *sqlload.Lookups {
	l := sqlload.InformationSchema
	l.Checks = "SELECT $of check_clause FROM information_schema.tidb_check_constraints WHERE constraint_schema = $schema " +
		"AND table_name = $table ORDER BY constraint_name"
	return &l
}

// mariaDBLookups: names of CHECKs are those of a table there, and not of a schema.
func mariaDBLookups() *sqlload.Lookups {
	l := sqlload.InformationSchema
	l.Checks = "SELECT $of check_clause FROM information_schema.check_constraints WHERE constraint_schema = $schema " +
		"AND table_name = $table ORDER BY constraint_name"
	return &l
}
