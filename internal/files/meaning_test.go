package files_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/files"
	"github.com/terapush/terapush/pkg/batch"
)

// meaning is a file of testdata/meanings.json. What it says is true on every database: a cell is a text or null, and
// refused is an error of the source or of the server.
type meaning struct {
	Says      string
	Format    files.Format
	Delimiter string
	Quote     string
	Escape    string
	Null      *string
	File      string
	Rows      [][]*string
	Width     int // of the table, if there are no rows
	Refused   bool
}

func meanings(t *testing.T) []meaning {
	text, err := os.ReadFile("testdata/meanings.json")
	require.NoError(t, err)
	var all []meaning
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	require.NoError(t, in.Decode(&all))
	return all
}

// spec returns how the file is read, with its defaults.
func (m meaning) spec() files.Spec {
	s := files.NewSpec(m.Format)
	for _, set := range []struct {
		to    *string
		value string
	}{{&s.Delimiter, m.Delimiter}, {&s.Quote, m.Quote}, {&s.Escape, m.Escape}} {
		if set.value != "" {
			*set.to = set.value
		}
	}
	if m.Null != nil {
		s.Null = *m.Null
	}
	return s
}

func (m meaning) width() int {
	if len(m.Rows) > 0 {
		return len(m.Rows[0])
	}
	return max(1, m.Width)
}

// database loads batches into a new table of texts, and returns its rows in their order.
type database func(t *testing.T, columns []string, s files.Spec, batches [][]byte) ([][]*string, error)

// OceanBase is not among them: its LOAD DATA takes every empty field for NULL, fills short lines without a word, and commits
// by itself.
func TestOneMeaning(t *testing.T) {
	all := meanings(t)
	for name, open := range map[string]func(t *testing.T) database{
		"PostgreSQL": postgres,
		"MariaDB":    func(t *testing.T) database { return mySQL(t, "TERAPUSH_TEST_MARIADB") },
		"MySQL":      func(t *testing.T) database { return mySQL(t, "TERAPUSH_TEST_MYSQL") },
		"TiDB":       func(t *testing.T) database { return mySQL(t, "TERAPUSH_TEST_TIDB") },
	} {
		t.Run(name, func(t *testing.T) {
			load := open(t)
			for _, m := range all {
				c := files.Config{Wire: batch.TSV}
				switch {
				case name == "PostgreSQL" && m.Format == files.CSV:
					c.Wire = batch.CSV
				case name == "PostgreSQL":
					c.Wire = batch.PGText
				}
				for _, size := range []int64{1, 1000} { // a record a batch, or all in one
					t.Run(fmt.Sprint(m.Says, "/", size), func(t *testing.T) { m.check(t, load, c, size) })
				}
			}
		})
	}
}

func (m meaning) check(t *testing.T, load database, c files.Config, batchBytes int64) {
	batches, err := m.encoded(t, c, batchBytes)
	var got [][]*string
	if err == nil {
		columns := []string{"a", "b"}[:m.width()]
		got, err = load(t, columns, m.spec(), batches)
	}
	if m.Refused {
		require.Error(t, err)
		t.Log(err)
		return
	}
	require.NoError(t, err)
	require.Equal(t, m.Rows, got)
}

// encoded returns what the batches of the file are sent as.
func (m meaning) encoded(t *testing.T, c files.Config, batchBytes int64) (all [][]byte, err error) {
	c.Spec, c.Fields, c.BatchBytes = m.spec(), m.width(), batchBytes
	c.Buffers, c.Workers, c.BufferBytes, c.Parallel = 2, 1, 1<<16, 1
	c.Spec.Files, err = files.Find([]string{write(t, "file", m.File)})
	require.NoError(t, err)
	require.NoError(t, c.Spec.Check())
	err = drain(open(t, c), 0, func(b *batch.Batch) { all = append(all, bytes.Clone(b.Encoded)) })
	return all, err
}

