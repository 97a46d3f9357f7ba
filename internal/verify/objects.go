package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

// OnlyObjects tells that the loader's objects are all there is of a run: a store, and no table that could be counted.
func OnlyObjects(l loader.Loader) bool {
	_, inventory := l.(loader.Inventory)
	_, counter := l.(loader.Counter)
	return inventory && !counter
}

// PossibleObjects is the most that can be proven through objects of what m asks, and, where that is less, a warning
// that says why.
func PossibleObjects(m Mode) (Mode, string) {
	if m == Full {
		return Count, "verify full is not possible: objects are not read back; their number and lengths are compared instead"
	}
	return m, ""
}

// Objects checks that every batch of the run lies in the store exactly once, with the length that was acknowledged:
// length gives that, and whether it is known. A row counts as found when its batch's object is as it must be. strange
// lists what lies under the run's prefix and is none of its batches, the first few by name.
//
// It proves less than a count of rows: an object of the right length may hold other bytes. The store's own checksum of
// the upload is what stands against that.
func Objects(
	ctx context.Context, l loader.Inventory, run string, e Expect, length func(number int64) (int64, bool),
) (r Result, strange []string, err error) {
	start := time.Now()
	if err := e.validate(Count); err != nil {
		return Result{}, nil, err
	}
	batches := e.batches()
	found := make(map[int64]lying)
	err = l.Objects(ctx, run, func(name string, number, bytes int64) error {
		if number < 0 || number >= batches {
			if len(strange) < maxStrange {
				strange = append(strange, name)
			}
			return nil
		}
		o := found[number]
		found[number] = lying{times: o.times + 1, bytes: bytes}
		return nil
	})
	if err != nil {
		return Result{}, nil, fmt.Errorf("verify: listing the objects of run %s: %w", run, err)
	}
	r = newResult(Count, e.Rows)
	for n := range batches {
		acked, known := length(n)
		reason, problem := found[n].check(acked, known)
		if problem == nil {
			r.FoundRows += e.size(n)
			continue
		}
		r.addBatch(e.bad(n, 0, reason, problem.Error()))
	}
	r.OK = r.holds()
	r.Seconds = time.Since(start).Seconds()
	return r, strange, nil
}

// maxStrange bounds the names of objects that are no batches.
const maxStrange = 3

// lying is what the store lists of one batch.
type lying struct{ times, bytes int64 }

func (o lying) check(acked int64, known bool) (Reason, error) {
	switch {
	case o.times == 0:
		return Missing, errors.New("there is no object of it")
	case o.times > 1:
		return Doubled, fmt.Errorf("%d objects hold it", o.times)
	case !known:
		return Differs, fmt.Errorf("its object has %d bytes, and the journal does not tell how many were acknowledged", o.bytes)
	case o.bytes < acked:
		return Short, fmt.Errorf("its object has %d bytes of the %d that were acknowledged", o.bytes, acked)
	case o.bytes > acked:
		return Differs, fmt.Errorf("its object has %d bytes, more than the %d that were acknowledged", o.bytes, acked)
	}
	return "", nil
}
