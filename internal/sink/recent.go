package sink

import (
	"container/list"
	"sync"
)

// maxRecent is how many things a Recent remembers.
const maxRecent = 10_000

// Recent remembers the last ten thousand things that were put, by name: what clients ask about is what they have just
// sent, and memory has to have a bound. The zero value is empty. It is safe for concurrent use.
type Recent[T any] struct {
	mu    sync.Mutex
	known map[string]*list.Element
	order list.List // of named[T], the oldest first
}

type named[T any] struct {
	name  string
	thing T
}

// Put remembers a thing under a name, in place of another of that name.
func (r *Recent[T]) Put(name string, thing T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = map[string]*list.Element{}
	}
	r.forget(name)
	r.known[name] = r.order.PushBack(named[T]{name, thing})
	if r.order.Len() > maxRecent {
		r.forget(r.order.Front().Value.(named[T]).name)
	}
}

// Find returns what is remembered under a name.
func (r *Recent[T]) Find(name string) (thing T, found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.known[name]; e != nil {
		return e.Value.(named[T]).thing, true
	}
	return thing, false
}

// Remove forgets what is remembered under a name, if there is anything.
func (r *Recent[T]) Remove(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(name)
}

// Where returns the things for which is returns true, the oldest first.
func (r *Recent[T]) Where(is func(T) bool) []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []T
	for e := r.order.Front(); e != nil; e = e.Next() {
		if one := e.Value.(named[T]).thing; is(one) {
			all = append(all, one)
		}
	}
	return all
}

func (r *Recent[T]) forget(name string) {
	if e := r.known[name]; e != nil {
		r.order.Remove(e)
		delete(r.known, name)
	}
}
