package sweep_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/record"
	"github.com/terapush/terapush/internal/sweep"
)

func TestBegin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.sweep.jsonl")
	begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cell := 0
	begin := func(change func(*record.Head)) ([]string, error) {
		h := record.Head{
			Name: "p", Started: begun.Add(time.Hour), Version: "1.0.0", Machine: record.Machine{Host: "a", CPU: "fast"}, Repeats: 3, Limit: 60,
			Parts: []record.Part{{Cells: 9, Axes: []record.Axis{{Name: "workers", Values: strings.Fields("1 2 3 4 5 6 7 8 9")}}}},
		}
		if cell == 0 {
			h.Started = begun
		}
		change(&h)
		h.Digest = record.Digest(h.Parts, time.Duration(h.Limit)*time.Second)
		file, err := record.Open(path)
		require.NoError(t, err)
		defer file.Close()
		warnings, err := sweep.Begin(file, h)
		if err == nil {
			require.NoError(t, file.Append(record.Entry{Cell: cell, Status: record.Failed}))
			cell++
		}
		return warnings, err
	}
	as := func(*record.Head) {}
	elsewhere := func(h *record.Head) { h.Machine.Host, h.Version = "b", "1.1.0" }
	for _, c := range []struct {
		what     string
		change   func(*record.Head)
		warnings int
		heads    int
	}{
		{"new", as, 0, 1},
		{"the same", as, 0, 1},
		{"fewer repeats", func(h *record.Head) { h.Repeats = 1 }, 0, 1},
		{"more repeats", func(h *record.Head) { h.Repeats = 4 }, 0, 2},
		{"fewer again", as, 0, 2},
		{"elsewhere", elsewhere, 2, 3},
		{"there again", elsewhere, 0, 3},
		{"back", as, 2, 4},
	} {
		warnings, err := begin(c.change)
		require.NoError(t, err, c.what)
		require.Len(t, warnings, c.warnings, c.what)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, c.heads, strings.Count(string(text), `{"schema"`), c.what)
	}
	r, err := record.Read(path)
	require.NoError(t, err)
	require.Equal(t, 4, r.Head.Repeats, "the most that was asked for")
	require.Equal(t, begun, r.Head.Started)
	var hosts string
	for _, e := range r.Entries {
		hosts += e.Machine.Host + e.Version + " "
	}
	require.Equal(t, "a1.0.0 a1.0.0 a1.0.0 a1.0.0 a1.0.0 b1.1.0 b1.1.0 a1.0.0 ", hosts, "every entry is of the head above it")

	_, err = begin(func(h *record.Head) { h.Limit = 90 })
	var other *sweep.OtherSweepError
	require.ErrorAs(t, err, &other)
	require.Equal(t, "limit was 1m0s, now it is 1m30s", other.Difference)
}
