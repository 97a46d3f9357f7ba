package source

import "sync"

// Cut says which rows the batches of a source have that cuts them one after the other, and where it ends. It is safe
// for concurrent use.
type Cut struct {
	mu    sync.Mutex
	rows  []int64 // of the batches up to and with this one
	bytes []int64 // of the source, likewise
	ended bool
}

// unended is more batches than a run has: how many there are is not known before the end.
const unended = 1 << 40

// Add adds the next batch, of so many rows and bytes of the source.
func (c *Cut) Add(rows, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := int64(len(c.rows))
	c.rows, c.bytes = append(c.rows, rows+at(c.rows, n)), append(c.bytes, bytes+at(c.bytes, n))
}

// End says that there are no more batches than so many.
func (c *Cut) End(batches int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(batches, int64(len(c.rows)))
	c.rows, c.bytes, c.ended = c.rows[:n], c.bytes[:n], true
}

// Bytes returns the bytes of the source in a batch, 0 if it is not cut yet.
func (c *Cut) Bytes(batch int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return at(c.bytes, batch+1) - at(c.bytes, batch)
}

// All returns the bytes of the source in all batches so far.
func (c *Cut) All() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return at(c.bytes, int64(len(c.bytes)))
}

// Ended reports whether these are all batches.
func (c *Cut) Ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// Len returns how many batches are cut.
func (c *Cut) Len() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(len(c.rows))
}

func (c *Cut) batches() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		return unended
	}
	return int64(len(c.rows))
}

// before returns how many rows are in the batches below a number.
func (c *Cut) before(batch int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return at(c.rows, batch)
}

// at returns the sum of the first n, or of all if there are fewer.
func at(sums []int64, n int64) int64 {
	n = min(n, int64(len(sums)))
	if n <= 0 {
		return 0
	}
	return sums[n-1]
}
