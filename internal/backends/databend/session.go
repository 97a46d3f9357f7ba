package databend

import (
	"context"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// session is a worker's use of one node. There is nothing to connect: every request stands for itself, and the node's
// client keeps idle connections.
type session struct {
	statements
	owner    *opened
	turn     int // the number of its host
	endpoint *endpoint
	labelled bool
	send     func(ctx context.Context, b *batch.Batch, t tags) (rows int64, err error)
	ended    bool // by a failed attempt: the next session is on the next host
}

// Session returns the session of one worker, on the next host.
func (l *opened) Session(_ context.Context, c loader.Contract) (loader.Session, error) {
	st, err := l.State()
	if err != nil {
		return nil, err
	}
	s := &session{
		statements: statements{st.Statements}, owner: l, labelled: c.Dedup == loader.DedupKey, turn: l.hosts.Turn(),
	}
	s.endpoint = l.hosts.At(s.turn)
	switch {
	case st.Want.Records:
		return &recordsSession{session: s, run: st.Want.Run}, nil
	case l.plan.method.Name == methodStageLoad:
		return &storingSession{s}, nil
	case l.plan.method.Name != methodStreamingLoad:
		s.send = s.insertFile
	default:
		s.send = s.streamingLoad
	}
	return s, nil
}

// Load sends the batch once.
func (s *session) Load(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	if s.ended {
		return loader.Ack{}, &loader.Error{Op: "load", Applied: loader.No, Err: errSessionEnded}
	}
	var t tags
	if s.labelled {
		t = s.owner.tagsOf(batchKind, b.ID, b.Attempt)
	}
	rows, err := s.send(ctx, b, t)
	if err != nil {
		s.after(err)
		return loader.Ack{}, failed("load", err)
	}
	if rows == 0 {
		return s.owner.skipped(ctx, batchKind, t, loader.RefOf(b))
	}
	return loader.Ack{Rows: rows}, nil
}

// after ends the session where the error says so. Where the host could not be reached, nothing was sent, and the
// session goes on with the next host.
func (s *session) after(err error) {
	if unreachable(err) {
		s.turn++
		s.endpoint = s.owner.hosts.At(s.turn)
	}
	s.ended = verdict(err).SessionDead
}

// Close ends the session.
func (s *session) Close() error {
	s.ended = true
	return nil
}

// storingSession is the session of a staged contract: it puts batches into the stage or the store.
type storingSession struct{ *session }

// Load stores the batch.
func (s *storingSession) Load(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	if s.ended {
		return loader.Ack{}, &loader.Error{Op: "store", Applied: loader.No, Err: errSessionEnded}
	}
	if err := s.owner.files.store(ctx, s.endpoint, b); err != nil {
		s.after(err)
		return loader.Ack{}, failedBefore("store", err)
	}
	return loader.Ack{Stored: true, Rows: b.Rows}, nil
}
