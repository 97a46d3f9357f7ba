// Package units writes quantities and texts for people, and reads quantities that people write.
package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/dustin/go-humanize"
)

// Count formats a whole number with a comma after every three digits.
func Count(n int64) string { return humanize.Comma(n) }

// Bytes formats a size in binary units with up to four digits: 172.4 MiB. A negative size is 0 B.
func Bytes(n int64) string { return humanize.IBytesN(uint64(max(n, 0)), 4) }

// Amount formats a number with about three digits behind the first, and none behind the point where they say nothing.
// It is "-" for NaN and infinities, which a division by nothing leaves.
func Amount(n float64) string {
	switch {
	case !finite(n):
		return "-"
	case n == 0:
		return "0"
	case math.Abs(n) < 10:
		return fmt.Sprintf("%.2f", n)
	case math.Abs(n) < 100:
		return fmt.Sprintf("%.1f", n)
	}
	return humanize.Comma(int64(math.Round(n)))
}

// Seconds formats a time with about three digits: 250 ms, 12.34 s, 1h2m3s. It is "-" for what is no number.
func Seconds(s float64) string {
	switch {
	case !finite(s):
		return "-"
	case s == 0:
		return "0 s"
	case s < 0.001:
		return fmt.Sprintf("%.0f µs", s*1e6)
	case s < 0.01:
		return fmt.Sprintf("%.2f ms", s*1000)
	case s < 1:
		return fmt.Sprintf("%.0f ms", s*1000)
	case s < 100:
		return fmt.Sprintf("%.2f s", s)
	case s < 600:
		return fmt.Sprintf("%.1f s", s)
	}
	return time.Duration(s * float64(time.Second)).Round(time.Second).String()
}

// Percent formats a share: 4.2 %. It is "-" for what is no number.
func Percent(share float64) string {
	if !finite(share) {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

// Printable returns the text with a space for every control character: servers say what they want, and a terminal obeys
// some of it.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

func finite(n float64) bool { return !math.IsNaN(n) && !math.IsInf(n, 0) }

// Parse reads a number, a size or a duration: 2000, "2,000" and 2e3 are one amount, 16MiB and 16777216 as well, and the
// amount of 1m30s is its seconds. ok is false for any other text.
func Parse(text string) (amount float64, isDuration, ok bool) {
	text = strings.TrimSpace(text)
	n, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err == nil && finite(n) {
		return n, false, true
	}
	// Durations go before sizes, which take "10m" for ten million bytes.
	if d, err := time.ParseDuration(text); err == nil {
		return d.Seconds(), true, true
	}
	if n, err := humanize.ParseBytes(text); err == nil {
		return float64(n), false, true
	}
	return 0, false, false
}
