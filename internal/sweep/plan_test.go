package sweep_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/all"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/sweep"
)

const url = "databend://root:hunter2@h:8000/db"

func planOptions(t testing.TB) sweep.Options {
	drivers, err := all.Drivers()
	require.NoError(t, err)
	return sweep.Options{Sources: sweep.Sources{Drivers: drivers, LookupEnv: func(name string) (string, bool) {
		value, ok := map[string]string{"TARGET": url, "N": "7", "EMPTY": ""}[name]
		return value, ok
	}}}
}

func tryParse(t *testing.T, text string, change ...func(*sweep.Options)) (sweep.Plan, error) {
	t.Helper()
	o := planOptions(t)
	for _, c := range change {
		c(&o)
	}
	return sweep.ParsePlan("plan.yaml", []byte(text), o)
}

func parse(t *testing.T, text string, change ...func(*sweep.Options)) sweep.Plan {
	t.Helper()
	plan, err := tryParse(t, text, change...)
	require.NoError(t, err)
	return plan
}

func at(scale string) func(*sweep.Options) {
	return func(o *sweep.Options) { o.Scale = scale }
}

func to(target string) func(*sweep.Options) {
	return func(o *sweep.Options) { o.Target = target }
}

const whole = `name: four
title: Four methods
target: ${TARGET}
push: {dataset: people, create: recreate, set: [a = 1, b=x=y]}
methods:
  stage-load: {commit_batches: 1000}
axes:
  method: [insert, stage-load]
  batch_rows: 2000..20000x10
  set.Max_Threads: [1, "off"]
rows: 2_000_000
repeats: 3
warm_up: 1
settle: 2s
limit: 10m
budget: 1h
knee: batch_rows
order: in-order
facts:
  source: somewhere
  machine: fast
  note: |
    two
    lines
  points: |
    method      batch_rows  rows_per_second  bytes_per_second  seconds
    insert      2000        3670             -                 9m4.98s
    stage-load  20000       -                1.5MiB            -
`

func TestParse(t *testing.T) {
	plan := parse(t, whole)
	cells := plan.Cases()
	targets := plan.Parts[0].Push["target"]
	require.Equal(t, []string{url}, targets)
	require.Equal(t, sweep.Plan{
		Name: "four", Title: "Four methods", Repeats: 3, WarmUp: 1, Settle: 2 * time.Second, Limit: 10 * time.Minute,
		Budget: time.Hour, Knee: "batch-rows",
		Parts: []sweep.Part{{
			Title: "Four methods",
			Push: map[string][]string{
				"dataset": {"people"}, "create": {"recreate"}, "rows": {"2000000"}, "set.a": {"1"}, "set.b": {"x=y"}, "target": {url},
			},
			Methods: map[string]map[string][]string{"stage-load": {"commit-batches": {"1000"}}},
			Axes: []results.Axis{
				{Name: "method", Values: []string{"insert", "stage-load"}},
				{Name: "batch-rows", Values: []string{"2000", "20000"}},
				{Name: "set.Max_Threads", Values: []string{"1", "off"}},
			},
			Facts: &results.Facts{Source: "somewhere", Machine: "fast", Note: "two\nlines\n", Points: []results.Fact{
				{
					At:      map[string]string{"method": "insert", "batch-rows": "2000"},
					Figures: map[string]float64{"rows_per_second": 3670, "seconds": 544.98},
				},
				{
					At:      map[string]string{"method": "stage-load", "batch-rows": "20000"},
					Figures: map[string]float64{"bytes_per_second": 1.5 * (1 << 20)},
				},
			}},
		}},
	}, plan)

	require.Len(t, cells, 8)
	require.Equal(t, 8, results.Combinations(plan.Parts[0].Axes))
	var order []string
	for i, c := range cells {
		require.Equal(t, i, c.Number)
		require.Equal(t, c.Settings[0].Value, c.Push["method"][0])
		require.Equal(t, c.Push["method"][0] == "stage-load", c.Push["commit-batches"] != nil, "a flag of one method")
		order = append(order, c.Settings[0].Value+" "+c.Settings[1].Value+" "+c.Settings[2].Value)
	}
	require.Equal(t, "insert 2000 1,insert 2000 off,insert 20000 1,insert 20000 off,"+
		"stage-load 2000 1,stage-load 2000 off,stage-load 20000 1,stage-load 20000 off", strings.Join(order, ","))
	require.Equal(t, map[string][]string{
		"dataset": {"people"}, "create": {"recreate"}, "rows": {"2000000"}, "set.a": {"1"}, "set.b": {"x=y"}, "target": {url},
		"method": {"insert"}, "batch-rows": {"20000"}, "set.Max_Threads": {"1"},
	}, cells[2].Push)

	cells[2].Push["rows"] = nil
	require.NotNil(t, cells[3].Push["rows"], "every case has its own")
	require.NotNil(t, plan.Parts[0].Push["rows"])
}

