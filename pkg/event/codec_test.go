package event_test

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

func sent(batch int64) event.Event {
	return event.Event{
		Batch: batch, Attempt: 2, Worker: 3, Start: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Seconds: 0.25,
		Payload: 520, Encoded: 600, Outcome: event.NotApplied, Class: loader.ClassData,
		Error: "bad value <x> & \"y\"\nin row 7", Detail: []string{"Warning 1264"},
	}
}

// journal returns a header and events 0 … n−1, line by line.
func journal(t *testing.T, n int64) []string {
	t.Helper()
	text, err := event.AppendLine(nil, event.NewHeader("r1"))
	require.NoError(t, err)
	for i := range n {
		text, err = event.AppendLine(text, sent(i))
		require.NoError(t, err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	require.Len(t, lines, int(n)+2, "one line each, whatever the event holds")
	return lines[:n+1]
}

// readAll reads until the first error.
func readAll(text string) ([]event.Event, *event.Reader, error) {
	r, err := event.NewReader(strings.NewReader(text))
	if err != nil {
		return nil, nil, err
	}
	for all := []event.Event(nil); ; {
		e, err := r.Next()
		if err != nil {
			return all, r, err
		}
		all = append(all, e)
	}
}

func TestJournalRoundTrip(t *testing.T) {
	lines := journal(t, 2)
	require.Equal(t, `{"schema":"terapush.journal/v1","run":"r1"}`+"\n", lines[0])
	require.Contains(t, lines[1], `<x> &`, "messages stay readable")
	lines[2] = strings.Replace(lines[2], "{", `{"later":{"a":[1]},`, 1) // an unknown field of a later version
	begun := event.Event{Batch: 7, Attempt: 1, Outcome: event.Started}
	require.False(t, begun.Done())
	text, err := event.AppendLine([]byte(strings.Join(lines, "")), begun)
	require.NoError(t, err)

	all, r, err := readAll(string(text))
	require.Equal(t, io.EOF, err)
	require.Equal(t, []event.Event{sent(0), sent(1), begun}, all)
	require.Equal(t, event.Header{Schema: event.JournalSchema, Run: "r1"}, r.Header())
	require.EqualValues(t, len(text), r.Offset())

	got, err := event.AppendLine([]byte("before\n"), func() {})
	require.Error(t, err)
	require.Equal(t, "before\n", string(got))
}

// A process can be killed after any byte: every prefix of a journal reads as whole lines and, where one was cut, says
// where to truncate.
func TestEveryPrefixIsWholeOrTorn(t *testing.T) {
	lines := journal(t, 2)
	text := strings.Join(lines, "")
	for cut := range len(text) {
		whole := strings.LastIndex(text[:cut], "\n") + 1 // bytes of whole lines
		events := max(strings.Count(text[:cut], "\n")-1, 0)
		all, r, err := readAll(text[:cut])
		require.Len(t, all, events, "cut at %d", cut)
		if cut == whole && cut > 0 {
			require.Equal(t, io.EOF, err, "cut at %d", cut)
			require.Equal(t, int64(whole), r.Offset())
			continue
		}
		var torn *event.TornError
		require.ErrorAs(t, err, &torn, "cut at %d", cut)
		require.Equal(t, int64(whole), torn.Offset, "cut at %d", cut)
	}
}

func TestDamage(t *testing.T) {
	lines := journal(t, 3)
	const inTheMiddle, atTheEnd = 2, 3
	for name, c := range map[string]struct {
		line   int
		text   string
		err    string // part of the error; "": the line is torn
		events int
	}{
		"zeros in the middle":                   {inTheMiddle, "\x00\x00\x00\n", "line 3", 1},
		"half a line in the middle":             {inTheMiddle, lines[2][20:], "line 3", 1},
		"an empty line in the middle":           {inTheMiddle, "\n", "line 3", 1},
		"another kind of object":                {1, "{}\n", `line 2, at byte 44: the outcome is ""`, 0},
		"zeros at the end":                      {atTheEnd, "\x00\x00\x00", "", 2},
		"a page lost before the last line feed": {atTheEnd, "\x00\x00" + lines[3][2:], "", 2},
		"half a line at the end":                {atTheEnd, lines[3][20:], "", 2},
		"an empty line at the end":              {atTheEnd, "\n", "", 2},
		"another type at the end":               {atTheEnd, `{"batch":"7"}` + "\n", "line 4", 2},
		"another schema":                        {0, `{"schema":"terapush.journal/v2"}` + "\n", `"terapush.journal/v2"`, 0},
		"no journal":                            {0, "hello\n", "line 1", 0},
		// A valid line was written whole by a later version: to cut it off would forget an attempt.
		"an outcome of a later version": {
			atTheEnd, strings.Replace(lines[3], `"not_applied"`, `"halved"`, 1),
			`the outcome is "halved", which terapush.journal/v1 has no meaning for in this version of terapush`, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			changed := slices.Clone(lines)
			changed[c.line] = c.text
			all, r, err := readAll(strings.Join(changed, ""))
			require.Len(t, all, c.events)
			var torn *event.TornError
			if c.err == "" {
				require.ErrorAs(t, err, &torn)
				require.EqualValues(t, len(lines[0]+lines[1]+lines[2]), torn.Offset)
				return
			}
			require.NotErrorAs(t, err, &torn)
			require.ErrorContains(t, err, c.err)
			if r != nil {
				_, again := r.Next()
				require.Equal(t, err, again, "the lines after it are not read")
			}
		})
	}
	_, _, err := readAll("hello\n")
	require.ErrorContains(t, err, "line 1", "a header is not torn if it has its line feed")
}

func FuzzReader(f *testing.F) {
	f.Add(`{"schema":"terapush.journal/v1","run":"r"}` + "\n" + `{"batch":1,"outcome":"applied"}` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, r, err := readAll(text)
		require.Error(t, err)
		if r != nil {
			require.LessOrEqual(t, r.Offset(), int64(len(text)))
		}
	})
}

// A journal of an older version has no intended starts, and one without a schedule names none.
func TestIntendedStart(t *testing.T) {
	e := sent(1)
	line, err := event.AppendLine(nil, e)
	require.NoError(t, err)
	require.NotContains(t, string(line), "intended")
	require.Equal(t, e.Seconds, e.Latency())

	e.Intended = e.Start.Add(-2 * time.Second)
	text, err := event.AppendLine([]byte(journal(t, 0)[0]), e)
	require.NoError(t, err)
	require.Contains(t, string(text), `"intended":"2026-01-02T03:04:03.000000006Z"`)
	all, _, err := readAll(string(text))
	require.Equal(t, io.EOF, err)
	require.Equal(t, []event.Event{e}, all)
	require.Equal(t, 2.25, all[0].Latency())

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
