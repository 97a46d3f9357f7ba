package doris

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// found is what the server knows of the target table.
type found struct {
	comment, created string
}

// inspect looks the target table up; nil if there is none.
func (db *database) inspect(ctx context.Context) (*found, error) {
	var f found
	var kind string
	var comment, created sql.NullString
	err := db.control.QueryRowContext(ctx, "SELECT table_type, table_comment, create_time"+
		" FROM information_schema.tables WHERE table_schema = ? AND table_name = ?", db.name.schema, db.name.table).
		Scan(&kind, &comment, &created)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	case strings.Contains(strings.ToUpper(kind), "VIEW"):
		return nil, fmt.Errorf("%s is a view; rows go into tables", db.name)
	}
	f.comment, f.created = comment.String, created.String
	return &f, nil
}

// identity tells a table from another one of the same name, and from itself before a TRUNCATE: partitions get new ids
// with both, and keep them under loads. Tables whose partitions come and go by themselves, with the rows (AUTO) or with
// the days (dynamic), have the creation time only, and so has one that may not be looked at.
func (db *database) identity(ctx context.Context, f *found) (string, error) {
	otherwise := ""
	if f.created != "" {
		otherwise = "created " + f.created
	}
	var refused *mysql.MySQLError
	definition, err := db.definition(ctx)
	db.keepReplication(definition)
	if err == nil && ownPartitions(definition) || errors.As(err, &refused) {
		return otherwise, nil
	}
	if err != nil {
		return "", err
	}
	partitions, err := shown(ctx, db.control, "SHOW PARTITIONS FROM "+db.name.quoted())
	if err != nil && !errors.As(err, &refused) {
		return "", err
	}
	var ids []string
	for _, p := range partitions {
		if id := p["PartitionId"]; id != "" {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return otherwise, nil
	}
	slices.Sort(ids)
	return "partitions " + strings.Join(ids, ","), nil
}

// definition is the table's CREATE TABLE as the server writes it.
func (db *database) definition(ctx context.Context) (text string, err error) {
	created, err := shown(ctx, db.control, "SHOW CREATE TABLE "+db.name.quoted())
	for _, c := range created {
		text = c["Create Table"]
	}
	return text, err
}

// keepReplication remembers how many replicas the table has, in the word that the server writes it with, for the report.
func (db *database) keepReplication(definition string) {
	found := regexp.MustCompile(`"(replication_num|replication_allocation)"\s*=\s*"([^"]*)"`).FindStringSubmatch(definition)
	if found != nil {
		db.replication.Store(&property{name: found[1], value: found[2]})
	}
}

// property is one of a table's PROPERTIES.
type property struct{ name, value string }

// ownPartitions tells whether the server makes and drops partitions of the table by itself.
func ownPartitions(definition string) bool {
	return regexp.MustCompile(`(?i)\bAUTO\s+PARTITION\s+BY\b|"dynamic_partition\.enable"\s*=\s*"true"`).MatchString(definition)
}

// alive counts the backends that take data. To see them takes an administrator's rights in some releases: −1 means that
// nobody knows.
func (db *database) alive(ctx context.Context) (int64, error) {
	backends, err := shown(ctx, db.control, "SHOW BACKENDS")
	var refused *mysql.MySQLError
	if errors.As(err, &refused) {
		db.log.Debug("backends cannot be listed", "error", err)
		return -1, nil
	}
	var n int64
	for _, b := range backends {
		if strings.EqualFold(b["Alive"], "true") {
			n++
		}
	}
	return n, err
}

// column is one column as information_schema.columns describes it.
type column struct {
	name, kind string // kind in lower case, with its arguments
	optional   bool   // gets a value when a load leaves it out
}

// checkColumns refuses a table that cannot take the rows, with everything that is wrong about it.
func (db *database) checkColumns(ctx context.Context, s rows.Schema) error {
	list, err := db.control.QueryContext(ctx, "SELECT column_name, column_type, data_type, is_nullable, column_default"+
		" FROM information_schema.columns WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position", db.name.schema, db.name.table)
	if err != nil {
		return err
	}
	defer func() { _ = list.Close() }()
	var have []column
	for list.Next() {
		var name, full, kind, nullable string
		var otherwise sql.NullString
		if err := list.Scan(&name, &full, &kind, &nullable, &otherwise); err != nil {
			return err
		}
		have = append(have, column{name, strings.ToLower(firstOf(full, kind)), strings.EqualFold(nullable, "yes") || otherwise.Valid})
	}
	if err := list.Err(); err != nil {
		return err
	}
	if wrong := compareColumns(s.Columns, have); len(wrong) > 0 {
		return fmt.Errorf("table %s cannot take the rows of dataset %s: %s", db.name, s.Dataset, strings.Join(wrong, "; "))
	}
	return nil
}

// compareColumns lists what keeps rows of the wanted columns out of a table. Columns that the dataset does not know
// may be there as long as the server can fill them in.
func compareColumns(want []rows.Column, have []column) (wrong []string) {
	for _, w := range want {
		i := slices.IndexFunc(have, func(h column) bool { return strings.EqualFold(h.name, w.Name) })
		if i < 0 {
			wrong = append(wrong, fmt.Sprintf("column %s (%s) is missing", w.Name, columnType(w)))
		} else if !have[i].takes(w) {
			wrong = append(wrong, fmt.Sprintf("column %s is %s, want %s", w.Name, have[i].kind, columnType(w)))
		}
	}
	for _, h := range have {
		known := slices.ContainsFunc(want, func(w rows.Column) bool { return strings.EqualFold(w.Name, h.name) })
		if !known && !h.optional {
			wrong = append(wrong, fmt.Sprintf("column %s (%s) is unknown to the dataset and has no default", h.name, h.kind))
		}
	}
	return wrong
}

// takes tells whether values of the wanted column come back as they went in.
func (c column) takes(w rows.Column) bool {
	kind, length, scale := c.kind, -1, 0
	if m := regexp.MustCompile(`^(\w+)\((-?\d+)(?:, ?(\d+))?\)`).FindStringSubmatch(c.kind); m != nil {
		kind = m[1]
		length, _ = strconv.Atoi(m[2])
		scale, _ = strconv.Atoi(m[3])
	}
	switch w.Type {
	case rows.Int64:
		return kind == "bigint" || kind == "largeint"
	case rows.Text:
		unbounded := kind == "string" || kind == "text" || kind == "varchar" && length < 0 // VARCHAR(*)
		return unbounded || kind == "varchar" && length >= w.MaxBytes
	case rows.Date:
		return kind == "date" || kind == "datev2"
	case rows.Timestamp:
		return (kind == "datetime" || kind == "datetimev2") && length == 6
	case rows.Decimal: // information_schema calls it decimalv3, whatever it was made as
		return (kind == "decimal" || kind == "decimalv3") && length == w.Digits && scale == w.Scale
	default:
		return false
	}
}

// checkProperties warns where the table's group commit is set otherwise than the options say, and learns its interval.
func (db *database) checkProperties(ctx context.Context) error {
	if !db.options.group.on() {
		return nil
	}
	text, err := db.definition(ctx)
	if err != nil {
		return err
	}
	is := make(map[string]string)
	for _, m := range regexp.MustCompile(`"(group_commit_\w+)"\s*=\s*"([^"]*)"`).FindAllStringSubmatch(text, -1) {
		is[m[1]] = m[2]
	}
	if ms, err := strconv.ParseInt(is["group_commit_interval_ms"], 10, 64); err == nil {
		db.groupInterval.Store(ms)
	}
	want := db.options.properties()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if is[name] != want[name] {
			db.log.Warn("the table is there already and keeps its own property: ALTER TABLE … SET changes it",
				"property", name, "table", firstOf(is[name], "the server's default"), "wanted", want[name])
		}
	}
	return nil
}

// shape is what CREATE TABLE says, with what the options leave to the number of backends.
func (db *database) shape(ctx context.Context, p loader.Preparation) (shape, error) {
	h := plannedShape(db.options, p)
	if h.buckets > 0 && h.replication > 0 {
		return h, nil
	}
	n, err := db.alive(ctx)
	if err != nil {
		return h, err
	}
	return h.fill(n), nil
}

func plannedShape(o options, p loader.Preparation) shape {
	return shape{unique: p.PrimaryKey, buckets: o.buckets, replication: o.replication, properties: o.properties()}
}

// Defaults of a table's shape.
const (
	bucketsPerBackend = 4
	bucketsUnknown    = 16
	maxReplication    = 3
)

// fill takes what is open from the number of alive backends. Where nobody knows it the server's own default says how
// many replicas there are: three, which it refuses with the number that it has.
func (h shape) fill(alive int64) shape {
	if h.buckets == 0 {
		h.buckets = bucketsUnknown
		if alive > 0 {
			h.buckets = bucketsPerBackend * alive
		}
	}
	if h.replication == 0 && alive > 0 {
		h.replication = min(alive, maxReplication)
	}
	return h
}