func TestDefaults(t *testing.T) {
	plan := parse(t, "name: p\naxes: {workers: [1, 2]}", to("s3://b"))
	require.Equal(t, "p", plan.Title)
	require.Equal(t, 1, plan.Repeats)
	require.True(t, plan.Interleaved)
	require.Zero(t, plan.WarmUp+int(plan.Limit+plan.Budget+plan.Settle))
	require.Empty(t, plan.Knee)
	require.Nil(t, plan.Parts[0].Facts)
}

func TestPartsInheritAndOverride(t *testing.T) {
	plan := parse(t, `name: p
target: databend://h/d
push: {dataset: people, method: insert}
axes: {workers: [1, 2]}
rows: 5
facts: {source: s}
parts:
  a: {title: First}
  1: {push: {dataset: ~, method: copy}, duration: 5s, axes: {workers: ~, batch_rows: 10}, facts: ~}
`)
	require.Equal(t, "a", plan.Parts[0].Name)
	require.Equal(t, "First", plan.Parts[0].Title)
	require.Equal(t, map[string][]string{"dataset": {"people"}, "method": {"insert"}, "rows": {"5"}, "target": {"databend://h/d"}}, plan.Parts[0].Push)
	require.Equal(t, []string{"1", "2"}, plan.Parts[0].Axes[0].Values)
	require.NotNil(t, plan.Parts[0].Facts)
	require.Equal(t, sweep.Part{
		Name: "1", Title: "1", Push: map[string][]string{"method": {"copy"}, "duration": {"5s"}, "target": {"databend://h/d"}},
		Axes: []results.Axis{{Name: "batch-rows", Values: []string{"10"}}},
	}, plan.Parts[1], "duration takes rows away")
	cells := plan.Cases()
	require.Len(t, cells, 3)
	require.Equal(t, 1, cells[2].Part)
	require.Equal(t, 0, cells[2].Number, "numbers begin anew in every part")
}

// An override takes away parts, methods and what stands in them.
func TestOverridesTakeAway(t *testing.T) {
	plan := parse(t, `name: p
axes: {method: [copy, insert]}
methods: {copy: {batch_rows: 5, verify: ack}}
parts: {a: {title: A}, b: {push: {dataset: ~}, methods: {copy: {verify: ~}}}}
scales: {ci: {parts: {a: ~}, push: {dataset: people, workers: ~}}}
`, to(url), at("ci"))
	require.Len(t, plan.Parts, 1)
	require.Equal(t, "b", plan.Parts[0].Name)
	require.Equal(t, map[string][]string{"target": {url}}, plan.Parts[0].Push)
	require.Equal(t, map[string]map[string][]string{"copy": {"batch-rows": {"5"}}}, plan.Parts[0].Methods)
}

// What an override of a part takes away, the part does not inherit either.
func TestOverridesOfParts(t *testing.T) {
	plan := parse(t, `name: p
push: {dataset: people, workers: 3}
axes: {method: [copy, insert]}
duration: 5s
parts: {a: {push: {verify: ack}}, b: {}}
scales: {ci: {parts: {a: {push: {workers: ~, dataset: pairs}, rows: 1}, c: {title: C}}}}
`, to(url), at("ci"))
	require.Len(t, plan.Parts, 3)
	require.Equal(t, map[string][]string{
		"dataset": {"pairs"}, "verify": {"ack"}, "rows": {"1"}, "target": {url},
	}, plan.Parts[0].Push)
	for _, part := range plan.Parts[1:] {
		require.Equal(t, map[string][]string{
			"dataset": {"people"}, "workers": {"3"}, "duration": {"5s"}, "target": {url},
		}, part.Push, "what one part overrides is not the others'")
	}
	require.Equal(t, "C", plan.Parts[2].Title)
}

const scaled = `name: p
axes:
  method: [copy, insert]
  rows-per-transaction: [1, 2]
rows: 1000
settle: 60s
scales:
  laptop: {rows: 10, axes: {rows_per_transaction: [3]}, settle: 0s}
  quick: {duration: 1s, axes: {workers: [1, 4]}}
schemes:
  postgres, postgresql:
    push: {create: recreate}
    axes: {rows_per_transaction: ~, batch_rows: [5, 6, 7]}
    scales:
      laptop: {axes: {batch_rows: 8}}
      tiny: {rows: 1}
`

