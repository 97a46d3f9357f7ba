package databend

import (
	"context"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// session is one worker's use of one node. There is nothing to connect: every request stands for itself, and idle
// connections are kept by the node's client.
type session struct {
	statements
	owner    *opened
	node     *node
	labelled bool
	send     func(ctx context.Context, b *batch.Batch, m marks) (rows int64, err error)
	left     bool // an attempt was given up: what comes next goes through another session, to the next host
}

// Session returns the session of one worker, on the next host.
func (l *opened) Session(_ context.Context, c loader.Contract) (loader.Session, error) {
	st, err := l.State()
	if err != nil {
		return nil, err
	}
	s := &session{
		statements: statements{st.Statements}, owner: l, labelled: c.Dedup == loader.DedupKey,
		node: l.hosts[(l.sessions.Add(1)-1)%uint64(len(l.hosts))],
	}
	switch l.plan.method.Name {
	case stageLoad:
		return &storing{s}, nil
	case insert, insertNoPresign:
		s.send = s.insertFile
	default:
		s.send = s.streamingLoad
	}
	return s, nil
}

// Load sends the batch once.
func (s *session) Load(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	if s.left {
		return loader.Ack{}, &loader.Error{Op: "load", Applied: loader.No, Err: errLeft}
	}
	var m marks
	if s.labelled {
		m = s.owner.marksOf(ofBatch, b.ID, max(b.Attempt, 1))
	}
	rows, err := s.send(ctx, b, m)
	if err != nil {
		s.leave(err)
		return loader.Ack{}, failed("load", err)
	}
	if rows == 0 {
		return s.owner.skipped(ctx, ofBatch, m, loader.RefOf(b))
	}
	return loader.Ack{Rows: rows}, nil
}

// leave does what an error asks of the session. A host that cannot be reached is left for the next, and no attempt has
// to be looked for: nothing was sent.
func (s *session) leave(err error) {
	if unreachable(err) {
		s.node = s.owner.after(s.node)
	}
	s.left = verdict(err).SessionDead
}

// Close ends the session.
func (s *session) Close() error {
	s.left = true
	return nil
}
