package doris

import (
	"fmt"
	"maps"
	"net"
	"strings"

	"github.com/terapush/terapush/internal/fake/sqlread"
)

// session is one connection of MySQL's protocol. Its statements run one after the other.
type session struct {
	mysql    *mysqlServer
	store    *store
	id       int64
	conn     net.Conn
	database string
	set      map[string]value // session variables that were changed
	last     *lastInsert
	hungUp   bool
}

// lastInsert is what SHOW LAST INSERT tells.
type lastInsert struct {
	id               int64
	label, db, table string
	status           string
	loaded, filtered int64
}

func newSession(m *mysqlServer, id int64, c net.Conn) *session {
	return &session{mysql: m, store: m.cluster.store, id: id, conn: c, set: map[string]value{}}
}

// statement asks the script, then executes.
func (s *session) statement(sql string) (*result, error) {
	label := ""
	p := newParser(sql)
	if p.Take("INSERT", "INTO") {
		p.qualified()
		if p.Take("WITH", "LABEL") {
			label = p.Identifier()
		}
	}
	fault := s.mysql.cluster.log.ask(Request{Kind: Statement, Database: s.database, Label: label, Bytes: int64(len(sql)),
		SQL: strings.Clone(sql[:min(len(sql), 4<<10)])})
	s.mysql.cluster.wait(fault.Hold)
	if fault.CutBody > 0 {
		return nil, s.hangUp()
	}
	if fault.Fail != "" {
		return nil, fmt.Errorf("errCode = 2, detailMessage = %s", fault.Fail)
	}
	r, err := s.execute(newParser(sql), fault)
	if fault.CutAnswer || fault.Linger != nil {
		return nil, s.hangUp()
	}
	return r, err
}

func (s *session) hangUp() error {
	s.hungUp = true
	s.conn.Close()
	return fmt.Errorf("the connection is cut")
}