func axesOf(p sweep.Plan) string {
	var all []string
	for _, a := range p.Parts[0].Axes {
		all = append(all, a.Name+"="+strings.Join(a.Values, ","))
	}
	return strings.Join(all, " ")
}

func TestScalesAndSchemes(t *testing.T) {
	for _, c := range []struct{ scale, target, axes, rows string }{
		{"", "databend://h", "method=copy,insert rows-per-transaction=1,2", "1000"},
		{"cloud", "databend://h", "method=copy,insert rows-per-transaction=1,2", "1000"},
		{"laptop", "databend://h", "method=copy,insert rows-per-transaction=3", "10"},
		{"quick", "databend://h", "method=copy,insert rows-per-transaction=1,2 workers=1,4", ""},
		{"cloud", "postgres://h", "method=copy,insert batch-rows=5,6,7", "1000"},
		{"laptop", "POSTGRESQL://h", "method=copy,insert batch-rows=8", "10"},
		{"tiny", "postgresql://h", "method=copy,insert batch-rows=5,6,7", "1"},
	} {
		plan := parse(t, scaled, at(c.scale), to(c.target))
		require.Equal(t, c.axes, axesOf(plan), "%v", c)
		require.Equal(t, c.rows, strings.Join(plan.Parts[0].Push["rows"], ""))
		require.Equal(t, strings.HasPrefix(strings.ToLower(c.target), "postgres"), plan.Parts[0].Push["create"] != nil)
		require.Equal(t, c.scale == "laptop", plan.Settle == 0)
	}
	for scale, want := range map[string]string{
		"labtop": `plan.yaml: scale "labtop" does not exist; did you mean "laptop"? Available: cloud, laptop, quick`,
		"tiny":   `scale "tiny" does not exist`, // it is PostgreSQL's alone
	} {
		_, err := tryParse(t, scaled, at(scale), to(url))
		require.ErrorContains(t, err, want)
	}
	_, err := tryParse(t, "name: p\naxes: {workers: 1}", at("ci"), to(url))
	require.EqualError(t, err, `plan.yaml: scale "ci" does not exist; available: cloud`)
	for name, want := range map[string]string{
		"name: p\naxes: {workers: 1}":                                                 "",
		"name: p\naxes: {workers: 1}\nschemes: {databend: {rows: 1}}":                 "",
		"name: p\naxes: {workers: 1}\nscales: {ci: {rows: 1}}":                        "cloud",
		"name: p\naxes: {workers: 1}\nschemes: {databend: {scales: {ci: {rows: 1}}}}": "cloud",
	} {
		require.Equal(t, want, parse(t, name, to(url)).Scale, name)
		require.Equal(t, "cloud", parse(t, name, to(url), at("cloud")).Scale, "as it was asked for")
	}
}

func TestTargets(t *testing.T) {
	const text = "name: p\naxes: {target: [\"${TARGET}\", \"databend://u:geheim@i/d\"], workers: [1, 2]}\n"
	plan := parse(t, text)
	require.Equal(t, "target=databend://root@h:8000/db,databend://u@i/d workers=1,2", axesOf(plan))
	require.NotContains(t, plan.Parts[0].Push, "target")
	cells := plan.Cases()
	require.Equal(t, []string{url}, cells[1].Push["target"])
	require.Equal(t, []string{"databend://u:geheim@i/d"}, cells[2].Push["target"])
	require.NotContains(t, fmt.Sprint(cells[0].Settings, cells[2].Settings), "hunter2")
	require.NotContains(t, fmt.Sprint(cells[0].Settings, cells[2].Settings), "geheim")

	plan = parse(t, text, to("databend://x:y@other/d"))
	require.Equal(t, "target=databend://x@other/d workers=1,2", axesOf(plan), "the command line stands for all of them")
	require.Equal(t, []string{"databend://x:y@other/d"}, plan.Cases()[0].Push["target"])

	plan = parse(t, strings.ReplaceAll(text, "${TARGET}", "${NOT_SET}"), to(url))
	require.Len(t, plan.Cases(), 2, "and needs no variable")

	plan = parse(t, "name: p\ntarget: databend://a/b\naxes: {workers: 1}", to(url))
	require.Equal(t, []string{url}, plan.Parts[0].Push["target"])

	plan = parse(t, "name: p\naxes: {target: ['postgres://h/d?synchronous_commit=on', 'postgres://h/d?synchronous_commit=off']}")
	require.Len(t, plan.Cases(), 2, "targets that differ in a parameter are two")
}

