package chart

import (
	"math"
	"slices"
	"strconv"

	"github.com/dustin/go-humanize"
)

// Axis is one axis of a drawing. A linear vertical axis begins at 0.
type Axis struct {
	Label string
	Unit  Unit
	Log   bool
}

// Unit is the unit of an axis. It determines the ticks and their format.
type Unit int

// The units.
const (
	Count Unit = iota
	Bytes
	Seconds
)

// text formats the label of a tick: 2k, 1.5M; 64 KiB; 250 ms, 1.5 min.
func (u Unit) text(v float64) string {
	switch {
	case v == 0:
		return "0"
	case u == Bytes:
		n, e := v, 0
		for n >= 1024 && e < len(binary)-1 {
			n, e = n/1024, e+1
		}
		return digits(n) + " " + binary[e]
	case u == Seconds && v >= 3600:
		return digits(v/3600) + " h"
	case u == Seconds && v >= 60:
		return digits(v/60) + " min"
	case u == Seconds:
		n, prefix := humanize.ComputeSI(v)
		return digits(n) + " " + prefix + "s"
	case v < 1:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	n, prefix := humanize.ComputeSI(v)
	return digits(n) + prefix
}

var binary = [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}

// digits formats a number with three digits, without trailing zeros.
func digits(n float64) string {
	precision := 100.0
	for m := n; m >= 10 && precision > 1; m /= 10 {
		precision /= 10
	}
	return strconv.FormatFloat(math.Round(n*precision)/precision, 'f', -1, 64)
}

// drawable reports whether a number can be on an axis. Numbers beyond any rate or time are errors of the measurement,
// and would need too many ticks.
func drawable(v float64, log bool) bool {
	const smallest, largest = 1e-12, 1e18
	return v == 0 && !log || v >= smallest && v <= largest
}

// scale maps the values of an axis to coordinates.
type scale struct {
	low, high float64 // values
	log       bool
	from, to  float64 // coordinates
	ticks     []tick
}

type tick struct {
	value float64
	label string
}

func (s scale) at(v float64) float64 {
	share := (v - s.low) / (s.high - s.low)
	if s.log {
		share = math.Log(v/s.low) / math.Log(s.high/s.low)
	}
	return s.from + share*(s.to-s.from)
}

// around returns a scale from the first tick to the last.
func around(ticks []tick, log bool) scale {
	return scale{low: ticks[0].value, high: ticks[len(ticks)-1].value, log: log, ticks: ticks}
}

// step returns the smallest round distance between ticks that is at least about.
func (u Unit) step(about float64) float64 {
	steps, size := []float64{1, 2, 5, 10}, math.Pow(10, math.Floor(math.Log10(about)))
	switch {
	case u == Bytes && about >= 1:
		steps = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1024}
		size = math.Pow(1024, math.Floor(math.Log2(about)/10))
	case u == Seconds && about > 3600:
		steps, size = []float64{1, 2, 3, 6, 12, 24, 48, 120, 240}, 3600
	case u == Seconds && about > 5:
		steps, size = []float64{10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600}, 1
	}
	for _, s := range steps {
		if s*size >= about {
			return s * size
		}
	}
	return math.Ceil(about/size) * size
}

// linear returns about five ticks, from 0 to the first that is not below end.
func linear(u Unit, end float64) (ticks []tick) {
	step := u.step(end / 5)
	for n := 0; ; n++ {
		v := float64(n) * step
		ticks = append(ticks, tick{v, u.text(v)})
		if v >= end*(1-1e-9) {
			return ticks
		}
	}
}

// decades returns ticks at 1, 10, 100 … around a range, and at 2 and 5 too if it is short.
func decades(u Unit, low, high float64) (ticks []tick) {
	multiples := []float64{1}
	if high/low < 200 {
		multiples = []float64{1, 2, 5}
	}
	for size := math.Pow(10, math.Floor(math.Log10(low))); size <= high*10; size *= 10 {
		for _, m := range multiples {
			v := size * m
			if len(ticks) > 0 && ticks[0].value <= low && v <= low {
				ticks = ticks[:0] // this one is nearer
			}
			ticks = append(ticks, tick{v, u.text(v)})
			if v >= high && len(ticks) > 1 {
				return ticks
			}
		}
	}
	return ticks
}

func each(u Unit, values []float64) (ticks []tick) {
	for _, v := range slices.Compact(slices.Sorted(slices.Values(values))) {
		ticks = append(ticks, tick{v, u.exact(v)})
	}
	return ticks
}

// exact formats the label of a value that was set, such as 1,536 dimensions: three digits would show another one.
func (u Unit) exact(v float64) string {
	if u == Count && v >= 1000 && v < 1e6 && v == math.Trunc(v) && strconv.FormatFloat(v/1000, 'f', -1, 64) != digits(v/1000) {
		return humanize.Comma(int64(v))
	}
	return u.text(v)
}

// thin removes the ticks of a horizontal axis whose labels would overlap, from the right: the last one stays.
func (s *scale) thin() {
	var kept []tick
	left := math.Inf(1) // the left edge of the label that was kept last
	for _, t := range slices.Backward(s.ticks) {
		x, half := s.at(t.value), width(t.label)/2
		if x+half+margin/2 <= left {
			kept = append(kept, t)
			left = x - half
		}
	}
	slices.Reverse(kept)
	s.ticks = kept
}
