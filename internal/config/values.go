package config

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/loader"
)

// Bytes is a number of bytes, given as 64MiB (2^20), 64MB (10^6) or a bare number.
type Bytes int64

// Set implements pflag.Value.
func (b *Bytes) Set(text string) error {
	if smallB.MatchString(text) {
		big := strings.TrimSuffix(text, "b") + "B"
		return fmt.Errorf("%q: bits or bytes? Sizes are in bytes: write %s if that is meant", text, big)
	}
	n, ok := parseBytes(text)
	if !ok {
		return fmt.Errorf("%q is not a size: write it as 64MiB, 64MB or 1GiB", text)
	}
	*b = n
	return nil
}

// smallB matches what may be bits, whatever the case of the letters before.
var smallB = regexp.MustCompile(`[0-9] *(?i:[kmgtpe]i?)?b$`)

// parseBytes refuses commas: humanize would read 1,5GiB as fifteen.
func parseBytes(text string) (Bytes, bool) {
	if n, ok := units.Whole(text); ok && !strings.Contains(text, ",") && n.Sign() >= 0 && n.IsInt64() {
		return Bytes(n.Int64()), true // 1e9, too
	}
	n, err := humanize.ParseBytes(text)
	return Bytes(n), err == nil && n <= math.MaxInt64 && !strings.Contains(text, ",")
}

// String returns the size with a binary unit if that is exact, "" for 0.
func (b *Bytes) String() string {
	if *b == 0 {
		return ""
	}
	short := strings.ReplaceAll(humanize.IBytes(uint64(*b)), " ", "")
	if n, ok := parseBytes(short); ok && n == *b {
		return short
	}
	return strconv.FormatInt(int64(*b), 10)
}

// Type implements pflag.Value.
func (*Bytes) Type() string { return "size" }

// DistinctBytes is a size, or "all" for a run in which no row repeats.
type DistinctBytes struct {
	Bytes
	All bool
}

// Set implements pflag.Value.
func (d *DistinctBytes) Set(text string) error {
	if text == "all" {
		*d = DistinctBytes{All: true}
		return nil
	}
	d.All = false
	if err := d.Bytes.Set(text); err != nil {
		return fmt.Errorf("%w, or as all", err)
	}
	if d.Bytes == 0 {
		return errors.New("write a size above 0, or all")
	}
	return nil
}

// String implements pflag.Value.
func (d *DistinctBytes) String() string {
	if d.All {
		return "all"
	}
	return d.Bytes.String()
}

// Share is a part of the whole, given as 5%: more than 0 and less than 1.
type Share float64

// Set implements pflag.Value.
func (s *Share) Set(text string) error {
	digits, isPercent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || !isPercent || !(n > 0 && n < 100) {
		return fmt.Errorf("%q is not a share: write it as 5%%, more than 0%% and less than 100%%", text)
	}
	*s = Share(n / 100)
	return nil
}

// String implements pflag.Value. It returns "" for 0.
func (s *Share) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(*s)*100, 'g', -1, 64) + "%"
}

// Type implements pflag.Value.
func (*Share) Type() string { return "percent" }

// Rate is a number of bytes a second, given as 500MiB/s or, as for networks, 5Gbps.
type Rate int64

// Set implements pflag.Value. It refuses Gb/s, an eighth of GB/s, which many write for both.
func (r *Rate) Set(text string) error {
	plain := strings.ReplaceAll(text, " ", "")
	if bits, ok := strings.CutSuffix(plain, "bit/s"); ok {
		plain = bits + "bps"
	}
	if bytes, ok := strings.CutSuffix(plain, "Bps"); ok {
		plain = bytes + "B/s"
	}
	if bits, ok := strings.CutSuffix(plain, "bps"); ok {
		n, unit, err := humanize.ParseSI(bits + "b")
		if err == nil && unit == "b" && n >= 8 && n <= math.MaxInt64/8 {
			*r = Rate(n / 8)
			return nil
		}
	} else if bytes, ok := strings.CutSuffix(plain, "/s"); ok && !smallB.MatchString(bytes) {
		n, ok := parseBytes(bytes)
		if ok && n > 0 {
			*r = Rate(n)
			return nil
		}
	}
	return fmt.Errorf("%q is not a rate: write it as 500MiB/s or 5Gbps", text)
}

// String returns the rate with a binary unit, "" for 0.
func (r *Rate) String() string {
	if *r == 0 {
		return ""
	}
	b := Bytes(*r)
	return b.String() + "/s"
}

// Type implements pflag.Value.
func (*Rate) Type() string { return "rate" }

// choice is a flag with a fixed set of values. The first is the default.
type choice struct {
	value *string
	valid []string
}

