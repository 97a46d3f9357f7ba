package doris

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// define executes CREATE, DROP and TRUNCATE.
func (s *session) define(p *parser) (*result, error) {
	var err error
	switch {
	case p.Take("CREATE", "DATABASE"), p.Take("CREATE", "SCHEMA"):
		err = s.createDatabase(p)
	case p.Take("CREATE", "TABLE"):
		err = s.createTable(p)
	case p.Take("DROP", "DATABASE"), p.Take("DROP", "SCHEMA"):
		err = s.dropDatabase(p)
	case p.Take("DROP", "TABLE"):
		err = s.dropTable(p)
	case p.Take("TRUNCATE", "TABLE"):
		db, name := p.qualified()
		p.Take("FORCE")
		if err = p.End(); err != nil {
			break
		}
		var t *table
		if t, err = s.table(db, name); err == nil {
			t.rows, t.byKey, t.partition = nil, map[string]int{}, s.store.newID()
		}
	default:
		p.Fail("a statement that is not known")
		err = p.Err
	}
	return &result{}, err
}

func (s *session) createDatabase(p *parser) error {
	unlessThere := p.Take("IF", "NOT", "EXISTS")
	name := p.Identifier()
	if err := p.End(); err != nil {
		return err
	}
	if s.store.databases[name] != nil {
		if unlessThere {
			return nil
		}
		return &sqlError{1007, "HY000", fmt.Sprintf("errCode = 2, detailMessage = Can't create database '%s'; database exists", name)}
	}
	s.store.databases[name] = &database{name: name, tables: map[string]*table{}, labels: map[string][]*txn{}, txns: map[int64]*txn{}}
	return nil
}

func (s *session) dropDatabase(p *parser) error {
	ifThere := p.Take("IF", "EXISTS")
	name := p.Identifier()
	p.Take("FORCE")
	if err := p.End(); err != nil {
		return err
	}
	if s.store.databases[name] == nil && !ifThere {
		return &sqlError{1008, "HY000", fmt.Sprintf("errCode = 2, detailMessage = Can't drop database '%s'; database doesn't exist", name)}
	}
	delete(s.store.databases, name)
	return nil
}

func (s *session) dropTable(p *parser) error {
	ifThere := p.Take("IF", "EXISTS")
	db, name := p.qualified()
	p.Take("FORCE")
	if err := p.End(); err != nil {
		return err
	}
	t, err := s.table(db, name)
	if err != nil {
		if ifThere {
			return nil
		}
		return err
	}
	delete(t.database.tables, name)
	return nil
}

// createTable reads CREATE TABLE behind these words, and refuses what Doris would.
func (s *session) createTable(p *parser) error {
	unlessThere := p.Take("IF", "NOT", "EXISTS")
	db, name := p.qualified()
	t := &table{name: name, buckets: "10", properties: map[string]string{}, byKey: map[string]int{}, created: s.mysql.cluster.options.Now()}
	p.List(func() { t.columns = append(t.columns, p.column()) })
	if p.Take("ENGINE") {
		p.Take("=")
		if engine := p.Identifier(); !strings.EqualFold(engine, "OLAP") {
			p.Fail("engine %s", engine)
		}
	}
	for _, model := range []string{"DUPLICATE", "UNIQUE", "AGGREGATE"} {
		if p.Take(model, "KEY") {
			t.model, t.keys = model, p.Names()
		}
	}
	if p.Take("COMMENT") {
		t.comment = p.Text()
	}
	distributed := p.Take("DISTRIBUTED", "BY")
	if distributed {
		if p.Take("HASH") {
			t.hash = p.Names()
		} else {
			p.Expect("RANDOM")
		}
		if p.Take("BUCKETS") {
			if t.buckets = "AUTO"; !p.Take("AUTO") {
				t.buckets = strconv.FormatInt(p.Integer(), 10)
			}
		}
	}
	if p.Take("PROPERTIES") {
		t.properties = p.properties()
	}
	if err := p.End(); err != nil {
		return err
	}
	if db == "" {
		db = s.database
	}
	d := s.store.databases[db]
	if d == nil {
		return unknownDatabase(db)
	}
	if d.tables[name] != nil {
		if unlessThere {
			return nil
		}
		return &sqlError{1050, "42S01", fmt.Sprintf("errCode = 2, detailMessage = Table '%s' already exists", name)}
	}
	if !distributed {
		return fmt.Errorf("errCode = 2, detailMessage = Create olap table should contain distribution desc")
	}
	if err := t.check(len(s.mysql.cluster.backends)); err != nil {
		return fmt.Errorf("errCode = 2, detailMessage = %w", err)
	}
	t.id, t.partition, t.database = s.store.newID(), s.store.newID(), d
	d.tables[name] = t
	return nil
}