func TestCommandLineStandsForThePlan(t *testing.T) {
	plan := parse(t, whole, func(o *sweep.Options) {
		o.Push = map[string][]string{"duration": {"5s"}, "dataset": {"pairs"}, "set": {"a=2", "c=3"}}
	})
	require.Equal(t, map[string][]string{
		"dataset": {"pairs"}, "create": {"recreate"}, "duration": {"5s"}, "set.a": {"2"}, "set.b": {"x=y"}, "set.c": {"3"}, "target": {url},
	}, plan.Parts[0].Push)

	_, err := tryParse(t, whole, func(o *sweep.Options) {
		o.Push = map[string][]string{"batch-rows": {"7"}, "set": {"Max_Threads=4"}}
	})
	require.ErrorContains(t, err, "plan.yaml:9: batch-rows is set twice: as an axis and on the command line; leave one out")
	require.ErrorContains(t, err, "plan.yaml:10: set.Max_Threads is set twice: as an axis and on the command line")

	plan = parse(t, "name: p\naxes: {method: [copy, insert]}\nmethods: {copy: {batch_bytes: 4, set: [a=1, b=1], verify: ack}}", to(url),
		func(o *sweep.Options) { o.Push = map[string][]string{"batch-rows": {"7"}, "set": {"a=2"}} })
	require.Equal(t, map[string]map[string][]string{"copy": {"set.b": {"1"}, "verify": {"ack"}}}, plan.Parts[0].Methods,
		"and for what a method says of its own")
}

func TestVariables(t *testing.T) {
	plan := parse(t, "name: p\naxes: {workers: [\"${N}\", \"1${N}\"]}\npush: {dataset: \"$${N} $5 $\"}", to(url))
	require.Equal(t, "workers=7,17", axesOf(plan))
	require.Equal(t, []string{"${N} $5 $"}, plan.Parts[0].Push["dataset"])
}

func TestRanges(t *testing.T) {
	for text, want := range map[string]string{
		"1..16x2":        "1,2,4,8,16",
		"2000..50000x10": "2000,20000,50000", // the end is always there
		"1..10+4":        "1,5,9,10",
		"0..2+1":         "0,1,2",
		"7..7x2":         "7",
		"2..6x1.5":       "2,3,5,6",
		"10ms..40msx2":   "10ms,20ms,40ms",
		"1MiB..4MiBx2":   "1MiB,2MiB,4MiB",
		"4611686018427387904..9223372036854775807x4": "4611686018427387904,9223372036854775807",
		"9223372036854775806..9223372036854775807+5": "9223372036854775806,9223372036854775807",
		"1.5":         "1.5",
		"../x":        "../x",
		"a..b":        "a..b",
		"[1..2+1, 8]": "1,2,8",
		// What is quoted is one value: a session variable may have one that looks like a range.
		`'1..5'`:                             "1..5",
		`["1..5", 1..4x2]`:                   "1..5,1,2,4",
		`["1..${N}", 1..1+1]`:                "1..7,1",
		"\n  - '1..2+1'\n  - |-\n    1..3+1": "1..2+1,1..3+1",
	} {
		require.Equal(t, "set.x="+want, axesOf(parse(t, "name: p\naxes:\n  set.x: "+text, to(url))), text)
	}
	for text, want := range map[string]string{
		"1..9223372036854775807x1.0000001": "more than 1000 values",
		"1..9223372036854775807+1":         "more than 1000 values",
		"1..99999999999999999999x2":        "write a range as",
		"1..10":                            "write a range as",
		"10..1x2":                          "write a range as",
		"1..10x1":                          "write a range as",
		"0..10x2":                          "write a range as",
		"1..10x0.5":                        "write a range as",
		"1..10+0":                          "write a range as",
		"1KiB..1MiBx2":                     "write a range as",
	} {
		_, err := tryParse(t, "name: p\naxes: {set.x: "+text+"}", to(url))
		require.ErrorContains(t, err, "plan.yaml:2: axis set.x: "+text+": "+want)
	}
}

