package verify

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/terapush/terapush/pkg/loader"
)

// partsAWorker is into how many parts a connection's share of the table is split: a lost part is little to count again,
// and no connection waits long for the last one. Over a single connection the table stays whole, because a server may
// scan it with several processes, as PostgreSQL does, and a part of it with one.
const partsAWorker = 8

// saveEvery is the least time between two saved tallies, which may be some megabytes.
const saveEvery = 10 * time.Second

// tally is what a scan has counted. An interrupted one continues after the parts that are done.
type tally struct {
	Of      string // what is counted, in which table
	Parts   []string
	Done    []bool
	Rows    int64
	Buckets map[int64]*loader.Bucket

	saved time.Time
}

func (e Expect) progress(t *tally) {
	if e.Progress == nil || len(t.Parts) < 2 {
		return
	}
	done := 0
	for _, d := range t.Done {
		if d {
			done++
		}
	}
	e.Progress(float64(done)/float64(len(t.Parts)), t.Rows)
}

// save keeps the tally if it was kept last so long ago.
func (e Expect) save(t *tally, every time.Duration) {
	if e.Saved == nil || len(t.Parts) < 2 || time.Since(t.saved) < every {
		return
	}
	if text, err := json.Marshal(t); err == nil {
		e.Saved.Save(text)
	}
	t.saved = time.Now()
}

// scan counts all parts over e.Workers connections, and adds up what they have of a bucket. A part whose answer is lost is
// asked for again alone.
func scan(ctx context.Context, c loader.Counter, e Expect, g loader.Grouping) (map[int64]*loader.Bucket, error) {
	t, err := e.begin(ctx, c, g)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	workers, ctx := errgroup.WithContext(ctx)
	workers.SetLimit(max(e.Workers, 1))
	e.progress(t)
	for i, part := range t.Parts {
		if t.Done[i] {
			continue
		}
		workers.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			g := g
			g.Part = part
			var found map[int64]*loader.Bucket
			err := e.ask(ctx, "rows", func(ctx context.Context) (err error) {
				found, err = collect(ctx, c, g)
				return err
			})
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			t.add(found)
			t.Done[i] = true
			e.progress(t)
			e.save(t, saveEvery)
			return nil
		})
	}
	if err := workers.Wait(); err != nil {
		e.save(t, 0)
		return nil, err
	}
	return t.Buckets, nil
}

// begin returns an earlier tally of the same scan, or a new one.
func (e Expect) begin(ctx context.Context, c loader.Counter, g loader.Grouping) (*tally, error) {
	key, err := json.Marshal(g)
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	t := &tally{Of: e.Identity + " " + string(key), saved: time.Now()}
	if e.Saved != nil {
		earlier := new(tally)
		if json.Unmarshal(e.Saved.Load(), earlier) == nil && earlier.Of == t.Of {
			earlier.saved = t.saved
			return earlier, nil
		}
	}
	if t.Parts = []string{""}; e.Workers > 1 {
		err = e.ask(ctx, "parts of the table", func(ctx context.Context) (err error) {
			t.Parts, err = c.Parts(ctx, g.KeyRange, e.Workers*partsAWorker)
			return err
		})
	}
	t.Done, t.Buckets = make([]bool, len(t.Parts)), make(map[int64]*loader.Bucket)
	return t, err
}

// collect counts one part.
func collect(ctx context.Context, c loader.Counter, g loader.Grouping) (map[int64]*loader.Bucket, error) {
	found := make(map[int64]*loader.Bucket)
	_, err := count(ctx, c, g, func(b loader.Bucket) error {
		found[b.Number] = &b
		return nil
	})
	return found, err
}

// count calls each for every bucket, which must be one of the range, once. It returns which buckets there are.
func count(ctx context.Context, c loader.Counter, g loader.Grouping, each func(loader.Bucket) error) (seen []bool, err error) {
	seen = make([]bool, (g.Last-g.First)/g.Size+1)
	err = c.Count(ctx, g, func(b loader.Bucket) error {
		if b.Number < 0 || b.Number >= int64(len(seen)) {
			return fmt.Errorf("the back-end counted bucket %d of %d", b.Number, len(seen))
		}
		if seen[b.Number] {
			return fmt.Errorf("the back-end counted bucket %d twice", b.Number)
		}
		seen[b.Number] = true
		return each(b)
	})
	if err != nil {
		return nil, fmt.Errorf("verify: counting rows: %w", err)
	}
	return seen, nil
}

// add adds the buckets of a part.
func (t *tally) add(found map[int64]*loader.Bucket) {
	for n, b := range found {
		t.Rows += b.Rows
		sum := t.Buckets[n]
		if sum == nil {
			t.Buckets[n] = b
			continue
		}
		sum.Add(*b)
	}
}
