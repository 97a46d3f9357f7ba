package sqlload

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// Locate finds the table and refuses a relation that is none, or that may not be dropped or emptied. It returns nil if
// there is none and the run may create it, and can.
func (t *Table) Locate(ctx context.Context, c Conn, s *State) (*Relation, error) {
	found, err := t.Catalog.Locate(ctx, c, s)
	switch {
	case err != nil:
		return nil, t.Failed("look for table "+s.Table, err)
	case found == nil && s.Want.Create == loader.CreateNever:
		return nil, s.Want.Missing(s.Table)
	case found == nil:
		return nil, s.canMake()
	case found.Kind != "":
		return nil, notATable(found)
	}

	s.Relation, s.Table, s.Own, s.Claims = found, found.Table, found.Own, found.Claims
	switch s.Want.Create {
	case loader.CreateRecreate:
		s.Claims = cmp.Or(found.NextClaims, found.Claims)
		if err := s.canMake(); err != nil {
			return nil, err
		}
	case loader.CreateTruncate:
	default:
		return found, nil
	}
	return found, t.mayRemove(s, found)
}

// canMake returns an error if a column of the table has no type that terapush makes here.
func (s *State) canMake() error {
	if err := s.incomplete(); err != nil {
		return err
	}

	if s.Want.Like.Name != "" { // it has its own
		return nil
	}

	var without []string
	for _, c := range s.Schema.Columns {
		switch {
		case s.SQL(c) != "":
		case s.Dialect.SQL(c) != "":
			return Refuse("take it out of the keys, make it a shorter text, or omit the keys with --primary-key=false",
				"table %s cannot be made: column %s (%s of at most %d bytes) cannot be in a key there", s.Table, c.Name, c.Type, c.MaxSize())
		case c.Type == rows.Float32s:
			without = append(without, fmt.Sprintf("%s (%s of %d numbers)", c.Name, c.Type, c.Dims()))
		default:
			without = append(without, fmt.Sprintf("%s (%s of at most %d bytes)", c.Name, c.Type, c.MaxSize()))
		}
	}
	if len(without) == 0 {
		return nil
	}
	return Refuse("make the table yourself and use --create never",
		"table %s cannot be made: the back-end has no type for column %s", s.Table, strings.Join(without, ", "))
}

// mayRemove takes the table's name in full or as in the target.
func (t *Table) mayRemove(s *State, found *Relation) error {
	p, names := s.Want, []string{found.String(), cmp.Or(t.Name, s.Schema.Dataset)}
	if s.Upper { // names without quotation marks, which the server folds
		p.MayDrop = strings.ToUpper(p.MayDrop)
		for i, name := range names {
			names[i] = strings.ToUpper(name)
		}
	}
	return p.MayRemove(found.String(), found.Comment, names...)
}

// Fits returns why the relation cannot take the run's rows; nil if it can.
func (t *Table) Fits(ctx context.Context, c Conn, s *State, found *Relation) error {
	if found.Kind != "" {
		return notATable(found)
	}
	if err := s.incomplete(); err != nil {
		return err
	}
	columns, err := t.Catalog.Columns(ctx, c, s, found)
	if err != nil {
		return t.Failed("read the columns of "+s.Table, err)
	}
	found.Columns = columns

	if wrong := s.differences(columns); len(wrong) > 0 {
		hint, rows := found.Elsewhere(), "rows of dataset "+s.Schema.Dataset
		if t.Lookups != nil { // terapush inspect can read it
			hint += ", or a --dataset that fits it: terapush inspect writes one, or --like that table"
		}
		if s.Want.Records {
			hint, rows = "choose the columns with --columns, or load into a table of the files' columns", "records of the files"
		}
		return Refuse(hint, "table %s cannot take the %s: %s", found, rows, strings.Join(wrong, "; "))
	}
	return t.Failed("check table "+found.String(), t.Catalog.Fits(ctx, c, s, found))
}

// differences lists why the columns cannot take the run's rows. More columns may exist if the server fills them.
func (s *State) differences(have []Column) (wrong []string) {
	for _, want := range s.Schema.Columns {
		if says := s.difference(s.find(have, want.Name), want); says != "" {
			wrong = append(wrong, "column "+want.Name+" "+says)
		}
	}
	for _, h := range have {
		known := slices.ContainsFunc(s.Schema.Names(), func(name string) bool { return s.same(h.Name, name) })
		if !known && !h.Optional() {
			wrong = append(wrong, fmt.Sprintf("column %s (%s) %s and has no default", h.Name, h.Type, s.unknown()))
		}
	}
	return wrong
}

// difference says why a column, nil if it is missing, cannot take the values of one; "" if it can. Of the records of
// files the server alone knows whether their values fit.
func (s *State) difference(have *Column, want rows.Column) string {
	sql := cmp.Or(s.SQL(want), want.Type.String())
	switch {
	case have == nil && s.Want.Records:
		return "is missing"
	case have == nil:
		return fmt.Sprintf("(%s) is missing", sql)
	case have.Generated != "":
		return "is generated: it holds what the server computes, and no row's value"
	case s.Want.Records:
		return ""
	case want.Nullable && !have.Nullable:
		return "is NOT NULL, and some of the dataset's values are NULL"
	case have.Is.without(want.Labels) != "":
		return fmt.Sprintf("is %s, which has no label %s", have.Type, have.Is.without(want.Labels))
	case s.Types.Take(have.Is, want, s.computed(want)):
		return ""
	}

	if want.Type.Variable() && !strings.ContainsAny(sql, "0123456789") {
		sql += fmt.Sprintf(" with room for %d bytes", want.MaxBytes)
	}
	return fmt.Sprintf("is %s, want %s", have.Type, sql)
}

// find returns the existing column of a name, nil if there is none.
func (s *State) find(have []Column, name string) *Column {
	i := slices.IndexFunc(have, func(h Column) bool { return s.same(h.Name, name) })
	if i < 0 {
		return nil
	}
	return &have[i]
}

// same reports whether an existing column is the one of a name.
func (s *State) same(have, name string) bool {
	if s.Upper {
		return have == strings.ToUpper(name)
	}
	return have == name || s.Fold && strings.EqualFold(have, name)
}

// unknown says what a column is that gets no value.
func (s *State) unknown() string {
	if s.Want.Records {
		return "gets no field of the files"
	}
	return "is unknown to the dataset"
}

// computed reports whether row numbers are computed from a column and others.
func (s *State) computed(c rows.Column) bool {
	number := s.Schema.Number
	return !s.single() && slices.ContainsFunc(number, func(t rows.Term) bool { return s.Schema.Columns[t.Column].Name == c.Name })
}

func notATable(found *Relation) error {
	return Refuse("choose another --table", "%s is a %s, and rows go into tables", found, found.Kind)
}
