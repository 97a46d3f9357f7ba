package loader_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

func want() loader.Want {
	return loader.Want{
		Method: "copy", Delivery: loader.DeliveryAuto, Rows: 1_000_000, Workers: 4,
		Carries:  func(batch.Format) error { return nil },
		RowBytes: func(f batch.Format) int64 { return map[batch.Format]int64{batch.PGBinary: 100}[f] + 100 },
	}
}

func caps() loader.Caps {
	return loader.Caps{
		Formats: []batch.Format{batch.PGBinary, batch.CSV}, Dedup: loader.DedupTx, Atomic: true, DefaultBatchBytes: 1 << 20,
	}
}

func TestNegotiate(t *testing.T) {
	onlyText := func(f batch.Format) error {
		if f == batch.PGBinary {
			return nil
		}
		return errors.New(string(f) + " cannot carry bytes: choose --payload-kind text")
	}
	for _, c := range []struct {
		name    string
		change  func(*loader.Caps, *loader.Want)
		want    loader.Contract
		warning string
		err     string
	}{
		{
			name:   "the best of all",
			change: func(*loader.Caps, *loader.Want) {},
			want:   loader.Contract{Format: batch.PGBinary, Delivery: loader.ExactlyOnce, Dedup: loader.DedupTx, BatchRows: 1 << 20 / 200},
		},
		{
			name:   "the format asked for",
			change: func(_ *loader.Caps, w *loader.Want) { w.Format = batch.CSV },
			want:   loader.Contract{Format: batch.CSV, Delivery: loader.ExactlyOnce, Dedup: loader.DedupTx, BatchRows: 1 << 20 / 100},
		},
		{
			name: "the first format that can carry the rows",
			change: func(c *loader.Caps, w *loader.Want) {
				c.Formats = []batch.Format{batch.CSV, batch.PGBinary}
				w.Carries = onlyText
			},
			want: loader.Contract{Format: batch.PGBinary, Delivery: loader.ExactlyOnce, Dedup: loader.DedupTx, BatchRows: 1 << 20 / 200},
		},
		{
			name:   "a format of another method",
			change: func(_ *loader.Caps, w *loader.Want) { w.Format = batch.TSV },
			err:    `method copy does not take format "tsv"; it takes pgbinary, csv`,
		},
		{
			name:   "a format that cannot carry the rows",
			change: func(_ *loader.Caps, w *loader.Want) { w.Format, w.Carries = batch.CSV, onlyText },
			err:    "csv cannot carry bytes: choose --payload-kind text",
		},
		{
			name: "no format that can carry the rows",
			change: func(c *loader.Caps, w *loader.Want) {
				c.Formats, w.Carries = []batch.Format{batch.CSV}, onlyText
			},
			err: "no format of method copy can carry these rows: csv cannot carry bytes: choose --payload-kind text",
		},
		{
			name:   "less than could be had, as asked",
			change: func(_ *loader.Caps, w *loader.Want) { w.Delivery = loader.AtLeastOnce },
			want:   loader.Contract{Format: batch.PGBinary, Delivery: loader.AtLeastOnce, BatchRows: 1 << 20 / 200},
		},
		{
			name:    "less than one might expect",
			change:  func(c *loader.Caps, _ *loader.Want) { c.Dedup, c.Reason = loader.DedupNone, "MyISAM keeps rows" },
			want:    loader.Contract{Format: batch.PGBinary, Delivery: loader.AtLeastOnce, BatchRows: 1 << 20 / 200},
			warning: "delivery is at least once: MyISAM keeps rows",
		},
		{
			name: "less than is wanted",
			change: func(c *loader.Caps, w *loader.Want) {
				c.Dedup, c.Reason, w.Delivery = loader.DedupNone, "MyISAM keeps rows", loader.ExactlyOnce
			},
			err: "method copy cannot deliver exactly once here: MyISAM keeps rows; choose --delivery at-least-once to do without",
		},
		{
			name:   "less than is wanted, for no special reason",
			change: func(c *loader.Caps, w *loader.Want) { c.Dedup, w.Delivery = loader.DedupNone, loader.ExactlyOnce },
			err:    "the database cannot recognise a batch that it has loaded before",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, w := caps(), want()
			c.change(&a, &w)
			got, warnings, err := loader.Negotiate(a, w)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				return
			}
			c.want.Method = "copy"
			if err != nil || got != c.want || strings.Join(warnings, "\n") != c.warning {
				t.Errorf("%+v, %q, %v\nwant %+v, %q", got, warnings, err, c.want, c.warning)
			}
		})
	}
}

