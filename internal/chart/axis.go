package chart

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"gonum.org/v1/plot"
)

// Unit is what an axis counts in: it decides where ticks stand and how they read.
type Unit int

// The units.
const (
	Count Unit = iota
	Bytes
	Seconds
)

// Text is a number as ticks have it: 2k, 1.5M; 64 KiB; 250 ms, 1.5 min.
func (u Unit) Text(v float64) string {
	switch {
	case v == 0:
		return "0"
	case u == Bytes && v >= 1024:
		n, e := v, 0
		for n >= 1024 && e < len(binary)-1 {
			n, e = n/1024, e+1
		}
		return digits(n) + " " + binary[e]
	case u == Bytes:
		return digits(v) + " B"
	case u == Seconds && v >= 3600:
		return digits(v/3600) + " h"
	case u == Seconds && v >= 60:
		return digits(v/60) + " min"
	case u == Seconds:
		n, prefix := humanize.ComputeSI(v)
		return digits(n) + " " + prefix + "s"
	}
	if v < 1 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	n, prefix := humanize.ComputeSI(v)
	return digits(n) + prefix
}

var binary = [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}

// digits are the first three of a number.
func digits(n float64) string {
	behind := 2
	switch {
	case math.Abs(n) >= 100:
		behind = 0
	case math.Abs(n) >= 10:
		behind = 1
	}
	s := strconv.FormatFloat(n, 'f', behind, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// steps are distances that people count in, for ticks at most so far apart as a unit's next size.
func (u Unit) steps(about float64) float64 {
	steps, size := []float64{1, 2, 5, 10}, math.Pow(10, math.Floor(math.Log10(about)))
	switch {
	case u == Bytes && about >= 1:
		steps = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1024}
		size = math.Pow(1024, math.Floor(math.Log2(about)/10))
	case u == Seconds && about > 5:
		steps, size = []float64{10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600}, 1
		if about > 3600 {
			steps, size = []float64{1, 2, 3, 6, 12, 24, 48, 120, 240}, 3600
		}
	}
	for _, s := range steps {
		if s*size >= about {
			return s * size
		}
	}
	return math.Ceil(about/size) * size
}

// linear has about as many ticks as asked for, from 0 to the first that is not below the axis's end.
func linear(u Unit, end float64, count int) plot.ConstantTicks {
	step := u.steps(end / float64(count))
	var ticks plot.ConstantTicks
	for n := 0; ; n++ {
		v := float64(n) * step
		ticks = append(ticks, plot.Tick{Value: v, Label: u.Text(v)})
		if v >= end*(1-1e-9) {
			return ticks
		}
	}
}

// decades has ticks at 1, 10, 100 … around a range, and at 2 and 5 too where it is short.
func decades(u Unit, low, high float64) plot.ConstantTicks {
	between := []float64{1}
	if high/low < 200 {
		between = []float64{1, 2, 5}
	}
	var ticks plot.ConstantTicks
	for size := math.Pow(10, math.Floor(math.Log10(low))); size <= high*10; size *= 10 {
		for _, m := range between {
			v := size * m
			if len(ticks) > 0 && ticks[0].Value <= low && v <= low {
				ticks = ticks[:0] // this one is nearer
			}
			ticks = append(ticks, plot.Tick{Value: v, Label: u.Text(v)})
			if v >= high && len(ticks) > 1 {
				return ticks
			}
		}
	}
	return ticks
}

// at has ticks at the values themselves, as far as their labels have room; norm is a value's place between 0 and 1 on an
// axis that is so many units wide.
func at(u Unit, values []float64, room float64, norm func(float64) float64) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for _, v := range slices.Compact(slices.Sorted(slices.Values(values))) {
		ticks = append(ticks, plot.Tick{Value: v, Label: u.Text(v)})
	}
	return thinned(ticks, room, norm)
}

// thinned leaves out ticks whose labels would run into others. They are set from the right: the last is always there.
func thinned(ticks plot.ConstantTicks, room float64, norm func(float64) float64) (kept plot.ConstantTicks) {
	left := math.Inf(1) // of the label before
	for _, t := range slices.Backward(ticks) {
		x, half := norm(t.Value)*room, width(t.Label)/2
		if x+half+margin <= left {
			kept = append(kept, t)
			left = x - half
		}
	}
	slices.Reverse(kept)
	return kept
}
