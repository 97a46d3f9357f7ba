package results

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/units"
)

// Threshold is what the median of a quantity has to be in every case that was measured.
type Threshold struct {
	Metric string  `json:"metric"` // one of Quantities
	Is     string  `json:"is"`     // >=, >, <= or <
	Limit  float64 `json:"limit"`  // in the metric's unit, as all figures
}

// Judged is a threshold with the cases that miss it.
type Judged struct {
	Threshold
	Cases  int    `json:"cases"`  // that were measured
	Missed []Miss `json:"missed"` // in the cases' order; never nil
}

// Miss is a case beyond a threshold.
type Miss struct {
	Settings Settings `json:"settings"`
	Measured bool     `json:"measured"` // else the pushes of the case have no such quantity
	Value    float64  `json:"value"`    // the median
}

// ParseThreshold reads a threshold of one of Quantities, as in ">= 50000". The limit may have a unit, as in "500MiB" or
// "200ms".
func ParseThreshold(metric, text string) (Threshold, error) {
	t := Threshold{Metric: metric}
	limit := ""
	for _, is := range []string{">=", "<=", ">", "<"} {
		if rest, found := strings.CutPrefix(strings.TrimSpace(text), is); found {
			t.Is, limit = is, strings.TrimSuffix(strings.TrimSpace(rest), "/s")
			break
		}
	}
	v, isTime, ok := units.Parse(limit)
	if t.Is == "" || !ok || v < 0 || isTime && !strings.HasSuffix(t.Metric, "seconds") {
		return t, fmt.Errorf("%s: %q is no threshold: write it as \">= 50000\", \"< 200ms\" or \">= 500MiB\", with >=, >, <= or <",
			metric, text)
	}
	t.Limit = v
	return t, nil
}

// String returns the threshold as plans have it.
func (t Threshold) String() string { return t.Metric + " " + t.Is + " " + t.show(t.Limit) }

// show formats a value so that one that just misses the limit looks different from it.
func (t Threshold) show(v float64) string {
	short, limit := show(t.Metric, v), show(t.Metric, t.Limit)
	if short == limit && v != t.Limit {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return short
}

func (t Threshold) met(v float64) bool {
	switch t.Is {
	case ">=":
		return v >= t.Limit
	case ">":
		return v > t.Limit
	case "<=":
		return v <= t.Limit
	}
	return v < t.Limit
}

// judge returns the thresholds of a part with the cases of the table that miss them, and marks these; never nil. Cases
// that were not measured miss none: that they failed or were skipped is told elsewhere.
func (t *Table) judge(thresholds []Threshold) []Judged {
	judged := make([]Judged, len(thresholds))
	for i, threshold := range thresholds {
		one := Judged{Threshold: threshold, Missed: []Miss{}}
		for _, n := range t.measured() {
			p := t.Points[n]
			one.Cases++
			s := p.sample(threshold.Metric)
			if s.N == 0 || !threshold.met(s.Median) {
				t.Points[n].missed = true
				one.Missed = append(one.Missed, Miss{Settings: p.Settings, Measured: s.N > 0, Value: s.Median})
			}
		}
		judged[i] = one
	}
	return judged
}

// String describes how a threshold fared, as in rows_per_second >= 50,000: missed in 1 of 2 cases (workers 1: 3,000).
func (j Judged) String() string {
	verdict, where := j.verdict()
	return j.Threshold.String() + ": " + units.Join(" ", verdict, where)
}

// verdict says whether the threshold is met, "" if that is not known, and where or why.
func (j Judged) verdict() (word, where string) {
	switch {
	case j.Cases == 0:
		return "", "no case was measured"
	case len(j.Missed) == 0:
		return "met", "in " + english.Plural(j.Cases, "case", "")
	}
	var cases []string
	for _, m := range j.Missed {
		value := "not measured"
		if m.Measured {
			value = j.show(m.Value)
		}
		cases = append(cases, units.Join(": ", m.Settings.String(), value))
	}
	return "missed", fmt.Sprintf("in %d of %s (%s)", len(j.Missed), english.Plural(j.Cases, "case", ""), firstFew(cases))
}

// Missed returns a sentence for each threshold that a case misses.
func Missed(tables []Table) (texts []string) {
	for _, t := range tables {
		for _, j := range t.Thresholds {
			if len(j.Missed) > 0 {
				texts = append(texts, units.Join(": ", t.Name, j.String()))
			}
		}
	}
	return texts
}
