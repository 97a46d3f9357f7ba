package config

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/units"
)

// count is the flag of a whole number, given as 2000000, 2e6 or 2M.
type count[T int | int64 | uint64] struct{ value *T }

// Count returns the flag value of a whole number with a default.
func Count[T int | int64 | uint64](value *T, byDefault T) pflag.Value {
	*value = byDefault
	return count[T]{value}
}

// Set implements pflag.Value.
func (c count[T]) Set(text string) error {
	whole, ok := units.Whole(text)
	if !ok {
		return fmt.Errorf("%q is not a whole number: write it as 2000000, 2e6 or 2M", text)
	}
	n := T(whole.Int64())
	if !whole.IsInt64() {
		n = T(whole.Uint64())
	}
	if fmt.Sprint(n) != whole.String() {
		return fmt.Errorf("%s is too large, or below 0", text)
	}
	*c.value = n
	return nil
}

// String returns the digits, so that the record of a run has one spelling.
func (c count[T]) String() string { return fmt.Sprint(*c.value) }

// Type implements pflag.Value.
func (count[T]) Type() string { return "int" }

// payload is the flag of a few bytes, given as 512, 512B or 1KiB.
type payload struct{ value *int }

// Payload returns the flag value of a number of bytes with a default.
func Payload(value *int, byDefault int) pflag.Value {
	*value = byDefault
	return payload{value}
}

// Set implements pflag.Value.
func (p payload) Set(text string) error {
	var n Bytes
	if negative, err := strconv.Atoi(text); err == nil { // which Validate has words for
		n = Bytes(negative)
	} else if err := n.Set(text); err != nil {
		return err
	}
	*p.value = int(n)
	return nil
}

// String implements pflag.Value.
func (p payload) String() string { return strconv.Itoa(*p.value) }

// Type implements pflag.Value.
func (payload) Type() string { return "size" }

// duration is the flag of a time.
type duration struct{ value *time.Duration }

// Duration returns the flag value of a time with a default.
func Duration(value *time.Duration, byDefault time.Duration) pflag.Value {
	*value = byDefault
	return duration{value}
}

// Set implements pflag.Value.
func (d duration) Set(text string) error {
	n, err := ParseDuration(text)
	if err == nil {
		*d.value = n
	}
	return err
}

// String implements pflag.Value. pflag shows no default of "0".
func (d duration) String() string {
	if *d.value == 0 {
		return "0"
	}
	return d.value.String()
}

// Type implements pflag.Value.
func (duration) Type() string { return "duration" }

// link is the flag of a network's rate in Gbps, given as 25, 25Gbps or 3GiB/s.
type link struct{ gbps *float64 }

// Link returns the flag value of a network's rate with a default.
func Link(gbps *float64, byDefault float64) pflag.Value {
	*gbps = byDefault
	return link{gbps}
}

// Set implements pflag.Value.
func (l link) Set(text string) error {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		var r Rate
		if r.Set(text) != nil {
			return fmt.Errorf("%q is not a rate: write it as 25 or 25Gbps", text)
		}
		n = float64(r) * 8 / 1e9
	}
	*l.gbps = n
	return nil
}

// String implements pflag.Value.
func (l link) String() string { return strconv.FormatFloat(*l.gbps, 'g', -1, 64) }

// Type implements pflag.Value.
func (link) Type() string { return "rate" }

var daysFirst = regexp.MustCompile(`^([0-9]+)d(.*)$`)

// ParseDuration reads a time as 90s, 10m, 1h30m or 2d12h. A number alone is seconds, as in sleep and timeout.
func ParseDuration(text string) (time.Duration, error) {
	wrong := fmt.Errorf("%q is not a time: write it as 90s, 10m or 1h30m", text)
	rest := strings.ReplaceAll(text, " ", "")
	var days time.Duration
	if m := daysFirst.FindStringSubmatch(rest); m != nil {
		n, err := strconv.Atoi(m[1])
		if err != nil || n > int(math.MaxInt64/(24*time.Hour))-1 {
			return 0, wrong
		}
		days, rest = time.Duration(n)*24*time.Hour, m[2]
		if rest == "" {
			return days, nil
		}
	}
	if _, err := strconv.ParseFloat(rest, 64); err == nil && days == 0 {
		rest += "s"
	}
	n, err := time.ParseDuration(rest)
	if err != nil || n < 0 && days > 0 || days > math.MaxInt64-max(n, 0) {
		return 0, wrong
	}
	return days + n, nil
}

// PlainError returns an error of pflag without the words of a Go function.
func PlainError(err error) error {
	var number *strconv.NumError
	if !errors.As(err, &number) {
		return err
	}
	text, _, _ := strings.Cut(err.Error(), ": strconv.")
	if number.Func == "ParseBool" {
		return fmt.Errorf("%s: write true or false", text)
	}
	return fmt.Errorf("%s: write a whole number", text)
}
