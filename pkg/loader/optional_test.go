package loader_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

// A feature that is not filled in would be a Loader's that cannot, and no test would show it.
func TestFeaturesOf(t *testing.T) {
	type plain struct{ loader.Loader }
	require.Zero(t, loader.FeaturesOf(plain{}))

	f := reflect.ValueOf(loader.FeaturesOf(struct {
		plain
		loader.Resolver
		loader.Committer
		loader.Inventory
		loader.Finisher
		loader.Claims
		loader.Prober
		loader.Counter
		loader.Fetcher
		loader.Sampler
		loader.Sizer
		loader.Measurer
		loader.Checker
		loader.Suspecter
		loader.Sequencer
		loader.Describer
	}{}))
	for i := range f.NumField() {
		require.False(t, f.Field(i).IsNil(), f.Type().Field(i).Name)
	}
}
