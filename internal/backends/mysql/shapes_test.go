package mysql

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// rounded makes differences of cumulative shares exact.
func rounded(s *loader.Shape) *loader.Shape {
	round := func(v *float64) { *v = math.Round(*v*1e6) / 1e6 }
	for i := range s.Common {
		round(&s.Common[i].Share)
	}
	for i := range s.Buckets {
		round(&s.Buckets[i].Share)
	}
	return s
}

// The JSON is that of MySQL 9.7 and of MariaDB 10.11.
func TestHistograms(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		labels []string
		want   loader.Shape
	}{
		"singleton": {`{"buckets": [[0, 0.25], [1, 1.0]], "data-type": "int", "null-values": 0.0, "histogram-type": "singleton"}`, nil,
			loader.Shape{Distinct: 2, Common: []loader.CommonValue{{Value: "1", Share: 0.75}, {Value: "0", Share: 0.25}}}},
		"an enum": {`{"buckets": [[1, 0.75], [2, 1.0]], "data-type": "enum", "null-values": 0.0, "histogram-type": "singleton"}`, []string{"a", "b"},
			loader.Shape{Distinct: 2, Common: []loader.CommonValue{{Value: "a", Share: 0.75}, {Value: "b", Share: 0.25}}}},
		"equal heights": {`{"buckets": [[0, 0, 0.1, 1], [1.50, 7.25, 0.4, 7]], "data-type": "decimal", "null-values": 0.6, "histogram-type": "equi-height"}`, nil,
			loader.Shape{Nulls: 0.6, Distinct: 8, Common: []loader.CommonValue{{Value: "0", Share: 0.1}},
				Buckets: []loader.Interval{{Least: "1.50", Most: "7.25", Share: 0.3}}}},
		"texts": {`{"buckets": [["base64:type254:dDA=", "base64:type254:dDE0OQ==", 1.0, 57]], "data-type": "string", "null-values": 0.0, "histogram-type": "equi-height"}`, nil,
			loader.Shape{Distinct: 57, Buckets: []loader.Interval{{Least: "t0", Most: "t149", Share: 1}}}},
	} {
		var h histogram
		require.NoError(t, json.Unmarshal([]byte(c.text), &h), name)
		is := new(loader.Shape)
		require.NoError(t, h.into(is, c.labels), name)
		assert.Equal(t, &c.want, rounded(is), name)
	}

	shape := &loader.Shape{Nulls: 0.5}
	text := `{"histogram_hb": [{"start": "1", "size": 0.2, "ndv": 1}, {"start": "2", "size": 0.4, "ndv": 9}, {"start": "30", "end": "99", "size": 0.4, "ndv": 5}]}`
	require.NoError(t, readJSONHB(shape, text, "1", "99"))
	assert.Equal(t, &loader.Shape{
		Nulls: 0.5, Common: []loader.CommonValue{{Value: "1", Share: 0.1}},
		Buckets: []loader.Interval{{Least: "2", Most: "30", Share: 0.2}, {Least: "30", Most: "99", Share: 0.2}},
	}, rounded(shape))
}

// A histogram that cannot be read is an error of its column, and no end of all.
func TestOddHistograms(t *testing.T) {
	for _, text := range []string{
		`{"buckets": [[1]], "histogram-type": "singleton"}`, `{"buckets": [[1, 2, 0.5]], "histogram-type": "equi-height"}`,
	} {
		var h histogram
		require.NoError(t, json.Unmarshal([]byte(text), &h))
		assert.ErrorContains(t, h.into(new(loader.Shape), nil), "a bucket of a")
	}
}

// The rows are those that TiDB 8.4 shows; of a divided table only what is global counts.
func TestStatisticsOfTiDB(t *testing.T) {
	d := &loader.Description{Columns: []loader.Column{
		{Name: "n", Values: &rows.Column{Type: rows.Int64}}, {Name: "e", Values: &rows.Column{Type: rows.Enum, Labels: []string{"a", "b"}}},
	}}
	readTiDB(d, map[string][][]string{
		"META": {{"db", "t", "", "2026-11-28 13:19:08", "0", "900", "2026-11-28 13:19:08"}, {"db", "t", "p0", "", "0", "100", ""}},
		"HISTOGRAMS": {
			{"db", "t", "", "n", "0", "2026-11-28 13:19:08", "50", "300", "0.67", "1.6", "allLoaded"},
			{"db", "t", "", "i_n", "1", "2026-11-28 13:19:09", "50", "300", "0.67", "1", "allLoaded"},
		},
		"TOPN":    {{"db", "t", "", "n", "0", "0", "90"}, {"db", "t", "global", "e", "0", "2", "450"}, {"db", "t", "p0", "n", "0", "5", "90"}},
		"BUCKETS": {{"db", "t", "", "n", "0", "0", "90", "2", "1", "9", "0"}, {"db", "t", "", "n", "0", "1", "450", "2", "10", "99", "0"}},
	})
	assert.Equal(t, &loader.Shape{
		Nulls: 1. / 3, Distinct: 50, Length: 0.67, Order: 1, Common: []loader.CommonValue{{Value: "0", Share: 0.1}},
		Buckets: []loader.Interval{{Least: "1", Most: "9", Share: 0.1}, {Least: "10", Most: "99", Share: 0.4}},
	}, d.Columns[0].Shape)
	assert.Equal(t, []loader.CommonValue{{Value: "b", Share: 0.5}}, d.Columns[1].Shape.Common)
	assert.Equal(t, "2026-11-28 13:19:08", d.Analyzed)
}
