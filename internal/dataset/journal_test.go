package dataset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/rows"
)

func journalOf(t testing.TB, seed uint64) Dataset {
	t.Helper()
	d, err := New("journal", Options{Seed: seed})
	require.NoError(t, err)
	return d
}

// TestJournalGolden pins the bytes: a change here makes every recorded run unverifiable. The file comes from a program
// of its own, 45 lines of Python with whole numbers of any size and its library's calendar. Its lines hold seed and row
// number, then the columns.
func TestJournalGolden(t *testing.T) {
	golden, err := os.ReadFile("testdata/journal.golden")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(golden), "\n"), "\n")
	require.Len(t, lines, 6)
	for _, line := range lines {
		want := strings.Split(line, "\t")
		seed, err := strconv.ParseUint(want[0], 10, 64)
		require.NoError(t, err)
		row, err := strconv.ParseInt(want[1], 10, 64)
		require.NoError(t, err)
		var got []string
		for _, v := range rowOf(journalOf(t, seed), row) {
			got = append(got, fmt.Sprint(v))
		}
		assert.Equal(t, want[2:], got, "seed %d row %d", seed, row)
	}
	assert.Equal(t, "00000001099511640121", rowOf(journalOf(t, 5), 1<<40+12_345)[journalID])
}

func TestJournalSchema(t *testing.T) {
	for _, seed := range []uint64{0, math.MaxUint64} {
		s := journalOf(t, seed).Schema()
		assert.Equal(t, rows.Schema{
			Dataset: "journal",
			Columns: []rows.Column{
				{Name: "id", Type: rows.Text, MaxBytes: 20, Declared: 40, Derived: true, Plain: true},
				{Name: "run_id", Type: rows.Text, MaxBytes: 25, Declared: 40, Plain: true},
				{Name: "scenario", Type: rows.Text, MaxBytes: 8, Declared: 20, Plain: true},
				{Name: "ts", Type: rows.Timestamp, Derived: true},
				{Name: "payload", Type: rows.Text, MaxBytes: 1299, Declared: 4000, JSON: true},
			},
			Number: []rows.Term{{Column: 0, Minus: 0, Times: 1}},
		}, s)
		assert.EqualValues(t, 1360, s.MaxRowBytes())
		assert.True(t, s.TextKey())
	}
}

// fields lists the document's fields in their order, as encoding/json finds them. Numbers keep their digits.
func fields(t *testing.T, document []byte) (names, texts []string) {
	t.Helper()
	in := json.NewDecoder(bytes.NewReader(document))
	in.UseNumber()
	next := func() json.Token {
		token, err := in.Token()
		require.NoError(t, err, "%s", document)
		return token
	}
	require.Equal(t, json.Delim('{'), next())
	for in.More() {
		names = append(names, next().(string))
		switch v := next().(type) {
		case string:
			texts = append(texts, v)
		case json.Number:
			texts = append(texts, v.String())
		default:
			t.Fatalf("%s is a %T", names[len(names)-1], v)
		}
	}
	require.Equal(t, json.Delim('}'), next())
	return names, texts
}

// TestJournalKeepsThePromisesOfItsSchema: encoders and databases rely on them without looking.
func TestJournalKeepsThePromisesOfItsSchema(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	seen := map[string]bool{}
	plain := regexp.MustCompile(`^[0-9a-z_]+$`)
	for range 1000 {
		d, row := journalOf(t, random.Uint64()>>random.IntN(64)), random.Int64()>>random.IntN(63)
		b := rows.NewBlock(d.Schema())
		Row(b, d, 0, row, 0)
		require.Equal(t, fmt.Sprintf("%020d", row), string(b.Columns[journalID].Value(0)))
		at := time.UnixMicro(b.Columns[journalTime].Ints[0]).UTC()
		require.True(t, at.Year() >= 2020 && at.Year() < 2030, "%s", at)
		for i, c := range d.Schema().Columns {
			if c.Plain {
				require.Len(t, b.Columns[i].Value(0), c.MaxBytes, "%s", c.Name)
				require.Regexp(t, plain, string(b.Columns[i].Value(0)))
			}
		}
		document := b.Columns[journalPayload].Value(0)
		require.Len(t, document, 1299)
		require.True(t, json.Valid(document))
		require.False(t, seen[string(document)])
		seen[string(document)] = true
	}
}

