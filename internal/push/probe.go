package push

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/target"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// probe sends the run's first row, rolls it back, and plans for a weaker guarantee if the row survives. Of a user's
// dataset it sends more rows then.
func (p *push) probe(ctx context.Context) error {
	if p.target.Can.Prober == nil || p.plan.Dedup != loader.DedupTx {
		return nil
	}
	asking := target.AskSoon[loader.Proof]
	if p.target.Found.HasRows { // without an index on the key, looking for the row may take a scan
		asking = target.Ask[loader.Proof]
	}
	proof, err := p.probeRows(ctx, []int64{0}, asking)
	if err != nil && p.plan.Definition != nil && isRefusal(err) {
		err = p.refusal(0, err)
	}
	if err != nil {
		return fmt.Errorf("probing for transactions: %w", p.target.Blame(err))
	}
	if proof.Transactional {
		return p.probeSample(ctx)
	}
	weaker := p.facts
	weaker.caps.Dedup, weaker.caps.Reason = loader.DedupNone, proof.Reason
	return p.replan(weaker)
}

// The most rows of a sample, and the most bytes of column data in them.
const (
	sampleRows  = 1000
	sampleBytes = 16 << 20
)

// probeSample sends rows from all over the run of a user's dataset, and rolls them back: a CHECK, a foreign key, a
// unique index, a trigger or a missing partition that refuses one of them would end the run after hours. It has
// PreflightTime for all of it.
func (p *push) probeSample(ctx context.Context) error {
	if p.plan.Definition == nil || p.target.Found.LongScan {
		return nil
	}
	sample := p.sample()
	err := target.Within(ctx, func(bound context.Context) error {
		_, err := p.probeRows(bound, sample, target.Ask[loader.Proof])
		if err != nil && isRefusal(err) {
			return p.findRefused(bound, sample, err)
		}
		return err
	})
	if used := p.target.Found.Numbered; len(used) > 0 {
		p.notes.Warnf("the probe used up to %d numbers of each of %s, which the server does not take back",
			p.probed, strings.Join(used, ", "))
	}
	switch {
	case errors.Is(err, target.ErrTooLate) && ctx.Err() == nil:
		p.notes.Warnf("the probe of %d rows took more than %s, so that not all were tried before the run",
			len(sample), target.PreflightTime)
		return nil
	case err != nil:
		return fmt.Errorf("probing %d rows of dataset %s, which were rolled back: %w",
			len(sample), p.plan.Dataset, p.target.Blame(err))
	}
	return nil
}

