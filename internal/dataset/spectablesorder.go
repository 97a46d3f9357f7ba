package dataset

import (
	"fmt"
	"slices"
	"strings"
)

// order returns the tables, each behind those that it refers to, and else in the order of the file. A cycle is broken
// at a table that can leave all of its references in it NULL.
func (f *tableFile) order() (sorted []*readTable) {
	for _, t := range f.all {
		f.breakOff(t, func(parent string) bool { return parent == t.Name })
	}

	left, filled := slices.Clone(f.all), map[string]bool{}
	missing := func(parent string) bool { return !filled[parent] }
	for len(left) > 0 {
		at := slices.IndexFunc(left, func(t *readTable) bool { return !slices.ContainsFunc(t.parents(), missing) })
		if at >= 0 {
			filled[left[at].Name] = true
			sorted = append(sorted, left[at])
			left = slices.Delete(left, at, at+1)
			continue
		}
		if !slices.ContainsFunc(left, f.breakCycle) {
			f.refuseCycle(left)
			return nil
		}
	}
	for _, t := range sorted {
		t.Parents = append(t.Parents, t.parents()...)
	}
	return sorted
}

// open lists the links that are not broken off.
func (t *readTable) open() (all []link) {
	return slices.DeleteFunc(slices.Clone(t.links), func(l link) bool { return slices.Contains(t.Broken, l.Name) })
}

func (t *readTable) parents() (all []string) {
	for _, l := range t.open() {
		if !slices.Contains(all, l.parent) {
			all = append(all, l.parent)
		}
	}
	return all
}

// leadsTo reports whether a table is another one, or refers to it, by way of others or not.
func (f *tableFile) leadsTo(from, to string, seen map[string]bool) bool {
	if from == to {
		return true
	}
	if seen[from] {
		return false
	}
	seen[from] = true
	return slices.ContainsFunc(f.byName[from].parents(), func(parent string) bool { return f.leadsTo(parent, to, seen) })
}

// back returns whether a parent of a table leads back to it.
func (f *tableFile) back(t *readTable) func(parent string) bool {
	return func(parent string) bool { return f.leadsTo(parent, t.Name, map[string]bool{}) }
}

// breakCycle breaks off the references of a table that lead back to it, if there are any and each may be NULL.
func (f *tableFile) breakCycle(t *readTable) bool {
	back, found := f.back(t), false
	for _, l := range t.open() {
		if !back(l.parent) {
			continue
		}
		if l.Nulls == "" {
			return false
		}
		found = true
	}
	if found {
		f.breakOff(t, back)
	}
	return found
}

// breakOff makes the references of a table NULL that lead to some parents. That one may not be NULL is a problem.
func (f *tableFile) breakOff(t *readTable, to func(parent string) bool) {
	for _, l := range t.open() {
		if !to(l.parent) {
			continue
		}
		if l.Nulls == "" {
			f.wrong(t, l.SpecColumn, "it refers to table %s, which is not filled before: write nulls: 100%%, or draw it by another generator",
				quoted(l.parent))
		}
		l.Nulls = "100%"
		t.Broken = append(t.Broken, l.Name)
	}
}

// WithoutChecks says how a push fills a table before one that it refers to.
const WithoutChecks = "with --set session_replication_role=replica on PostgreSQL, or --set foreign_key_checks=0 in MySQL's family, " +
	"so that the server checks no foreign keys"

// refuseCycle adds the references that go round.
func (f *tableFile) refuseCycle(left []*readTable) {
	var all []string
	var first *readTable
	for _, t := range left {
		back := f.back(t)
		for _, l := range t.open() {
			if back(l.parent) {
				if first == nil {
					first = t
				}
				all = append(all, fmt.Sprintf("%s.%s to %s", quoted(t.Name), quoted(l.Name), quoted(l.parent)))
			}
		}
	}
	f.add(first.line, "table %s: it and those that it refers to wait for each other: %s: give one of these columns nulls, if it takes a NULL; "+
		"or write ref: {of: table.column, unchecked: true} for one, and push "+WithoutChecks, quoted(first.Name), strings.Join(all, ", "))
}
