package encode_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/pkg/batch"
)

func FuzzTSVInMariaDB(f *testing.F)    { fuzzMySQL(f, "TERAPUSH_TEST_MARIADB", batch.TSV) }
func FuzzTSVInMySQL(f *testing.F)      { fuzzMySQL(f, "TERAPUSH_TEST_MYSQL", batch.TSV) }
func FuzzValuesInMariaDB(f *testing.F) { fuzzMySQL(f, "TERAPUSH_TEST_MARIADB", batch.Values) }
func FuzzValuesInMySQL(f *testing.F)   { fuzzMySQL(f, "TERAPUSH_TEST_MYSQL", batch.Values) }

func FuzzCSVInPostgres(f *testing.F)      { fuzzPostgres(f, batch.CSV) }
func FuzzPGBinaryInPostgres(f *testing.F) { fuzzPostgres(f, batch.PGBinary) }
func FuzzPGTextInPostgres(f *testing.F)   { fuzzPostgres(f, batch.PGText) }
func FuzzPGValuesInPostgres(f *testing.F) { fuzzPostgres(f, batch.PGValues) }

// fuzzMySQL loads each input into a temporary table, reads it back and rolls back.
func fuzzMySQL(f *testing.F, variable string, format batch.Format) {
	address, err := url.Parse(backendtest.Server(f, variable))
	require.NoError(f, err)
	config := mysql.NewConfig()
	config.Net, config.Addr, config.DBName = "tcp", address.Host, strings.TrimPrefix(address.Path, "/")
	config.User = address.User.Username()
	config.Passwd, _ = address.User.Password()
	config.ParseTime = true
	connector, err := mysql.NewConnector(config)
	require.NoError(f, err)
	db := sql.OpenDB(connector)
	f.Cleanup(func() { _ = db.Close() })
	conn, err := db.Conn(f.Context())
	require.NoError(f, err)
	f.Cleanup(func() { _ = conn.Close() })
	_, err = conn.ExecContext(f.Context(), `CREATE TEMPORARY TABLE records (id BIGINT PRIMARY KEY, n BIGINT,
		words LONGTEXT CHARACTER SET utf8mb4, day DATE, at DATETIME(6), sum DECIMAL(18,5), raw LONGBLOB) ENGINE=InnoDB`)
	require.NoError(f, err)

	seed(f)
	f.Fuzz(func(t *testing.T, n int64, words string, raw []byte) {
		if !utf8.ValidString(words) {
			t.Skip("not text")
		}
		records := fuzzed(n, words, raw)
		body := encoded(t, format, records)
		tx, err := conn.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		defer func() { require.NoError(t, tx.Rollback()) }()

		statement := "INSERT INTO records VALUES " + string(body)
		if format == batch.TSV {
			mysql.RegisterReaderHandler(t.Name(), func() io.Reader { return bytes.NewReader(body) })
			defer mysql.DeregisterReaderHandler(t.Name())
			statement = fmt.Sprintf("LOAD DATA LOCAL INFILE 'Reader::%s' INTO TABLE records CHARACTER SET binary", t.Name())
		}
		result, err := tx.ExecContext(t.Context(), statement)
		require.NoError(t, err)
		affected, err := result.RowsAffected()
		require.NoError(t, err)
		require.EqualValues(t, len(records), affected)

		found, err := tx.QueryContext(t.Context(), "SELECT id, n, words, day, at, sum, raw FROM records ORDER BY id")
		require.NoError(t, err)
		defer func() { require.NoError(t, found.Close()) }()
		for _, want := range records {
			var got record
			var day, at time.Time
			var sum string
			require.True(t, found.Next())
			require.NoError(t, found.Scan(&got.id, &got.n, &got.words, &day, &at, &sum, &got.raw))
			got.day, got.at, got.sum = day.Unix()/86_400, at.UnixMicro(), sumOf(t, sum)
			require.Equal(t, normal(want), normal(got))
		}
		require.False(t, found.Next())
	})
}

// loadPostgres sends a body in the way its format is for; the transaction is the caller's.
func loadPostgres(ctx context.Context, conn *pgx.Conn, format batch.Format, body []byte) (rows int64, err error) {
	copyWith := func(options string) (int64, error) {
		tag, err := conn.PgConn().CopyFrom(ctx, bytes.NewReader(body), "COPY records "+options)
		return tag.RowsAffected(), err
	}
	switch format {
	case batch.CSV:
		return copyWith("(id, n, words, day, at, sum) FROM STDIN (FORMAT csv)")
	case batch.PGBinary:
		return copyWith("FROM STDIN (FORMAT binary)")
	case batch.PGText:
		return copyWith("FROM STDIN")
	default:
		results, err := conn.PgConn().Exec(ctx, "INSERT INTO records VALUES "+string(body)).ReadAll()
		if err != nil {
			return 0, err
		}
		return results[0].CommandTag.RowsAffected(), nil
	}
}

func fuzzPostgres(f *testing.F, format batch.Format) {
	conn, err := pgx.Connect(f.Context(), backendtest.Server(f, "TERAPUSH_TEST_POSTGRES"))
	require.NoError(f, err)
	f.Cleanup(func() { _ = conn.Close(context.Background()) })
	_, err = conn.Exec(f.Context(), `CREATE TEMPORARY TABLE records (id int8 PRIMARY KEY, n int8, words text, day date,
		at timestamp, sum numeric(18,5), raw bytea)`)
	require.NoError(f, err)
	seed(f)
	f.Fuzz(func(t *testing.T, n int64, words string, raw []byte) {
		if !utf8.ValidString(words) {
			t.Skip("not text")
		}
		records := fuzzed(n, words, raw)
		for i := range records { // which the server refuses, so that the encoders need not
			records[i].words = strings.ReplaceAll(records[i].words, "\x00", "0")
		}
		body := encoded(t, format, records)
		tx, err := conn.Begin(t.Context())
		require.NoError(t, err)
		defer func() { require.NoError(t, tx.Rollback(t.Context())) }()
		loaded, err := loadPostgres(t.Context(), conn, format, body)
		require.NoError(t, err)
		require.EqualValues(t, len(records), loaded)

		for _, want := range records {
			if format == batch.CSV {
				want.raw = nil
			}
			var got record
			var day, at time.Time
			var sum pgtype.Numeric
			require.NoError(t, tx.QueryRow(t.Context(), "SELECT id, n, words, day, at, sum, raw FROM records WHERE id = $1", want.id).
				Scan(&got.id, &got.n, &got.words, &day, &at, &sum, &got.raw))
			got.day, got.at, got.sum = day.Unix()/86_400, at.UnixMicro(), numericOf(t, sum)
			require.Equal(t, normal(want), normal(got))
		}
	})
}
