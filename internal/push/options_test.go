package push_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/pkg/loader"
)

// optional is a driver whose methods have an option.
type optional struct{ loader.Driver }

func (o optional) Methods() []loader.Method {
	methods := o.Driver.Methods()
	for i := range methods {
		methods[i].Options = []loader.Option{{Name: "unlogged", Kind: loader.BoolOption}, {Name: "hint"}}
	}
	return methods
}

func TestTheReportHasTheOptionsThatWereGiven(t *testing.T) {
	p := newPlace(t)
	require.Equal(t, map[string]string{}, p.succeeds(small).Plan.Options)

	p = newPlace(t)
	job := p.job(small)
	var err error
	job.Drivers, err = loader.NewRegistry(optional{meddler{p.memory.Driver(), p}})
	require.NoError(t, err)
	job.Config.Options = map[string]string{"unlogged": "true"}
	r, err := push.Run(t.Context(), job)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"unlogged": "true"}, r.Plan.Options)
}
