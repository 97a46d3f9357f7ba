package sweep_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/sweep"
)

func lay(t *testing.T, part sweep.Part, given ...string) (*sweep.Sweep, error) {
	t.Helper()
	if part.Push["target"] == nil {
		part.Push["target"] = []string{"postgres://u:hunter2@h/db"}
	}
	o := planOptions(t)
	o.Push = map[string][]string{}
	for _, name := range given {
		o.Push[name] = part.Push[name]
	}
	return sweep.New(sweep.Plan{Name: "p", Repeats: 1, Parts: []sweep.Part{part}}, o)
}

func methods(names ...string) []results.Axis { return []results.Axis{{Name: "method", Values: names}} }

// A record tells what cases have in common, by method where that is all they have in common, and no secrets.
func TestPartsOfARecord(t *testing.T) {
	s, err := lay(t, sweep.Part{
		Push: map[string][]string{
			"rows": {"10"}, "rows-per-transaction": {"5"}, "set.app.password": {"hunter2"}, "set.a": {"b"},
		},
		Axes:    append(methods("copy", "insert"), results.Axis{Name: "set.c", Values: []string{"1", "2"}}),
		Methods: map[string]map[string][]string{"insert": {"batch-rows": {"3"}}},
	}, "rows", "rows-per-transaction")
	require.NoError(t, err)
	require.Len(t, s.Cases, 4)
	require.Equal(t, map[string][]string{
		"target": {"postgres://u@h/db"}, "rows": {"10"}, "create": {"recreate"}, "set": {"a=b", "app.password=***"},
	}, s.Parts[0].Push)
	require.Equal(t, map[string]map[string][]string{
		"copy": {"rows-per-transaction": {"5"}}, "insert": {"batch-rows": {"3"}},
	}, s.Parts[0].Methods)
	for _, c := range s.Cases {
		require.Equal(t, c.Push["method"][0] == "copy", c.Given["rows-per-transaction"] != nil)
		require.Contains(t, c.Config.Set.GetSlice(), "app.password=hunter2", "the case is told")
		require.Equal(t, "postgres://u:hunter2@h/db", c.Config.Target)
	}
}

// A flag of some methods is theirs, and a mistake only where nobody has any of them.
func TestFlagsOfSomeMethods(t *testing.T) {
	_, err := lay(t, sweep.Part{
		Push: map[string][]string{"target": {"postgres://h/db"}, "stage": {"x"}, "staging": {"s3://bucket/p"}},
		Axes: methods("copy", "insert"),
	}, "stage", "staging")
	require.EqualError(t, err, "--stage: no case's method takes it; they are copy, insert\n--staging: no case's method takes it; they are copy, insert")
	s, err := lay(t, sweep.Part{
		Push: map[string][]string{"target": {"databend://root@h/db"}, "staging": {"s3://bucket/p"}}, Axes: methods("insert", "stage-load"),
	}, "staging")
	require.NoError(t, err)
	require.Equal(t, map[string]map[string][]string{"stage-load": {"staging": {"s3://bucket/p"}}}, s.Parts[0].Methods)
	require.Empty(t, s.Cases[0].Config.Staging.String())
	require.NotEmpty(t, s.Cases[1].Config.Staging.String())
}

// A record says along which axis rows ended; parts without the axis have no rows that end.
func TestKneeOfAPart(t *testing.T) {
	part := func(name string, axis string) sweep.Part {
		return sweep.Part{
			Name: name, Push: map[string][]string{"target": {"postgres://h/db"}}, Axes: []results.Axis{{Name: axis, Values: []string{"1", "2"}}},
		}
	}
	parts := []sweep.Part{part("a", "workers"), part("b", "batch-rows")}
	s, err := sweep.New(sweep.Plan{Name: "p", Repeats: 1, Knee: "workers", Parts: parts}, planOptions(t))
	require.NoError(t, err)
	require.Equal(t, []string{"workers", ""}, []string{s.Parts[0].Knee, s.Parts[1].Knee})
}

// A dry run says how long the rest takes: as the record has it, else as durations say.
func TestTimeOfADryRun(t *testing.T) {
	workers := []results.Axis{{Name: "workers", Values: []string{"1", "2"}}}
	ofRows := map[string][]string{"rows": {"1000"}}
	ofTime := map[string][]string{"duration": {"30s"}, "distinct-bytes": {"1MiB"}, "batch-rows": {"100"}}
	took := func(cell, repeat int, seconds float64) results.Entry {
		return results.Entry{Cell: cell, Repeat: repeat, Status: results.Measured, Seconds: seconds}
	}
	for _, c := range []struct {
		push map[string][]string
		plan sweep.Plan
		done []results.Entry
		want string
	}{
		{ofTime, sweep.Plan{}, nil, "about 3m6s,"},
		{ofTime, sweep.Plan{Settle: 4 * time.Second}, nil, "about 3m26s,"},
		{ofTime, sweep.Plan{}, []results.Entry{took(0, 0, 50)}, "about 3m13s,"},
		{ofTime, sweep.Plan{Limit: 10 * time.Second}, nil, "about 1m6s,"},
		{ofRows, sweep.Plan{Limit: 10 * time.Second}, nil, "at most about 1m6s,"},
		{ofRows, sweep.Plan{}, nil, "not known: 6 pushes last until"},
		{ofRows, sweep.Plan{}, []results.Entry{took(0, 0, 5)}, "not known: 3 pushes last until"},
		{ofRows, sweep.Plan{}, []results.Entry{took(0, 0, 5), took(0, 1, 7), took(1, 0, 10)}, "about 26s,"},
	} {
		c.plan.Name, c.plan.Repeats = "p", 3
		c.plan.Parts = []sweep.Part{{Push: c.push, Axes: workers}}
		c.plan.Parts[0].Push["target"] = []string{"postgres://h/db"}
		s, err := sweep.New(c.plan, planOptions(t))
		require.NoError(t, err)
		var text strings.Builder
		require.NoError(t, s.Explain(&text, "record", c.done))
		require.Contains(t, text.String(), "\ntime      "+c.want)
	}
}

// The values of flags are checked as push checks them, and the cases that have them are named.
func TestValuesOfFlags(t *testing.T) {
	_, err := lay(t, sweep.Part{
		Push: map[string][]string{"batch-rows": {"5"}, "batch-bytes": {"5"}},
		Axes: []results.Axis{{Name: "workers", Values: []string{"1", "x"}}},
	})
	require.ErrorContains(t, err, "workers 1: --batch-rows and --batch-bytes exclude each other")
	require.ErrorContains(t, err, `workers x: invalid argument "x" for "-w, --workers"`)
}
