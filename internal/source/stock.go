package source

// stock has the free buffers of a ring and chooses which one to use next. It is not safe for concurrent use.
type stock struct {
	// chains has the encoded buffers, those of a content in one chain, the newest first. It is a map whose entries are
	// in the buffers: with one of Go's and its lists a small batch had more memory for bookkeeping than a buffer here.
	chains []*buffer
	// sole has buffers whose content no other free buffer had when they were added, in that order; surplus has the
	// others, beginning with those that were never encoded.
	sole, surplus list
}

func (s *stock) init(buffers int) {
	s.chains = make([]*buffer, buffers)
	s.sole.init()
	s.surplus.init()
}

// chain returns the chain in which buffers of this content are.
func (s *stock) chain(c content) **buffer { return &s.chains[c.template%int64(len(s.chains))] }

// find returns the newest buffer of this content, nil if there is none.
func (s *stock) find(c content) *buffer {
	b := *s.chain(c)
	for b != nil && b.content != c {
		b = b.chained
	}
	return b
}

func (s *stock) add(b *buffer) {
	to := &s.surplus
	if b.number >= 0 {
		if s.find(b.content) == nil {
			to = &s.sole
		}
		first := s.chain(b.content)
		b.chained, *first = *first, b
	}
	to.add(b)
}

// take removes and returns a free buffer; there must be one. hit reports whether it has the wanted content. Without a
// hit the choice decides which template is lost:
//
// Surplus goes first. Otherwise a straggler, whose template has got a second buffer by then, would leave the ring one
// template short forever, and every round would encode one again.
//
// Then the buffer that was added last: templates are used in order, so its one is needed last. Taking the oldest would
// lose the template that is needed next, and a ring slightly too small for all templates would never have a hit again.
func (s *stock) take(want content) (b *buffer, hit bool) {
	if b = s.find(want); b != nil {
		hit = true
	} else if b = s.surplus.first(); b == nil {
		b = s.sole.last()
	}
	remove(b)
	if b.number >= 0 {
		s.forget(b)
	}
	return b, hit
}

// forget takes the buffer out of its chain.
func (s *stock) forget(b *buffer) {
	at := s.chain(b.content)
	for *at != b {
		at = &(*at).chained
	}
	*at, b.chained = b.chained, nil
}

// list is a list of buffers, each in one list at most. Its end is a buffer that is none, between the last and the
// first.
type list struct{ end buffer }

func (l *list) init() { l.end.before, l.end.after = &l.end, &l.end }

func (l *list) add(b *buffer) {
	b.before, b.after = l.end.before, &l.end
	b.before.after, l.end.before = b, b
}

// first returns the buffer that was added first, nil from an empty list.
func (l *list) first() *buffer {
	if l.end.after == &l.end {
		return nil
	}
	return l.end.after
}

// last returns the buffer that was added last. The list must not be empty.
func (l *list) last() *buffer { return l.end.before }

// remove takes the buffer out of its list.
func remove(b *buffer) {
	b.before.after, b.after.before = b.after, b.before
	b.before, b.after = nil, nil
}
