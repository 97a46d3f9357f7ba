package doris

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

const (
	publishPatience = time.Minute
	groupInterval   = 10 * time.Second // the default of group_commit_interval_ms
	groupIntervals  = 6                // how many of them a merged load may take
	groupPublish    = time.Second      // an estimate: from an interval's end until its rows can be read
)

// Finish waits until the rows of loads that answered Publish Timeout, or that are in the write-ahead log of a group
// commit, can be read. It counts rows, since an earlier process of the run may have got the answers. It takes no longer
// than the rows do, since that time is a measurement, unless rows may come in twice.
func (l *opened) Finish(ctx context.Context, all loader.KeyRange, rows int64) ([]string, error) {
	began := time.Now()
	if l.options.group == groupAsync && l.doubted.Load() {
		// The log may have a second copy of rows that can be read already, which no count would wait for.
		if err := sqlload.Wait(ctx, l.interval()+groupPublish); err != nil {
			return nil, err
		}
	}
	found, err := l.awaitRows(ctx, all, rows, l.patience())
	if err != nil || found >= rows {
		return nil, failed("wait for rows to become visible", err)
	}
	where := "their versions are still being published, or they are lost"
	if l.options.group == groupAsync {
		where = "they are in the write-ahead log, on one disk of one backend each, or lost"
	}
	return []string{fmt.Sprintf("%d of %d acknowledged rows cannot be read after %s: %s",
		rows-found, rows, time.Since(began).Round(time.Second), where)}, nil
}

// patience returns how long rows may take: several of the table's intervals.
func (l *opened) patience() time.Duration {
	switch {
	case l.finishTime > 0:
		return l.finishTime
	case !l.options.group.on():
		return publishPatience
	}
	return max(publishPatience, groupIntervals*l.interval())
}

// interval returns the time after which a merged load is committed at the latest. The table has that of the options.
func (l *opened) interval() time.Duration {
	own := sqlload.Integer(l.tableProperty(propInterval))
	return cmp.Or(time.Duration(cmp.Or(l.options.GroupInterval, own))*time.Millisecond, groupInterval)
}

// awaitRows counts until all rows are visible or the time is over, and returns the last count. Merged loads are looked
// for at least ten times in an interval, to measure their wait and not the pauses, and counted without duplicates,
// which must not make up for missing rows.
func (l *opened) awaitRows(
	ctx context.Context, all loader.KeyRange, rows int64, most time.Duration,
) (found int64, err error) {
	end, longest, count := time.Now().Add(most), lastPause, l.CountRows
	if l.options.group.on() {
		count = l.CountDistinct
		longest = min(longest, max(firstPause, l.interval()/10))
	}

	for range sqlload.Poll(ctx, firstPause, longest) {
		found, err = count(ctx, all)
		if err != nil || found >= rows || time.Now().After(end) {
			return found, err
		}
	}
	return found, ctx.Err()
}
