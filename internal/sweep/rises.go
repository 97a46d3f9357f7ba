package sweep

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/terapush/terapush/internal/config"
)

func (p *planner) checkKnee(plan Plan, n *node) {
	if plan.Knee == "" {
		return
	}
	var names []string
	for _, part := range plan.Parts {
		for _, a := range part.Axes {
			names = append(names, a.Name)
		}
	}
	if !slices.Contains(names, plan.Knee) {
		slices.Sort(names)
		p.add(n.named("knee").line, "knee: %v", config.Unknown("axis", plan.Knee, slices.Compact(names)))
	}
}

// ascent is how far an axis has risen.
type ascent struct {
	begun      bool
	isDuration bool
	amount     float64
	text       string
}

// rises refuses the next value of the knee's axis if it is not above the one before: rows end where more brings nothing,
// so that the sweep has to know what more is. An axis that falls would end at once, where there is most to gain.
func (p *planner) rises(was *ascent, axis, value string, line int) {
	amount, isDuration, ok := amountOf(value)
	switch {
	case !ok:
		p.add(line, "knee: %s of the axis %s is no number, size or duration, so that no value is more than another", value, axis)
		return
	case was.begun && isDuration != was.isDuration:
		p.add(line, "knee: %s and %s of the axis %s cannot be compared", was.text, value, axis)
	case was.begun && amount <= was.amount:
		p.add(line, "knee: the axis %s has %s behind %s: its values have to rise", axis, value, was.text)
	}
	*was = ascent{true, isDuration, amount, value}
}

// amountOf reads a value as tables do: 2000, 2e3, 16MiB, 90s.
func amountOf(text string) (amount float64, isDuration, ok bool) {
	n, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err == nil && !math.IsInf(n, 0) && !math.IsNaN(n) {
		return n, false, true
	}
	if d, err := time.ParseDuration(text); err == nil { // before sizes, to which 10m is ten million bytes
		return d.Seconds(), true, true
	}
	if n, err := humanize.ParseBytes(text); err == nil {
		return float64(n), false, true
	}
	return 0, false, false
}
