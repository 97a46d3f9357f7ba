package mysql

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// A table is emptied and stays as it is; what it would cost to lose is checked before.
func TestTruncate(t *testing.T) {
	eachServer(t, func(t *testing.T, s *testServer) {
		p := preparation(documents(t, 20), contractOf(loadData, 2))
		p.Create = loader.CreateTruncate
		never := p
		never.Create = loader.CreateNever
		prepare := func(p loader.Preparation) (loader.Table, error) {
			l, err := New().Open(t.Context(), s.table("t"), s.deps)
			require.NoError(t, err)
			defer func() { _ = l.Close() }()
			return l.Prepare(t.Context(), p)
		}
		table, claims := tableName{s.target.Database, "t"}.quoted(), tableName{s.target.Database, sqlload.ClaimsTable}.quoted()

		made, err := prepare(p)
		require.NoError(t, err)
		assert.True(t, made.Created, "a missing one is made")

		s.exec(t, "ALTER TABLE "+table+" ADD KEY mine (document_id)")
		s.exec(t, "INSERT INTO "+table+" VALUES (1, 'x')")
		s.exec(t, "INSERT INTO "+claims+" VALUES ('another', 0, 0, 1, 0)")
		emptied, err := prepare(p)
		require.NoError(t, err)
		assert.False(t, emptied.Created)
		assert.False(t, emptied.HasRows)
		assert.NotEqual(t, made.Identity, emptied.Identity)
		assert.Zero(t, s.rowsIn(t, "t"))
		assert.EqualValues(t, 1, s.rowsIn(t, sqlload.ClaimsTable), "as after recreate")
		assert.EqualValues(t, 1, s.count(t, "SELECT COUNT(*) FROM information_schema.statistics WHERE index_name = 'mine' AND table_schema = ?", s.target.Database))

		again, err := prepare(never)
		require.NoError(t, err)
		assert.Equal(t, emptied.Identity, again.Identity, "the one that a resume will find")

		s.exec(t, "INSERT INTO "+table+" VALUES (1, 'x')")
		s.exec(t, "ALTER TABLE "+table+" COMMENT = ''")
		_, err = prepare(p)
		require.ErrorContains(t, err, "was not made by terapush")
		p.MayDrop = s.target.Database + ".t"
		s.exec(t, "ALTER TABLE "+claims+" DROP PRIMARY KEY")
		_, err = prepare(p)
		require.ErrorContains(t, err, "no primary or unique key is (run, batch)")
		s.exec(t, "DROP TABLE "+claims)
		s.exec(t, "ALTER TABLE "+table+" MODIFY document_id INT")
		_, err = prepare(p)
		require.ErrorContains(t, err, "column document_id is int")
		assert.EqualValues(t, 1, s.rowsIn(t, "t"), "refused before anything was lost")
		s.exec(t, "ALTER TABLE "+table+" MODIFY document_id BIGINT")
		_, err = prepare(p)
		require.NoError(t, err)
		assert.Zero(t, s.rowsIn(t, "t"))
	})
}

// Microseconds are exact wherever a timestamp may be, in the years far from 1970, too.
func TestMicroseconds(t *testing.T) {
	eachServer(t, func(t *testing.T, s *testServer) {
		const first = -62_135_596_800_000_000 // 0001-01-01 00:00:00
		schema := rows.Schema{
			Columns: []rows.Column{{Name: "at", Type: rows.Timestamp, Derived: true}},
			Number:  []rows.Term{{Minus: first, Times: 1}},
		}
		db := s.open(t, s.table("t"), loader.Preparation{
			Run: "test", Schema: schema, Contract: contractOf(loadData, 2), Create: loader.CreateIfMissing, PrimaryKey: true,
		})
		last := schema.MaxNumber()
		numbers := []int64{0, 1, 999_999, -first - 1, -first, 64_386_966_896_789_013, last - 1, last}
		for _, n := range numbers {
			s.exec(t, "INSERT INTO "+db.name.quoted()+" VALUES ('"+time.UnixMicro(n+first).UTC().Format("2006-01-02 15:04:05.000000")+"')")
		}
		var found []int64
		require.NoError(t, db.Fetch(t.Context(), numbers, func(n int64, values []any) error {
			found = append(found, n)
			assert.Equal(t, n+first, values[0])
			return nil
		}))
		assert.ElementsMatch(t, numbers, found)
		n, err := db.Distinct(t.Context(), loader.KeyRange{Last: last})
		require.NoError(t, err)
		assert.EqualValues(t, len(numbers), n)
	})
}
