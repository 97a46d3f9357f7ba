package dataset

import (
	"math"
	"net/netip"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/rows"
)

// TestHTTPLogsGolden pins the values: a change here makes every recorded run unverifiable. The wanted ones come from a
// program of its own, 30 lines of Python with whole numbers of any size.
func TestHTTPLogsGolden(t *testing.T) {
	for _, c := range []struct {
		seed uint64
		row  int64
		want []any
	}{
		{1, 0, []any{int64(1767225600000000), "25.215.194.221", "HEAD /assets/fonts/list.png?v=2f284ec2 HTTP/1.1", int64(200), int64(29656)}},
		{1, 1, []any{int64(1767225600000001), "55.157.199.98", "GET /download/details.png?v=1c7e92f2 HTTP/1.1", int64(200), int64(11128)}},
		{math.MaxUint64, 86_400_000_000, []any{
			int64(1767312000000000), "47.10.87.55", "POST /assets/js/list?session=ac35ab2b HTTP/1.1", int64(200), int64(178),
		}},
		{42, 251_635_075_199_999_999, []any{
			int64(253402300799999999), "39.38.61.254", "HEAD /docs/reference/index?session=61cd3f75 HTTP/1.1", int64(200), int64(875),
		}},
	} {
		assert.Equal(t, c.want, rowOf(seeded(t, "httplogs", c.seed), c.row), "seed %d row %d", c.seed, c.row)
	}
}

func TestHTTPLogs(t *testing.T) {
	d := seeded(t, "httplogs", 5)
	s := d.Schema()
	require.True(t, s.TimeKey())
	assert.Equal(t, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro(), s.Number[0].Minus)
	last := time.UnixMicro(s.Number[0].Minus + s.MaxNumber()).UTC()
	assert.Equal(t, "9999-12-31 23:59:59.999999", last.Format("2006-01-02 15:04:05.000000"))

	b := rows.NewBlock(s)
	const n = 40_000
	d.Fill(b, 0, n)
	request := regexp.MustCompile(`^(GET|POST|HEAD) /[a-z0-9/]+\.?[a-z]*\?[a-z]+=[0-9a-f]{8} HTTP/1\.1$`)
	statuses, private, longest := map[int64]int{}, 0, 0
	for i := range n {
		address, err := netip.ParseAddr(string(b.Columns[httplogsIP].Value(i)))
		require.NoError(t, err)
		if address.IsPrivate() {
			private++
		}
		require.Regexp(t, request, string(b.Columns[httplogsRequest].Value(i)))
		longest = max(longest, len(b.Columns[httplogsRequest].Value(i)))
		status, size := b.Columns[httplogsStatus].Ints[i], b.Columns[httplogsSize].Ints[i]
		statuses[status]++
		if status == notModified {
			require.Zero(t, size)
		} else {
			require.True(t, 1<<7 <= size && size < 1<<15, "%d", size)
		}
	}
	assert.Equal(t, s.Columns[httplogsRequest].MaxBytes, longest)
	assert.InDelta(t, n/2, private, 5*math.Sqrt(n/4))
	assert.Len(t, statuses, 8)
	assert.InDelta(t, n*100/128, statuses[200], 5*math.Sqrt(n/4))
}
