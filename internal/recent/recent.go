// Package recent keeps the last results of work that is asked for again and again with the same input.
package recent

import (
	"slices"
	"sync"
)

// Results keeps the last Most results, by what they were made of. It is safe for concurrent use; who asks while a
// result is made waits for it.
type Results[K comparable, V any] struct {
	Most int

	mu   sync.Mutex
	last []result[K, V] // the latest at the end
}

type result[K comparable, V any] struct {
	of    K
	value V
}

// Get returns the result of the same input, or makes it. It keeps no result beside an error.
func (r *Results[K, V]) Get(of K, make func() (V, error)) (V, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.last {
		if one.of == of {
			return one.value, nil
		}
	}

	value, err := make()
	if err != nil {
		return value, err
	}
	if len(r.last) == r.Most {
		r.last = slices.Delete(r.last, 0, 1)
	}
	r.last = append(r.last, result[K, V]{of, value})
	return value, nil
}
