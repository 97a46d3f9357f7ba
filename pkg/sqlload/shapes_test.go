package sqlload

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

// A column whose shares are none has no shape, and the others keep theirs.
func TestDropOdd(t *testing.T) {
	good := &loader.Shape{Nulls: 0.5, Buckets: []loader.Interval{{Least: "1", Most: "2", Share: 0.5}}}
	d := &loader.Description{Columns: []loader.Column{
		{Name: "a", Shape: &loader.Shape{Nulls: math.NaN()}}, {Name: "b", Shape: good},
		{Name: "c", Shape: &loader.Shape{Common: []loader.CommonValue{{Value: "x", Share: -0.1}}}},
	}}
	dropOdd([]*loader.Description{d})
	require.Equal(t, []loader.Column{{Name: "a"}, {Name: "b", Shape: good}, {Name: "c"}}, d.Columns)
	require.Equal(t, []string{"statistics of column a: NaN is no share", "statistics of column c: -0.1 is no share"}, d.Hidden)
}
