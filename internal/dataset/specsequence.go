package dataset

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/rows"
)

func (q *SpecSequence) plan(p *columnPlanner) (plan columnPlan) {
	if q.Of != "" {
		return p.refuse([]string{"sequence", "of"}, "sequence: of: %s is for a file with tables: write start", quoted(q.Of))
	}
	s := &sequence{every: q.Every, cycle: q.Cycle}
	if q.Every < 1 || q.Cycle < 0 {
		return p.refuse([]string{"sequence"}, "sequence: every is 1 or more, and cycle too if there is one")
	}

	_, most := p.t.bounds()
	number := *p // whose numbers are written as bigints, in a text
	if p.t.Variable() {
		number.t = specType{Type: rows.Int64, name: "bigint"}
		if !p.format(s, q.Format) {
			return plan
		}
		if s.digits <= 18 {
			most = tenTo(s.digits) - 1
		}
		plan.column.MaxBytes, plan.column.Plain = len(s.before)+s.digits+len(s.after), true
		plan.column.ASCII = isASCII([]byte(s.before + s.after))
	} else if q.Format != "" {
		p.wrong([]string{"sequence", "format"}, "sequence: format is for texts")
	}
	if q.Start == "" && p.t.isTime() {
		return p.refuse([]string{"sequence"}, "sequence needs start, as start: 2026-01-01")
	}
	s.start = number.number(&q.Start, 1, "sequence", "start")
	s.step = number.step(&q.Step, number.t.unit(), "sequence", "step")
	if p.hasProblem() {
		return plan
	}

	at := []string{"sequence", "start"}
	if s.start < 0 && !p.t.isTime() {
		return p.refuse(at, "a sequence starts at 0 or above, not at %s", q.Start)
	}
	if q.Most != "" {
		if most = min(most, number.number(&q.Most, 0, "sequence", "most")); most <= s.start {
			return p.refuse([]string{"sequence", "most"}, "sequence: most %s is not above its start, %s", q.Most, q.Start)
		}
		plan.span(uniformNumber{s.start, 1, uint64(most-s.start) + 1})
	}
	if s.start > most {
		return p.refuse(at, "sequence: start %s has more than the %d digits of its format", q.Start, s.digits)
	}
	if s.cycle > 0 {
		high, low := bits.Mul64(uint64(s.cycle-1), uint64(s.step))
		if high > 0 || low > uint64(most)-uint64(s.start) {
			return p.refuse([]string{"sequence", "cycle"},
				"sequence: the last of %d numbers from %s in steps of %s is too large",
				s.cycle, q.Start, q.Step)
		}
		plan.span(uniformNumber{s.start, uint64(s.step), uint64(s.cycle)})
	}
	p.endAt(s.largestRow(most))
	plan.derived, plan.numbering = s, numbering{s.every, s.cycle}
	plan.term = &rows.Term{Minus: s.start, Times: s.every}
	return plan
}

// maxDigits bounds the digits of a text sequence: one more than those of the largest int64.
const maxDigits = 20

// format splits the format of a text sequence, as TK-{:011}.
func (p *columnPlanner) format(s *sequence, format string) bool {
	at := []string{"sequence", "format"}
	if format == "" {
		p.wrong([]string{"sequence"}, "sequence of a text needs format, as format: \"TK-{:011}\" for TK- and 11 digits")
		return false
	}
	before, rest, open := strings.Cut(format, "{:0")
	digits, after, closed := strings.Cut(rest, "}")
	n, err := strconv.Atoi(digits)
	switch {
	case !open || !closed || err != nil || n < 1 || n > maxDigits || digits[0] == '0' || digits[0] == '+' ||
		strings.ContainsAny(before+after, "{}"):
		p.wrong(at, "sequence: format %s: write the digits as {:0N}, N from 1 to %d, once, as in \"TK-{:011}\"",
			quoted(format), maxDigits)
		return false
	case p.t.Type == rows.Char && strings.HasSuffix(after, " "):
		p.wrong(at, "sequence: format %s: a char(n) ends in no blank: servers cut them off", quoted(format))
		return false
	case !isPlain([]byte(before + after)):
		p.wrong(at, "sequence: format %s: around the digits there is no quote, comma, backslash or control character",
			quoted(format))
		return false
	}
	s.before, s.after, s.digits = before, after, n
	return true
}
