package dataset

import (
	"math"
	"net/netip"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/rows"
)

// What a dataset's columns mean, and how they depend on each other.

// filled returns the first rows of a dataset.
func filled(t testing.TB, name string, n int) *rows.Block {
	d := newDataset(t, name, Options{Seed: 9})
	b := rows.NewBlock(d.Schema())
	d.Fill(b, 0, n)
	d.Derive(b, 0)
	return b
}

// requireShare checks that about a share of n draws were counted: five deviations are chance once in millions of seeds.
func requireShare(t testing.TB, share float64, counted, n int) {
	t.Helper()
	require.InDelta(t, share*float64(n), counted, 5*math.Sqrt(float64(n)*share*(1-share)))
}

func TestPairs(t *testing.T) {
	const n = 50_000
	b := filled(t, "pairs", n)
	var tens, ones [10]int
	for i := range n {
		tens[b.Columns[1].Ints[i]/100_000]++
		ones[b.Columns[2].Ints[i]]++
	}
	for k := range 10 {
		requireShare(t, 0.1, tens[k], n)
		requireShare(t, 0.1, ones[k], n)
	}
}

func TestPeople(t *testing.T) {
	for _, row := range []int64{0, 1999, 19_999, 1 << 40, math.MaxInt64} {
		all := rowOf(newDataset(t, "people", Options{}), row)
		born, day, micros := all[peopleBirthday].(int64), all[peopleDay].(int64), all[peopleTime].(int64)
		require.True(t, born >= -7305 && born < -7305+20_000)
		require.True(t, day >= 18_262 && day < 21_915, "2020-01-01 to 2029-12-31")
		require.Equal(t, day, micros/86_400_000_000, "d is the day of t")
	}
}

func TestHTTPLogs(t *testing.T) {
	s := newDataset(t, "httplogs", Options{}).Schema()
	require.True(t, s.TimeKey())
	require.Equal(t, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro(), s.Number[0].Minus)
	const n = 20_000
	b := filled(t, "httplogs", n)
	request := regexp.MustCompile(`^(GET|POST|HEAD) /[a-z0-9/]+\.?[a-z]*\?[a-z]+=[0-9a-f]{8} HTTP/1\.1$`)
	statuses, private, longest := map[int64]int{}, 0, 0
	for i := range n {
		address, err := netip.ParseAddr(string(b.Columns[httplogsIP].Value(i)))
		require.NoError(t, err)
		if address.IsPrivate() {
			private++
		}
		text := string(b.Columns[httplogsRequest].Value(i))
		require.Regexp(t, request, text)
		longest = max(longest, len(text))
		status, size := b.Columns[httplogsStatus].Ints[i], b.Columns[httplogsSize].Ints[i]
		statuses[status]++
		require.True(t, status == notModified && size == 0 || status != notModified && 1<<7 <= size && size < 1<<15, "%d", size)
	}
	require.Equal(t, s.Columns[httplogsRequest].MaxBytes, longest)
	requireShare(t, 0.5, private, n)
	require.Len(t, statuses, 8)
	requireShare(t, 100.0/128, statuses[200], n)
}

