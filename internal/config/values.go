package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
)

// Bytes is a number of bytes, given as 64MiB (2^20), 64MB (10^6) or a bare number.
type Bytes int64

// Set reads the text of a flag.
func (b *Bytes) Set(text string) error {
	n, ok := parseBytes(text)
	if !ok {
		return fmt.Errorf("%q is not a size: write it as 64MiB, 64MB or 1GiB", text)
	}
	*b = n
	return nil
}

// parseBytes takes no commas: 1,5GiB would be read as fifteen.
func parseBytes(text string) (Bytes, bool) {
	n, err := humanize.ParseBytes(text)
	return Bytes(n), err == nil && n <= math.MaxInt64 && !strings.Contains(text, ",")
}

// String is the size with a binary unit where that loses nothing.
func (b *Bytes) String() string {
	if *b == 0 {
		return ""
	}
	if short := strings.ReplaceAll(humanize.IBytes(uint64(*b)), " ", ""); exactly(short, *b) {
		return short
	}
	return strconv.FormatInt(int64(*b), 10)
}

func exactly(text string, b Bytes) bool {
	n, ok := parseBytes(text)
	return ok && n == b
}

// Type names the kind of value in --help.
func (*Bytes) Type() string { return "size" }

// DistinctBytes is a size, or "all" for a run in which no row repeats.
type DistinctBytes struct {
	Bytes
	All bool
}

// Set reads the text of a flag.
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
		return fmt.Errorf("0 distinct bytes are no rows: write a size, or all")
	}
	return nil
}

// String is the size or "all".
func (d *DistinctBytes) String() string {
	if d.All {
		return "all"
	}
	return d.Bytes.String()
}

// Rate is a number of bytes a second, given as 500MiB/s or, as networks are, 5Gbps.
type Rate int64

// Set reads the text of a flag. It takes no Gb/s, which is an eighth of a GB/s: sizes read without regard to case would
// take the one for the other.
func (r *Rate) Set(text string) error {
	if bits, ok := strings.CutSuffix(text, "bps"); ok {
		n, unit, err := humanize.ParseSI(bits + "b")
		if err == nil && unit == "b" && n >= 8 && n <= math.MaxInt64/8 {
			*r = Rate(n / 8)
			return nil
		}
	} else if bytes, ok := strings.CutSuffix(text, "/s"); ok && !strings.HasSuffix(bytes, "b") {
		n, ok := parseBytes(bytes)
		if ok && n > 0 {
			*r = Rate(n)
			return nil
		}
	}
	return fmt.Errorf("%q is not a rate: write it as 500MiB/s or 5Gbps", text)
}

// String is the rate with a binary unit.
func (r *Rate) String() string {
	if *r == 0 {
		return ""
	}
	b := Bytes(*r)
	return b.String() + "/s"
}

// Type names the kind of value in --help.
func (*Rate) Type() string { return "rate" }

// choice is a flag with a fixed set of values.
type choice struct {
	value *string
	valid []string
}

func newChoice(value *string, valid ...string) *choice {
	*value = valid[0]
	return &choice{value: value, valid: valid}
}

func (c *choice) Set(text string) error {
	for _, v := range c.valid {
		if v == text {
			*c.value = text
			return nil
		}
	}
	return Unknown("value", text, c.valid)
}

func (c *choice) String() string { return *c.value }
func (c *choice) Type() string   { return strings.Join(c.valid, "|") }

// FirstKey is a row number, or none: 0 is one like any other.
type FirstKey struct {
	Key   int64
	Given bool
}

// Set reads the text of a flag.
func (k *FirstKey) Set(text string) error {
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		return fmt.Errorf("%q is not a key: keys are whole numbers", text)
	}
	*k = FirstKey{Key: n, Given: true}
	return nil
}

// String is the number, "" without one.
func (k *FirstKey) String() string {
	if !k.Given {
		return ""
	}
	return strconv.FormatInt(k.Key, 10)
}

// Type names the kind of value in --help.
func (*FirstKey) Type() string { return "int" }
