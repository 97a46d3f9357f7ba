package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// A decimal has to have the very digits, and a key of two columns both of them.
func TestPrepareChecksDecimalsAndKeys(t *testing.T) {
	to := target(t)
	l := open(t, to)
	p := preparation(t, loader.CreateRecreate)
	p.Schema, p.PrimaryKey = sourceOf(t, "lineitem", batch.PGBinary).schema(), true
	_, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	p.Create = loader.CreateNever
	for change, want := range map[string]string{
		"ALTER l_tax TYPE numeric(15,3)":                                        "l_tax is numeric(15,3)",
		"ALTER l_tax TYPE numeric(16,2)":                                        "l_tax is numeric(16,2)",
		"ALTER l_tax TYPE numeric":                                              "l_tax is numeric,",
		"ALTER l_tax TYPE double precision":                                     "l_tax is double precision",
		"DROP CONSTRAINT documents_pkey":                                        "the table's is not (l_orderkey, l_linenumber)",
		"DROP CONSTRAINT documents_pkey, ADD PRIMARY KEY (l_orderkey)":          "the table's is not (l_orderkey, l_linenumber)",
		"DROP CONSTRAINT documents_pkey, ADD UNIQUE (l_orderkey, l_linenumber)": "the table's is not (l_orderkey, l_linenumber)",
	} {
		_, err := l.Prepare(t.Context(), p)
		require.NoError(t, err)
		sql(t, "ALTER TABLE "+to.Table+" "+change)
		_, err = l.Prepare(t.Context(), p)
		assert.ErrorContains(t, err, want)
		p.Create = loader.CreateRecreate
		_, err = l.Prepare(t.Context(), p)
		require.NoError(t, err)
		p.Create = loader.CreateNever
	}
}

// Microseconds are exact wherever a timestamp may be, in the years far from 1970, too.
func TestMicroseconds(t *testing.T) {
	to := target(t)
	p := preparation(t, loader.CreateIfMissing)
	p.Schema = rows.Schema{
		Columns: []rows.Column{{Name: "at", Type: rows.Timestamp, Derived: true}},
		Number:  []rows.Term{{Minus: -62_135_596_800_000_000, Times: 1}}, // row 0 is 0001-01-01 00:00:00
	}
	l := open(t, to)
	_, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	numbers := []int64{0, 1, 999_999, 62_135_596_799_999_999, 62_135_596_800_000_000, 64_386_966_896_789_013, p.Schema.MaxNumber() - 1, p.Schema.MaxNumber()}
	for _, n := range numbers {
		at := time.UnixMicro(n - 62_135_596_800_000_000).UTC()
		sql(t, "INSERT INTO "+to.Table+" VALUES ('"+at.Format("2006-01-02 15:04:05.000000")+"')")
	}
	var found []int64
	err = l.(loader.Fetcher).Fetch(t.Context(), numbers, func(n int64, values []any) error {
		found = append(found, n)
		assert.Equal(t, n-62_135_596_800_000_000, values[0])
		return nil
	})
	require.NoError(t, err)
	assert.ElementsMatch(t, numbers, found)
	n, err := l.(loader.Counter).Distinct(t.Context(), loader.KeyRange{Last: p.Schema.MaxNumber()})
	require.NoError(t, err)
	assert.EqualValues(t, len(numbers), n)
}