func TestJournal(t *testing.T) {
	s := newDataset(t, "journal", Options{}).Schema()
	require.True(t, s.TextKey())
	const date = `(20\d\d-\d\d-\d\d)`
	const amount = `(0\.00|[1-9]\d{4}\.\d\d)`
	document := regexp.MustCompile(`^\{"journal_header_source_code":"[A-Z]{3}","journal_external_reference":"[0-9A-Z]{20}",` +
		`"journal_header_description":"[a-z]{200}","period_code":"(20\d\d-\d\d)","period_date":"` + date + `","currency_code":"[A-Z]{3}",` +
		`"journal_category_code":"[A-Z]{3}","journal_posted_date":"` + date + `","journal_created_date":"` + date + `",` +
		`"journal_created_timestamp":"(20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6})","journal_actual_flag":"([YN])","journal_status":"([PU])",` +
		`"journal_header_name":"[a-z]{80}","reversal_flag":"([YN])","reversal_journal_header_source_code":"[A-Z]{3}",` +
		`"journal_line_number":[1-9]\d{3},"account_code":"A\d{3}","organization_code":"R\d{3}","project_code":"P\d{3}",` +
		`"journal_line_type":"(CR|DR)","entered_debit_amount":` + amount + `,"entered_credit_amount":` + amount + `,` +
		`"accounted_debit_amount":` + amount + `,"accounted_credit_amount":` + amount + `,"journal_line_description":"[a-z]{253}"\}$`)
	const n = 1000
	b := filled(t, "journal", n)
	seen := map[string]int{}
	for i := range n {
		f := document.FindStringSubmatch(string(b.Columns[journalPayload].Value(i)))
		require.NotNil(t, f, "%s", b.Columns[journalPayload].Value(i))
		period, first, at, side, debit, credit := f[1], f[2], f[5], f[9], f[10], f[11]
		posted, err := time.Parse(time.DateOnly, f[3])
		require.NoError(t, err)
		created, err := time.Parse(time.DateOnly, f[4])
		require.NoError(t, err)
		moment, err := time.Parse("2006-01-02T15:04:05.000000", at)
		require.NoError(t, err)
		require.Equal(t, created, moment.Truncate(24*time.Hour))
		lag := posted.Sub(created)
		require.True(t, lag >= 0 && lag < 7*24*time.Hour, "%s", lag)
		require.Equal(t, posted.Format("2006-01"), period)
		require.Equal(t, period+"-01", first)
		require.Equal(t, side == "DR", credit == "0.00")
		require.Equal(t, side == "CR", debit == "0.00")
		require.Equal(t, f[10:12], f[12:14], "accounted as entered")
		for k, flag := range []string{"actual ", "status ", "reversal ", "side "} {
			seen[flag+f[6+k]]++
		}
		seen["lag "+lag.String()]++
	}
	require.Len(t, seen, 4*2+7)
	for value, times := range seen {
		if value[:3] != "lag" {
			requireShare(t, 0.5, times, n)
		}
	}
}

// TestLineitem checks the rules of TPC-H 4.2.3 that hold for every row.
func TestLineitem(t *testing.T) {
	const n = 4_000
	b := filled(t, "lineitem", n)
	ints := func(c, i int) int64 { return b.Columns[c].Ints[i] }
	text := func(c, i int) string { return string(b.Columns[c].Value(i)) }
	within := func(low, v, high int64) {
		require.True(t, low <= v && v <= high, "%d is not in %d … %d", v, low, high)
	}
	for i := range n {
		part, quantity := ints(linePart, i), ints(lineQuantity, i)
		within(1, part, 200_000)
		var suppliers []int64
		for k := range int64(4) {
			suppliers = append(suppliers, (part+k*(2500+(part-1)/10_000))%10_000+1)
		}
		require.Contains(t, suppliers, ints(lineSupplier, i))
		within(100, quantity, 5000)
		require.Zero(t, quantity%100)
		require.Equal(t, quantity/100*(90_000+part/10%20_001+100*(part%1000)), ints(linePrice, i))
		within(0, ints(lineDiscount, i), 10)
		within(0, ints(lineTax, i), 8)
		shipped, received := ints(lineShipped, i), ints(lineReceived, i)
		within(shipped+1, received, shipped+30)
		require.Contains(t, map[bool]string{true: "RA", false: "N"}[received <= 9298], text(lineReturn, i))
		require.Equal(t, map[bool]string{true: "O", false: "F"}[shipped > 9298], text(lineStatus, i))
		require.GreaterOrEqual(t, len(text(lineComment, i)), 10)
	}
	for i := 0; i < n; i += orderLines { // the lines of an order have an order date in common: from 8035 to 10440
		earliest, latest := int64(8035), int64(10_440)
		for k := i; k < i+orderLines; k++ {
			earliest = max(earliest, ints(lineShipped, k)-121, ints(lineCommitted, k)-90)
			latest = min(latest, ints(lineShipped, k)-1, ints(lineCommitted, k)-30)
		}
		require.LessOrEqual(t, earliest, latest, "lines from %d on", i)
	}
	for c, different := range map[int]int{
		lineQuantity: 50, lineDiscount: 11, lineTax: 9, lineReturn: 3, lineStatus: 2, lineInstruction: 4, lineMode: 7,
	} {
		seen := map[any]bool{}
		for i := range n {
			seen[values(b, i)[c]] = true
		}
		require.Len(t, seen, different, "column %d", c)
	}
}

// TestComments looks at every piece there is.
func TestComments(t *testing.T) {
	c := newComments()
	require.NotContains(t, string(c), "  ")
	for place := range commentPlaces {
		for _, n := range []int{shortComment, 27, longComment} {
			if piece := c.piece(place, n); len(piece) != n || piece[0] == ' ' || piece[n-1] == ' ' {
				t.Fatalf("%q at %d", piece, place)
			}
		}
	}
}
