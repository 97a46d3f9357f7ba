package sweep

import (
	"fmt"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/record"
)

// Line tells of a push that ended, and where the sweep is. It may hold whatever a server says.
func (s *Sweep) Line(p Progress, e record.Entry) string {
	words := []string{s.Describe(p.Case)}
	switch {
	case p.WarmUp:
		words[0] = "warm-up, " + words[0]
	case s.Plan.Repeats > 1:
		words[0] += fmt.Sprintf(" (%d of %d)", p.Repeat+1, s.Plan.Repeats)
	}
	switch e.Status {
	case record.Measured, record.Limited:
		res := e.Report.Result
		words[0] += fmt.Sprintf(": %s rows/s, %s/s", count(res.RowsPerSecond), sizeOf(int64(res.BytesPerSecond)))
		if e.Status == record.Limited {
			words[0] += " until the limit"
		}
	case record.Failed:
		words[0] += ": FAILED: " + strings.Join(strings.Fields(e.Error), " ")
	case record.Skipped:
		words[0] += ": skipped, " + e.Error
	}
	words = append(words, "took "+rounded(time.Duration(e.Seconds*float64(time.Second))), "elapsed "+rounded(p.Elapsed))
	if p.Left > 0 {
		words = append(words, "about "+rounded(p.Left)+" left")
	}
	return fmt.Sprintf("[%*d/%d] %s", len(fmt.Sprint(p.Total)), p.Number, p.Total, strings.Join(words, " | "))
}