// TestJournalLinesAreInOrder: every field has the shape that its name says, and they agree with each other.
func TestJournalLinesAreInOrder(t *testing.T) {
	shapes := []struct{ name, shape string }{
		{"journal_header_source_code", `[A-Z]{3}`},
		{"journal_external_reference", `[0-9A-Z]{20}`},
		{"journal_header_description", `[a-z]{200}`},
		{"period_code", `20\d\d-\d\d`},
		{"period_date", `20\d\d-\d\d-01`},
		{"currency_code", `[A-Z]{3}`},
		{"journal_category_code", `[A-Z]{3}`},
		{"journal_posted_date", `20\d\d-\d\d-\d\d`},
		{"journal_created_date", `20\d\d-\d\d-\d\d`},
		{"journal_created_timestamp", `20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}`},
		{"journal_actual_flag", `[YN]`},
		{"journal_status", `[PU]`},
		{"journal_header_name", `[a-z]{80}`},
		{"reversal_flag", `[YN]`},
		{"reversal_journal_header_source_code", `[A-Z]{3}`},
		{"journal_line_number", `[1-9]\d{3}`},
		{"account_code", `A\d{3}`},
		{"organization_code", `R\d{3}`},
		{"project_code", `P\d{3}`},
		{"journal_line_type", `CR|DR`},
		{"entered_debit_amount", `0\.00|[1-9]\d{4}\.\d\d`},
		{"entered_credit_amount", `0\.00|[1-9]\d{4}\.\d\d`},
		{"accounted_debit_amount", `0\.00|[1-9]\d{4}\.\d\d`},
		{"accounted_credit_amount", `0\.00|[1-9]\d{4}\.\d\d`},
		{"journal_line_description", `[a-z]{253}`},
	}
	seen := make([]map[string]int, len(shapes))
	var compiled []*regexp.Regexp
	for i, s := range shapes {
		seen[i] = map[string]int{}
		compiled = append(compiled, regexp.MustCompile("^("+s.shape+")$"))
	}
	d := journalOf(t, 9)
	b := rows.NewBlock(d.Schema())
	const n = 4000
	d.Fill(b, 1<<33, n)
	for row := range n {
		names, texts := fields(t, b.Columns[journalPayload].Value(row))
		require.Len(t, names, len(shapes))
		for i, s := range shapes {
			require.Equal(t, s.name, names[i])
			require.True(t, compiled[i].MatchString(texts[i]), "%s is %q", s.name, texts[i])
			seen[i][texts[i]]++
		}
		created, err := time.Parse(time.DateOnly, texts[fieldCreated])
		require.NoError(t, err)
		at, err := time.Parse("2006-01-02T15:04:05.000000", texts[fieldCreatedTime])
		require.NoError(t, err)
		require.Equal(t, created, at.Truncate(24*time.Hour))
		posted, err := time.Parse(time.DateOnly, texts[fieldPosted])
		require.NoError(t, err)
		lag := posted.Sub(created)
		require.True(t, lag >= 0 && lag < 7*24*time.Hour, "%s", lag)
		require.Equal(t, texts[fieldPosted][:7], texts[fieldPeriod])
		require.Equal(t, texts[fieldPeriod]+"-01", texts[fieldPeriodDate])

		debit, credit := texts[fieldEnteredDebit], texts[fieldEnteredCredit]
		require.Equal(t, texts[fieldSide] == "DR", credit == "0.00")
		require.Equal(t, texts[fieldSide] == "CR", debit == "0.00")
		require.Equal(t, []string{debit, credit}, texts[fieldAccountedDebit:fieldAccountedCredit+1])
	}
	for _, f := range []int{fieldReference, fieldHeaderText, fieldHeaderName, fieldLineText} {
		assert.Len(t, seen[f], n, "%s repeats", shapes[f].name)
	}
	for _, f := range []int{fieldSource, fieldCurrency, fieldCategory, fieldReversed} { // of 17,576 codes
		assert.Greater(t, len(seen[f]), 3400, "%s", shapes[f].name)
	}
	for _, f := range []int{fieldAccount, fieldOrganization, fieldProject} { // 18 of 1000 are missing on average
		assert.Greater(t, len(seen[f]), 950, "%s", shapes[f].name)
	}
	for _, f := range []int{fieldActual, fieldStatus, fieldReversal, fieldSide} {
		require.Len(t, seen[f], 2, "%s", shapes[f].name)
		for value, times := range seen[f] {
			assert.InDelta(t, n/2, times, 5*math.Sqrt(n)/2, "%s %s", shapes[f].name, value)
		}
	}
	assert.Greater(t, len(seen[fieldCreated]), 2300, "of 3647 days")
	assert.Len(t, seen[fieldPeriod], 120, "months of ten years")
	assert.Greater(t, len(seen[fieldLine]), 3100, "of 9000 line numbers")
}

// TestJournalCompresses: 26 letters hold 4.7 of 8 bits, and the names of the fields go away.
func TestJournalCompresses(t *testing.T) {
	ratio, err := CompressionRatio(journalOf(t, 0), 1<<20)
	require.NoError(t, err)
	assert.InDelta(t, 2.99, ratio, 0.03)
}