func TestNegotiateBatchRows(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*loader.Caps, *loader.Want)
		want   int64
		err    string
	}{
		{"the rows asked for", func(_ *loader.Caps, w *loader.Want) { w.BatchRows = 7 }, 7, ""},
		{"the bytes asked for", func(_ *loader.Caps, w *loader.Want) { w.BatchBytes = 2000 }, 10, ""},
		{"less than a row", func(_ *loader.Caps, w *loader.Want) { w.BatchBytes = 1 }, 1, ""},
		{"four batches a worker", func(_ *loader.Caps, w *loader.Want) { w.Rows = 1600 }, 100, ""},
		{"four batches for each of more workers", func(_ *loader.Caps, w *loader.Want) { w.Rows, w.Workers = 1600, 40 }, 10, ""},
		{"but not when the bytes were asked for", func(_ *loader.Caps, w *loader.Want) { w.Rows, w.BatchBytes = 1600, 1<<20 }, 1600, ""},
		{"fewer rows than workers", func(_ *loader.Caps, w *loader.Want) { w.Rows = 3 }, 1, ""},
		{"not more than the run", func(_ *loader.Caps, w *loader.Want) { w.Rows, w.BatchRows = 3, 7 }, 3, ""},
		{"as many as the method needs", func(c *loader.Caps, w *loader.Want) { c.MinRows, w.Rows = 500, 1600 }, 500, ""},
		{"even for a shorter run", func(c *loader.Caps, w *loader.Want) { c.MinRows, w.Rows = 500, 10 }, 500, ""},
		{"at most what the method takes", func(c *loader.Caps, _ *loader.Want) { c.MaxRows = 100 }, 100, ""},
		{"at most the bytes that the method takes", func(c *loader.Caps, _ *loader.Want) { c.MaxBytes = 4000 }, 20, ""},
		{
			"fewer than the method needs", func(c *loader.Caps, w *loader.Want) { c.MinRows, w.BatchRows = 500, 499 },
			0, "a batch of 499 rows is less than the 500 that method copy needs here",
		},
		{
			"more than the method takes", func(c *loader.Caps, w *loader.Want) { c.MaxRows, w.BatchRows = 100, 101 },
			0, "a batch of 101 rows is more than the 100 that method copy takes here",
		},
		{
			"more bytes than the method takes", func(c *loader.Caps, w *loader.Want) { c.MaxBytes, w.BatchBytes = 4000, 5000 },
			0, "a batch of 25 rows is about 5000 bytes, more than the 4000 that method copy takes here: lower --batch-rows or --batch-bytes",
		},
		{
			"more bytes than the method takes, in as many rows as it takes",
			func(c *loader.Caps, w *loader.Want) { c.MaxRows, c.MaxBytes, w.BatchBytes = 30, 4000, 1<<20 },
			0, "a batch of 30 rows is about 6000 bytes",
		},
		{
			"a giant row", func(c *loader.Caps, w *loader.Want) {
				c.MaxBytes = 1 << 20
				w.RowBytes = func(batch.Format) int64 { return 2 << 20 }
			},
			0, "a batch of 1 rows is about 2097152 bytes",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, w := caps(), want()
			c.change(&a, &w)
			got, _, err := loader.Negotiate(a, w)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || got.BatchRows != c.want {
				t.Errorf("%d rows, %v, want %d", got.BatchRows, err, c.want)
			}
		})
	}
}

func TestDelivery(t *testing.T) {
	for dedup, want := range map[loader.Dedup]loader.Delivery{
		loader.DedupNone: loader.AtLeastOnce, loader.DedupKey: loader.ExactlyOnce,
		loader.DedupTx: loader.ExactlyOnce, loader.DedupRange: loader.ExactlyOnce,
	} {
		if got := (loader.Caps{Dedup: dedup}).Delivery(); got != want {
			t.Errorf("%s gives %s, want %s", dedup, got, want)
		}
	}
}

func TestNegotiateGroups(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*loader.Caps, *loader.Want)
		want   int64
		err    string
	}{
		{"as many as fill the bytes", func(*loader.Caps, *loader.Want) {}, 32, ""},
		{"four groups a run", func(_ *loader.Caps, w *loader.Want) { w.Rows = 1600 }, 4, ""},
		{"as asked", func(_ *loader.Caps, w *loader.Want) { w.GroupBatches = 700 }, 700, ""},
		{"at most what the method commits at once", func(c *loader.Caps, _ *loader.Want) { c.MaxGroupBatches = 20 }, 20, ""},
		{"as many as it commits at once", func(c *loader.Caps, w *loader.Want) { c.MaxGroupBatches, w.GroupBatches = 20, 20 }, 20, ""},
		{
			"more than it commits at once", func(c *loader.Caps, w *loader.Want) { c.MaxGroupBatches, w.GroupBatches = 20, 21 },
			0, "a group of 21 batches is more than the 20 that method copy commits at once: lower --commit-batches",
		},
		{
			"groups of a method that has none", func(c *loader.Caps, w *loader.Want) { c.Staged, w.GroupBatches = false, 2 },
			0, "--commit-batches is for methods that store objects first",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, w := caps(), want()
			a.Staged, a.DefaultGroupBytes, w.BatchRows = true, 32*100*200, 100
			c.change(&a, &w)
			got, _, err := loader.Negotiate(a, w)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || got.GroupBatches != c.want {
				t.Errorf("%d batches a group, %v, want %d", got.GroupBatches, err, c.want)
			}
		})
	}
}
