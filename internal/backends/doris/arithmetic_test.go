package doris

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
	"github.com/terapush/terapush/pkg/sqlload"
)

// likeDoris is a connection to MySQL or MariaDB that takes Doris' statements. What those servers lack is replaced:
// LARGEINT by a decimal, BIGINT as a type of CAST by SIGNED, MICROSECONDS_DIFF(a, b) by TIMESTAMPDIFF(MICROSECOND, b,
// a).
type likeDoris struct{ sqlload.SQL }

var difference = regexp.MustCompile("MICROSECONDS_DIFF\\((`\\w+`), ('[^']+')\\)")

func (c likeDoris) Query(ctx context.Context, query string, each func(row [][]byte) error) error {
	query = strings.NewReplacer("AS LARGEINT)", "AS DECIMAL(38, 0))", "AS BIGINT)", "AS SIGNED)").Replace(query)
	return c.SQL.Query(ctx, difference.ReplaceAllString(query, "TIMESTAMPDIFF(MICROSECOND, $2, $1)"), each)
}

// proof is a table that is only asked.
type proof struct {
	sqlload.Catalog
	statements sqlload.Statements
}

func (p proof) Plan(loader.Preparation) sqlload.Statements { return p.statements }

func TestArithmetic(t *testing.T) {
	for name, variable := range map[string]string{"mariadb": "TERAPUSH_TEST_MARIADB", "mysql": "TERAPUSH_TEST_MYSQL"} {
		t.Run(name, func(t *testing.T) {
			target, err := loader.ParseTarget(backendtest.Server(t, variable))
			require.NoError(t, err)
			target.Database, target.TLS = "", loader.TLSOff
			deps := loader.Deps{Dial: new(netio.Dialer).DialContext, TLS: netio.Trust{}.TLS}
			config, err := mysqlconn.Config(target, deps, "tcp", target.Address(0, "3306"))
			require.NoError(t, err)
			pool := sql.OpenDB(mysqlconn.Connector{Hosts: []*mysql.Config{config}})
			t.Cleanup(func() { _ = pool.Close() })
			exec := func(statement string) {
				_, err := pool.ExecContext(context.Background(), statement)
				require.NoError(t, err)
			}
			schema := fmt.Sprintf("doris%x", time.Now().UnixNano())
			exec("CREATE DATABASE " + schema)
			t.Cleanup(func() { exec("DROP DATABASE " + schema) })
			backendtest.Arithmetic(t, batch.Values, func(t *testing.T, d dataset.Dataset, rows ...*batch.Batch) backendtest.Proven {
				s := newStatements(tableName{schema, d.Schema().Dataset}, d.Schema())
				var columns []string
				for _, c := range s.Schema.Columns {
					columns = append(columns, quote(c.Name)+" "+strings.Replace(s.SQL(c), "STRING", "LONGTEXT", 1))
				}
				exec("CREATE TABLE " + s.Table + " (" + strings.Join(columns, ", ") + ") CHARACTER SET utf8mb4")
				for _, b := range rows {
					exec("INSERT INTO " + s.Table + " VALUES " + string(b.Encoded))
				}
				table := &sqlload.Table{
					Catalog: proof{statements: s.Statements}, Failed: func(_ string, err error) error { return err },
					Connect: func(ctx context.Context) (sqlload.Conn, error) {
						c, err := pool.Conn(ctx)
						return likeDoris{sqlload.SQL{Conn: c}}, err
					},
				}
				_, err := table.Prepare(t.Context(), loader.Preparation{Silent: true, Schema: s.Schema})
				require.NoError(t, err)
				return table
			}, "native")
		})
	}
}