// sample lists rows of the run in ascending order: the first, the last, and random ones. Where they would move the
// count of an AUTO_INCREMENT to the run's end, for good, it is the first ones, behind which the run moves it soon.
func (p *push) sample() []int64 {
	last := p.plan.Rows - 1
	if p.plan.ByDuration() { // how many there will be is not known
		last = min(max(p.plan.DistinctRows, p.plan.BatchRows), p.plan.Rows) - 1
	}
	n := min(sampleRows, last+1, max(sampleBytes/max(p.plan.Data.Schema().MaxRowBytes(), 1), 1))
	if most := p.caps.MaxBytes; most > 0 { // of a message, in which rows are longer than in the mean
		n = min(n, max(most/(2*p.plan.EncodedRowBytes), 1))
	}

	if p.refersToFirst() { // and the rows that these refer to are sent as well
		n = max(n/3, 1)
	}
	if p.target.Found.Moved {
		last = min(last, sampleRows-1)
	}
	all := []int64{0, last}
	random := rand.New(rand.NewPCG(p.plan.Seed, 0))
	for int64(len(all)) < n {
		all = append(all, random.Int64N(last+1))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// findRefused sends fewer of the rows, of which the server has refused some, until it has found one.
func (p *push) findRefused(ctx context.Context, sample []int64, refused error) error {
	for len(sample) > 1 {
		half := len(sample) / 2
		first, second := sample[:half], sample[half:]
		err := p.refuses(ctx, first)
		if err == nil {
			first = second
			err = p.refuses(ctx, second)
		}
		switch {
		case err == nil:
			return &loader.Error{
				Op: "probe", Applied: loader.No, Err: fmt.Errorf("two rows exclude each other: %w", refused),
				Hint: "a unique column has to be derived, by a sequence or a uuid, and named under unique in the file",
			}
		case !isRefusal(err):
			return err
		}
		sample, refused = first, err
	}

	for _, row := range p.withParents(sample) { // each of which is sent after its own parents
		if err := p.refuses(ctx, []int64{row}); err != nil && isRefusal(err) {
			return p.refusal(row, err)
		}
	}
	return p.refusal(sample[0], refused)
}

// withParents adds the rows of the same table that some rows of the run refer to.
func (p *push) withParents(sample []int64) []int64 {
	if !p.refersToFirst() {
		return sample
	}
	drawn := slices.Clone(sample)
	for i := range drawn {
		if p.plan.DistinctRows > 0 {
			drawn[i] %= p.plan.DistinctRows
		}
	}
	all := append(dataset.WithParents(p.plan.Data, drawn), sample...) // rows that repeat another refer to the same ones
	slices.Sort(all)
	return slices.Compact(all)
}

// failingRow is where PostgreSQL shows the values of a row, which may be like the names of columns.
var failingRow = regexp.MustCompile(`(?s)Failing row contains \(.*\)`)

func (p *push) refuses(ctx context.Context, sample []int64) error {
	_, err := p.probeRows(ctx, sample, target.Ask[loader.Proof])
	return err
}

// isRefusal reports whether the server has refused the rows themselves.
func isRefusal(err error) bool {
	switch loader.VerdictOf(err).Class {
	case loader.ClassRows, loader.ClassConstraint, loader.ClassData, loader.ClassOther:
		return true
	}
	return false
}

// refusal adds to the server's words the row, with the columns that they name, if only within the name of a constraint.
func (p *push) refusal(row int64, err error) error {
	d := p.plan.Data
	block := rows.NewBlock(d.Schema())
	dataset.Row(block, d, p.plan.FirstKey, row, p.plan.DistinctRows)

	said := failingRow.ReplaceAllString(err.Error(), "")
	var named, within, all []string
	for i, c := range d.Schema().Columns {
		text := c.Name + " " + valueText(c, &block.Columns[i])
		all = append(all, text)
		name := regexp.QuoteMeta(c.Name)
		if regexp.MustCompile(`(?i)(^|\W)` + name + `(\W|$)`).MatchString(said) {
			named = append(named, text)
		}
		if regexp.MustCompile(`(?i)(^|\W|_)` + name + `(\W|_|$)`).MatchString(said) {
			within = append(within, text)
		}
	}
	for _, more := range [][]string{within, all} {
		if len(named) == 0 {
			named = more
		}
	}
	const most = 8
	if len(named) > most {
		named = append(named[:most:most], "…")
	}
	hint := "correct the generator in the file of --dataset (terapush inspect writes one that fits a table), or what " +
		"the table demands"
	if p.Config.RowsOfLike() {
		hint = "write the file with terapush inspect, correct the generator in it, and give it as --dataset " +
			"in place of --like"
	}
	if isUnchecked(p.Config.Own) {
		hint = "push " + dataset.WithoutChecks + ": a table that this one refers to is filled later; or " + hint
	}
	return &loader.Error{
		Op: "probe", Applied: loader.No,
		Err: fmt.Errorf("the row with %s is refused: %w; it has %s",
			dataset.KeyOf(d, p.plan.FirstKey+row), err, strings.Join(named, ", ")),
		Hint: hint,
	}
}

// isUnchecked reports whether a column refers to a table that is filled later.
func isUnchecked(s *dataset.Spec) bool {
	return s != nil && slices.ContainsFunc(s.Columns, func(c dataset.SpecColumn) bool {
		ref, is := c.Generator.(*dataset.SpecRef)
		return is && ref.Unchecked
	})
}

// valueText shows the value of the only row of a vector, and of a long one the beginning.
func valueText(c rows.Column, v *rows.Vector) string {
	const most = 60
	text := ""
	switch {
	case v.IsNull(0):
		return "NULL"
	case c.Type.InBytes():
		text = c.TextOf(v.UUID(0))
	case c.Type.IsList():
		text = string(c.AppendList(nil, v.Value(0)))
	case c.Type == rows.Bytes:
		text = fmt.Sprintf("%x", v.Value(0))
	case c.Type.Variable():
		text = fmt.Sprintf("%q", v.Value(0))
	default:
		text = c.Text(v.Ints[0])
	}
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return text
}

// asking is target.Ask or target.AskSoon of a proof.
type asking func(
	context.Context, *target.Target, string, func(context.Context) (loader.Proof, error),
) (loader.Proof, error)

// probeRows sends some rows of the run in a transaction that is rolled back.
func (p *push) probeRows(ctx context.Context, sample []int64, ask asking) (loader.Proof, error) {
	sample = p.withParents(sample)
	one, free, err := p.input.probeBatch(ctx, sample)
	if err != nil {
		return loader.Proof{}, err
	}
	defer free()
	p.probed += len(sample)
	return ask(ctx, p.target, "probe", func(ctx context.Context) (loader.Proof, error) {
		return p.target.Can.Prober.Probe(ctx, p.plan.Contract, one)
	})
}