// Problems are named with their line, with the word that was probably meant, and without secrets.
func TestProblems(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"name: p\ntitel: x", []string{`plan.yaml:2: key "titel" does not exist here; did you mean "title"?`}},
		{"name: p\nscales: {cloud: {repeat: 2}}", []string{`plan.yaml:2: key "repeat" does not exist here; did you mean "repeats"?`}},
		{"name: p\ntarget: databend://h\naxes: {workers: 1}\nscales: {ci: {repeat: 2}}", []string{
			`plan.yaml:4: key "repeat" does not exist here; did you mean "repeats"?`,
		}},
		{"name: p\ntarget: x\naxes: {workers: 1}\nfacts:\n  source: s\n  points: |\n    secons rows_per_second\n    1 many\n", []string{
			"plan.yaml:6: facts: rows_per_second: write a number above 0", `plan.yaml:6: facts: flag or quantity "secons" does not exist; did you mean "seconds"?`,
		}},
		{"name: p\nfacts:\n  points: |\n    workers seconds\n    1\n", []string{"plan.yaml:3: facts.points: 1 values stand below 2 names (1); one for each, or -, belongs here"}},
		{"name: p\nparts: {a: {rows: [1]}}", []string{"plan.yaml:2: parts.a.rows: one value belongs here"}},
		{"name: p\naxes: {workers: {a: 1}}", []string{"plan.yaml:2: axes.workers: a value, or one with flags of its own as NAME: {flag: value}, belongs here"}},
		{"name: p\npush: 5", []string{"plan.yaml:2: push: keys and values belong here"}},
		{"name: p\nfacts: {points: {}}", []string{"plan.yaml:2: facts.points: one value belongs here"}},
		{"name: p\nschemes: {databent: {rows: 1}}\ntarget: x", []string{`plan.yaml:2: target scheme "databent" does not exist; did you mean "databend"?`}},
		{"name: p\npush: {worker: 1, target: x, dataset: [a, b]}\naxes: {metod: 1, set: a=1, yes_drop: t}", []string{
			`plan.yaml:2: flag "worker" does not exist; did you mean "workers"?`,
			"plan.yaml:2: target is not a flag",
			"plan.yaml:2: dataset: a list is here, one value belongs",
			`plan.yaml:3: flag "metod" does not exist; did you mean "method"?`,
			"plan.yaml:3: axis set: write set.NAME",
			"plan.yaml:3: --yes-drop was removed: it is called --allow-drop",
		}},
		{"name: p q\nrepeats: 0\nwarm_up: many\nsettle: 5x\nlimit: -1s\nbudget: soon\nknee: worker\norder: interleafed\naxes:\n  workers: [1, 2, 1, '']\n  method: []\npush: {set: nonsense}\nmethods: {coppy: {rows: 1}}\nduration: ${NOT_SET}\ntarget: hunter2", []string{
			"plan.yaml:1: name: a plan needs one, of letters, digits",
			"plan.yaml:2: repeats 0: write a number from 1 to 1000, or auto",
			"plan.yaml:3: warm_up: write a number from 0 to 1000",
			"plan.yaml:4: settle: write a time",
			"plan.yaml:5: limit: write a time",
			"plan.yaml:6: budget: write a time",
			`plan.yaml:7: knee: axis "worker" does not exist; did you mean "workers"?`,
			`plan.yaml:8: order: value "interleafed" does not exist; did you mean "interleaved"?`,
			"plan.yaml:10: axis workers: 1 is here twice",
			"plan.yaml:10: axis workers: an empty value",
			"plan.yaml:11: axis method has no values",
			"plan.yaml:12: set: write it as name=value",
			"plan.yaml:13: methods: no case has the method coppy",
			"plan.yaml:14: ${NOT_SET}: the environment variable NOT_SET is not set",
			"plan.yaml:15: target: the target is not a URL",
		}},
		{"name: p\npush: {resume: x, state_dir: y}\naxes: {json: true}", []string{
			"plan.yaml:2: --resume cannot be set in a plan: give it on the command line",
			"plan.yaml:2: --state-dir cannot be set in a plan", "plan.yaml:3: --json cannot be set in a plan",
		}},
		{"title: x\naxes: {workers: 1}\npush: {workers: 2, dataset: '${', verify: '${EMPTY}'}\nfacts:\n  points: |\n    worker seconds\n    1 1\n", []string{
			"plan.yaml:1: name: a plan needs one",
			"plan.yaml: no target: give TARGET",
			"plan.yaml:2: workers is set twice: as an axis and in push; leave one out",
			"plan.yaml:3: ${}: the environment variable",
			"plan.yaml:3: ${EMPTY}: the environment variable EMPTY is not set",
			"plan.yaml: facts: say where they were published",
			`plan.yaml:5: facts: flag or quantity "worker" does not exist; did you mean "workers"?`,
		}},
		{"name: p\ntarget: databend://h\nparts: {a: {axes: {workers: [1]}}, b: {}, c: {axes: {}}}", []string{
			"plan.yaml:3: b: no axes", "plan.yaml:3: c: no axes",
		}},
		{"name: p\ntarget: databend://h\naxes: {method: streaming-load, rows: [1M, 2m]}\nrows: 1e6\nduration: 5y\npush: {verify: fall, append: maybe, " +
			"batch_bytes: 1Gb}\nmethods: {streaming-load: {workers: many}}", []string{
			`plan.yaml:3: rows: invalid argument "2m" for "-n, --rows" flag: "2m" is not a whole number: write it as 2000000, 2e6 or 2M`,
			"plan.yaml:3: rows is set twice: as an axis and beside push; leave one out",
			`plan.yaml:5: duration: invalid argument "5y" for "--duration" flag: "5y" is not a time: write it as 90s, 10m or 1h30m`,
			`plan.yaml:6: verify: invalid argument "fall" for "--verify" flag: value "fall" does not exist; did you mean "full"?`,
			`plan.yaml:6: append: invalid argument "maybe" for "--append" flag: write true or false`,
			`plan.yaml:6: batch-bytes: invalid argument "1Gb" for "--batch-bytes" flag: "1Gb": bits or bytes?`,
			`plan.yaml:7: workers: invalid argument "many" for "-w, --workers" flag: "many" is not a whole number`,
		}},
		{"name: p\ntarget: databend://h\nparts: {}", []string{"plan.yaml: parts: at least one"}},
		{"name: p\ntarget: databend://h\naxes: {method: [copy], workers: 2}\nmethods: {copy: {workers: 3}}", []string{
			"plan.yaml:4: workers: workers is an axis",
		}},
		{"name: p\naxes: {target: ['databend://a:hunter2@h', 'databend://a:other@h']}", []string{
			"plan.yaml:2: axis target: databend://a@h/ is here twice",
		}},
		{"name: p\naxes: {target: ['databend://a:hunter2@h', 'postgres://h']}\nschemes: {postgres: {rows: 1}}", []string{
			"plan.yaml:3: the plan's targets have several schemes",
		}},
		{"name: p\ntarget: databend://h\naxes: {workers: 1..1000+1, batch_rows: 1..11+1}", []string{"plan.yaml: more than 10000 cases"}},
		{"name: p\ntarget: databend://h\npush: {workers: 3}\naxes:\n  method: [insert, insert, {insert: {workers: x}}]\n" +
			"  workers: [1, {2: {verify: full, batch_rows: 5}}]\n  way: [{a: {verify: full}}, b]\n  wey: [{a: {verify: ack}}]\n" +
			"  batch_bytes: [{small: {bytes: 1}}]\n  record: [{a: {}}]", []string{
			"plan.yaml:5: axis method: insert is here twice; a value with flags of its own may have any name, as in insert 2: {method: insert, flag: value}",
			"plan.yaml:6: axis method sets workers, and axis workers sets workers: leave one out",
			`plan.yaml:5: workers: invalid argument "x"`,
			"plan.yaml:6: workers is set twice: as an axis and in push",
			"plan.yaml:9: axis workers sets batch-rows, and axis batch-bytes sets batch-bytes: leave one out",
			`plan.yaml:7: flag "way" does not exist`,
			"plan.yaml:8: axis way sets verify, and axis wey sets verify: leave one out",
			`plan.yaml:9: batch-bytes: invalid argument "small"`,
			"plan.yaml:10: axis record: tables have such an axis",
		}},
		{"name: p\ntarget: databend://h\naxes:\n  method: [{insert: 3}, {a: {method: insert}, b: {method: insert}}]", []string{
			"plan.yaml:4: axes.method[0]: a value, or one with flags of its own as NAME: {flag: value}, belongs here",
		}},
		{"name: p\ntarget: databend://h\naxes: {workers: [1, 2], method: [insert]}\nexclude:\n- {worker: 1}\n- {workers: 4}\n- {}\n" +
			"include:\n- {workers: 8}\n- {workers: 8, method: insert, rows: 3}", []string{
			`plan.yaml:5: exclude: axis "worker" does not exist; did you mean "workers"?`,
			`plan.yaml:6: exclude: value of workers "4" does not exist`,
			"exclude: an entry names at least one axis and its value",
			"plan.yaml:9: include: this case has no method; write it",
			`plan.yaml:10: include: axis "rows" does not exist`,
		}},
		{"name: p\ntarget: databend://h\ninclude:\n- {workers: ''}", []string{"plan.yaml:4: axis workers: an empty value"}},
		{"name: p\ntarget: databend://h\naxes: {workers: [1, 2]}\nexclude:\n- {workers: 1..2x2}", []string{"plan.yaml:5: exclude: no case is left"}},
		{"name: p\ntarget: databend://h\naxes: {workers: 1}\nthresholds:\n  rows_per_sec: '> 1'\n  seconds: 5\n  total_rows: '>= 5s'\n" +
			"  batch-p99-seconds: ['< 200ms', '!= 3']", []string{
			`plan.yaml:5: thresholds: metric "rows_per_sec" does not exist; did you mean "rows_per_second"? Available: rows_per_second, overall`,
			`plan.yaml:6: thresholds: seconds: "5" is no threshold: write it as ">= 50000"`,
			`plan.yaml:7: thresholds: total_rows: ">= 5s" is no threshold`,
			`plan.yaml:8: thresholds: batch_p99_seconds: "!= 3" is no threshold`,
		}},
		{"name: p\ntarget: databend://h\naxes: {workers: [1, 2]}\nexclude: 1", []string{"plan.yaml:4: exclude: keys and values belong here"}},
		{"name: p\nname: q", []string{"plan.yaml:2: mapping key"}},
		{"name: p\naxes:\n  batch_rows: 1\n  batch-rows: 2", []string{"plan.yaml:4: batch-rows is here twice"}},
		{"name: p\nwarm_up: 1\nwarm-up: 2", []string{"plan.yaml:3: warm-up is here twice"}},
		{"name: p\naxes: {batch_rows: [~]}\npush: {method: ~}\nrepeats:", []string{"axis batch-rows: an empty value"}},
		{"name: &a p\ntitle: *a\npush: !!map {}", []string{
			"plan.yaml:1: anchors, aliases and tags", "plan.yaml:2: anchors, aliases and tags", "plan.yaml:3: anchors, aliases and tags",
		}},
		{"", []string{"plan.yaml:1: a plan is one document of keys and values"}},
		{"# nothing\n", []string{"plan.yaml:1: a plan is one"}},
		{"hunter2", []string{"plan.yaml:1: a plan is one"}},
		{"a: 1\n---\nb: 2", []string{"plan.yaml:1: a plan is one"}},
		{"name: p\npush: [hunter2\n", []string{"plan.yaml:2: "}},
	} {
		_, err := tryParse(t, c.text)
		require.Error(t, err, c.text)
		for _, want := range c.want {
			assert.ErrorContains(t, err, want)
		}
		require.NotContains(t, err.Error(), "hunter2")
	}
}

