package doris

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/server"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/standin"
)

// session is one connection of the MySQL protocol. What it does not override is refused.
type session struct {
	server.EmptyHandler
	*Cluster
	conn      *sink.Conn
	variables map[string]string
	last      *lastInsert
}

// lastInsert is what SHOW LAST INSERT tells.
type lastInsert struct {
	label  string
	status state
	loaded int
}

// protocolVersion is what Doris says to every client, whatever its own version is.
const protocolVersion = "5.7.99"

func (c *Cluster) session(_ uint32, conn *sink.Conn) error {
	s := &session{Cluster: c, conn: conn, variables: map[string]string{
		"version_comment": "Apache Doris version doris-3.1.2-rc01-a1b2c3d4e5", "max_allowed_packet": "16777216",
		"enable_insert_strict": "true", "exec_mem_limit": "107374182400", "group_commit": "off_mode", "query_timeout": "900",
		"enable_nereids_planner": "true", "enable_prepared_stmt_audit_log": "false",
		"enable_decimal256": "false",
	}}
	p := server.NewServer(protocolVersion, mysql.DEFAULT_COLLATION_ID, mysql.AUTH_NATIVE_PASSWORD, nil, nil)
	protocol, err := p.NewConn(conn, "root", c.options.Password, s)
	for err == nil {
		err = protocol.HandleCommand()
	}
	return err
}

// UseDB is COM_INIT_DB, and the database of the handshake.
func (s *session) UseDB(name string) error {
	return try(func() {
		if name != Database {
			refuse(mysql.ER_BAD_DB_ERROR, "Unknown database '%s'", name)
		}
	})
}

// HandleQuery is COM_QUERY.
func (s *session) HandleQuery(sql string) (*mysql.Result, error) {
	sql = strings.Clone(sql) // it lies in the connection's buffer
	in := insertShape.FindStringSubmatch(sql)
	if in == nil {
		return s.run(sql, nil, standin.Format{}, "")
	}
	return s.run(sql, in, standin.Format{Kind: standin.Values}, sql[len(in[0]):])
}

// HandleStmtPrepare is COM_STMT_PREPARE: of an INSERT that group commit can merge, and of nothing else, as new
// frontends have it (apache/doris#55125).
func (s *session) HandleStmtPrepare(sql string) (parameters, columns int, context any, err error) {
	head := "PREPARE " + sql[:min(len(sql), 4<<10)]
	fault := s.ask(Request{Kind: Statement, Bytes: int64(len(sql)), SQL: head})
	in := insertShape.FindStringSubmatch(sql)
	parameters = strings.Count(sql, "?")
	err = try(func() {
		switch {
		case fault.Fail != "":
			refuse(mysql.ER_UNKNOWN_ERROR, "%s", fault.Fail)
		case in != nil && in[2] != "":
			refuse(mysql.ER_UNKNOWN_ERROR, "Only support prepare InsertStmt without label now")
		case in == nil || in[4] != "VALUES" || strings.Trim(sql[len(in[0]):], "(?), ") != "",
			s.variables["group_commit"] == "off_mode":
			refuse(mysql.ER_UNSUPPORTED_PS, "This command is not supported in the prepared statement protocol yet")
		case parameters > math.MaxUint16:
			refuse(mysql.ER_PS_MANY_PARAM, "Prepared statement contains too many placeholders")
		}
	})
	return parameters, 0, nil, err
}

// HandleStmtExecute is COM_STMT_EXECUTE.
func (s *session) HandleStmtExecute(_ any, sql string, values []any) (*mysql.Result, error) {
	in := insertShape.FindStringSubmatch(sql)
	var body strings.Builder
	for row := range slices.Chunk(values, len(columnsOf(in[3]))) {
		texts := make([]string, len(row))
		for i, value := range row {
			texts[i] = fmt.Sprint(value)
			switch v := value.(type) {
			case nil:
				texts[i] = "NULL"
			case []byte:
				texts[i] = "'" + escape.Replace(string(v)) + "'"
			}
		}
		body.WriteString("(" + strings.Join(texts, ",") + ")")
	}
	return s.run(sql, in, standin.Format{Kind: standin.Values}, body.String())
}

