package files

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// readAll makes all batches: those that are known and not delivered, in the order of their numbers, and then new ones.
// A compressed file that was begun is decompressed once for both.
func (s *Source) readAll(ctx context.Context) error {
	begun, err := s.begun(ctx)
	defer func() {
		for _, c := range begun {
			c.close()
		}
	}()
	if err != nil {
		return err
	}

	for _, k := range s.kept {
		if !s.unread[k.Batch] {
			continue
		}
		if err := begun[k.File].readAgain(ctx, k.Range); err != nil {
			return err
		}
	}

	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(s.c.Parallel)
	for i, f := range s.c.Spec.Files {
		c := begun[i]
		switch {
		case !s.reads(i):
		case c == nil:
			g.Go(func() error { return s.newCutter(i).cutFile(ctx) })
		case c.eof:
			s.read.Add(f.Size - c.close())
		default:
			g.Go(func() error { return c.cutFile(ctx) })
		}
	}
	return g.Wait()
}

// begun opens the files that have known ranges, several at a time, at the first that is not delivered.
func (s *Source) begun(ctx context.Context) (map[int]*cutter, error) {
	all := map[int]*cutter{}
	from := map[int]int64{}
	for _, k := range s.kept {
		c := all[k.File]
		if c == nil {
			c = s.newCutter(k.File)
			all[k.File] = c
		}
		if _, found := from[k.File]; !found && s.unread[k.Batch] {
			from[k.File] = k.From
		}
		c.next, c.eof = after(k.Range), k.Last
	}

	var g errgroup.Group // whose context would end the streams
	g.SetLimit(s.c.Parallel)
	for file, c := range all {
		at, unread := from[file]
		if !unread {
			at = c.next.From
		}
		if !unread && c.eof {
			continue
		}
		g.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return c.open(ctx, at)
		})
	}
	return all, g.Wait()
}

// readAgain reads a known range.
func (c *cutter) readAgain(ctx context.Context, r Range) error {
	b, err := c.takeAhead(ctx)
	if err != nil {
		return err
	}
	if err := b.read(c.in, r, c.how); err != nil {
		c.putAhead(b)
		return err
	}
	c.change(func() {
		delete(c.unread, r.Batch)
		c.ready[r.Batch] = b
	})
	return nil
}
