package sweep_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/sweep"
)

const ways = `name: ways
target: postgres://u:hunter2@h/db
push: {format: pgbinary, payload_kind: text, batch_bytes: 1MiB, set: [work_mem=1MB]}
methods: {copy: {verify: full}}
axes:
  method:
    - copy
    - COPY csv: {method: copy, format: csv, batch_rows: 7, verify: count, set: [work_mem=2MB, app.password=hunter2]}
    - insert: {format: pgvalues}
  durability: [{safe: {}}, {fast: {set: synchronous_commit=off}}]
  workers: [1, 4]
exclude:
  - {method: insert, workers: 4}
  - {durability: fast, method: [copy, insert]}
include:
  - {method: insert, workers: 8, durability: safe}
`

// A value brings flags, which win over those of the plan and of its method; the record tells both.
func TestValuesBringFlags(t *testing.T) {
	s, err := sweep.New(parse(t, ways), planOptions(t))
	require.NoError(t, err)
	var names []string
	cases := map[string]sweep.Case{}
	for _, c := range s.Cases {
		name := c.Settings.String()
		names, cases[name] = append(names, name), c
	}
	require.Equal(t, []string{
		"method copy, durability safe, workers 1", "method copy, durability safe, workers 4",
		"method COPY csv, durability safe, workers 1", "method COPY csv, durability safe, workers 4",
		"method COPY csv, durability fast, workers 1", "method COPY csv, durability fast, workers 4",
		"method insert, durability safe, workers 1", "method insert, durability safe, workers 8",
	}, names)

	plain, csv := cases["method copy, durability safe, workers 4"], cases["method COPY csv, durability fast, workers 4"]
	require.Equal(t, []string{"work_mem=1MB"}, plain.Config.Set.GetSlice())
	require.Equal(t, "full", plain.Config.Verify)
	require.Equal(t, "copy", csv.Config.Method)
	require.Equal(t, "csv", csv.Config.Format)
	require.EqualValues(t, 7, csv.Config.BatchRows, "and not the plan's 1MiB")
	require.Zero(t, csv.Config.BatchBytes)
	require.Equal(t, "count", csv.Config.Verify, "and not its method's")
	require.ElementsMatch(t, []string{"work_mem=2MB", "app.password=hunter2", "synchronous_commit=off"}, csv.Config.Set.GetSlice())
	require.Equal(t, "pgvalues", cases["method insert, durability safe, workers 8"].Config.Format)

	part := s.Parts[0]
	require.Equal(t, 18, part.Cells)
	require.Len(t, part.Excluded, 10)
	require.Equal(t, map[string]map[string][]string{
		"COPY csv": {
			"method": {"copy"}, "format": {"csv"}, "batch-rows": {"7"}, "verify": {"count"}, "set.work_mem": {"2MB"}, "set.app.password": {"***"},
		},
		"insert": {"format": {"pgvalues"}},
	}, part.Axes[0].Settings)
	require.Equal(t, []string{"work_mem=1MB"}, part.Push["set"], "the plan's, although some cases have their own")
	require.Equal(t, []string{"pgbinary"}, part.Push["format"])

	other := part
	other.Axes = append([]results.Axis{{Name: "method", Values: part.Axes[0].Values}}, part.Axes[1:]...)
	require.NotEqual(t, results.Digest(s.Parts, 0), results.Digest([]results.Part{other}, 0), "a value is what it brings")
}

// Cases may be listed alone, and the order of a list is that of its values.
func TestListedCases(t *testing.T) {
	plan := parse(t, `name: p
target: postgres://h/db
include:
  - {method: {COPY csv: {method: copy, format: csv}}, workers: 8}
  - {method: insert, workers: [1, 2]}
  - {method: COPY csv, workers: 2}
`)
	var names []string
	for _, c := range plan.Cases() {
		names = append(names, c.Settings.String())
	}
	require.Equal(t, []string{
		"method COPY csv, workers 8", "method COPY csv, workers 2", "method insert, workers 1", "method insert, workers 2",
	}, names)
}

// The command line must not make a value something else than it is called.
func TestBroughtFlagsAreNotOverridden(t *testing.T) {
	for _, flag := range []string{"format", "batch-rows", "batch-bytes"} {
		_, err := tryParse(t, ways, func(o *sweep.Options) { o.Push = map[string][]string{flag: {"1"}} })
		require.ErrorContains(t, err, "is set twice: by method COPY csv and on the command line", flag)
	}
}
