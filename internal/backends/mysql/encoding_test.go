package mysql

import (
	"fmt"
	"log/slog"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// The server's first word to every session without SUPER. Texts and names must not be encoded twice, neither on their way in
// nor on that of the proof.
func TestInitConnectInAnotherEncoding(t *testing.T) {
	eachServer(t, func(t *testing.T, s *testServer) {
		s.exec(t, "SET GLOBAL init_connect = 'SET NAMES latin1'")
		t.Cleanup(func() { s.exec(t, "SET GLOBAL init_connect = ''") })
		to, _ := s.account(t, "x", "ALL")
		all, err := endpoints(to, s.deps)
		require.NoError(t, err)
		c, err := connector(all[0].config, setup{}, slog.Default()).Dial(t.Context())
		require.NoError(t, err)
		client, err := value(t.Context(), c, "SELECT @@character_set_client")
		require.NoError(t, err)
		assert.Equal(t, "utf8mb4", client)
		require.NoError(t, c.Close())

		d := sourceOf(t, "people")
		row := backendtest.Row(d, 0)
		for i, column := range d.Schema().Columns {
			if column.Name == "bank" {
				require.Greater(t, len(row[i].([]byte)), utf8.RuneCount(row[i].([]byte)), "it is not ASCII alone")
			}
		}
		for number, method := range []string{methodInsert, methodLoadData} {
			to.Method, to.Table = method, "übung "+method
			contract := contractOf(method, 20)
			db := s.open(t, to, preparation(d, contract))
			b := batchOf(t, d, contract.Format, id(int64(number)), 0, 20)
			_, err := db.testSession(t, contract).Load(t.Context(), b)
			require.NoError(t, err)
			backendtest.Resolves(t, db, loader.RefOf(b), loader.Yes)

			for i, column := range d.Schema().Columns {
				if column.Type != rows.Text {
					continue
				}
				var stored string // by a session with SUPER, where init_connect does not run
				query := fmt.Sprintf("SELECT HEX(%s) FROM %s WHERE id = %d", quote(column.Name), tableName{s.target.Database, to.Table}.quoted(), row[0])
				require.NoError(t, s.db.QueryRowContext(t.Context(), query).Scan(&stored))
				assert.Equal(t, fmt.Sprintf("%X", row[i]), stored, column.Name)
			}
			fetched := 0
			require.NoError(t, db.Fetch(t.Context(), []int64{0}, func(_ int64, values []any) error {
				fetched++
				assert.Equal(t, row, values)
				return nil
			}))
			assert.Equal(t, 1, fetched)
		}
	})
}
