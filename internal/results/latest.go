package results

// Push names one push of a sweep.
type Push struct {
	Part, Cell, Repeat int
	WarmUp             bool
}

// Push is which push the entry is of.
func (e Entry) Push() Push {
	return Push{Part: e.Part, Cell: e.Cell, Repeat: e.Repeat, WarmUp: e.WarmUp}
}

// Latest are the entries that count, one for each push, in the order in which they ended; it leaves the record alone. It is
// the one rule for everyone who reads entries:
//
//   - The first that was measured or limited counts. It is never done again, so a second one is not the sweep's own.
//   - Of a push that only failed the last failure counts: one that is done again (--retry-failed) takes the place of the
//     one before.
//   - A push that was only ever skipped counts as it was skipped last: why it is missing is what the last process said.
//
// Records that Read and Open return hold no others.
func (r Record) Latest() []Entry {
	counts := make(map[Push]int, len(r.Entries))
	for i, e := range r.Entries {
		was, known := counts[e.Push()]
		if !known || r.Entries[was].Status == Skipped || r.Entries[was].Status == Failed && e.Status != Skipped {
			counts[e.Push()] = i
		}
	}
	var latest []Entry
	for i, e := range r.Entries {
		if counts[e.Push()] == i {
			latest = append(latest, e)
		}
	}
	return latest
}