var escape = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

// HandleStmtClose is COM_STMT_CLOSE.
func (s *session) HandleStmtClose(any) error { return nil }

// run runs a statement. in is what insertShape found in it, and body has the rows of an INSERT.
func (s *session) run(sql string, in []string, format standin.Format, body string) (*mysql.Result, error) {
	r := Request{Kind: Statement, Bytes: int64(len(sql)), SQL: strings.Clone(sql[:min(len(sql), 4<<10)])}
	if in != nil {
		r.Table, r.Label = strings.ReplaceAll(in[1], "`", ""), in[2]
	}
	fault := s.ask(r)
	s.wait(fault.Hold)
	if fault.Cut {
		return nil, s.disconnect()
	}
	var found *result
	var n int
	err := try(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case fault.Fail != "":
			refuse(mysql.ER_UNKNOWN_ERROR, "%s", fault.Fail)
		case in != nil:
			n = s.insert(in, format, body, fault)
		default:
			found = s.statement(sql)
		}
	})
	switch {
	case fault.CutAnswer || fault.Linger != nil:
		return nil, s.disconnect()
	case err != nil || found == nil:
		return &mysql.Result{AffectedRows: uint64(n)}, err
	}
	set, err := mysql.BuildSimpleTextResultset(found.names, found.rows)
	return &mysql.Result{Resultset: set}, err
}

// disconnect closes the connection. Its error reaches no client.
func (s *session) disconnect() error {
	_ = s.conn.Close()
	return errors.New("connection closed")
}

// result is that of a query. A value is a string, or nil for NULL.
type result struct {
	names []string
	rows  [][]any
}

// The shapes of an INSERT up to its rows: table, label, columns, and of its query.
var (
	insertShape = regexp.MustCompile("^INSERT INTO (\\S+)(?: WITH LABEL `(\\S+)`)? \\(([^)]+)\\) (VALUES|SELECT) ")
	queryShape  = regexp.MustCompile(`(?s)^(.+) FROM S3\((.+)\)$`)
)

// insert runs INSERT: under a label in a transaction of its own, or as a part of the table's group. The cluster is
// locked, but not while it waits.
func (s *session) insert(in []string, format standin.Format, body string, fault Fault) int {
	t, columns, mode := s.find(in[1]), columnsOf(in[3]), s.variables["group_commit"]
	read := func() ([]standin.Row, error) { return t.decode(format, columns, []byte(body)) }
	if in[4] == "SELECT" {
		read = func() (found []standin.Row, err error) {
			err = try(func() { found = s.readObjects(t, columns, body) })
			return found, err
		}
	}
	if in[2] == "" && mode != "off_mode" && in[4] == "VALUES" && !fault.NoGroup {
		loaded, err := read()
		fails(err)
		g := s.joinGroup(t, loaded, mode, fault)
		s.last = &lastInsert{g.txn.label, prepare, len(loaded)}
		return len(loaded)
	}

	x, err := s.begin(t, cmp.Or(fault.Label, in[2], randomLabel("label_")))
	fails(err)
	s.mu.Unlock() // objects come over the network
	loaded, err := read()
	s.mu.Lock()
	fails(s.end(x, loaded, err, fault))
	s.last = &lastInsert{x.label, x.state, len(loaded)}
	return len(loaded)
}

// fails ends the work on a statement if there is an error, which is the server's as it is.
func fails(err error) {
	if err == nil {
		return
	}
	if server := (*mysql.MyError)(nil); errors.As(err, &server) {
		panic(server)
	}
	panic(mysql.NewError(mysql.ER_UNKNOWN_ERROR, err.Error()))
}
