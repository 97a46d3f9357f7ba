package verify

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// compare reads a sample of rows back in one statement, since a table without an index is scanned for every
// statement, and compares each with the row made anew.
func (r *Result) compare(ctx context.Context, f loader.Fetcher, e Expect) error {
	keys := spread(e.Rows, int64(cmp.Or(e.VerifyRows, DefaultVerifyRows)), e.Seed)
	if len(keys) == 0 {
		return nil
	}
	for i := range keys {
		keys[i] += e.FirstKey
	}
	r.SampledRows = int64(len(keys))
	before := *r
	return e.ask(ctx, "sample", func(ctx context.Context) error {
		*r = before
		return r.fetch(ctx, f, e, keys)
	})
}

func (r *Result) fetch(ctx context.Context, f loader.Fetcher, e Expect, keys []int64) error {
	times := make([]int, len(keys)) // how often each row was there
	wanted := rows.NewBlock(e.Dataset.Schema())
	err := f.Fetch(ctx, keys, func(key int64, values []any) error {
		i, asked := slices.BinarySearch(keys, key)
		if !asked {
			return fmt.Errorf("the back-end returned row %d, which nobody asked for", key)
		}
		times[i]++
		dataset.Row(wanted, e.Dataset, e.FirstKey, key-e.FirstKey, e.Distinct)
		difference, err := differ(e.Dataset.Schema(), wanted, values)
		if difference != nil {
			difference.Key = key
			r.addRow(*difference)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("verify: reading rows back: %w", err)
	}
	for i, n := range times {
		switch {
		case n == 0:
			r.addRow(BadRow{Key: keys[i], Reason: Missing})
		case n > 1:
			r.addRow(BadRow{Key: keys[i], Reason: Doubled})
		}
	}
	return nil
}

// differ finds the first column in which values is not the row in the block; nil when they are the same.
func differ(s rows.Schema, want *rows.Block, values []any) (*BadRow, error) {
	if len(values) != len(s.Columns) {
		return nil, fmt.Errorf("the back-end returned %d columns instead of %d", len(values), len(s.Columns))
	}
	for i, c := range s.Columns {
		detail, offset := "", 0
		switch found := values[i].(type) {
		case nil:
			detail = "it is NULL"
		case int64:
			if c.Type.Variable() {
				return nil, fmt.Errorf("the back-end returned a number for column %s of type %s", c.Name, c.Type)
			}
			if w := want.Columns[i].Ints[0]; found != w {
				detail = fmt.Sprintf("%s instead of %s", shown(c, found), shown(c, w))
			}
		case []byte:
			if !c.Type.Variable() {
				return nil, fmt.Errorf("the back-end returned bytes for column %s of type %s", c.Name, c.Type)
			}
			detail, offset = differBytes(want.Columns[i].Value(0), found)
		default:
			return nil, fmt.Errorf("the back-end returned a %T for column %s", found, c.Name)
		}
		if detail != "" {
			return &BadRow{Reason: Differs, Column: c.Name, Offset: offset, Detail: detail}, nil
		}
	}
	return nil, nil
}

// shown is a value that is not of variable length, as people write it.
func shown(c rows.Column, v int64) string {
	switch c.Type {
	case rows.Date:
		return time.Unix(v*24*60*60, 0).UTC().Format(time.DateOnly)
	case rows.Timestamp:
		return time.UnixMicro(v).UTC().Format("2006-01-02 15:04:05.000000")
	case rows.Decimal:
		sign, all := "", uint64(v)
		if v < 0 {
			sign, all = "-", -all
		}
		digits := fmt.Sprintf("%0*d", c.Scale+1, all)
		point := len(digits) - c.Scale
		return sign + digits[:point] + "." + digits[point:]
	default:
		return strconv.FormatInt(v, 10)
	}
}

// differBytes names the first byte that is not as wanted; "" when all are.
func differBytes(want, found []byte) (detail string, offset int) {
	if bytes.Equal(want, found) {
		return "", 0
	}
	for offset < min(len(want), len(found)) && want[offset] == found[offset] {
		offset++
	}
	if offset < min(len(want), len(found)) {
		detail = fmt.Sprintf("0x%02x instead of 0x%02x", found[offset], want[offset])
	}
	if len(want) != len(found) {
		length := fmt.Sprintf("%d bytes long instead of %d", len(found), len(want))
		if detail == "" {
			return length, offset
		}
		detail += ", " + length
	}
	return detail, offset
}
