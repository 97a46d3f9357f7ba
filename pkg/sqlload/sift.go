package sqlload

import (
	"cmp"
	"context"
	"fmt"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Sifting is a session that can put a batch in part by part, in one transaction.
type Sifting struct {
	Session
	Conn Conn // the session's
	// Put puts records into the open transaction. Its errors and those of a part that the server took otherwise become
	// what Judge makes of them.
	Put   func(ctx context.Context, part *batch.Batch) (rows int64, warnings []string, err error)
	Judge func(ctx context.Context, part *batch.Batch, err error) error
	// Begin follows the claim; "" for nothing. Unclaim and Claim change how many rows the claim has.
	Begin string
	Again func(loader.Ref) (unclaim, claim string)
	// Release gives a savepoint back, where one of the same name does not take its place.
	Release bool

	saved  bool  // there is a savepoint, and nothing behind it
	broken error // the savepoint could not be gone back to
}

const (
	savepoint        = "SAVEPOINT terapush_part"
	releaseSavepoint = "RELEASE SAVEPOINT terapush_part"
	backToSavepoint  = "ROLLBACK TO SAVEPOINT terapush_part"
)

// Sift implements loader.Sifter.
func (s *Sifting) Sift(ctx context.Context, b *batch.Batch, load loader.PutParts) (loader.Ack, error) {
	var rows int64
	ack, err := Load(ctx, s, loader.RefOf(b), func(ctx context.Context, ref loader.Ref) (Sent, error) {
		sent, err := s.Claim(ctx, ref)
		if err != nil || !sent.Claimed {
			return sent, err
		}
		if s.Begin != "" {
			if _, err := s.Conn.Exec(ctx, s.Begin); err != nil {
				return sent, err
			}
		}

		sent.Rows = ref.Rows // those of each part are compared
		rows, err = load(s.put)
		if err = cmp.Or(err, s.broken); err != nil || rows == ref.Rows {
			return sent, err
		}
		sent.Claimed, err = s.claimAgain(ctx, ref, rows)
		return sent, err
	})
	if err != nil || ack.AlreadyApplied {
		return ack, err
	}
	ack.Rows = rows
	return ack, nil
}

// claimAgain claims the batch with another number of rows, in the same transaction.
func (s *Sifting) claimAgain(ctx context.Context, ref loader.Ref, rows int64) (claimed bool, err error) {
	ref.Rows = rows
	unclaim, claim := s.Again(ref)
	if _, err := s.Conn.Exec(ctx, unclaim); err != nil {
		return true, err
	}
	n, err := s.Conn.Exec(ctx, claim)
	return err != nil || n == 1, err
}

// put puts a part in, or leaves the transaction as it was.
func (s *Sifting) put(ctx context.Context, part *batch.Batch) error {
	if s.broken != nil {
		return s.broken
	}
	if !s.saved {
		if _, err := s.Conn.Exec(ctx, savepoint); err != nil {
			return s.Judge(ctx, part, err)
		}
		s.saved = true
	}

	var sent Sent
	var err error
	sent.Rows, sent.Warnings, err = s.Put(ctx, part)
	if err == nil {
		err = sent.compare(part.Rows)
	}
	if err != nil {
		if _, problem := s.Conn.Exec(ctx, backToSavepoint); problem != nil {
			s.broken = fmt.Errorf("going back to a savepoint: %w", problem)
		}
		return s.Judge(ctx, part, &loader.Error{Op: "load", Applied: loader.No, Err: err})
	}

	s.saved = false
	if s.Release {
		_, err = s.Conn.Exec(ctx, releaseSavepoint)
	}
	return err
}
