package push

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/loader"
)

// sameDatabase returns an error if the target is of another back-end than the run's. Unknown schemes are reported
// elsewhere.
func (p *push) sameDatabase(r runlog.Record) error {
	is, err := loader.ParseTarget(p.Config.Target)
	if err != nil {
		return err
	}
	was, err := loader.ParseTarget(r.Target)
	if err != nil {
		return fmt.Errorf("the target of run %s: %w", r.Run, err)
	}
	old, known := p.Drivers.Lookup(was.Scheme)
	if given, ok := p.Drivers.Lookup(is.Scheme); known && ok && given.Name() != old.Name() {
		return fmt.Errorf("%s:// does not fit run %s, which was started with %s and method %s",
			is.Scheme, r.Run, was, r.Plan.Method)
	}
	return nil
}

// samePlace returns an error if a run of which the database has no row was pushed into another one. Another host may be
// the same database, after a failover: the table's identity decides, if the back-end gives one, else there is a
// warning.
func (p *push) samePlace() error {
	if p.progress.Log() == nil { // a named run, whose processes agree by their fingerprint
		return nil
	}
	r := p.progress.Log().Record()
	was, err := config.PlaceOf(r.Target, p.Drivers)
	if err != nil {
		return err
	}
	is, err := config.PlaceOf(p.target.String(), p.Drivers)
	if err != nil || is == was {
		return err
	}
	known := r.Identity != "" && p.target.Found.Identity != ""
	switch {
	case is.Database != was.Database, known && r.Identity != p.target.Found.Identity:
		return failed(Usage, fmt.Errorf("run %s was pushed into %s, and nothing says that %s is the same database: "+
			"give that target",
			r.Run, r.Target, p.target.String()))
	case !known:
		p.notes.Warnf("run %s was pushed into %s: nothing shows whether %s is the same database",
			r.Run, r.Target, p.target.String())
	}
	return nil
}

// tableOf returns the table as the user names it.
func tableOf(r runlog.Record) string {
	data := config.Data{Dataset: r.Flag("dataset"), Like: r.Flag("like")}
	if data.RowsOfLike() {
		return cmp.Or(r.Flag("table"), data.Like)
	}
	return cmp.Or(r.Flag("table"), r.Plan.Dataset)
}

// refuseOtherFiles is refuseChanges for a load.
func refuseOtherFiles(c *config.Push, r runlog.Record, explicit func(flag string) bool) error {
	f := c.Files
	var problems []error
	for flag, now := range map[string]string{
		"format": f.Format, "delimiter": f.Delimiter.Text, "quote": f.Quote.Text, "escape": f.Escape.Text,
		"null":   f.Null.Text,
		"header": strconv.FormatBool(f.Header), "columns": f.Columns, "table": c.Table, "method": c.Method,
		"batch-bytes": c.BatchBytes.String(), "shard": c.Shard.String(),
	} {
		if was := r.Flag(flag); explicit(flag) && was != now {
			problems = append(problems, fmt.Errorf("--%s cannot change in a resumed load: it was %q, now it is %q",
				flag, was, now))
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(problems...)
}

// refuseChanges returns an error for every flag that would make other rows, or put them elsewhere.
func refuseChanges(c *config.Push, r runlog.Record, explicit func(flag string) bool) error {
	if explicit == nil {
		return nil
	}
	switch {
	case c.Files != nil:
		return refuseOtherFiles(c, r, explicit)
	case r.Plan.Files != nil: // of a command that sends nothing
		return nil
	}
	was := r.Plan
	is := specOf(c, was.Method)
	rows, delivery := any(was.Rows), c.Delivery
	if d := r.Flag("duration"); d != "" {
		rows = "--duration " + d
	}
	if delivery == string(loader.DeliveryAuto) {
		delivery = string(was.Delivery) // auto fits every guarantee
	}
	planned := config.Bytes(was.BatchBytes())
	batchBytes, given := cmp.Or(r.Flag("batch-bytes"), planned.String()), c.BatchBytes.String()
	if max(int64(c.BatchBytes)/max(was.EncodedRowBytes, 1), 1) == was.BatchRows {
		given = batchBytes // other bytes, but the same rows
	}
	distinct := config.DistinctBytes{Bytes: config.DefaultDistinct}
	type value struct {
		flag     string
		was, now any
	}
	keys := "not given"
	if c.Own == nil { // of a built-in dataset the table has none unless they are asked for
		keys = "false"
	}
	fixed := []value{
		{"dataset", was.DatasetID(), is.DatasetID()},
		{"like", cmp.Or(r.Flag("like"), "not given"), c.Like},
		{"seed", was.Seed, c.Seed},
		{"payload-bytes", was.PayloadBytes, c.PayloadBytes},
		{"payload-kind", was.PayloadKind, c.PayloadKind},
		{"distinct-bytes", cmp.Or(r.Flag("distinct-bytes"), distinct.String()), c.DistinctBytes.String()},
		{"table", tableOf(r), c.Table},
		{"method", was.Method, c.Method},
		{"format", string(was.Format), c.Format},
		{"rows", rows, c.Rows},
		{"bytes", rows, is.RowCount(was.RowBytes)},
		{"duration", cmp.Or(r.Flag("duration"), "none"), c.Duration.String()},
		{"first-key", was.FirstKey, c.FirstKey.Key},
		{"append", cmp.Or(r.Flag("append"), "false"), fmt.Sprint(c.Append)},
		{"batch-rows", was.BatchRows, c.BatchRows},
		{"batch-bytes", batchBytes, given},
		{"commit-batches", was.GroupBatches, c.CommitBatches},
		{"delivery", string(was.Delivery), delivery},
		{"create", cmp.Or(r.Flag("create"), string(loader.CreateIfMissing)), c.Create},
		{"primary-key", cmp.Or(r.Flag("primary-key"), keys), c.PrimaryKey.String()},
	}
	if via := c.Staging.String(); !config.SameStore(r.Via, via) {
		fixed = append(fixed, value{"staging", cmp.Or(r.Via, "none"), via})
	}
	for _, option := range slices.Sorted(maps.Keys(c.Options)) {
		fixed = append(fixed, value{option, cmp.Or(r.Flag(option), "not given"), c.Options[option]})
	}
	var problems []error
	if c.Own != nil && was.Definition != nil { // says more than the digests
		for _, d := range c.Own.Differences(was.Definition) {
			problems = append(problems, fmt.Errorf("--dataset %s is another one than the run's: %s", c.Dataset, d))
		}
		fixed = fixed[1:]
	}
	for _, v := range fixed {
		if explicit(v.flag) && v.was != v.now {
			problems = append(problems, fmt.Errorf("--%s cannot change in a resumed run: it was %v, now it is %v",
				v.flag, v.was, v.now))
		}
	}
	return errors.Join(problems...)
}
