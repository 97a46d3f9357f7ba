package results

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/report"
)

// Digest stands for all that the cells of the parts are told: flags, those of single methods included, axes, and the
// limit of one push, which decides what is measured. It does not stand for titles and facts, nor for what only
// decides which cells are pushed, when and how often: repeats, budget, settle, knee.
func Digest(parts []Part, limit time.Duration) string {
	told := []any{limit.Seconds()}
	for _, p := range parts {
		told = append(told, []any{p.Name, p.Push, p.Methods, p.Axes})
	}
	text, err := json.Marshal(told) // the keys of maps come sorted
	if err != nil {
		panic(fmt.Sprintf("results: %v", err)) // strings and lists of them alone
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Same reports whether two heads say the same of a sweep. When it was begun is left out.
func (h Head) Same(other Head) bool {
	h.Started = other.Started
	was, err := json.Marshal(h)
	is, err2 := json.Marshal(other)
	return err == nil && err2 == nil && bytes.Equal(was, is) // as lines: nil and empty are one there
}

// Difference says in one line where the sweep of a record differs from the one that is to go on with it; "" where both
// tell their cells the same.
func (h Head) Difference(now Head) string {
	limit := func(seconds float64) string {
		if seconds == 0 {
			return "none"
		}
		return time.Duration(seconds * float64(time.Second)).String()
	}
	switch {
	case h.Digest == now.Digest:
		return ""
	case h.Name != now.Name:
		return fmt.Sprintf("it is of the plan %q, this is %q", h.Name, now.Name)
	case h.Scale != now.Scale:
		return fmt.Sprintf("its scale is %q, this is %q", h.Scale, now.Scale)
	case h.Limit != now.Limit:
		return fmt.Sprintf("limit was %s, now it is %s", limit(h.Limit), limit(now.Limit))
	case len(h.Parts) != len(now.Parts):
		return fmt.Sprintf("its plan has %d parts, this one has %d", len(h.Parts), len(now.Parts))
	}
	for i, was := range h.Parts {
		if d := was.difference(now.Parts[i]); d != "" && was.Name != "" {
			return fmt.Sprintf("part %s: %s", was.Name, d)
		} else if d != "" {
			return d
		}
	}
	return "its plan is another"
}

func (p Part) difference(now Part) string {
	if p.Name != now.Name {
		return fmt.Sprintf("its name is now %q", now.Name)
	}
	was, is := p.values(), now.values()
	names := slices.Concat(slices.Collect(maps.Keys(was)), slices.Collect(maps.Keys(is)))
	slices.Sort(names)
	for _, name := range names {
		if was[name] != is[name] {
			return fmt.Sprintf("%s was %s, now it is %s", name, cmp.Or(was[name], "not given"), cmp.Or(is[name], "not given"))
		}
	}
	if len(p.Axes) != len(now.Axes) {
		return fmt.Sprintf("it has %d axes, now %d", len(p.Axes), len(now.Axes))
	}
	for i, a := range p.Axes {
		if a.Name != now.Axes[i].Name {
			return fmt.Sprintf("its axes come in another order: %s was where %s is now", a.Name, now.Axes[i].Name)
		}
	}
	return ""
}

// values returns a part's flags and axes by name.
func (p Part) values() map[string]string {
	all := map[string]string{}
	for name, values := range p.Push {
		if name != "target" {
			name = "--" + name
		}
		all[name] = strings.Join(values, ", ")
	}
	for method, push := range p.Methods {
		for name, values := range push {
			all["--"+name+" of "+method] = strings.Join(values, ", ")
		}
	}
	for _, a := range p.Axes {
		all["axis "+a.Name] = "[" + strings.Join(a.Values, ", ") + "]"
	}
	return all
}

// What a line may say is checked alike when it is written and when it is read: what no reader takes must not get in,
// and a file from elsewhere may claim anything.

// begin takes a head, which must be of the same sweep as the one before it: the entries in between are of cells by
// number.
func (r *Record) begin(h Head) error {
	if err := h.check(); err != nil {
		return err
	}
	if r.Head.Schema != "" {
		if d := r.Head.Difference(h); d != "" {
			return fmt.Errorf("this head is of another sweep than the one before it: %s", d)
		}
		if !slices.EqualFunc(r.Head.Parts, h.Parts, sameCells) {
			return errors.New("this head has the digest of the one before it and other cells")
		}
	}
	r.Head = h
	return nil
}

// sameCells reports whether the cells of two parts are the same by number.
func sameCells(a, b Part) bool {
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

// count returns the number of cells that the axes make, beyond MaxCells of no meaning.
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
