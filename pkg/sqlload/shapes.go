package sqlload

import (
	"context"
	"errors"
	"slices"

	"github.com/terapush/terapush/pkg/loader"
)

// Shaper is a Catalog of a server whose statistics of columns can be read.
type Shaper interface {
	// Shapes adds the statistics of the columns to d, and Analyzed and Analyze.
	Shapes(ctx context.Context, c Conn, r *Relation, d *loader.Description) error
}

// Shapes implements loader.Describer.
func (t *Table) Shapes(ctx context.Context, d *loader.Description) error {
	shaper, is := t.Catalog.(Shaper)
	if !is {
		return Refuse("leave --stats out", "the statistics of this server cannot be read")
	}

	s := t.Plan(loader.Preparation{Create: loader.CreateNever})
	return t.connect(ctx, func(c Conn) error {
		r, err := t.Locate(ctx, c, s)
		if err == nil {
			err = shaper.Shapes(ctx, c, r, d)
		}
		var known *loader.Error // what this back-end cannot do
		if errors.As(err, &known) {
			return err
		}
		if err != nil && t.refused(err) {
			d.Hidden = append(d.Hidden, "statistics")
			return nil
		}
		return t.Failed("read the statistics of "+s.Table, err)
	})
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
