// Package units formats quantities and texts for people, and parses quantities.
package units

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
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

// Size formats a size as Bytes does, with one decimal below ten and whole otherwise: 1.5 GiB, 172 MiB.
func Size(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// Amount formats a number with at least three digits: 1.23, 12.3, 1,234. NaN and infinities are "-".
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

// Seconds formats a time with about three digits: 250 ms, 12.34 s, 1h2m3s. NaN and infinities are "-".
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

// Percent formats a share: 4.2 %. NaN and infinities are "-".
func Percent(share float64) string {
	if !finite(share) {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

// Printable replaces control characters in a server's text by spaces: a terminal would obey them.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// OneLine replaces white space by single spaces, and removes it at both ends.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Join joins the texts that are not empty.
func Join(separator string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(texts), func(t string) bool { return t == "" }), separator)
}

var (
	wholeForm = regexp.MustCompile(`^(-?[0-9]+(?:\.[0-9]+)?)(?:[eE]\+?([0-9]{1,2}))?([kKMGT]i?)?$`)
	grouped   = regexp.MustCompile(`^-?[0-9]{1,3}(?:,[0-9]{3})+$|^-?[0-9]+(?:_[0-9]+)+$`)
)

// Whole parses a whole number: 2000000, 2,000,000, 2_000_000, 2e6 and 2M are the same, and 16Ki is 16384. A small m is
// no unit of counts, which may mean minutes or thousandths.
func Whole(text string) (n *big.Int, ok bool) {
	text = strings.TrimSpace(text)
	if grouped.MatchString(text) {
		text = strings.NewReplacer(",", "", "_", "").Replace(text)
	}
	m := wholeForm.FindStringSubmatch(text)
	if m == nil {
		return new(big.Int).SetString(text, 0) // 0x10
	}
	value, ok := new(big.Rat).SetString(m[1])
	if !ok {
		return nil, false
	}
	power := func(base, exponent int64) *big.Rat {
		return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(base), big.NewInt(exponent), nil))
	}
	exponent, _ := strconv.ParseInt(m[2], 10, 64) // 0 for none
	value.Mul(value, power(10, exponent))
	if unit := m[3]; unit != "" {
		step := int64(strings.Index("KMGT", strings.ToUpper(unit[:1])) + 1)
		base := int64(1000)
		if len(unit) > 1 {
			base = 1024
		}
		value.Mul(value, power(base, step))
	}
	return value.Num(), value.IsInt()
}

func finite(n float64) bool { return !math.IsNaN(n) && !math.IsInf(n, 0) }

// Parse reads a number, a size or a duration: 2000, "2,000" and 2e3 are one amount, 16MiB is 16777216, and 1m30s is 90.
func Parse(text string) (amount float64, isDuration, ok bool) {
	text = strings.TrimSpace(text)
	n, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err == nil && finite(n) {
		return n, false, true
	}
	if whole, ok := Whole(text); ok {
		n, _ := new(big.Float).SetInt(whole).Float64()
		return n, false, true
	}
	// Durations come first: "10m" is also ten million bytes.
	if d, err := time.ParseDuration(text); err == nil {
		return d.Seconds(), true, true
	}
	if n, err := humanize.ParseBytes(text); err == nil {
		return float64(n), false, true
	}
	return 0, false, false
}

// ShellWord returns s as one word of a shell.
func ShellWord(s string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@,%+=", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
