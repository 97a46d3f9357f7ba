package mysql_test

import (
	"database/sql"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sink"
)

// clients are MariaDB's, the distribution's under its other name, and MySQL's own of version 9, which knows other ways to
// log in.
func clients() map[string]string {
	return map[string]string{"mariadb": "mariadb", "mysql": "mysql", "mysql9": os.Getenv("TERAPUSH_TEST_MYSQL_CLIENT")}
}

// installed skips without the program, and fails where programs have to be there.
func installed(t *testing.T, program string) string {
	path, err := exec.LookPath(program)
	if err != nil && os.Getenv("CI") != "" {
		t.Fatalf("not installed: %s", program)
	}
	if err != nil {
		t.Skip("not installed: " + program)
	}
	return path
}

// shell runs a client against s.
func shell(t *testing.T, client string, s *sink.Server, statement string, more ...string) (string, error) {
	host, port, err := net.SplitHostPort(s.Addr())
	require.NoError(t, err)
	args := append([]string{"--no-defaults", "--local-infile=1", "--protocol=tcp", "-vvv", "-h", host, "-P", port, "-u", "me"}, more...)
	out, err := exec.Command(client, append(args, "db", "-e", statement)...).CombinedOutput()
	return string(out), err
}

// encryption returns the options by which a client insists on TLS with a certificate that nobody can verify, and those
// by which it does without.
func encryption(client string) (with, without []string) {
	if client == "mysql9" {
		return []string{"--ssl-mode=REQUIRED"}, []string{"--ssl-mode=DISABLED", "--get-server-public-key"}
	}
	return []string{"--ssl", "--disable-ssl-verify-server-cert"}, []string{"--skip-ssl"}
}

func TestCommandLineClients(t *testing.T) {
	own, err := sink.SelfSigned()
	require.NoError(t, err)
	for name, program := range clients() {
		t.Run(name, func(t *testing.T) {
			client := installed(t, program)
			file := filepath.Join(t.TempDir(), "rows.tsv")
			require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("1\tabc\n", 100_000)), 0o600))
			with, without := encryption(name)
			for _, options := range [][]string{with, without} {
				for _, password := range []string{"", "secret"} {
					s := listen(t, sink.Options{TLS: own})
					out, err := shell(t, client, s, "LOAD DATA LOCAL INFILE '"+file+"' INTO TABLE t; SELECT VERSION(); "+
						"START TRANSACTION; INSERT INTO t VALUES (1, 'it''s; -- one'), (2, 'two'); COMMIT; SHOW WARNINGS; status",
						append([]string{"--password=" + password}, options...)...)
					require.NoError(t, err, "%s", out)
					assert.Contains(t, out, "100000 rows affected")
					assert.Contains(t, out, "2 rows affected")
					assert.Contains(t, out, "8.4.0-terapush-sink")
					assert.EqualValues(t, 100_002, s.Stats().Rows)

					s = listen(t, sink.Options{TLS: own, Password: "secret"})
					out, err = shell(t, client, s, "INSERT INTO t VALUES (1)", append([]string{"--password=" + password}, options...)...)
					if password == "" {
						require.Error(t, err, out)
						assert.Contains(t, out, "ERROR 1045 (28000): Access denied for user 'me'")
						assert.Zero(t, s.Stats().Statements)
						continue
					}
					require.NoError(t, err, "%s", out)
					out, err = shell(t, client, s, "INSERT INTO t VALUES (1)", append([]string{"--password=wrong"}, options...)...)
					require.Error(t, err, out)
					assert.Contains(t, out, "ERROR 1045 (28000): Access denied for user 'me' (using password: YES)")
					assert.EqualValues(t, 1, s.Stats().Rows)
				}
			}
		})
	}
}

// The driver of Go writes arguments into the text where it is asked to; nothing can be prepared here.
func TestGoDriver(t *testing.T) {
	own, err := sink.SelfSigned()
	require.NoError(t, err)
	s := listen(t, sink.Options{TLS: own, Password: "secret"})
	for _, parameters := range []string{"tls=false", "tls=skip-verify"} {
		db, err := sql.Open("mysql", "me:secret@tcp("+s.Addr()+")/db?interpolateParams=true&"+parameters)
		require.NoError(t, err)
		defer db.Close()
		for statement, want := range map[string]int64{
			"INSERT INTO t (a, b, c) VALUES (?, ?, '?'), (1, 2, NULL)": 2, "INSERT INTO t SET a = ?, b = ?": 1, "REPLACE INTO t VALUES (?, ?)": 1,
		} {
			r, err := db.Exec(statement, "it's", strings.Repeat("x", 20<<20)) // longer than a packet
			require.NoError(t, err)
			n, err := r.RowsAffected()
			require.NoError(t, err)
			require.Equal(t, want, n, statement)
		}
		require.ErrorIs(t, db.QueryRow("SELECT a FROM t WHERE a = ?", 1).Scan(new(string)), sql.ErrNoRows)
		_, err = db.Prepare("INSERT INTO t VALUES (?)")
		require.ErrorContains(t, err, "1295")
	}
	require.EqualValues(t, 8, s.Stats().Rows)
	for _, user := range []string{"me", "me:wrong"} {
		db, err := sql.Open("mysql", user+"@tcp("+s.Addr()+")/db?tls=preferred")
		require.NoError(t, err)
		defer db.Close()
		var refused *driver.MySQLError
		require.ErrorAs(t, db.Ping(), &refused)
		assert.EqualValues(t, 1045, refused.Number)
	}
}

