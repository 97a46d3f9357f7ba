package feed

import (
	"container/list"
	"slices"
)

// stock is the free buffers of a ring, with the choice which one to give out. It is not safe for concurrent use.
type stock struct {
	holding map[content][]*buffer // the encoded ones by what they hold, the newest last
	// sole are those that hold what no other free one held when they came back, in that order; surplus are the others,
	// those never encoded first.
	sole, surplus list.List
}

func (s *stock) add(b *buffer) {
	to := &s.surplus
	if b.number >= 0 {
		if len(s.holding[b.content]) == 0 {
			to = &s.sole
		}
		s.holding[b.content] = append(s.holding[b.content], b)
	}
	b.list, b.place = to, to.PushBack(b)
}

// take removes and returns a free buffer; there must be one. hit reports whether it holds what is wanted. Which one it
// gives out otherwise decides what will be missing later:
//
// Surplus goes first. If it did not, a straggler, whose template meanwhile got a second buffer, would leave the ring
// one template short for ever, and each round would have to encode one again.
//
// Then the one that came back last, since templates are needed in turn and so that one is needed latest. Taking the
// one that came back first would throw away the template needed next: a ring only a little too small for all templates
// would never again hold the right one.
func (s *stock) take(want content) (b *buffer, hit bool) {
	if held := s.holding[want]; len(held) > 0 {
		b, hit = held[len(held)-1], true
	} else if first := s.surplus.Front(); first != nil {
		b = first.Value.(*buffer)
	} else {
		b = s.sole.Back().Value.(*buffer)
	}
	b.list.Remove(b.place)
	if b.number >= 0 {
		s.forget(b)
	}
	return b, hit
}

func (s *stock) forget(b *buffer) {
	held := s.holding[b.content]
	held = slices.DeleteFunc(held, func(other *buffer) bool { return other == b })
	if len(held) == 0 {
		delete(s.holding, b.content)
		return
	}
	s.holding[b.content] = held
}
