package sqlload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// Shaper is a Catalog of a server whose statistics of columns can be read.
type Shaper interface {
	// Shapes adds the statistics of the columns of tables, all of one schema, and Analyzed and Analyze.
	Shapes(ctx context.Context, c Conn, all Described) error
}

// Described are tables of one schema, by name.
type Described map[string]*loader.Description

// Where restricts a view to the tables, by its columns of the schema's and the table's name.
func (all Described) Where(schema, table string, literal func(string) string) string {
	var in string
	names := make([]string, 0, len(all))
	for name, d := range all {
		in = d.Schema
		names = append(names, literal(name))
	}
	slices.Sort(names)
	return fmt.Sprintf(" WHERE %s = %s AND %s IN (%s)", schema, literal(in), table, strings.Join(names, ", "))
}

// Shapes implements loader.Describer.
func (t *Table) Shapes(ctx context.Context, tables ...*loader.Description) error {
	shaper, is := t.Catalog.(Shaper)
	if !is {
		return Refuse("leave --stats out", "the statistics of this server cannot be read")
	}

	all := make(Described)
	for _, d := range tables {
		if d.Unfit == "" {
			all[d.Table] = d
		}
	}
	return t.connect(ctx, func(c Conn) error {
		err := shaper.Shapes(ctx, c, all)
		var known *loader.Error // what this back-end cannot do
		if errors.As(err, &known) {
			return err
		}
		if err != nil && t.refused(err) {
			for _, d := range all {
				d.Hidden = append(d.Hidden, fmt.Sprintf("statistics: %v", err))
			}
			return nil
		}
		dropOdd(tables)
		return t.Failed("read the statistics of columns", err)
	})
}

// Unreadable leaves a column of a description without a shape, and says why.
func Unreadable(d *loader.Description, column string, err error) {
	for i := range d.Columns {
		if d.Columns[i].Name == column {
			d.Columns[i].Shape = nil
		}
	}
	d.Hidden = append(d.Hidden, fmt.Sprintf("statistics of column %s: %v", column, err))
}

// dropOdd drops shapes whose shares are none: no spec has such numbers.
func dropOdd(tables []*loader.Description) {
	for _, d := range tables {
		for _, c := range d.Columns {
			if c.Shape == nil {
				continue
			}
			shares := []float64{c.Shape.Nulls}
			for _, v := range c.Shape.Common {
				shares = append(shares, v.Share)
			}
			for _, b := range c.Shape.Buckets {
				shares = append(shares, b.Share)
			}
			i := slices.IndexFunc(shares, func(share float64) bool { return !(share >= 0 && share <= math.MaxFloat64) })
			if i >= 0 {
				Unreadable(d, c.Name, fmt.Errorf("%v is no share", shares[i]))
			}
		}
	}
}

// ShapeOf returns the shape of a column of a description, which is made if there is none; of an unknown column it is nobody's.
func ShapeOf(d *loader.Description, column string) *loader.Shape {
	i := slices.IndexFunc(d.Columns, func(c loader.Column) bool { return c.Name == column })
	if i < 0 {
		return new(loader.Shape)
	}
	if d.Columns[i].Shape == nil {
		d.Columns[i].Shape = new(loader.Shape)
	}
	return d.Columns[i].Shape
}
