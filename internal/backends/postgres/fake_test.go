package postgres_test

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/pkg/loader"
)

// fake is a scripted server in place of products that cannot be installed here. Its answers follow the products'
// documentation; these tests have never run against a real one. It knows no SQL: statements are told by a part of them.
type fake struct {
	listener net.Listener
	bucket   backendtest.Store

	connections atomic.Int64

	mu         sync.Mutex
	answers    []answer
	statements []string
	claims     map[string]string // committed, by batch: the rows of the claim
	open       string            // the batch that the open transaction claims
	folder     string            // that Redshift's last COPY has read
	short      int               // rows that are missing from every count
	loseCommit bool              // its answer
	copied     [][]byte
}

// answer is that to statements with a part: rows, the tags of commands, or an error, which quotes the statement.
type answer struct {
	part          string
	rows          [][]string
	tags          []string
	code, message string
	once          bool            // it is given once
	hang          <-chan struct{} // first
}

const (
	redshiftVersion = "PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC gcc (GCC) 3.4.2, Redshift 1.0.117891"
	auroraVersion   = "PostgreSQL 16.4 on aarch64-unknown-linux-gnu, compiled by aarch64-unknown-linux-gnu-gcc (GCC) 9.5.0, 64-bit"
	yugabyteVersion = "PostgreSQL 15.2-YB-2024.2.0.0-b145 on x86_64-pc-linux-gnu"
)

