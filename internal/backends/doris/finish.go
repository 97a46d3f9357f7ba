package doris

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// Waiting for rows that are acknowledged and cannot be read yet.
const (
	publishPatience = time.Minute
	groupInterval   = 10 * time.Second // the default of group_commit_interval_ms
	groupIntervals  = 6                // how many of them a merged load may take
)

// Finish waits until rows of loads that answered Publish Timeout, or that lie in the write-ahead log of a group
// commit, can be read. It looks, rather than remember the answers: those of an earlier process of the run are
// nobody's to remember. It takes no longer than that, as the time until rows can be read is a measurement; only where
// rows may be there twice it waits for what nobody can look for.
func (l *opened) Finish(ctx context.Context, all loader.KeyRange, rows int64) ([]string, error) {
	began := time.Now()
	if l.options.group == groupAsync && l.doubted.Load() {
		// What is in the log may be the second copy of rows that can be read: nothing else would wait for it.
		if err := sqlload.Wait(ctx, l.interval()); err != nil {
			return nil, err
		}
	}
	found, err := l.awaitRows(ctx, all, rows, l.patience())
	if err != nil || found >= rows {
		return nil, failed("wait for rows to become visible", err)
	}
	where := "their versions are still being published, or they are not in"
	if l.options.group == groupAsync {
		where = "they are in the write-ahead log, on one disk of one backend each, or lost"
	}
	return []string{fmt.Sprintf("%d of %d acknowledged rows cannot be read after %s: %s",
		rows-found, rows, time.Since(began).Round(time.Second), where)}, nil
}

// patience is how long rows may take: several of the table's intervals, as far as it is known here.
func (l *opened) patience() time.Duration {
	if l.finishTime > 0 {
		return l.finishTime
	}
	if !l.options.group.on() {
		return publishPatience
	}
	return max(publishPatience, groupIntervals*l.interval())
}

// interval is the time after which a merged load is committed at the latest, as far as it is known here.
func (l *opened) interval() time.Duration {
	if ms, err := strconv.ParseInt(l.tableProperty(propInterval), 10, 64); err == nil && ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	return groupInterval
}

// awaitRows counts again and again until all rows are there or the time is over; the last count is the answer. A
// merged load is looked for at least ten times in its interval, or its wait would be measured in pauses. Some of its
// rows may be there twice, and must not make up for others.
func (l *opened) awaitRows(ctx context.Context, all loader.KeyRange, rows int64, most time.Duration) (int64, error) {
	end, longest, count := time.Now().Add(most), lastPause, l.CountRows
	if l.options.group.on() {
		count = l.Distinct
		longest = min(longest, max(firstPause, l.interval()/10))
	}
	for pause := firstPause; ; pause = min(2*pause, longest) {
		found, err := count(ctx, all)
		if err != nil || found >= rows || time.Now().After(end) {
			return found, err
		}
		if err := sqlload.Wait(ctx, pause); err != nil {
			return found, err
		}
	}
}
