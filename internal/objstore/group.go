package objstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Group gives the objects of one commit group in a folder of its own within the run's,
// <prefix>/<run>/g<group, 12 digits>/: for databases that name what they load by a prefix and cannot be given a list.
func (r *Run) Group(number int64) *Run {
	return &Run{store: r.store, folder: fmt.Sprintf("%sg%0*d/", r.folder, digits, number), err: r.err}
}

// ProbeGroup is the number of a group for objects that only try things out. No run's groups reach it.
const ProbeGroup = 999_999_999_999

// GroupObjects is Objects for a run whose batches were put through Group. What lies in ProbeGroup is no batch.
func (r *Run) GroupObjects(ctx context.Context, f func(name string, number, bytes int64) error) error {
	return r.List(ctx, func(o Object) error {
		group, number, _ := r.inGroup(o.Name)
		if group == ProbeGroup {
			number = -1
		}
		return f(o.Name, number, o.Bytes)
	})
}

// inGroup reads group and batch from the name of an object that was put through Group; ok is false for any other name.
func (r *Run) inGroup(name string) (group, batch int64, ok bool) {
	rest, inside := strings.CutPrefix(name, r.folder+"g")
	text, _, found := strings.Cut(rest, "/")
	group, err := strconv.ParseInt(text, 10, 64)
	if !inside || !found || err != nil || group < 0 {
		return -1, -1, false
	}
	of := r.Group(group)
	batch = of.number(name)
	return group, batch, strings.HasPrefix(name, of.folder) && batch >= 0
}
