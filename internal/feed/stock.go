package feed

import (
	"container/list"
	"slices"
)

// stock has the free buffers of a ring and chooses which one to use next. It is not safe for concurrent use.
type stock struct {
	holding map[content][]*buffer // encoded buffers by content, the newest last
	// sole has buffers whose content no other free buffer had when they were added, in that order; surplus has the others,
	// beginning with those that were never encoded.
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

// take removes and returns a free buffer; there must be one. hit reports whether it has the wanted content. Without a hit
// the choice decides which template is lost:
//
// Surplus goes first. Otherwise a straggler, whose template has got a second buffer by then, would leave the ring one
// template short forever, and every round would encode one again.
//
// Then the buffer that was added last: templates are used in order, so its one is needed last. Taking the oldest would
// lose the template that is needed next, and a ring slightly too small for all templates would never have a hit again.
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
