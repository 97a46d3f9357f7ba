package event_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/event"
)

func TestBoundBy(t *testing.T) {
	for _, c := range []struct {
		seconds map[event.Limit]float64
		want    event.Limit
	}{
		{nil, ""},
		{map[event.Limit]float64{event.LimitTail: 0, event.LimitTarget: -1}, ""},
		{map[event.Limit]float64{event.LimitTail: 1e-9}, event.LimitTail},
		{map[event.Limit]float64{event.LimitTail: 3, event.LimitTarget: 2, event.LimitSource: 1}, event.LimitTail},
		{map[event.Limit]float64{event.LimitTail: 2, event.LimitNetwork: 2, event.LimitTarget: 2}, event.LimitNetwork},
		{map[event.Limit]float64{"": 9, event.LimitRate: 1}, event.LimitRate},
	} {
		require.Equal(t, c.want, event.BoundBy(c.seconds), c.seconds)
	}
	require.Len(t, event.Limits(), 7)
}
