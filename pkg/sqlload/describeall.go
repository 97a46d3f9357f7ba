package sqlload

import (
	"context"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// Surveyor is a Catalog that reads the columns of all tables of a schema at once.
type Surveyor interface {
	// AllColumns returns them by the table's name, in their order. Tables beside those of Lookups.Tables do no harm.
	AllColumns(ctx context.Context, c Conn, s *State, schema string) (map[string][]Column, error)
}

// DescribeAll implements loader.Describer by one query for each kind of thing, however many tables there are.
func (t *Table) DescribeAll(ctx context.Context, schema string) ([]*loader.Description, error) {
	if err := t.describable(); err != nil {
		return nil, err
	}
	surveyor, is := t.Catalog.(Surveyor)
	if !is || t.Lookups.Tables == "" {
		return nil, Refuse("give --table", "the tables of a schema cannot be listed on this server")
	}

	s := t.Plan(loader.Preparation{Create: loader.CreateNever})
	if s.Upper {
		schema = strings.ToUpper(schema)
	}
	var all []*loader.Description
	err := t.connect(ctx, func(c Conn) (err error) {
		all, err = t.describeAll(ctx, c, s, surveyor, schema)
		return t.Failed("describe the tables of "+schema, err)
	})
	if err != nil {
		return nil, err
	}

	for _, d := range all {
		for i := range d.References {
			if r := &d.References[i]; r.Schema != d.Schema {
				t.countParents(ctx, s, d, r)
			}
		}
	}
	return all, nil
}

func (t *Table) describeAll(
	ctx context.Context, c Conn, s *State, surveyor Surveyor, schema string,
) (all []*loader.Description, err error) {
	names, err := Rows(ctx, c, s.fill(t.Lookups.Tables, &Relation{Schema: schema}))
	if err != nil || len(names) == 0 {
		return nil, err
	}
	columns, err := surveyor.AllColumns(ctx, c, s, schema)
	if err != nil {
		return nil, err
	}

	byName := make(map[string]*loader.Description)
	for _, row := range names {
		name := row[0]
		isOwn := slices.Contains([]string{ClaimsTable, UnloggedClaims, RunsTable}, strings.ToLower(name))
		if isOwn {
			continue
		}
		d := &loader.Description{Schema: schema, Table: name, Escapes: s.Backslash, StandIn: t.Lookups.StandIn}
		all = append(all, d)
		if len(columns[name]) == 0 { // of which PostgreSQL has tables
			d.Unfit = "it has no columns"
			continue
		}
		s.addColumns(d, columns[name])
		byName[name] = d
	}
	others, err := t.others(ctx, c, s, schema)
	if err != nil {
		return nil, err
	}

	for _, one := range t.Lookups.topics() {
		found, err := Rows(ctx, c, s.fillAll(t.Lookups, one.question, schema))
		if err != nil && !t.refused(err) {
			return nil, err
		}
		for _, d := range all {
			if err != nil {
				d.Hidden = append(d.Hidden, one.name)
			}
		}
		for _, row := range found {
			if d := byName[row[0]]; d != nil {
				one.add(d, row[1:])
			}
		}
	}
	return append(all, others...), nil
}

// others describes what takes no rows: views, for example.
func (t *Table) others(ctx context.Context, c Conn, s *State, schema string) (all []*loader.Description, err error) {
	if t.Lookups.Others == "" {
		return nil, nil
	}
	found, err := Rows(ctx, c, s.fill(t.Lookups.Others, &Relation{Schema: schema}))
	if err != nil && t.refused(err) {
		return nil, nil
	}
	for _, row := range found {
		all = append(all, &loader.Description{Schema: schema, Table: row[0], Unfit: "it is a " + row[1]})
	}
	return all, err
}
