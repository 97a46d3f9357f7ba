package live

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
)

// screen is what a terminal of one growing page shows of what was written to it: it knows carriage return, line feed
// and "erase line", and that text beyond the width wraps.
type screen struct {
	mu     sync.Mutex
	width  int
	lines  []string
	column int
	raw    strings.Builder
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw.Write(p)
	if s.lines == nil {
		s.lines = []string{""}
	}
	for rest := string(p); rest != ""; {
		last := &s.lines[len(s.lines)-1]
		switch {
		case strings.HasPrefix(rest, "\x1b[2K"):
			*last, rest = "", rest[4:]
			continue
		case rest[0] == '\r':
			s.column = 0
		case rest[0] == '\n':
			s.lines, s.column = append(s.lines, ""), 0
		case s.column >= s.width:
			s.lines, s.column = append(s.lines, ""), 0
			continue
		default:
			*last = (*last)[:min(s.column, len(*last))] + rest[:1]
			s.column++
		}
		rest = rest[1:]
	}
	return len(p), nil
}

func (s *screen) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

func newTestTerminal(width int) (*Terminal, *screen) {
	s := &screen{width: width}
	return &Terminal{out: s, width: func() int { return width }}, s
}

func loading() event.Snapshot {
	return event.Snapshot{
		At: time.Unix(110, 0), Phase: event.Load, LastProgress: time.Unix(109, 0), Workers: 4,
		PhaseSeconds: map[event.Phase]float64{event.Load: 10},
		Rows:         500, PlannedRows: 1000, PayloadBytes: 50_000, PlannedBytes: 100_000,
	}
}

func TestLogLinesAboveTheBar(t *testing.T) {
	terminal, screen := newTestTerminal(40)
	terminal.draw("bar 1")
	fmt.Fprintln(terminal, "log 1")
	require.Equal(t, "log 1\nbar 1", screen.shown())
	terminal.draw("bar")
	require.Equal(t, "log 1\nbar", screen.shown(), "a shorter line leaves nothing behind")
	fmt.Fprintln(terminal, "log 2")
	terminal.draw("")
	require.Equal(t, "log 1\nlog 2\n", screen.shown())
	fmt.Fprintln(terminal, "log 3")
	require.Equal(t, "log 1\nlog 2\nlog 3\n", screen.shown())
}

func TestHalfALineIsNotOverwritten(t *testing.T) {
	terminal, screen := newTestTerminal(40)
	terminal.draw("bar")
	fmt.Fprint(terminal, "half ")
	terminal.draw("bar")
	fmt.Fprint(terminal, "a line\n")
	require.Equal(t, "half a line\n", screen.shown())
	terminal.draw("bar")
	require.Equal(t, "half a line\nbar", screen.shown())
}

func TestManyLoggers(t *testing.T) {
	terminal, screen := newTestTerminal(60)
	p := StartProgress(ProgressOptions{Terminal: terminal, Snapshot: loading})
	var loggers sync.WaitGroup
	for i := range 8 {
		loggers.Go(func() {
			for range 100 {
				fmt.Fprintf(terminal, "logger %d\n", i)
				terminal.draw(Line(loading(), stats.Rates{}, terminal.columns()))
			}
		})
	}
	loggers.Wait()
	p.Stop()
	lines := strings.Split(screen.shown(), "\n")
	require.Len(t, lines, 802)
	for _, l := range lines[:800] {
		require.Regexp(t, `^logger \d$`, l)
	}
	require.Contains(t, lines[800], "load   50.0%")
	require.Empty(t, lines[801])
}

// progressFor is what is on the screen after a while, and after the end.
func progressFor(t *testing.T, mode Mode, terminal *Terminal, s *screen) (during, end string) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		p := StartProgress(ProgressOptions{Mode: mode, Terminal: terminal, Snapshot: loading})
		time.Sleep(plainInterval + observe)
		synctest.Wait()
		during = s.shown()
		p.Stop()
		p.Stop()
	})
	return during, s.shown()
}

func TestBarOnAnyWidth(t *testing.T) {
	for _, width := range []int{2, 10, 40, 80, 200} {
		terminal, screen := newTestTerminal(width)
		bar, _ := progressFor(t, Auto, terminal, screen)
		require.NotEmpty(t, bar)
		require.NotContains(t, bar, "\n", "it never wraps")
		require.Less(t, len(bar), width)
		require.True(t, strings.HasPrefix("load   50.0%", bar[:min(len(bar), 5)]))
	}
}

// Without a terminal there are no control characters. The last line comes at the end, however short the run is.
func TestModes(t *testing.T) {
	for mode, lines := range map[Mode]int{"": 1, Auto: 1, Bar: 1, Plain: 1, JSON: 1, None: 0} {
		out := &screen{width: 1000}
		during, end := progressFor(t, mode, NewTerminal(out), out)
		require.Equal(t, lines, strings.Count(during, "\n"), mode)
		require.Equal(t, 2*lines, strings.Count(end, "\n"), mode)
		require.NotContains(t, out.raw.String(), "\x1b", mode)
		require.NotContains(t, out.raw.String(), "\r", mode)
		for line := range strings.Lines(out.raw.String()) {
			if mode == JSON {
				var o map[string]any
				require.NoError(t, json.Unmarshal([]byte(line), &o))
				require.Equal(t, ProgressSchema, o["schema"])
				require.Equal(t, 50.0, o["percent"])
			} else {
				require.Contains(t, line, "load   50.0% |")
			}
		}
	}
}

func TestAFileIsNoTerminal(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "log")
	require.NoError(t, err)
	defer file.Close()
	require.False(t, NewTerminal(file).Interactive())
}