// A knee's axis has to rise, or a row ends where there is most to gain.
func TestKneeRises(t *testing.T) {
	for axis, want := range map[string]string{
		"workers: [1, 2, 4]":                 "",
		"workers: 7":                         "",
		"set.x: [512KiB, 1MiB, '2,000,000']": "",
		"duration: [500ms, 90s, 10m]":        "",
		"workers: [4, 2, 1]":                 "plan.yaml:3: knee: 2 comes after 4",
		"set.x: [1MiB, 1048576]":             "plan.yaml:3: knee: 1048576 comes after 1MiB",
		"method: [copy, insert]":             "plan.yaml:3: knee: insert comes after copy: the values of method have to be numbers",
		"set.x: [1, 2s]":                     "plan.yaml:3: knee: 2s comes after 1",
		"target: [databend://h]":             "plan.yaml:3: knee: targets have no order",
	} {
		name, _, _ := strings.Cut(axis, ":")
		target := url
		if name == "target" {
			target = ""
		}
		_, err := tryParse(t, "name: p\naxes:\n  "+axis+"\nknee: "+name, to(target))
		if want == "" {
			require.NoError(t, err, axis)
			continue
		}
		require.ErrorContains(t, err, want)
	}
	_, err := tryParse(t, "name: p\naxes: {workers: [2, 1], batch_rows: 1..4x2}\nknee: batch_rows")
	require.NotContains(t, err.Error(), "knee", "another axis may fall")
}

