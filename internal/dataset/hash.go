package dataset

import "github.com/terapush/terapush/pkg/rows"

// SpecHash makes a derived value of a range that looks random, and repeats: what SpecRange draws, of the row's own number.
type SpecHash struct{ SpecRange }

func (h *SpecHash) plan(p *columnPlanner) (plan columnPlan) {
	of := p.spread(&h.SpecRange, "hash")
	if p.hasProblem() {
		return plan
	}
	if of.least < 0 && p.t.IsInteger() {
		return p.refuse([]string{"hash", "min"}, "hash: a derived number is 0 or above, not %s", h.Min)
	}
	plan.span(of)
	plan.derived = &hashed{of, nameStart(p.c.Name)}
	return plan
}

// hashed derives numbers.
type hashed struct {
	uniformNumber
	start uint64
}

func (h *hashed) derive(v *rows.Vector, first int64, n int) { h.fill(v, h.start, first, n) }

func (h *hashed) largest(int64) int64 { return h.uniformNumber.largest() }
