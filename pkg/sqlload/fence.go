package sqlload

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

// Fence says what Claims.Fence waits for.
type Fence struct {
	// Claims are claim tables, quoted: transactions that have a claim in one of them have to end. Without any a fence
	// only keeps those apart who change rows of runs.
	Claims []string
	// Run is the name of the run, and Shard the part of it, whose sessions may be ended if they do not. Without Run
	// these are nobody's, without Shard all of the run's. Claims have RunRow.Run, of which a name may have several.
	Run, Shard string
}

// How long a fence waits: for the batches of its run, before their sessions are ended, and in all.
const (
	fencePatience = 3 * time.Second
	fenceTime     = time.Minute
	fencePause    = 20 * time.Millisecond // between two tries
)

// AwaitFence tries to take a fence until it has it. Each try lasts as long as it is told: a second, so that other runs
// are not held up, and longer when that is not enough, since their batches may be longer. After fencePatience it lets
// end end the sessions of its run that are in the way, and describe those of others: a transaction that is frozen in
// the middle of a batch would hold it up for ever.
func AwaitFence(ctx context.Context, try func(wait time.Duration) (bool, error), end func() (others string, err error)) error {
	began, wait, ended := time.Now(), time.Second, false
	for range Poll(ctx, fencePause, fencePause) {
		done, err := try(wait)
		if done || err != nil {
			return err
		}
		if !ended && time.Since(began) >= fencePatience {
			ended = true
			if _, err := end(); err != nil {
				return err
			}
		} else if ended {
			wait *= 2
		}
		left := fenceTime - time.Since(began)
		if left < time.Second {
			return fenceLate(end)
		}
		wait = min(wait, left)
	}
	return ctx.Err()
}

// TableLock is a fence by locks of tables, which wait for the transactions that have changed one of them.
type TableLock struct {
	// Lock returns the statements that begin a transaction and lock tables in it. They give up after wait.
	Lock func(wait time.Duration, tables []string) []string
	// Late reports whether an error is that of a lock that was not free in time, or of a deadlock: nothing has changed.
	Late   func(error) bool
	Unlock string // follows COMMIT and ROLLBACK, where these release no lock
	// End is that of AwaitFence; nil: the server neither ends nor names sessions.
	End func() (others string, err error)
}

// Fence implements Claims.Fence over a connection of its own, whose end releases the locks of a client that is gone.
func (l TableLock) Fence(ctx context.Context, c Conn, tables []string, change func(Conn) error) error {
	end := l.End
	if end == nil {
		end = func() (string, error) { return "", nil }
	}
	return AwaitFence(ctx, func(wait time.Duration) (bool, error) {
		err := l.try(ctx, c, l.Lock(wait, tables), change)
		if err != nil && l.Late(err) {
			return false, nil
		}
		return err == nil, err
	}, end)
}

func (l TableLock) try(ctx context.Context, c Conn, lock []string, change func(Conn) error) (err error) {
	last, commit := context.WithoutCancel(ctx), ctx
	if l.Unlock != "" {
		// UNLOCK TABLES commits what is open: a COMMIT that a cancelled context kept back would be one all the same, and
		// its change would have no owner.
		commit = last
		defer func() {
			_, unlocked := c.Exec(last, l.Unlock)
			err = cmp.Or(err, unlocked)
		}()
	}

	err = ExecAll(ctx, c, lock...)
	if err == nil {
		err = change(c)
	}
	if err == nil {
		_, err = c.Exec(commit, "COMMIT")
	}
	if err != nil {
		_, _ = c.Exec(last, "ROLLBACK")
	}
	return err
}

func fenceLate(end func() (string, error)) error {
	others, err := end()
	if err != nil {
		return err
	}
	return &loader.Error{
		Op: "wait for the batches of other runs", Applied: loader.No,
		Err: fmt.Errorf("their transactions have held the claim table for %s: %s", fenceTime,
			cmp.Or(others, "by whom the server does not say, perhaps by one that it rolls back since its process has ended")),
		Hint: "wait until they have ended; batches of fewer --batch-bytes are shorter",
	}
}

// fence calls change while nobody else changes the rows of runs and no claim of claims is open.
func (t *Table) fence(ctx context.Context, s *State, f Fence, change func(Conn) error) error {
	return t.Claims.Fence(ctx, s, f, change)
}

// claimTables lists the claim tables of s that exist. Of a table that was not looked at there may be two.
func (t *Table) claimTables(ctx context.Context, c Conn, s *State) (there []string, err error) {
	for _, claims := range [...]string{s.Claims, s.OtherClaims} {
		if claims == "" {
			continue
		}
		if _, err := Rows(ctx, c, "SELECT 1 FROM "+claims+" WHERE 1 = 0"); t.isMissing(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		there = append(there, claims)
	}
	return there, nil
}
