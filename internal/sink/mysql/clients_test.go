package mysql_test

import (
	"database/sql"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/sinktest"
)

// The clients are MariaDB's, and MySQL's own of version 9, which knows other ways to log in.
func TestCommandLineClients(t *testing.T) {
	mariadb := [2][]string{{"--ssl", "--disable-ssl-verify-server-cert"}, {"--skip-ssl"}}
	for name, encryption := range map[string][2][]string{
		"mariadb": mariadb, "mysql": {{"--ssl-mode=REQUIRED"}, {"--ssl-mode=DISABLED", "--get-server-public-key"}},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "mysql" {
				name = sinktest.Env(t, "TERAPUSH_TEST_MYSQL_CLIENT")
			}
			run := sinktest.Program(t, name)
			client := func(s *sink.Server, stdin string, more ...string) (string, error) {
				host, port, err := net.SplitHostPort(s.Addr())
				require.NoError(t, err)
				args := append([]string{"--no-defaults", "--local-infile=1", "--protocol=tcp", "-vvv", "-h", host, "-P", port, "-u", "me"}, more...)
				return run(stdin, append(args, "db")...)
			}
			file := filepath.Join(t.TempDir(), "rows.tsv")
			require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("1\tabc\n", 100_000)), 0o600))
			for _, options := range encryption {
				s := listen(t, sink.Options{TLS: sinktest.TLS(t)})
				out, err := client(s, "LOAD DATA LOCAL INFILE '"+file+"' INTO TABLE t; SELECT VERSION(); START TRANSACTION; "+
					"INSERT INTO t VALUES (1, 'it''s; -- one'), (2, 'two'); COMMIT; SHOW WARNINGS; status", append(options, "--password=secret")...)
				require.NoError(t, err, out)
				assert.Contains(t, out, "100000 rows affected")
				assert.Contains(t, out, "2 rows affected")
				assert.Contains(t, out, "8.4.0-terapush-sink")
				assert.EqualValues(t, 100_002, s.Stats().Rows)
				out, err = client(s, "INSERT INTO t VALUES (1)", append(options, "--password=")...)
				require.NoError(t, err, out)
				assert.EqualValues(t, 100_003, s.Stats().Rows)
			}
		})
	}
}

// The driver of Go writes arguments into the text where it is asked to; nothing can be prepared here.
func TestGoDriver(t *testing.T) {
	s := listen(t, sink.Options{TLS: sinktest.TLS(t)})
	for _, parameters := range []string{"tls=false", "tls=skip-verify"} {
		db := open(t, s, "me:secret", "interpolateParams=true&"+parameters)
		for statement, want := range map[string]int64{
			"INSERT INTO t (a, b, c) VALUES (?, ?, '?'), (1, 2, NULL)": 2, "REPLACE INTO t VALUES (?, ?)": 1,
		} {
			require.Equal(t, want, affected(t, db, statement, "it's", strings.Repeat("x", 17<<20)), statement) // longer than a packet
		}
		require.ErrorIs(t, db.QueryRow("SELECT a FROM t WHERE a = ?", 1).Scan(new(string)), sql.ErrNoRows)
		_, err := db.Prepare("INSERT INTO t VALUES (?)")
		require.ErrorContains(t, err, "nothing can be prepared here")
	}
	require.EqualValues(t, 6, s.Stats().Rows)
	require.NoError(t, open(t, s, "me", "tls=preferred").Ping())
}

func TestToldToFail(t *testing.T) {
	s := listen(t, sink.Options{Fail: 3, CRC: true})
	db := open(t, s, "me", "")
	for i := range 12 {
		var err error
		if i%2 == 0 {
			_, err = db.Exec("INSERT INTO t VALUES (1)")
		} else {
			_, err = load(t, db, "INTO TABLE t", strings.NewReader("1\n"))
		}
		if i%3 == 2 {
			refused(t, err, 1205)
		} else {
			require.NoError(t, err, i)
		}
		affected(t, db, "SET a = 1") // is not counted
	}
	assert.Equal(t, []int64{4, 8}, []int64{s.Stats().Failed, s.Stats().Rows})
	assert.Len(t, s.Stats().CRC, 8)
}

func TestOversized(t *testing.T) {
	s := listen(t, sink.Options{})
	c, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write(append([]byte{36, 0, 0, 1, 0, 0x82, 8, 0}, make([]byte, 32)...))
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
	answer, said := make([]byte, 1000), ""
	for n := 0; err == nil; n, err = c.Read(answer) {
		said += string(answer[:n])
	}
	assert.Contains(t, said, "max_allowed_packet")
	assert.Zero(t, s.Stats().Statements)
}

// refused asserts that the sink answered with an error of this number.
func refused(t *testing.T, err error, number uint16, what ...any) {
	t.Helper()
	var said *driver.MySQLError
	require.ErrorAs(t, err, &said, what...)
	require.Equal(t, number, said.Number, what...)
}
