package databend

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/rows"
)

// found is what the server knows of the target table.
type found struct {
	// id changes when the table is dropped and made anew, and stays when it is emptied (tried on 1.2.895): that the
	// proof of arrival finds out.
	id      string
	engine  string
	comment string
}

// inspect looks the target table up; nil if there is none.
func (db *database) inspect(ctx context.Context) (*found, error) {
	var f *found
	query := fmt.Sprintf("SELECT table_id, engine, comment FROM system.tables WHERE database = %s AND name = %s",
		literal(db.plan.name.database), literal(db.plan.name.table))
	err := db.run(ctx, statement{sql: query}, func(r row) error {
		v := r.texts()
		if len(v) != 3 {
			return fmt.Errorf("the server describes table %s in %d values, asked for were 3", db.plan.name, len(v))
		}
		f = &found{id: v[0], engine: v[1], comment: v[2]}
		return nil
	})
	switch {
	case err != nil || f == nil:
		return nil, err
	case f.engine == "VIEW":
		return nil, fmt.Errorf("%s is a view; rows go into tables", db.plan.name)
	case f.engine != "FUSE":
		// The others keep rows in the memory of one node, or nowhere, and know no labels.
		return nil, fmt.Errorf("table %s has engine %s; labels and atomic loads need FUSE", db.plan.name, f.engine)
	}
	return f, nil
}

// columnInfo is one column as system.columns describes it.
type columnInfo struct {
	name, dataType string
	optional       bool // gets a value when an INSERT leaves it out
}

// checkColumns refuses a table that cannot take the rows, with everything that is wrong about it.
func (db *database) checkColumns(ctx context.Context, s rows.Schema) error {
	var have []columnInfo
	query := fmt.Sprintf("SELECT name, data_type, is_nullable = 'YES' OR default_kind <> '' FROM system.columns"+
		" WHERE database = %s AND `table` = %s", literal(db.plan.name.database), literal(db.plan.name.table))
	err := db.run(ctx, statement{sql: query}, func(r row) error {
		v := r.texts()
		if len(v) != 3 {
			return fmt.Errorf("the server describes a column in %d values, asked for were 3", len(v))
		}
		have = append(have, columnInfo{name: v[0], dataType: v[1], optional: v[2] == "1" || strings.EqualFold(v[2], "true")})
		return nil
	})
	if err != nil {
		return err
	}
	if wrong := compareColumns(s.Columns, have); len(wrong) > 0 {
		return fmt.Errorf("table %s cannot take the rows of dataset %s: %s", db.plan.name, s.Dataset, strings.Join(wrong, "; "))
	}
	return nil
}

// compareColumns lists what keeps rows of the wanted columns out of a table. Columns that the dataset does not know may
// be there as long as the server can fill them in. Names in quotes are told apart by their letters' case.
func compareColumns(want []rows.Column, have []columnInfo) (wrong []string) {
	for _, w := range want {
		i := slices.IndexFunc(have, func(h columnInfo) bool { return h.name == w.Name })
		if i < 0 {
			wrong = append(wrong, fmt.Sprintf("column %s (%s) is missing", w.Name, columnType(w)))
		} else if !strings.EqualFold(have[i].dataType, columnType(w)) {
			wrong = append(wrong, fmt.Sprintf("column %s is %s, want %s", w.Name, have[i].dataType, columnType(w)))
		}
	}
	for _, h := range have {
		known := slices.ContainsFunc(want, func(w rows.Column) bool { return w.Name == h.name })
		if !known && !h.optional {
			wrong = append(wrong, fmt.Sprintf("column %s (%s) is unknown to the dataset and has no default", h.name, h.dataType))
		}
	}
	return wrong
}