// execute runs one statement. Most hold the store's lock throughout; INSERT lets go of it while it reads and waits.
func (s *session) execute(p *parser, fault Fault) (*result, error) {
	if p.Take("INSERT", "INTO") {
		return s.insert(p, fault)
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	switch {
	case p.Take("SELECT"):
		q := p.query()
		if err := p.End(); err != nil {
			return nil, err
		}
		return s.run(q)
	case p.Take("SHOW"):
		return s.show(p)
	case p.Take("CREATE"), p.Take("DROP"), p.Take("TRUNCATE"):
		p = newParser(p.Source)
		return s.define(p)
	case p.Take("DELETE", "FROM"):
		return s.delete(p)
	case p.Take("SET"):
		return s.setVariables(p)
	case p.Take("USE"):
		name := p.Identifier()
		if err := p.End(); err != nil {
			return nil, err
		}
		if s.store.databases[name] == nil {
			return nil, unknownDatabase(name)
		}
		s.database = name
		return &result{}, nil
	case p.Take("DESC"), p.Take("DESCRIBE"):
		db, name := p.qualified()
		if err := p.End(); err != nil {
			return nil, err
		}
		return s.describe(db, name)
	}
	p.Fail("a statement that is not known")
	return nil, p.Err
}

func unknownDatabase(name string) error {
	return &sqlError{1049, "42000", fmt.Sprintf("errCode = 2, detailMessage = Unknown database '%s'", name)}
}

// table finds a table of a database, or of the current one.
func (s *session) table(db, name string) (*table, error) {
	if db == "" {
		db = s.database
	}
	d := s.store.databases[db]
	switch {
	case db == "":
		return nil, &sqlError{1046, "3D000", "errCode = 2, detailMessage = No database selected"}
	case d == nil:
		return nil, unknownDatabase(db)
	case d.tables[name] == nil:
		return nil, &sqlError{1051, "42S02", fmt.Sprintf("errCode = 2, detailMessage = Table [%s] does not exist in database [%s].", name, db)}
	}
	return d.tables[name], nil
}

// delete removes rows. Doris bounds the conditions by the table's model; the stand-in takes any.
func (s *session) delete(p *parser) (*result, error) {
	db, name := p.qualified()
	p.Expect("WHERE")
	where := p.expression()
	if err := p.End(); err != nil {
		return nil, err
	}
	t, err := s.table(db, name)
	if err != nil {
		return nil, err
	}
	before := len(t.rows)
	one := &scope{session: s, columns: t.names()}
	err = t.keep(func(row []value) (bool, error) {
		one.row = row
		v, err := one.eval(where)
		return v == nil || !isTrue(v), err
	})
	return &result{affected: int64(before - len(t.rows))}, err
}

// variables are the session variables with their defaults: those that loads and drivers have to do with.
func (s *session) variables() map[string]value {
	all := map[string]value{
		"autocommit": int64(1), "auto_increment_increment": int64(1), "character_set_client": "utf8mb4", "character_set_connection": "utf8mb4",
		"character_set_results": "utf8mb4", "character_set_server": "utf8mb4", "collation_connection": "utf8mb4_0900_bin",
		"collation_database": "utf8mb4_0900_bin", "collation_server": "utf8mb4_0900_bin", "default_order_by_limit": int64(-1),
		"enable_insert_strict": int64(1), "enable_nereids_planner": int64(1), "enable_profile": int64(0), "enable_text_validate_utf8": int64(1),
		"enable_strict_cast": int64(0), "exec_mem_limit": int64(107374182400), "group_commit": "off_mode", "init_connect": "",
		"insert_max_filter_ratio": "1.0", "insert_timeout": int64(14400), "interactive_timeout": int64(3600), "language": "/palo/share/english/",
		"license": "Apache License, Version 2.0", "load_stream_per_node": int64(2), "lower_case_table_names": int64(0),
		"max_allowed_packet": int64(16777216), "net_buffer_length": int64(16384), "net_read_timeout": int64(600), "net_write_timeout": int64(600),
		"parallel_pipeline_task_num": int64(0), "query_cache_size": int64(1048576), "query_cache_type": int64(0), "query_timeout": int64(900),
		"sql_auto_is_null": int64(0), "sql_mode": "ONLY_FULL_GROUP_BY", "sql_quote_show_create": int64(1), "sql_select_limit": "9223372036854775807",
		"system_time_zone": "Etc/UTC", "time_zone": "Etc/UTC", "transaction_isolation": "READ-COMMITTED", "transaction_read_only": int64(0),
		"tx_isolation": "READ-COMMITTED", "tx_read_only": int64(0), "version": protocolVersion, "wait_timeout": int64(28800),
		"version_comment": fmt.Sprintf("Apache Doris version doris-%s-rc01-a1b2c3d4e5", s.mysql.cluster.options.Version),
	}
	maps.Copy(all, s.set)
	return all
}

func (s *session) variable(name string) (value, error) {
	if v, ok := s.variables()[name]; ok {
		return v, nil
	}
	return nil, unknownVariable(name)
}

func unknownVariable(name string) error {
	return &sqlError{1193, "HY000", fmt.Sprintf("errCode = 2, detailMessage = Unknown system variable '%s'", name)}
}

// setVariables executes SET a = 1, b = 'x', and SET NAMES.
func (s *session) setVariables(p *parser) (*result, error) {
	if p.Take("NAMES") || p.Take("CHARACTER", "SET") {
		p.primary()
		if p.Take("COLLATE") {
			p.primary()
		}
		return &result{}, p.End()
	}
	changed := map[string]value{}
	for p.Err == nil {
		p.Take("SESSION")
		if p.Token.Is("GLOBAL") {
			return nil, &sqlError{1227, "42000", "errCode = 2, detailMessage = Access denied; you need (at least one of) the (ADMIN) privilege(s) for this operation"}
		}
		if p.Take("@@") && p.Take("SESSION") {
			p.Expect(".")
		}
		name := strings.ToLower(p.Identifier())
		p.Expect("=")
		v, err := s.setting(p)
		if err != nil {
			return nil, err
		}
		if _, known := s.variables()[name]; !known && p.Err == nil {
			return nil, unknownVariable(name)
		}
		if name == "version" || name == "version_comment" {
			return nil, &sqlError{1238, "HY000", fmt.Sprintf("errCode = 2, detailMessage = Variable '%s' is a read only variable", name)}
		}
		if name == "group_commit" {
			switch v = strings.ToLower(text(v)); v {
			case "off_mode", "sync_mode", "async_mode":
			default:
				return nil, fmt.Errorf("errCode = 2, detailMessage = group_commit can only be [async_mode, sync_mode, off_mode], not %v", v)
			}
		}
		changed[name] = v
		if !p.Take(",") {
			break
		}
	}
	if err := p.End(); err != nil {
		return nil, err
	}
	maps.Copy(s.set, changed)
	return &result{}, nil
}

// setting is a value behind =: an expression, or a bare word such as sync_mode, ON, DEFAULT.
func (s *session) setting(p *parser) (value, error) {
	if p.Token.Kind == sqlread.Word {
		word := p.Identifier()
		switch strings.ToUpper(word) {
		case "ON", "TRUE":
			return int64(1), nil
		case "OFF", "FALSE":
			return int64(0), nil
		}
		return word, nil
	}
	x := p.expression()
	if p.Err != nil {
		return nil, p.Err
	}
	return (&scope{session: s}).eval(x)
}

// function is one about the session.
func (s *session) function(name string, args int) (value, bool) {
	if args != 0 {
		return nil, false
	}
	switch name {
	case "VERSION":
		return protocolVersion, true
	case "DATABASE", "SCHEMA":
		if s.database == "" {
			return nil, true
		}
		return s.database, true
	case "CONNECTION_ID":
		return s.id, true
	case "USER", "CURRENT_USER":
		return fmt.Sprintf("'%s'@'%%'", s.mysql.cluster.options.User), true
	case "NOW", "CURRENT_TIMESTAMP":
		return columnType{name: "DATETIME"}.format(s.mysql.cluster.options.Now().UTC()), true
	}
	return nil, false
}
