package mysql

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// allTypes has every type, a derived text among them.
func allTypes() rows.Schema {
	return rows.Schema{
		Dataset: "everything",
		Columns: []rows.Column{
			{Name: "id", Type: rows.Int64, Derived: true},
			{Name: "code", Type: rows.Text, MaxBytes: 4, Derived: true, Plain: true},
			{Name: "note", Type: rows.Text, MaxBytes: 100},
			{Name: "blob", Type: rows.Bytes, MaxBytes: 100},
			{Name: "d", Type: rows.Date},
			{Name: "t", Type: rows.Timestamp, Derived: true},
		},
		Number: []rows.Term{{Column: 0, Times: 1}},
	}
}

func days(text string) int64 {
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		panic(err)
	}
	return day.Unix() / 86400
}

func micros(text string) int64 {
	at, err := time.Parse(time.DateTime, text)
	if err != nil {
		panic(err)
	}
	return at.UnixMicro()
}

// Dates arrive and come back as they were sent, wherever the server believes to be.
func TestDates(t *testing.T) {
	const text = "0\tc000\té\tx\t0001-01-01\t0001-01-01 00:00:00.000000\n" +
		"1\tc001\t\t\t1969-12-31\t1969-12-31 23:59:59.999999\n" +
		"2\tc002\tn\ty\t9999-12-31\t9999-12-31 23:59:59.999999\n" +
		"3\tc003\tn\ty\t2026-03-29\t2026-03-29 02:30:00.000001\n" // a time that Berlin does not have
	want := map[int64][]any{
		0: {int64(0), []byte("c000"), []byte("é"), []byte("x"), days("0001-01-01"), micros("0001-01-01 00:00:00")},
		1: {int64(1), []byte("c001"), []byte(""), []byte(""), int64(-1), int64(-1)},
		2: {int64(2), []byte("c002"), []byte("n"), []byte("y"), days("9999-12-31"), micros("9999-12-31 23:59:59.999999")},
		3: {int64(3), []byte("c003"), []byte("n"), []byte("y"), days("2026-03-29"), micros("2026-03-29 02:30:00.000001")},
	}
	eachServer(t, func(t *testing.T, s *testServer) {
		target, contract := s.table("t"), contractOf(loadData, 4)
		target.Settings = []loader.Setting{{Name: "time_zone", Value: "-11:30"}}
		db := s.open(t, target, loader.Preparation{Run: "test", Schema: allTypes(), Contract: contract, Create: loader.CreateIfMissing})
		ack, err := db.testSession(t, contract).Load(t.Context(), textBatch(id(0), 4, text))
		require.NoError(t, err)
		assert.EqualValues(t, 4, ack.Rows)

		found := 0
		require.NoError(t, db.Fetch(t.Context(), []int64{0, 1, 2, 3, 4}, func(number int64, values []any) error {
			found++
			assert.Equal(t, want[number], values)
			return nil
		}))
		assert.Equal(t, 4, found)
		require.NoError(t, db.Count(t.Context(), loader.Grouping{KeyRange: loader.KeyRange{Last: 3}, Size: 4, Lengths: true}, func(b loader.Bucket) error {
			assert.Equal(t, []int64{16, 4, 3}, b.Lengths, "of the texts and bytes")
			return nil
		}))

		_, err = db.Prepare(t.Context(), loader.Preparation{Run: "test", Schema: allTypes(), Contract: contract, Create: loader.CreateNever})
		require.NoError(t, err, "the table that was made fits")
		for _, wrong := range []string{"MODIFY t DATETIME(3) NOT NULL", "MODIFY t TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)", "MODIFY d DATETIME NOT NULL"} {
			s.exec(t, "DELETE FROM "+db.name.quoted())
			s.exec(t, "ALTER TABLE "+db.name.quoted()+" "+wrong)
			_, err = db.Prepare(t.Context(), loader.Preparation{Run: "test", Schema: allTypes(), Contract: contract, Create: loader.CreateNever})
			assert.ErrorContains(t, err, "want DATE", wrong)
		}
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
