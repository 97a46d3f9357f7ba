package doris

import (
	"errors"
	"fmt"
	"math/big"
	"net"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/server"
)

// mysqlServer is the frontend's MySQL side.
type mysqlServer struct {
	cluster  *Cluster
	listener net.Listener
	protocol *server.Server

	mu       sync.Mutex
	sessions map[int64]*session // nil once closed
	served   sync.WaitGroup
}

func newMySQL(c *Cluster) (*mysqlServer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	// Doris says 5.7.99 to every client, whatever its own version is.
	p := server.NewServer(protocolVersion, mysql.DEFAULT_COLLATION_ID, mysql.AUTH_NATIVE_PASSWORD, nil, nil)
	return &mysqlServer{cluster: c, listener: l, protocol: p, sessions: map[int64]*session{}}, nil
}

const protocolVersion = "5.7.99"

func (m *mysqlServer) serve() {
	m.served.Go(func() {
		for id := int64(1); ; id++ {
			c, err := m.listener.Accept()
			if err != nil {
				return
			}
			s := newSession(m, id, c)
			m.mu.Lock()
			if m.sessions == nil {
				m.mu.Unlock()
				c.Close()
				return
			}
			m.sessions[id] = s
			m.served.Go(s.serve)
			m.mu.Unlock()
		}
	})
}

func (m *mysqlServer) close() {
	_ = m.listener.Close()
	m.mu.Lock()
	for _, s := range m.sessions {
		s.conn.Close()
	}
	m.sessions = nil
	m.mu.Unlock()
	m.served.Wait()
}

// serve runs the session until its connection ends.
func (s *session) serve() {
	defer func() {
		s.conn.Close()
		s.mysql.mu.Lock()
		delete(s.mysql.sessions, s.id)
		s.mysql.mu.Unlock()
	}()
	o := s.mysql.cluster.options
	c, err := s.mysql.protocol.NewConn(s.conn, o.User, o.Password, s)
	if err != nil {
		return
	}
	for c.HandleCommand() == nil && !s.hungUp {
	}
}

// UseDB is COM_INIT_DB, and the database of the handshake.
func (s *session) UseDB(name string) error {
	if !s.store.hasDatabase(name) && !strings.EqualFold(name, "information_schema") {
		return s.fail(&sqlError{1049, "42000", fmt.Sprintf("errCode = 2, detailMessage = Unknown database '%s'", name)})
	}
	s.database = strings.Clone(name) // it lies in the connection's buffer
	return nil
}

// HandleQuery is COM_QUERY.
func (s *session) HandleQuery(sql string) (*mysql.Result, error) {
	// The text lies in the connection's buffer, and names out of it stay.
	sql = strings.Clone(sql)
	if !utf8.ValidString(sql) {
		// The frontend reads statements as UTF-8; Java's decoder puts U+FFFD where they are not (assumed).
		sql = string([]rune(sql))
	}
	r, err := s.statement(sql)
	if err != nil {
		return nil, s.fail(err)
	}
	if r.names == nil {
		return &mysql.Result{AffectedRows: uint64(r.affected)}, nil
	}
	return &mysql.Result{Resultset: r.encode()}, nil
}

// HandleFieldList is COM_FIELD_LIST, which old command-line clients send to complete names.
func (s *session) HandleFieldList(name, _ string) ([]*mysql.Field, error) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	t, err := s.table("", strings.Clone(name))
	if err != nil {
		return nil, s.fail(err)
	}
	var all []*mysql.Field
	for _, c := range t.columns {
		all = append(all, &mysql.Field{Table: []byte(t.name), Name: []byte(c.name), Type: mysql.MYSQL_TYPE_VAR_STRING, Charset: 33})
	}
	return all, nil
}

// HandleStmtPrepare is COM_STMT_PREPARE. Since apache/doris#55125 the frontend prepares point queries and inserts with
// group commit only and refuses the rest, so that JDBC falls back to text. The stand-in has neither. Error number 1295
// is assumed: the one that drivers take for "not in this protocol".
func (s *session) HandleStmtPrepare(string) (int, int, any, error) {
	return 0, 0, nil, s.fail(&sqlError{1295, "HY000", "errCode = 2, detailMessage = This command is not supported in the prepared statement protocol yet"})
}

// HandleStmtExecute is never reached: nothing can be prepared.
func (s *session) HandleStmtExecute(any, string, []any) (*mysql.Result, error) {
	return nil, s.fail(errors.New("errCode = 2, detailMessage = no statement is prepared"))
}

// HandleStmtClose has no answer.
func (s *session) HandleStmtClose(any) error { return nil }

// HandleOtherCommand refuses the rest.
func (s *session) HandleOtherCommand(cmd byte, _ []byte) error {
	return s.fail(&sqlError{1047, "08S01", fmt.Sprintf("errCode = 2, detailMessage = Unsupported command(%d)", cmd)})
}

// sqlError is an error with MySQL's number and state. Doris gives most of its own 1105, HY000.
type sqlError struct {
	code    uint16
	state   string
	message string
}

func (e *sqlError) Error() string { return e.message }

func (s *session) fail(err error) error {
	code, state := uint16(1105), "HY000"
	if e := (*sqlError)(nil); errors.As(err, &e) {
		code, state = e.code, e.state
	}
	if e := (*syntaxError)(nil); errors.As(err, &e) {
		code, state = 1064, "42000"
	}
	return &mysql.MyError{Code: code, State: state, Message: err.Error()}
}

// encode writes the rows in the text protocol.
func (r *result) encode() *mysql.Resultset {
	set := mysql.NewResultset(len(r.names))
	for i, name := range r.names {
		set.Fields[i] = &mysql.Field{Name: []byte(name), Charset: 33, Type: r.fieldType(i)}
		set.FieldNames[name] = i
		if set.Fields[i].Type != mysql.MYSQL_TYPE_VAR_STRING {
			set.Fields[i].Charset, set.Fields[i].Flag = 63, mysql.BINARY_FLAG
		}
	}
	for _, row := range r.rows {
		var line []byte
		for _, v := range row {
			if v == nil {
				line = append(line, 0xFB)
			} else {
				line = append(line, mysql.PutLengthEncodedString([]byte(text(v)))...)
			}
		}
		set.RowDatas = append(set.RowDatas, line)
	}
	return set
}

// fieldType is the type of a column's first value that is not NULL.
func (r *result) fieldType(column int) uint8 {
	for _, row := range r.rows {
		switch row[column].(type) {
		case nil:
			continue
		case int64:
			return mysql.MYSQL_TYPE_LONGLONG
		case float64:
			return mysql.MYSQL_TYPE_DOUBLE
		case *decimal:
			return mysql.MYSQL_TYPE_NEWDECIMAL
		case *big.Int: // LARGEINT goes as text
			return mysql.MYSQL_TYPE_VAR_STRING
		}
		break
	}
	return mysql.MYSQL_TYPE_VAR_STRING
}
