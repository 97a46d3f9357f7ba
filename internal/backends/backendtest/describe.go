package backendtest

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

// DescribedAlike compares what the back-end says of each table of a schema with what it says of all at once, which it
// asks in other words. It opens a loader on a table. unfit is why others of the schema take no rows.
func DescribedAlike(
	t testing.TB, schema string, tables []string, open func(table string) loader.Loader,
) (unfit map[string]string) {
	t.Helper()
	var each []*loader.Description
	for _, table := range tables {
		one, err := loader.FeaturesOf(open(table)).Describer.Describe(t.Context())
		require.NoError(t, err)
		each = append(each, one)
	}
	all, err := loader.FeaturesOf(open(tables[0])).Describer.DescribeAll(t.Context(), schema)
	require.NoError(t, err)

	unfit = map[string]string{}
	for _, d := range all {
		if d.Unfit != "" {
			unfit[d.Table] = d.Unfit
		}
	}
	all = slices.DeleteFunc(all, func(d *loader.Description) bool { return d.Unfit != "" })

	forget := func(descriptions []*loader.Description) { // what only one table is asked for
		for _, d := range descriptions {
			for i := range d.References {
				d.References[i].Keys = nil
			}
		}
	}
	forget(each)
	forget(all)
	require.Equal(t, each, all)
	return unfit
}