func newChoice(value *string, valid ...string) *choice {
	*value = valid[0]
	return &choice{value: value, valid: valid}
}

func (c *choice) Set(text string) error {
	if err := known("value", text, c.valid); err != nil {
		return err
	}
	*c.value = text
	return nil
}

// Choices lists the values of a flag that takes one of a few, else nil.
func Choices(f *pflag.Flag) []string {
	if c, ok := f.Value.(*choice); ok {
		return c.valid
	}
	return nil
}

func (c *choice) String() string { return *c.value }
func (c *choice) Type() string   { return strings.Join(c.valid, "|") }

// FirstKey is a row number, or none: 0 is a key.
type FirstKey struct {
	Key   int64
	Given bool
}

// Set implements pflag.Value.
func (k *FirstKey) Set(text string) error {
	n, ok := units.Whole(text)
	if !ok || !n.IsInt64() {
		return fmt.Errorf("%q is not a key: keys are whole numbers", text)
	}
	*k = FirstKey{Key: n.Int64(), Given: true}
	return nil
}

// String implements pflag.Value.
func (k *FirstKey) String() string {
	if !k.Given {
		return ""
	}
	return strconv.FormatInt(k.Key, 10)
}

// Type implements pflag.Value.
func (*FirstKey) Type() string { return "int" }

// OnOff is a switch that may be left to something else.
type OnOff struct{ Given, On bool }

// Set implements pflag.Value.
func (o *OnOff) Set(text string) error {
	on, err := strconv.ParseBool(text)
	if err != nil {
		return fmt.Errorf("%q is neither true nor false", text)
	}
	*o = OnOff{Given: true, On: on}
	return nil
}

// String implements pflag.Value.
func (o *OnOff) String() string {
	if !o.Given {
		return ""
	}
	return strconv.FormatBool(o.On)
}

// Type implements pflag.Value.
func (*OnOff) Type() string { return "bool" }

// Settings are the session variables of --set, in the order given. Append, GetSlice and Replace implement
// pflag.SliceValue, so that a file may have a list.
type Settings []loader.Setting

// Set implements pflag.Value. It adds a variable, written as name=value.
func (s *Settings) Set(text string) error {
	name, value, found := strings.Cut(text, "=")
	name = strings.TrimSpace(name)
	if !found || name == "" {
		return errors.New("write it as name=value")
	}
	*s = append(*s, loader.Setting{Name: name, Value: strings.TrimSpace(value)})
	return nil
}

// String returns the variables for --help, "" for none.
func (s *Settings) String() string {
	if len(*s) == 0 {
		return ""
	}
	return "[" + strings.Join(s.GetSlice(), ",") + "]"
}

// Type implements pflag.Value.
func (*Settings) Type() string { return "name=value" }

// Append adds a variable.
func (s *Settings) Append(text string) error { return s.Set(text) }

// GetSlice returns the variables as name=value.
func (s *Settings) GetSlice() []string {
	var all []string
	for _, one := range *s {
		all = append(all, one.Name+"="+one.Value)
	}
	return all
}

// Replace sets all variables. After an error they are as before.
func (s *Settings) Replace(all []string) error {
	var given Settings
	for _, text := range all {
		if err := given.Set(text); err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
	}
	*s = given
	return nil
}

// optionValue is the flag of a method's option.
type optionValue struct {
	into   map[string]string
	option loader.Option
}

// Set keeps one spelling of each value, so that a resume can compare it.
func (v *optionValue) Set(text string) error {
	plain := text
	if v.option.Kind == loader.IntOption {
		if n, whole := units.Whole(text); whole && n.Sign() >= 0 && n.IsInt64() {
			plain = n.String() // of 10k; what is refused is quoted as it was written
		}
	}

	value, err := v.option.Kind.Parse(plain)
	if err != nil {
		return err
	}
	v.into[v.option.Name] = fmt.Sprint(value)
	return nil
}

func (v *optionValue) String() string {
	if text, ok := v.into[v.option.Name]; ok {
		return text
	}
	return v.option.Default
}

func (v *optionValue) Type() string { return v.option.Kind.String() }

// Time is a point in time; the zero value is none.
type Time struct{ time.Time }

// Set implements pflag.Value.
func (t *Time) Set(text string) (err error) {
	*t = Time{}
	if text != "" {
		t.Time, err = time.Parse(time.RFC3339, text)
	}
	if err != nil {
		return fmt.Errorf("%q is not a time such as 2026-11-23T18:00:00Z", text)
	}
	return nil
}

// String implements pflag.Value.
func (t *Time) String() string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

// Type implements pflag.Value.
func (*Time) Type() string { return "time" }