func (p *parser) column() column {
	c := column{name: p.Identifier(), kind: p.typeName()}
	for p.Err == nil {
		switch {
		case p.Take("NOT", "NULL"):
			c.notNull = true
		case p.Take("NULL"):
		case p.Take("DEFAULT"):
			if l, ok := p.primary().(literal); !ok {
				p.Fail("only constants may be defaults here")
			} else if l.v != nil {
				v := text(l.v)
				c.defaultValue = &v
			}
		case p.Take("COMMENT"):
			c.comment = p.Text()
		default:
			return c
		}
	}
	return c
}

// knownProperties are the table properties that are taken; Doris refuses those it does not know.
func knownProperties() []string {
	return []string{"replication_num", "replication_allocation", "group_commit_interval_ms", "group_commit_data_bytes", "group_commit_mode",
		"enable_unique_key_merge_on_write", "light_schema_change", "compression", "bloom_filter_columns", "disable_auto_compaction",
		"compaction_policy", "storage_format", "enable_single_replica_compaction", "store_row_column", "enable_duplicate_without_keys_by_default",
		"min_load_replica_num", "is_being_synced", "storage_medium", "inverted_index_storage_format", "time_series_compaction_goal_size_mbytes",
		"estimate_partition_size", "dynamic_partition.enable"}
}

func (t *table) check(backends int) error {
	seen := map[string]bool{}
	for _, c := range t.columns {
		if seen[strings.ToLower(c.name)] {
			return fmt.Errorf("Duplicate column name '%s'", c.name) //nolint:revive,staticcheck // Doris' words
		}
		seen[strings.ToLower(c.name)] = true
	}
	if t.model == "" {
		t.model, t.keys = "DUPLICATE", []string{t.columns[0].name}
	}
	if t.model == "AGGREGATE" {
		return fmt.Errorf("this stand-in has no AGGREGATE KEY")
	}
	for i, k := range t.keys {
		if i >= len(t.columns) || !strings.EqualFold(t.columns[i].name, k) {
			return fmt.Errorf("Key columns must be a ordered prefix of the schema. KeyColumns[%d] (starts from zero) is %s", i, k) //nolint:revive,staticcheck
		}
		switch c := t.columns[i]; c.kind.name {
		case "STRING":
			return fmt.Errorf("String Type should not be used in key column[%s]", c.name) //nolint:revive,staticcheck
		case "FLOAT", "DOUBLE":
			return fmt.Errorf("Float or double can not used as a key, use decimal instead. column[%s]", c.name) //nolint:revive,staticcheck
		}
	}
	for _, h := range t.hash {
		i := t.column(h)
		switch {
		case i < 0:
			return fmt.Errorf("Distribution column(%s) doesn't exist", h) //nolint:revive,staticcheck
		case t.model == "UNIQUE" && i >= len(t.keys):
			return fmt.Errorf("Distribution column[%s] is not key column", h) //nolint:revive,staticcheck
		}
	}
	if len(t.hash) == 0 && t.model == "UNIQUE" {
		return fmt.Errorf("Create unique keys table should not contain random distribution desc") //nolint:revive,staticcheck
	}
	if n, err := strconv.Atoi(t.buckets); err == nil && n < 1 {
		return fmt.Errorf("Buckets number of distribution should be greater than zero") //nolint:revive,staticcheck
	}
	return t.checkProperties(backends)
}

func (t *table) checkProperties(backends int) error {
	for _, name := range slices.Sorted(maps.Keys(t.properties)) {
		if !slices.Contains(knownProperties(), name) {
			return fmt.Errorf("Unknown properties: {%s=%s}", name, t.properties[name]) //nolint:revive,staticcheck
		}
	}
	for _, name := range []string{"group_commit_interval_ms", "group_commit_data_bytes", "replication_num"} {
		if v, given := t.properties[name]; given {
			if n, err := strconv.Atoi(v); err != nil || n < 1 {
				return fmt.Errorf("invalid property %s: %s", name, v)
			}
		}
	}
	switch mode := t.properties["group_commit_mode"]; mode {
	case "", "off_mode", "sync_mode", "async_mode":
	default:
		return fmt.Errorf("Invalid group_commit_mode: %s", mode) //nolint:revive,staticcheck
	}
	if replicas := t.replicas(); replicas > int64(backends) {
		return fmt.Errorf("replication num should be less than the number of available backends. replication num is %d, available backend num is %d", replicas, backends)
	}
	return nil
}

// replicas is replication_num, three by default, or the sum of replication_allocation.
func (t *table) replicas() int64 {
	if where := t.properties["replication_allocation"]; where != "" {
		var sum int64
		for tag := range strings.SplitSeq(where, ",") {
			_, n, _ := strings.Cut(tag, ":")
			count, err := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
			if err != nil {
				return 1 << 30 // more than anybody has: refused
			}
			sum += count
		}
		return sum
	}
	return t.number("replication_num", 3)
}
