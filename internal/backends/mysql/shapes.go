package mysql

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// Shapes implements sqlload.Shaper. What SHOW and the views give is read as any user may; MariaDB's statistics are in a table of
// schema mysql, which takes the privilege to read it.
func (l catalog) Shapes(ctx context.Context, c sqlload.Conn, all sqlload.Described) error {
	switch l.server.flavour {
	case mySQL:
		return l.histograms(ctx, c, all)
	case mariaDB:
		return l.persistent(ctx, c, all)
	case tiDB:
		return l.tiDBShapes(ctx, c, all)
	}
	return sqlload.Refuse("leave --stats out", "the statistics of %s cannot be read", l.server.flavour)
}

// qualified is a table's name in a statement.
func qualified(d *loader.Description) string { return quote(d.Schema) + "." + quote(d.Table) }

// histogram is what MySQL keeps of a column. Shares in buckets are cumulative, and of all rows.
type histogram struct {
	Buckets [][]json.RawMessage `json:"buckets"`
	Nulls   float64             `json:"null-values"`
	Type    string              `json:"histogram-type"`
	Of      string              `json:"data-type"`
	Updated string              `json:"last-updated"`
}

func (l catalog) histograms(ctx context.Context, c sqlload.Conn, all sqlload.Described) error {
	for _, d := range all {
		var names []string
		for _, column := range d.Columns {
			if column.Generated == "" {
				names = append(names, quote(column.Name))
			}
		}
		d.Analyze = fmt.Sprintf("ANALYZE TABLE %[1]s; ANALYZE TABLE %[1]s UPDATE HISTOGRAM ON %[2]s WITH 100 BUCKETS",
			qualified(d), strings.Join(names, ", "))
	}
	found, err := sqlload.Rows(ctx, c, "SELECT table_name, column_name, histogram FROM information_schema.column_statistics"+
		all.Where("schema_name", "table_name", literal))
	if err != nil {
		return err
	}
	for _, row := range found {
		d := all[row[0]]
		if d == nil { // of a name that differs in the case of letters
			continue
		}
		var h histogram
		err := json.Unmarshal([]byte(row[2]), &h)
		if err == nil {
			err = h.into(sqlload.ShapeOf(d, row[1]), enumLabels(d, row[1]))
		}
		if err != nil {
			sqlload.Unreadable(d, row[1], err)
			continue
		}
		d.Analyzed = max(d.Analyzed, h.Updated)
	}
	return nil
}

func enumLabels(d *loader.Description, name string) []string {
	for _, c := range d.Columns {
		if c.Name == name && c.Values != nil {
			return c.Values.Labels
		}
	}
	return nil
}

func (h *histogram) into(shape *loader.Shape, labels []string) error {
	before := 0.0
	*shape = loader.Shape{Nulls: h.Nulls}
	for _, b := range h.Buckets {
		if len(b) < 2 || h.Type == "equi-height" && len(b) < 4 {
			return fmt.Errorf("a bucket of a %s histogram has %d values", h.Type, len(b))
		}
		least, most, distinct := valueOf(b[0], labels), valueOf(b[0], labels), 1.0
		cumulative := b[1]
		if h.Type == "equi-height" {
			most, cumulative, distinct = valueOf(b[1], labels), b[2], number(b[3])
		}
		share := number(cumulative) - before
		before = number(cumulative)
		shape.Distinct += int64(distinct)
		addBucket(shape, least, most, share)
	}
	sortCommon(shape)
	return nil
}

// addBucket adds a bucket; of one value it is a common value.
func addBucket(shape *loader.Shape, least, most string, share float64) {
	if least == most {
		shape.Common = append(shape.Common, loader.CommonValue{Value: least, Share: share})
		return
	}
	shape.Buckets = append(shape.Buckets, loader.Interval{Least: least, Most: most, Share: share})
}

func sortCommon(shape *loader.Shape) {
	slices.SortStableFunc(shape.Common, func(a, b loader.CommonValue) int { return cmp.Compare(b.Share, a.Share) })
}

func number(text json.RawMessage) float64 {
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// valueOf reads a value of a histogram: a number, a text, or a text in base64 after its type. Of an enum it is the number of its
// label.
func valueOf(raw json.RawMessage, labels []string) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return labelled(string(raw), labels)
	}
	if kind, encoded, is := strings.Cut(strings.TrimPrefix(text, "base64:"), ":"); is && strings.HasPrefix(kind, "type") {
		if value, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			return string(value)
		}
	}
	return text
}

// labelled is the label of an enum in the place of its number.
func labelled(text string, labels []string) string {
	n, err := strconv.Atoi(text)
	if err == nil && n >= 1 && n <= len(labels) {
		return labels[n-1]
	}
	return text
}

