package sqlload

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// Suspects implements loader.Suspecter.
func (t *Table) Suspects(ctx context.Context) (suspects []string, err error) {
	if t.Effects == nil {
		return nil, nil
	}
	err = t.do(ctx, "look for triggers and policies", func(c Conn, s *State) error {
		found, err := Rows(ctx, c, t.Effects(s))
		for _, row := range found {
			suspects = append(suspects, fmt.Sprintf("%s of table %s, which %s (%s)", row[0], s.Table, row[1], row[2]))
		}
		return err
	})
	return suspects, err
}

// CheckEffects is the doctor's question about what Suspects names.
func (t *Table) CheckEffects(s *State) Check {
	return Check{Name: "triggers, policies", Ask: t.Effects(s), Judge: func(all []string) (none loader.Finding) {
		if len(all) == 0 {
			return none
		}
		var has, fixes []string
		for row := range slices.Chunk(all, 3) {
			has, fixes = append(has, row[0]+", which "+row[1]), append(fixes, row[2])
		}
		return Warn(s.Table+" has "+strings.Join(has, "; "), strings.Join(slices.Compact(fixes), "; "))
	}}
}

// Sequences implements loader.Sequencer.
func (t *Table) Sequences(ctx context.Context, last int64, move bool) (statements []string, err error) {
	if t.Behind == nil {
		return nil, nil
	}
	err = t.do(ctx, "look for sequences", func(c Conn, s *State) (err error) {
		key := s.Schema.Key()
		if !key.Type.IsInteger() || s.Relation == nil {
			return nil
		}
		number := s.Schema.Number[0]
		if block := number.Stride * number.Stride; block > 0 {
			last += block - 1 - last%block // whose value is the largest of all
		}
		largest := last/number.Times + number.Minus
		if statements, err = t.Behind(ctx, c, s, largest); err != nil || !move {
			return err
		}
		for _, statement := range statements {
			if _, err := c.Exec(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	})
	return statements, err
}