func postgres(t *testing.T) database {
	conn, err := pgx.Connect(t.Context(), backendtest.Server(t, "TERAPUSH_TEST_POSTGRES"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })

	return func(t *testing.T, columns []string, s files.Spec, batches [][]byte) ([][]*string, error) {
		tx, err := conn.Begin(t.Context())
		require.NoError(t, err)
		defer func() { require.NoError(t, tx.Rollback(t.Context())) }()
		_, err = tx.Exec(t.Context(), "CREATE TEMPORARY TABLE meant (id serial, "+strings.Join(columns, " text, ")+" text)")
		require.NoError(t, err)

		options := fmt.Sprintf("FORMAT csv, DELIMITER %s, NULL %s, QUOTE %s, ESCAPE %s",
			literal(s.Delimiter), literal(s.Null), literal(s.Quote), literal(s.Escape))
		if s.Format != files.CSV {
			options = fmt.Sprintf("DELIMITER %s, NULL %s", literal(s.Delimiter), literal(s.Null))
		}
		for _, b := range batches {
			_, err := conn.PgConn().CopyFrom(t.Context(), bytes.NewReader(b),
				fmt.Sprintf("COPY meant (%s) FROM STDIN WITH (%s)", strings.Join(columns, ", "), options))
			if err != nil {
				return nil, err
			}
		}
		rows, err := tx.Query(t.Context(), "SELECT "+strings.Join(columns, ", ")+" FROM meant ORDER BY id")
		require.NoError(t, err)
		return pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]*string, error) {
			cells := make([]*string, len(columns))
			return cells, row.Scan(places(cells)...)
		})
	}
}

func literal(text string) string {
	return "E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(text) + "'"
}

func places(cells []*string) []any {
	to := make([]any, len(cells))
	for i := range cells {
		to[i] = &cells[i]
	}
	return to
}

func mySQL(t *testing.T, variable string) database {
	address, err := url.Parse(backendtest.Server(t, variable))
	require.NoError(t, err)
	config := mysql.NewConfig()
	config.Net, config.Addr, config.DBName = "tcp", address.Host, strings.TrimPrefix(address.Path, "/")
	config.User = address.User.Username()
	config.Passwd, _ = address.User.Password()
	connector, err := mysql.NewConnector(config)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })

	return func(t *testing.T, columns []string, _ files.Spec, batches [][]byte) ([][]*string, error) {
		_, err := conn.ExecContext(t.Context(), "CREATE TEMPORARY TABLE meant (id INT AUTO_INCREMENT PRIMARY KEY, "+
			strings.Join(columns, " LONGTEXT, ")+" LONGTEXT) CHARACTER SET utf8mb4")
		require.NoError(t, err)
		defer func() { _, _ = conn.ExecContext(context.Background(), "DROP TEMPORARY TABLE meant") }()

		for _, b := range batches {
			mysql.RegisterReaderHandler("meant", func() io.Reader { return bytes.NewReader(b) })
			_, err := conn.ExecContext(t.Context(), fmt.Sprintf("LOAD DATA LOCAL INFILE 'Reader::meant' INTO TABLE meant "+
				"CHARACTER SET utf8mb4 (%s)", strings.Join(columns, ", ")))
			mysql.DeregisterReaderHandler("meant")
			if err != nil {
				return nil, err
			}
			var level, code, warning string
			switch err := conn.QueryRowContext(t.Context(), "SHOW WARNINGS").Scan(&level, &code, &warning); {
			case err == nil:
				return nil, errors.New(warning)
			case !errors.Is(err, sql.ErrNoRows):
				return nil, err
			}
		}
		rows, err := conn.QueryContext(t.Context(), "SELECT "+strings.Join(columns, ", ")+" FROM meant ORDER BY id")
		require.NoError(t, err)
		defer func() { require.NoError(t, rows.Close()) }()
		var all [][]*string
		for rows.Next() {
			cells := make([]*string, len(columns))
			require.NoError(t, rows.Scan(places(cells)...))
			all = append(all, cells)
		}
		return all, rows.Err()
	}
}
