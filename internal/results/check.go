package results

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/report"
)

// What a line may say is checked alike when it is written and when it is read: what no reader takes must not get in, and a
// file from elsewhere may claim anything.

// begin takes a head, which must be of the same sweep as the one before it: the entries in between are of cells by number.
func (r *Record) begin(h Head) error {
	if err := h.check(); err != nil {
		return err
	}
	if r.Head.Schema != "" {
		if d := r.Head.Difference(h); d != "" {
			return fmt.Errorf("this head is of another sweep than the one before it: %s", d)
		}
		if !slices.EqualFunc(r.Head.Parts, h.Parts, sameShape) {
			return errors.New("this head has the digest of the one before it and other cells")
		}
	}
	r.Head = h
	return nil
}

// sameShape tells whether the cells of two parts are the same by number.
func sameShape(a, b Part) bool {
	return a.Name == b.Name && slices.EqualFunc(a.Axes, b.Axes, func(a, b Axis) bool {
		return a.Name == b.Name && slices.Equal(a.Values, b.Values)
	})
}

func (h Head) check() error {
	if h.Repeats < 0 || h.Limit < 0 {
		return fmt.Errorf("repeats is %d and limit_seconds %g: neither may be negative", h.Repeats, h.Limit)
	}
	total := 0
	names := map[string]bool{}
	for i, p := range h.Parts {
		if names[p.Name] {
			return fmt.Errorf("the part %q is there twice", p.Name)
		}
		names[p.Name] = true
		cells, err := p.count()
		if err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
		if total += cells; total > MaxCells {
			return fmt.Errorf("more than %d cells", MaxCells)
		}
		if p.Cells != cells {
			return fmt.Errorf("part %d: its axes make %d cells, and it says %d", i, cells, p.Cells)
		}
		if p.Facts == nil {
			continue
		}
		for _, f := range p.Facts.Points {
			if err := noNegative("facts", f); err != nil {
				return fmt.Errorf("part %d: %w", i, err)
			}
		}
	}
	return nil
}

// count is the number of cells that the axes make, beyond MaxCells of no meaning.
func (p Part) count() (int, error) {
	cells := 1
	axes := map[string]bool{}
	for _, a := range p.Axes {
		if axes[a.Name] {
			return 0, fmt.Errorf("the axis %q is there twice", a.Name)
		}
		axes[a.Name] = true
		if len(a.Values) == 0 {
			return 0, fmt.Errorf("the axis %q has no values", a.Name)
		}
		values := map[string]bool{}
		for _, v := range a.Values {
			if values[v] {
				return 0, fmt.Errorf("the axis %q has the value %q twice", a.Name, v)
			}
			values[v] = true
		}
		cells = min(cells*min(len(a.Values), MaxCells+1), MaxCells+1)
	}
	return cells, nil
}

// check refuses an entry that is of no cell of the head.
func (r *Record) check(e Entry) error {
	if e.Part < 0 || e.Part >= len(r.Head.Parts) || e.Cell < 0 || e.Cell >= r.Head.Parts[e.Part].Cells {
		return fmt.Errorf("cell %d of part %d is none of this sweep's", e.Cell, e.Part)
	}
	if e.Repeat < 0 {
		return fmt.Errorf("repeat %d: they count from 0", e.Repeat)
	}
	if !slices.Contains([]Status{Measured, Limited, Failed, Skipped}, e.Status) {
		return fmt.Errorf("the status is %q: a newer terapush may have written it", e.Status)
	}
	if e.Seconds < 0 {
		return fmt.Errorf("seconds is %g: no push takes less than 0", e.Seconds)
	}
	return checkReport(e.Report)
}

// checkReport refuses figures that no push has, and that tables and charts cannot be made of. JSON has neither infinity
// nor NaN.
func checkReport(r *report.Report) error {
	if r == nil {
		return nil
	}
	plan := r.Plan
	plan.FirstKey = 0 // a key like any other
	err := cmp.Or(
		noNegative("plan", plan), noNegative("result", r.Result), noNegative("phases", r.Phases),
		noNegative("phase_rows_per_second", r.Rates), noNegative("latency", r.Latency),
		noNegative("batch_seconds", r.Latency.BatchSeconds), noNegative("client", r.Client), noNegative("stored", r.Stored),
		noNegative("verify", r.Verify))
	for _, m := range r.Timeline.Moments {
		err = cmp.Or(err, noNegative("timeline", m))
	}
	return err
}

// noNegative refuses a struct that has a number below 0.
func noNegative(what string, of any) error {
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		f := v.Field(i)
		if f.CanInt() && f.Int() < 0 || f.CanFloat() && f.Float() < 0 {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			return fmt.Errorf("%s: %s is %v: it cannot be below 0", what, name, f)
		}
	}
	return nil
}
