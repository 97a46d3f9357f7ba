package postgres

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// A table with children has statistics of itself, and of all together, which are those to imitate. The arrays are of the
// column's type, which only the text of them is for all.
const (
	statistics = "SELECT tablename, attname, null_frac, n_distinct, avg_width, COALESCE(correlation, 0), " +
		"COALESCE(array_to_json(CAST(CAST(most_common_vals AS text) AS text[])), '[]'), COALESCE(array_to_json(most_common_freqs), '[]'), " +
		"COALESCE(array_to_json(CAST(CAST(histogram_bounds AS text) AS text[])), '[]') " +
		"FROM pg_stats $where ORDER BY tablename, attname, inherited"
	analyzed = "SELECT relname, COALESCE(CAST(date_trunc('second', GREATEST(last_analyze, last_autoanalyze)) AS text), '') " +
		"FROM pg_stat_all_tables $where"
)

// Shapes implements sqlload.Shaper.
func (l catalog) Shapes(ctx context.Context, c sqlload.Conn, all sqlload.Described) error {
	for _, d := range all {
		d.Analyze = "ANALYZE " + sqlload.Qualified(d.Schema, d.Table)
	}
	if _, err := c.Exec(ctx, recordSettings); err != nil {
		return err
	}
	where := all.Where("schemaname", "relname", sqlload.Literal)
	found, err := sqlload.Rows(ctx, c, strings.ReplaceAll(analyzed, "$where", where))
	if err != nil {
		return err
	}
	for _, row := range found {
		all[row[0]].Analyzed = row[1]
	}

	where = all.Where("schemaname", "tablename", sqlload.Literal)
	found, err = sqlload.Rows(ctx, c, strings.ReplaceAll(statistics, "$where", where))
	if err != nil {
		return err
	}
	for _, row := range found {
		d := all[row[0]]
		shape, err := shapeOf(row[2:], d.Rows)
		if err != nil {
			sqlload.Unreadable(d, row[1], err)
			continue
		}
		*sqlload.ShapeOf(d, row[1]) = *shape
	}
	return nil
}

// shapeOf reads a row of statistics without the column's name. rows is how many the table has.
func shapeOf(row []string, rows int64) (*loader.Shape, error) {
	var numbers [4]float64
	for i := range numbers {
		v, err := strconv.ParseFloat(row[i], 64)
		if err != nil {
			return nil, err
		}
		numbers[i] = v
	}
	var values, bounds []string
	var shares []float64
	for i, into := range []any{&values, &shares, &bounds} {
		if err := json.Unmarshal([]byte(row[4+i]), into); err != nil {
			return nil, err
		}
	}

	shape := &loader.Shape{Nulls: numbers[0], Length: numbers[2], Order: numbers[3]}
	shape.Distinct = int64(math.Round(numbers[1]))
	if numbers[1] < 0 { // a share of the rows
		shape.Distinct = int64(math.Round(-numbers[1] * float64(rows)))
	}
	for i := range min(len(values), len(shares)) {
		shape.Common = append(shape.Common, loader.CommonValue{Value: values[i], Share: shares[i]})
	}
	each := shape.Rest() / float64(max(len(bounds)-1, 1))
	for i := range len(bounds) - 1 {
		shape.Buckets = append(shape.Buckets, loader.Interval{Least: bounds[i], Most: bounds[i+1], Share: each})
	}
	return shape, nil
}
