package run

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

type caps = loader.Caps

// defaults returns a method of 200 bytes a row, or 100 as CSV, and a run.
func defaults() (caps, want) {
	c := caps{Formats: []batch.Format{batch.PGBinary, batch.CSV}, Dedup: loader.DedupTx, Atomic: true, DefaultBatchBytes: 1 << 20}
	return c, want{
		Wish: Wish{Method: "copy", Delivery: loader.DeliveryAuto}, rows: 1_000_000, workers: 4,
		carries:  func(batch.Format) error { return nil },
		rowBytes: func(f batch.Format) int64 { return map[batch.Format]int64{batch.PGBinary: 100}[f] + 100 },
	}
}

func TestNegotiate(t *testing.T) {
	onlyBinary := func(f batch.Format) error {
		if f == batch.PGBinary {
			return nil
		}
		return errors.New(string(f) + " cannot carry bytes: choose --payload-kind text")
	}
	best := loader.Contract{
		Method: "copy", Format: batch.PGBinary, Delivery: loader.ExactlyOnce, Dedup: loader.DedupTx, BatchRows: 1 << 20 / 200,
	}
	csv, weaker := best, best
	csv.Format, csv.BatchRows = batch.CSV, 1<<20/100
	weaker.Delivery, weaker.Dedup = loader.AtLeastOnce, loader.DedupNone
	for name, c := range map[string]struct {
		change  func(*caps, *want)
		want    loader.Contract
		warning string
		err     string
	}{
		"the best of all":      {change: func(*caps, *want) {}, want: best},
		"the format asked for": {change: func(_ *caps, w *want) { w.Format = batch.CSV }, want: csv},
		"the first format that can carry the rows": {
			change: func(c *caps, w *want) { c.Formats, w.carries = []batch.Format{batch.CSV, batch.PGBinary}, onlyBinary },
			want:   best,
		},
		"a format of another method": {
			change: func(_ *caps, w *want) { w.Format = batch.TSV },
			err:    `method copy does not take format "tsv"; it takes pgbinary, csv`,
		},
		"a format that cannot carry the rows": {
			change: func(_ *caps, w *want) { w.Format, w.carries = batch.CSV, onlyBinary },
			err:    "csv cannot carry bytes: choose --payload-kind text",
		},
		"no format that can carry the rows": {
			change: func(c *caps, w *want) { c.Formats, w.carries = []batch.Format{batch.CSV}, onlyBinary },
			err:    "no format of method copy can carry these rows: csv cannot carry bytes: choose --payload-kind text",
		},
		"less than could be had, as asked": {change: func(_ *caps, w *want) { w.Delivery = loader.AtLeastOnce }, want: weaker},
		"less than one might expect": {
			change: func(c *caps, _ *want) { c.Dedup, c.Reason = loader.DedupNone, "MyISAM keeps rows" },
			want:   weaker, warning: "delivery is at least once: MyISAM keeps rows",
		},
		"less than is wanted": {
			change: func(c *caps, w *want) {
				c.Dedup, c.Reason, w.Delivery = loader.DedupNone, "MyISAM keeps rows", loader.ExactlyOnce
			},
			err: "method copy cannot deliver exactly once here: MyISAM keeps rows; choose --delivery at-least-once to do without",
		},
		"less than is wanted, for no special reason": {
			change: func(c *caps, w *want) { c.Dedup, w.Delivery = loader.DedupNone, loader.ExactlyOnce },
			err:    "the database cannot recognise a batch that it has loaded before",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, w := defaults()
			c.change(&a, &w)
			got, warnings, err := w.negotiate(a)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			require.Equal(t, c.warning, strings.Join(warnings, "\n"))
		})
	}
}