// tiDBShapes reads what SHOW has of the columns' statistics. The server keeps in memory what a query has asked for, and shows no
// more: the plan of one that asks for all columns makes it read them.
func (l catalog) tiDBShapes(ctx context.Context, c sqlload.Conn, tables sqlload.Described) error {
	var asks []string
	for _, d := range tables {
		d.Analyze = "ANALYZE TABLE " + qualified(d) + " ALL COLUMNS"
		var asked []string
		for _, column := range d.Columns {
			asked = append(asked, quote(column.Name))
		}
		asks = append(asks, "EXPLAIN SELECT 1 FROM "+qualified(d)+" WHERE CONCAT_WS('', "+strings.Join(asked, ", ")+") = ''")
	}
	where := tables.Where("db_name", "table_name", literal)
	all := map[string][][]string{}
	waiting, cancel := context.WithTimeout(ctx, tiDBLoads)
	defer cancel()
	for range sqlload.Poll(waiting, 50*time.Millisecond, 200*time.Millisecond) {
		for _, ask := range asks { // a table that this user may not read has no statistics for them
			if _, err := sqlload.Rows(ctx, c, ask); err != nil && !is(err, accessDenied...) {
				return err
			}
		}
		for _, what := range []string{"META", "HISTOGRAMS", "TOPN", "BUCKETS"} {
			found, err := sqlload.Rows(ctx, c, "SHOW STATS_"+what+where)
			if err != nil {
				return err
			}
			all[what] = found
		}
		evicted := func(row []string) bool { return row[10] == "allEvicted" }
		if !slices.ContainsFunc(all["HISTOGRAMS"], evicted) {
			break
		}
	}
	for name, d := range tables {
		of := map[string][][]string{}
		for what, found := range all {
			of[what] = slices.DeleteFunc(slices.Clone(found), func(row []string) bool { return row[1] != name })
		}
		readTiDB(d, of)
	}
	return ctx.Err()
}

// tiDBLoads is how long a plan is asked for again and again that makes the server read statistics, in the background.
const tiDBLoads = 5 * time.Second

// readTiDB reads the rows of SHOW STATS_META, _HISTOGRAMS, _TOPN and _BUCKETS. Of a divided table only what is of all of it
// counts, which is called global.
func readTiDB(d *loader.Description, all map[string][][]string) {
	whole := func(rows [][]string, column int) (kept [][]string) {
		for _, row := range rows {
			if (row[2] == "" || row[2] == "global") && (column < 0 || row[column] == "0") {
				kept = append(kept, row)
			}
		}
		return kept
	}
	rows := 0.0
	for _, row := range whole(all["META"], -1) {
		rows = number(json.RawMessage(row[5]))
	}
	if rows < 1 {
		return
	}

	for _, row := range whole(all["HISTOGRAMS"], 4) {
		shape := sqlload.ShapeOf(d, row[3])
		d.Analyzed = max(d.Analyzed, row[5])
		shape.Distinct = int64(number(json.RawMessage(row[6])))
		shape.Nulls = number(json.RawMessage(row[7])) / rows
		shape.Length = number(json.RawMessage(row[8]))
		shape.Order = max(-1, min(1, number(json.RawMessage(row[9]))))
	}
	for _, row := range whole(all["TOPN"], 4) {
		shape := sqlload.ShapeOf(d, row[3])
		shape.Common = append(shape.Common, loader.CommonValue{Value: labelled(row[5], enumLabels(d, row[3])), Share: number(json.RawMessage(row[6])) / rows})
	}
	before := map[string]float64{}
	for _, row := range whole(all["BUCKETS"], 4) {
		count := number(json.RawMessage(row[6]))
		addBucket(sqlload.ShapeOf(d, row[3]), row[8], row[9], (count-before[row[3]])/rows)
		before[row[3]] = count
	}
	for _, c := range d.Columns {
		if c.Shape != nil {
			sortCommon(c.Shape)
		}
	}
}

// persistent reads MariaDB's engine-independent statistics.
func (l catalog) persistent(ctx context.Context, c sqlload.Conn, all sqlload.Described) error {
	for _, d := range all {
		d.Analyze = "SET histogram_type = JSON_HB; ANALYZE TABLE " + qualified(d) + " PERSISTENT FOR ALL"
	}
	found, err := sqlload.Rows(ctx, c, "SELECT table_name, column_name, COALESCE(min_value, ''), COALESCE(max_value, ''), COALESCE(nulls_ratio, 0), "+
		"COALESCE(avg_length, 0), COALESCE(avg_frequency, 0), COALESCE(hist_type, ''), CASE WHEN hist_type = 'JSON_HB' THEN histogram ELSE '' END "+
		"FROM mysql.column_stats"+all.Where("db_name", "table_name", literal))
	if err != nil {
		return err
	}
	for _, row := range found {
		d := all[row[0]]
		if d == nil { // of a name that differs in the case of letters
			continue
		}
		shape := sqlload.ShapeOf(d, row[1])
		shape.Nulls, shape.Length = number(json.RawMessage(row[4])), number(json.RawMessage(row[5]))
		if each := number(json.RawMessage(row[6])); each > 0 {
			shape.Distinct = int64(math.Round((1 - shape.Nulls) * float64(d.Rows) / each))
		}
		if err := readJSONHB(shape, row[8], row[2], row[3]); err != nil {
			sqlload.Unreadable(d, row[1], err)
		}
	}
	return nil
}

// readJSONHB reads a histogram of type JSON_HB, whose shares are of the values that are not NULL. A bucket ends before the next
// begins. Without one of that type all between the ends is one bucket.
func readJSONHB(shape *loader.Shape, text, least, most string) error {
	if text == "" {
		if least != most {
			addBucket(shape, least, most, 1-shape.Nulls)
		}
		return nil
	}
	var h struct {
		Buckets []struct {
			Start, End string
			Size       float64
			Distinct   int64 `json:"ndv"`
		} `json:"histogram_hb"`
	}
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		return err
	}
	for i, b := range h.Buckets {
		end := cmp.Or(b.End, b.Start)
		if b.End == "" && b.Distinct > 1 && i+1 < len(h.Buckets) {
			end = h.Buckets[i+1].Start
		}
		addBucket(shape, b.Start, end, b.Size*(1-shape.Nulls))
	}
	sortCommon(shape)
	return nil
}
