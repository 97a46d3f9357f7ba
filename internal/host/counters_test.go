package host

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two answers of each server, ten seconds apart.
func TestTheLoadBetweenTwoAnswers(t *testing.T) {
	for _, c := range []struct {
		name  string
		cpu   float64
		cores int
	}{
		{name: "node_exporter", cpu: 0.75, cores: 4}, // 9 of 40 seconds idle and 1 waiting for a disk
		{name: "doris_be", cpu: 0.875, cores: 8},     // 7000 of 8000 ticks, and guests are users
		{name: "doris_be_by_core", cpu: 0.875, cores: 8},
		{name: "process", cpu: 3.5}, // cores, of an unknown number
	} {
		t.Run(c.name, func(t *testing.T) {
			var s server
			s.shown = "http://h/metrics"
			s.add(answer(t, c.name+"_0.txt"), answer(t, c.name+"_1.txt"), 10)
			l, err := s.load()
			require.NoError(t, err)
			require.Equal(t, "http://h/metrics", l.URL)
			require.InDelta(t, c.cpu, l.CPU, 1e-6)
			require.Equal(t, c.cores, l.Cores)
		})
	}
}

func answer(t *testing.T, file string) counters {
	c, err := readCounters(strings.NewReader(sample(t, file)))
	require.NoError(t, err)
	return c
}

func TestRestartedServer(t *testing.T) {
	first, later := answer(t, "process_0.txt"), answer(t, "process_1.txt")
	fresh := counters{metric: processCPU, busy: 1}
	var s server
	s.add(first, later, 10)
	s.add(later, fresh, 10) // nobody knows how much of this was the old processCPU
	s.add(fresh, counters{metric: processCPU, busy: 21}, 10)
	l, err := s.load()
	require.NoError(t, err)
	require.InDelta(t, (35.0+20)/20, l.CPU, 1e-9)

	s = server{}
	s.add(later, fresh, 10)
	s.add(fresh, answer(t, "node_exporter_0.txt"), 10) // another program at the same address
	_, err = s.load()
	require.ErrorContains(t, err, "restarted")

	s = server{}
	s.add(answer(t, "node_exporter_0.txt"), answer(t, "node_exporter_0.txt"), 0.001)
	_, err = s.load()
	require.ErrorContains(t, err, "counters did not change")
}

// The last digits of a sum depend on its order.
func TestEqualAnswersAreNoLoad(t *testing.T) {
	var text strings.Builder
	for core := range 64 {
		fmt.Fprintf(&text, "%s{cpu=\"%d\",mode=\"user\"} %d.%02d\n", nodeCPU, core, 9973*core+1, core)
	}
	first, err := readCounters(strings.NewReader(text.String()))
	require.NoError(t, err)
	for range 100 {
		again, err := readCounters(strings.NewReader(text.String()))
		require.NoError(t, err)
		require.Equal(t, first, again)
	}
}

func TestMetricsThatTellNothing(t *testing.T) {
	for _, c := range []struct{ name, text, wrong string }{
		{name: "a frontend of Doris", text: sample(t, "doris_fe.txt"), wrong: "which a frontend does not have"},
		{name: "an exporter", text: sample(t, "mysqld_exporter.txt"), wrong: "this is mysqld_exporter"},
		{name: "a page", text: "<html><body>Doris</body></html>", wrong: "no CPU time in there"},
		{name: "nothing", wrong: "no CPU time in there"},
		{name: "no number", text: processCPU + " much\n", wrong: "not Prometheus's text format"},
		{name: "no end", text: nodeCPU + `{cpu="0` + "\n", wrong: "not Prometheus's text format"},
		{name: "a line without end", text: strings.Repeat("x", maxLine+1), wrong: "token too long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := readCounters(strings.NewReader(c.text))
			require.ErrorContains(t, err, c.wrong)
		})
	}
}

func sample(t testing.TB, name string) string {
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return string(text)
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"node_exporter_0.txt", "doris_be_by_core_0.txt", "process_0.txt", "doris_fe.txt"} {
		f.Add(sample(f, name))
	}
	f.Add(nodeCPU + `{mode="idle"} NaN`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := readCounters(strings.NewReader(text))
		if err != nil {
			return
		}
		require.Contains(t, []string{nodeCPU, dorisCPU, processCPU}, c.metric)
		var s server
		s.add(counters{metric: c.metric, perCore: c.perCore}, c, 1)
		if l, err := s.load(); err == nil && l.Cores > 0 {
			require.GreaterOrEqual(t, l.CPU, 0.0)
		}
	})
}
