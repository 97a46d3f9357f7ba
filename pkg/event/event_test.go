package event_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/event"
)

// An event without a schedule names no intended start, and one that was begun late counts from there.
func TestIntendedStart(t *testing.T) {
	e := event.Event{Batch: 1, Attempt: 2, Start: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Seconds: 0.25, Outcome: event.NotApplied}
	text, err := json.Marshal(e)
	require.NoError(t, err)
	require.NotContains(t, string(text), "intended")
	require.Equal(t, e.Seconds, e.Latency())

	e.Intended = e.Start.Add(-2 * time.Second)
	text, err = json.Marshal(e)
	require.NoError(t, err)
	require.Contains(t, string(text), `"intended":"2026-01-02T03:04:03.000000006Z"`)
	var read event.Event
	require.NoError(t, json.Unmarshal(text, &read))
	require.Equal(t, e, read)
	require.Equal(t, 2.25, read.Latency())

	e.Intended = e.Start.Add(time.Second) // clocks of two machines, of a journal that was moved
	require.Equal(t, e.Seconds, e.Latency())
}

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