// What Connector/J and others say when they connect.
func TestSettingsOfClients(t *testing.T) {
	db := open(t, listen(t, sink.Options{}), "me")
	db.SetMaxOpenConns(1)
	var increment, set, comment string
	row := db.QueryRow("/* mysql-connector-j-8.4.0 */SELECT @@session.auto_increment_increment AS auto_increment_increment, " +
		"@@character_set_client AS character_set_client, @@version_comment")
	require.NoError(t, row.Scan(&increment, &set, &comment))
	assert.Equal(t, []string{"1", "utf8mb4"}, []string{increment, set})
	for _, statement := range []string{"SET character_set_results = NULL", "SET NAMES utf8mb4", "SET SESSION TRANSACTION READ WRITE", "USE db"} {
		_, err := db.Exec(statement)
		require.NoError(t, err, statement)
	}
	for condition, want := range map[string][]string{
		"": nil, " LIKE 'version'": {"version", "8.4.0-terapush-sink"}, " WHERE Variable_name IN ('local_infile', 'x[')": {"local_infile", "ON"},
		` LIKE 'max\_allowed%'`: {"max_allowed_packet", "268435456"},
	} {
		rows, err := db.Query("SHOW VARIABLES" + condition)
		require.NoError(t, err)
		var found [][]string
		for rows.Next() {
			var name, value string
			require.NoError(t, rows.Scan(&name, &value))
			found = append(found, []string{name, value})
		}
		require.NoError(t, rows.Err())
		if want != nil {
			require.Equal(t, [][]string{want}, found, condition)
		}
		require.NotEmpty(t, found)
	}
	for _, on := range []string{"0", "1"} {
		_, err := db.Exec("SET autocommit=" + on)
		require.NoError(t, err)
		var is string
		require.NoError(t, db.QueryRow("SELECT @@session.autocommit").Scan(&is))
		assert.Equal(t, on, is)
	}
}

func TestToldToFail(t *testing.T) {
	s := listen(t, sink.Options{Fail: 3, CRC: true})
	db := open(t, s, "me")
	var failed, rows int64
	for i := range 12 {
		var err error
		switch i % 2 {
		case 0:
			_, err = db.Exec(fmt.Sprintf("INSERT INTO t VALUES (%d)", i))
		default:
			driver.RegisterReaderHandler("told", func() io.Reader { return strings.NewReader("1\n") })
			_, err = db.Exec("LOAD DATA LOCAL INFILE 'Reader::told' INTO TABLE t")
		}
		_, _ = db.Exec("SET a = 1") // is not counted
		var refused *driver.MySQLError
		if err != nil {
			require.ErrorAs(t, err, &refused)
			assert.EqualValues(t, 1205, refused.Number)
			failed++
			assert.Equal(t, 2, i%3, "every third load")
			continue
		}
		rows++
	}
	stats := s.Stats()
	assert.EqualValues(t, 4, failed)
	assert.Equal(t, failed, stats.Failed)
	assert.Equal(t, rows, stats.Rows)
	assert.Len(t, stats.CRC, 8)
}

func TestOversized(t *testing.T) {
	s := listen(t, sink.Options{})
	c, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write(append([]byte{36, 0, 0, 1, 0, 2, 0, 0}, make([]byte, 32)...))
	require.NoError(t, err)
	go func() { // a statement of 2 GiB in full packets, until the sink closes the connection
		packet := append([]byte{0xff, 0xff, 0xff, 0, 3, '\''}, make([]byte, 1<<24-3)...)
		for range 128 {
			if _, err := c.Write(packet); err != nil {
				return
			}
			packet[4], packet[5] = 0, 0 // one long string
		}
	}()
	answer := make([]byte, 1000)
	said := ""
	for n := 0; err == nil; n, err = c.Read(answer) {
		said += string(answer[:n])
	}
	assert.Contains(t, said, "max_allowed_packet")
	assert.Zero(t, s.Stats().Statements)
}

func TestNoCountSaysSo(t *testing.T) {
	s := listen(t, sink.Options{NoCount: true})
	db := open(t, s, "me")
	var version string
	require.NoError(t, db.QueryRow("SELECT VERSION()").Scan(&version))
	assert.Equal(t, "8.4.0-terapush-sink-no-count", version)
	assert.Zero(t, loadData(t, db, strings.NewReader("1\n2\n")))
	assert.EqualValues(t, 4, s.Stats().Bytes)
}