// newFake starts a server with a table for people, or for documents in YugabyteDB.
func newFake(t *testing.T, version string) *fake {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := &fake{listener: l, bucket: backendtest.StoreAndKeys(t, nil), claims: make(map[string]string)}
	const timestamp = "timestamp without time zone"
	table, text := "people", "text"
	if version == redshiftVersion {
		text = "character varying"
	}
	columns := [][]string{
		{"id", "bigint", "t"}, {"name", text + "(40)", "t"}, {"birthday", "date", "t"}, {"t", timestamp, "t"},
	}
	if version == yugabyteVersion {
		table, columns = "documents", [][]string{{"document_id", "bigint", "t"}, {"payload", "bytea", "t"}}
	}
	f.answers = []answer{
		{part: "SELECT version()", rows: [][]string{{version}}},
		{part: "FROM pg_settings", rows: [][]string{{"fsync", "on"}}},
		{part: "FROM yb_servers()"},
		{part: "FROM pg_policy WHERE polrelid = CAST"},
		{part: "pid = pg_backend_pid()", rows: [][]string{{"100", "1700000000.5"}}},
		{part: "SET application_name", tags: []string{"SET"}}, // before the next one
		{part: "application_name ="},
		{part: "has_table_privilege(c.oid, 'DELETE')", rows: [][]string{{"t", "logged", "t"}}},
		{part: "FROM pg_class c JOIN", rows: [][]string{{"16384", "16384", "public", table, "r", "made by terapush", "p", "t", "f"}}},
		{part: "SELECT 'foreign key'"},
		{part: "FROM pg_index", rows: [][]string{{"t", "document_id"}}},
		{part: "FROM pg_attribute", rows: columns},
		{part: "SELECT COUNT(*) FROM", rows: [][]string{{"0"}}},
	}
	var clients sync.WaitGroup
	clients.Go(func() {
		for {
			socket, err := l.Accept()
			if err != nil {
				return
			}
			clients.Go(func() { f.serve(socket) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		clients.Wait()
	})
	return f
}

// target is the table, loaded by a method.
func (f *fake) target(scheme, method string) loader.Target {
	to := loader.Target{
		Scheme: scheme, Hosts: []string{f.listener.Addr().String()}, User: "u", Database: "d", Table: "people",
		Method: method, Options: map[string]string{}, TLS: loader.TLSOff,
	}
	if scheme == "yugabyte" {
		to.Table = "documents"
	}
	if strings.HasPrefix(method, "s3") {
		to.Via = f.bucket.Via()
	}
	return to
}

// says puts answers before the others.
func (f *fake) says(first ...answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers = append(first, f.answers...)
}

// queries lists what clients said that contains the text.
func (f *fake) queries(containing string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []string
	for _, q := range f.statements {
		if strings.Contains(q, containing) {
			found = append(found, q)
		}
	}
	return found
}

func (f *fake) serve(socket net.Conn) {
	defer func() { _ = socket.Close() }()
	c := &client{Backend: pgproto3.NewBackend(socket, socket)}
	for {
		start, err := c.ReceiveStartupMessage()
		if err != nil {
			return
		}
		if _, is := start.(*pgproto3.StartupMessage); is {
			break
		}
		if _, err := socket.Write([]byte("N")); err != nil { // no TLS
			return
		}
	}
	f.connections.Add(1)
	c.Send(&pgproto3.AuthenticationOk{})
	c.Send(&pgproto3.ParameterStatus{Name: "server_version", Value: "15.2-YB-2024.2.0.0-b145"})
	c.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{1, 2, 3, 4}})
	for ready := true; ready; {
		c.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		if c.Flush() != nil {
			return
		}
		sql, err := c.query()
		ready = err == nil && f.answer(c, sql)
	}
}

// answer reports whether the connection lives on.
func (f *fake) answer(c *client, sql string) bool {
	f.mu.Lock()
	f.statements = append(f.statements, sql)
	var known *answer
	if i := slices.IndexFunc(f.answers, func(a answer) bool { return strings.Contains(sql, a.part) }); i >= 0 {
		found := f.answers[i]
		if known = &found; found.once {
			f.answers = slices.Delete(f.answers, i, i+1)
		}
	}
	f.mu.Unlock()
	if known != nil && known.hang != nil {
		<-known.hang
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case known != nil && known.code != "":
		if strings.HasPrefix(sql, "COPY") && strings.Contains(sql, "STDIN") {
			f.copied = append(f.copied, c.copyIn())
		}
		message := known.message + "; the statement was " + sql
		c.Send(&pgproto3.ErrorResponse{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: known.code, Message: message})
	case known != nil && known.tags != nil:
		c.tags(known.tags...)
	case known != nil:
		c.rows(known.rows)
	case sql == "COMMIT" && f.open != "":
		f.claims[f.open], f.open = "20", ""
		c.tags("COMMIT")
		return !f.loseCommit
	case strings.HasPrefix(sql, "SELECT 1 FROM") && strings.Contains(sql, "terapush_runs"):
		c.rows([][]string{{"1"}}) // the run is this process's
	case sql == "ROLLBACK":
		f.open = ""
		c.tags("ROLLBACK")
	case strings.HasPrefix(sql, "SELECT row_count"):
		var rows [][]string
		if n, is := f.claims[numberIn(sql, "batch = ")]; is {
			rows = [][]string{{n}}
		}
		c.rows(rows)
	case strings.Contains(sql, "INSERT INTO") && strings.Contains(sql, "terapush_claims"):
		f.claim(c, sql)
	case strings.HasPrefix(sql, "COPY") && strings.Contains(sql, "STDIN"):
		f.copied = append(f.copied, c.copyIn())
		c.tags(fmt.Sprintf("COPY %d", bytes.Count(f.copied[len(f.copied)-1], []byte{0, 2, 0, 0, 0, 8, 0, 0, 0, 0})))
	case strings.HasPrefix(sql, "COPY"):
		_, folder, _ := strings.Cut(sql, "'s3://bucket/")
		f.folder, _, _ = strings.Cut(folder, "'")
		c.tags("COPY")
	case strings.Contains(sql, "pg_last_copy_count"):
		c.rows([][]string{{fmt.Sprint(f.lines(f.folder) - f.short)}})
	default:
		c.tags(strings.Fields(sql)[0])
	}
	return true
}

// claim claims, unless the claim is there. PostgreSQL's claim begins its transaction in the same message.
func (f *fake) claim(c *client, sql string) {
	if strings.HasPrefix(sql, "BEGIN") {
		c.tags("BEGIN")
	}
	f.open = numberIn(strings.Replace(sql, "VALUES (", "SELECT ", 1), "SELECT 'run-1', ")
	inserted := "INSERT 0 1"
	if _, taken := f.claims[f.open]; taken {
		f.open, inserted = "", "INSERT 0 0"
	}
	c.tags(inserted)
	if strings.HasSuffix(sql, "ROLLBACK") {
		f.open = ""
		c.tags("ROLLBACK")
	}
}

// lines counts the lines of the objects below a prefix.
func (f *fake) lines(prefix string) (n int) {
	for _, key := range f.bucket.Keys() {
		if strings.HasPrefix(key, prefix) {
			object, err := f.bucket.Read(key)
			if err != nil {
				panic(err)
			}
			n += bytes.Count(object, []byte("\n"))
		}
	}
	return n
}

func numberIn(sql, after string) string {
	_, text, _ := strings.Cut(sql, after)
	return text[:strings.IndexFunc(text+" ", func(r rune) bool { return r != '-' && (r < '0' || r > '9') })]
}

// client is the server's side of a connection.
type client struct{ *pgproto3.Backend }

// query receives a statement.
func (c *client) query() (sql string, err error) {
	for {
		message, err := c.Receive()
		switch m := message.(type) {
		case *pgproto3.Query:
			return m.String, nil
		case *pgproto3.Terminate, nil:
			return "", net.ErrClosed
		}
		if err != nil {
			return "", err
		}
	}
}

func (c *client) rows(rows [][]string) {
	if len(rows) > 0 {
		var head pgproto3.RowDescription
		for range rows[0] {
			head.Fields = append(head.Fields, pgproto3.FieldDescription{Name: []byte("c"), DataTypeOID: 25})
		}
		c.Send(&head)
	}
	for _, row := range rows {
		var values [][]byte
		for _, v := range row {
			values = append(values, []byte(v))
		}
		c.Send(&pgproto3.DataRow{Values: values})
	}
	c.tags("SELECT")
}

func (c *client) tags(tags ...string) {
	for _, tag := range tags {
		c.Send(&pgproto3.CommandComplete{CommandTag: []byte(tag)})
	}
}

// copyIn takes a COPY stream.
func (c *client) copyIn() (body []byte) {
	c.Send(&pgproto3.CopyInResponse{OverallFormat: 1, ColumnFormatCodes: []uint16{1, 1}})
	if c.Flush() != nil {
		return nil
	}
	for {
		message, err := c.Receive()
		data, more := message.(*pgproto3.CopyData)
		if err != nil || !more {
			return body
		}
		body = append(body, data.Data...)
	}
}
