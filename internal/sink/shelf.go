package sink

import (
	"slices"
	"strings"
	"sync"
)

// maxShelf is how many things a Shelf holds: tens of megabytes of names.
const maxShelf = 100_000

// Shelf remembers what was put into a store, by name, so that clients can ask about it. Beyond a hundred thousand
// things some are forgotten. It is safe for concurrent use.
type Shelf[T any] struct {
	mu    sync.Mutex
	known map[string]T
}

// Put remembers a thing under a name, in place of another of that name.
func (s *Shelf[T]) Put(name string, thing T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[string]T{}
	}
	for other := range s.known {
		if len(s.known) < maxShelf {
			break
		}
		delete(s.known, other)
	}
	s.known[name] = thing
}

// Find returns what is remembered under a name.
func (s *Shelf[T]) Find(name string) (thing T, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	thing, found = s.known[name]
	return thing, found
}

// Remove forgets what is remembered under a name, if there is anything.
func (s *Shelf[T]) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, name)
}

// Below returns the names that begin with prefix, in their order.
func (s *Shelf[T]) Below(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(func(yield func(string) bool) {
		for name := range s.known {
			if strings.HasPrefix(name, prefix) && !yield(name) {
				return
			}
		}
	})
}