// A dataset's file is relative to the plan, and its parameters are axes as session variables are.
func TestDatasetsOfAPlan(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"narrow", "wide"} {
		text := "version: 1\nparameters: {n: 9}\ncolumns:\n  id: {type: bigint, sequence: {}}\n" +
			"  " + name + ": {type: text, text: {length: \"${n}\"}}\n"
		require.NoError(t, os.WriteFile(filepath.Join(folder, name+".yaml"), []byte(text), 0o600))
	}
	o := planOptions(t)
	o.Target = url
	plan, err := sweep.ParsePlan(filepath.Join(folder, "plan.yaml"),
		[]byte("name: p\naxes:\n  dataset: [narrow.yaml, wide.yaml, pairs]\nrows: 10\n"), o)
	require.NoError(t, err)
	s, err := sweep.New(plan, o)
	require.NoError(t, err)
	require.Equal(t, "narrow", s.Cases[0].Config.Own.Name)
	require.Equal(t, "wide", s.Cases[1].Config.Own.Name)
	require.Nil(t, s.Cases[2].Config.Own)
	require.Equal(t, "narrow.yaml", s.Cases[0].Settings[0].Value, "as the plan writes it")

	_, err = sweep.ParsePlan(filepath.Join(folder, "plan.yaml"),
		[]byte("name: p\npush: {dataset: wide.yaml, param: [n=3]}\nparts:\n  a: {axes: {param.n: [1..4x2], workers: [1]}}\n  b: {axes: {workers: [1, 2]}}\nrows: 10\n"), o)
	require.ErrorContains(t, err, "param.n is set twice")
	plan, err = sweep.ParsePlan(filepath.Join(folder, "plan.yaml"),
		[]byte("name: p\npush: {dataset: wide.yaml}\naxes: {param.n: 1..4x2}\nrows: 10\n"), o)
	require.NoError(t, err)
	s, err = sweep.New(plan, o)
	require.NoError(t, err)
	for i, want := range []int64{9, 10, 12} {
		require.Equal(t, want, s.Cases[i].Plan.RowBytes)
	}

	o.Push = map[string][]string{"param": {"n=7"}}
	plan, err = sweep.ParsePlan(filepath.Join(folder, "plan.yaml"), []byte("name: p\npush: {dataset: wide.yaml, param: n=3}\naxes: {workers: 1..4x2}\nrows: 10\n"), o)
	require.NoError(t, err)
	s, err = sweep.New(plan, o)
	require.NoError(t, err)
	require.EqualValues(t, 15, s.Cases[0].Plan.RowBytes, "the command line's parameter is the one")
}