func TestNegotiateSizes(t *testing.T) {
	staged := func(change func(*caps, *want)) func(*caps, *want) {
		return func(c *caps, w *want) {
			c.Staged, c.DefaultGroupBytes, w.BatchRows = true, 32*100*200, 100
			change(c, w)
		}
	}
	for name, c := range map[string]struct {
		change        func(*caps, *want)
		rows, batches int64 // of a batch, of a group
		err           string
	}{
		"the rows asked for":                 {change: func(_ *caps, w *want) { w.BatchRows = 7 }, rows: 7},
		"the bytes asked for":                {change: func(_ *caps, w *want) { w.BatchBytes = 2000 }, rows: 10},
		"less than a row":                    {change: func(_ *caps, w *want) { w.BatchBytes = 1 }, rows: 1},
		"four batches a worker":              {change: func(_ *caps, w *want) { w.rows = 1600 }, rows: 100},
		"four batches a worker, of more":     {change: func(_ *caps, w *want) { w.rows, w.workers = 1600, 40 }, rows: 10},
		"not if the bytes were asked for":    {change: func(_ *caps, w *want) { w.rows, w.BatchBytes = 1600, 1<<20 }, rows: 1600},
		"fewer rows than workers":            {change: func(_ *caps, w *want) { w.rows = 3 }, rows: 1},
		"more where one worker waits alone":  {change: func(c *caps, w *want) { c.SoloBatchBytes, w.workers = 4<<20, 1 }, rows: 4 << 20 / 200},
		"half of it for two":                 {change: func(c *caps, w *want) { c.SoloBatchBytes, w.workers = 4<<20, 2 }, rows: 2 << 20 / 200},
		"and not less than for many":         {change: func(c *caps, w *want) { c.SoloBatchBytes, w.workers = 4<<20, 8 }, rows: 1 << 20 / 200},
		"not more than the run":              {change: func(_ *caps, w *want) { w.rows, w.BatchRows = 3, 7 }, rows: 3},
		"as many as the method needs":        {change: func(c *caps, w *want) { c.MinRows, w.rows = 500, 1600 }, rows: 500},
		"even for a shorter run":             {change: func(c *caps, w *want) { c.MinRows, w.rows = 500, 10 }, rows: 500},
		"at most what the method takes":      {change: func(c *caps, _ *want) { c.MaxRows = 100 }, rows: 100},
		"at most the bytes the method takes": {change: func(c *caps, _ *want) { c.MaxBytes = 4000 }, rows: 20},
		"fewer than the method needs": {
			change: func(c *caps, w *want) { c.MinRows, w.BatchRows = 500, 499 },
			err:    "a batch of 499 rows is less than the 500 that method copy needs here",
		},
		"more than the method takes": {
			change: func(c *caps, w *want) { c.MaxRows, w.BatchRows = 100, 101 },
			err:    "a batch of 101 rows is more than the 100 that method copy takes here",
		},
		"more bytes than the method takes": {
			change: func(c *caps, w *want) { c.MaxBytes, w.BatchBytes = 4000, 5000 },
			err: "a batch of 25 rows is about 5000 bytes, more than the 4000 that method copy takes here: " +
				"lower --batch-rows or --batch-bytes",
		},
		"more bytes, in as many rows as the method takes": {
			change: func(c *caps, w *want) { c.MaxRows, c.MaxBytes, w.BatchBytes = 30, 4000, 1<<20 },
			err:    "a batch of 30 rows is about 6000 bytes",
		},
		"a giant row": {
			change: func(c *caps, w *want) { c.MaxBytes, w.rowBytes = 1<<20, func(batch.Format) int64 { return 2 << 20 } },
			err:    "a batch of 1 rows is about 2097152 bytes",
		},
		"a group of the default bytes": {change: staged(func(*caps, *want) {}), rows: 100, batches: 32},
		"four groups a run":            {change: staged(func(_ *caps, w *want) { w.rows = 1600 }), rows: 100, batches: 4},
		"the batches asked for":        {change: staged(func(_ *caps, w *want) { w.CommitBatches = 700 }), rows: 100, batches: 700},
		"at most what is committed at once": {
			change: staged(func(c *caps, _ *want) { c.MaxGroupBatches = 20 }), rows: 100, batches: 20,
		},
		"as many as are committed at once": {
			change: staged(func(c *caps, w *want) { c.MaxGroupBatches, w.CommitBatches = 20, 20 }), rows: 100, batches: 20,
		},
		"more than are committed at once": {
			change: staged(func(c *caps, w *want) { c.MaxGroupBatches, w.CommitBatches = 20, 21 }),
			err:    "a group of 21 batches is more than the 20 that method copy commits at once: lower --commit-batches",
		},
		"groups of a method that has none": {
			change: func(_ *caps, w *want) { w.CommitBatches = 2 }, err: "--commit-batches is for methods that store objects first",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, w := defaults()
			c.change(&a, &w)
			got, _, err := w.negotiate(a)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []int64{c.rows, c.batches}, []int64{got.BatchRows, got.GroupBatches})
		})
	}
}