func TestPresetNames(t *testing.T) {
	require.IsIncreasing(t, sweep.Presets())
	require.Contains(t, sweep.Presets(), "databend-four-methods")
	_, _, err := sweep.Preset("databend-four")
	require.ErrorContains(t, err, `preset "databend-four" does not exist; did you mean "databend-four-methods"?`)
	for _, name := range []string{"../experiments/databend-four-methods", "", "x"} {
		_, _, err = sweep.Preset(name)
		require.Error(t, err)
		require.Empty(t, sweep.PresetTitle(name))
	}
}

// The reference's own example is a plan, at every scale it has.
func TestDocumentedExample(t *testing.T) {
	page, err := os.ReadFile("../../docs/SWEEPS.md")
	require.NoError(t, err)
	_, text, found := strings.Cut(string(page), "```yaml\n")
	require.True(t, found)
	text, _, found = strings.Cut(text, "```")
	require.True(t, found)
	for scale, cells := range map[string]int{"": 40, "laptop": 12} {
		plan := parse(t, text, at(scale))
		require.Len(t, plan.Cases(), cells)
	}
	require.Len(t, parse(t, text, at("laptop"), to("postgres://u@h/db")).Cases(), 3)
}

func FuzzParse(f *testing.F) {
	f.Add(whole, "")
	f.Add(scaled, "laptop")
	for _, name := range sweep.Presets() {
		_, text, err := sweep.Preset(name)
		require.NoError(f, err)
		f.Add(string(text), "ci")
	}
	f.Add("name: p\naxes: {workers: 1..9223372036854775807x1.0000001, rows: 1..9223372036854775807+1}", "")
	f.Add("a: &a [*a, *a]\nb: {<<: *a}\n? c\n: !!x d", "x")
	f.Fuzz(func(t *testing.T, text, scale string) {
		o := planOptions(t)
		o.Target, o.Scale = url, scale
		plan, err := sweep.ParsePlan("plan.yaml", []byte(text), o)
		if err != nil {
			return
		}
		for _, c := range plan.Cases() {
			require.NotEmpty(t, c.Settings)
			require.NotContains(t, fmt.Sprint(c.Settings), "hunter2")
			require.Len(t, c.Push["target"], 1)
		}
	})
}
