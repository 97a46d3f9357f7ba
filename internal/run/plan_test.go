package run_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/run"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// input is what a plan is made of.
type input struct {
	run.Spec
	caps loader.Caps
	run.Resources
}

func (in input) plan() (run.Plan, []string, error) {
	return run.MakePlan(in.Spec, in.caps, in.Resources)
}

func (in input) make(t *testing.T) run.Plan {
	t.Helper()
	p, warnings, err := in.plan()
	require.NoError(t, err)
	require.Empty(t, warnings)
	return p
}

// bufferBytes is the memory of a batch of 100 rows of pairs, 24 bytes a row, in the format of input.
const bufferBytes = 4096 + 4*100

// newInput is a run of 10,000 rows in batches of 100, a hundred of them, on 4 workers.
func newInput() input {
	return input{
		Spec: run.Spec{
			Dataset: "pairs", Seed: 1, PayloadBytes: 512, PayloadKind: "bytes", Rows: 10_000, DistinctBytes: 24 * 1000,
			Wish: run.Wish{Method: "copy", Delivery: loader.DeliveryAuto, BatchRows: 100},
		},
		caps:      loader.Caps{Formats: []batch.Format{batch.PGBinary}, Dedup: loader.DedupTx, DefaultBatchBytes: 1 << 20},
		Resources: run.Resources{Workers: 4, Memory: 1 << 20},
	}
}

func TestMakePlan(t *testing.T) {
	p := newInput().make(t)
	require.Equal(t, run.Spec{
		Dataset: "pairs", Seed: 1, PayloadBytes: 512, PayloadKind: "bytes", Rows: 10_000, KeyRows: 10_000, DistinctBytes: 24 * 1000,
		Contract: loader.Contract{Method: "copy", Format: batch.PGBinary, Delivery: loader.ExactlyOnce, Dedup: loader.DedupTx, BatchRows: 100},
	}, p.Spec, "nothing is left open")
	require.EqualValues(t, 1000, p.DistinctRows)
	require.EqualValues(t, 100, p.Batches())
	require.EqualValues(t, 10, p.Templates())
	require.EqualValues(t, 100*p.EncodedRowBytes, p.BatchBytes())
	require.EqualValues(t, 10_000*p.RowBytes, p.PayloadTotal())
	require.EqualValues(t, 9_999, p.ShardKeys().Last)
	require.EqualValues(t, 100, p.BatchSize(99))
	require.Equal(t, []int{4, 14}, []int{p.Workers, p.Buffers})
}

func TestSizes(t *testing.T) {
	type sizes struct {
		distinct, batches, last int64 // rows, batches, rows of the last one
		workers, buffers        int
	}
	for name, c := range map[string]struct {
		change func(*input)
		want   sizes
	}{
		"distinct rows are rounded up to whole batches": {func(in *input) { in.DistinctBytes++ }, sizes{1100, 100, 100, 4, 15}},
		"and at least to one":                           {func(in *input) { in.DistinctBytes = 1 }, sizes{100, 100, 100, 4, 5}},
		"as many as there are rows":                     {func(in *input) { in.DistinctBytes = math.MaxInt64 }, sizes{10_000, 100, 100, 4, 100}},
		"the last batch is short": {func(in *input) { in.Rows, in.DistinctBytes = 9_901, math.MaxInt64 },
			sizes{10_000, 100, 1, 4, 100}},
		"all rows distinct: two buffers a worker": {func(in *input) { in.DistinctBytes = 0 }, sizes{0, 100, 100, 4, 8}},
		"one batch":                  {func(in *input) { in.Rows = 100 }, sizes{100, 1, 100, 1, 1}},
		"less memory than templates": {func(in *input) { in.Memory = 8*bufferBytes - 1 }, sizes{1000, 100, 100, 4, 7}},
		"few batches are left":       {func(in *input) { in.Made = 97 }, sizes{1000, 100, 100, 3, 3}},
		"nothing is left":            {func(in *input) { in.Made = 100 }, sizes{1000, 100, 100, 1, 1}},
		"by duration": {func(in *input) { in.Rows, in.Duration = 0, time.Second },
			sizes{1000, run.MaxDurationRows / 100, 100, 4, 14}},
		"the largest keys": {func(in *input) { in.FirstKey = 1<<62 - 10_000 }, sizes{1000, 100, 100, 4, 14}},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput()
			c.change(&in)
			p := in.make(t)
			require.Equal(t, c.want, sizes{p.DistinctRows, p.Batches(), p.BatchSize(p.Batches() - 1), p.Workers, p.Buffers})
			require.Equal(t, int64(p.Buffers)*bufferBytes, p.Memory)
		})
	}
}

// Rows, batches and guarantee of a run that has begun do not depend on what another machine has, or another version
// prefers.
func TestAPlanIsMadeAgain(t *testing.T) {
	for name, change := range map[string]func(*input){
		"as it is":                     func(*input) {},
		"a method that is staged":      func(in *input) { in.caps.Staged, in.caps.DefaultGroupBytes = true, 1<<16 },
		"at least once":                func(in *input) { in.Wish.Delivery = loader.AtLeastOnce },
		"by duration":                  func(in *input) { in.Rows, in.Duration = 0, time.Second },
		"by bytes":                     func(in *input) { in.Rows, in.Bytes = 0, 1<<20 },
		"batches by the method":        func(in *input) { in.Wish.BatchRows = 0 },
		"more than one needs":          func(in *input) { in.Rows = 3 },
		"a shard":                      func(in *input) { in.Shard = config.Shard{Index: 2, Count: 3} },
		"text, whose keys have digits": func(in *input) { in.caps.Formats = []batch.Format{batch.PGText} },
		"batches that a server bounds": func(in *input) {
			in.Dataset, in.Definition, in.caps.MaxBytes = "own", ofManyLengths(t), 1<<20
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput()
			change(&in)
			before := in.make(t)
			in.caps.MaxBytes = 0 // a resume is planned before it has asked the server

			text, err := json.Marshal(before)
			require.NoError(t, err)
			var kept run.Plan
			require.NoError(t, json.Unmarshal(text, &kept))
			in.Spec = kept.Spec
			again := in.make(t)
			again.Data, again.Encoder = nil, nil
			require.Equal(t, kept, again, "the record holds all of it")

			in.Workers, in.Memory, in.caps.DefaultBatchBytes, in.caps.DefaultGroupBytes = 2, 1<<19, 1<<13, 1<<10
			after := in.make(t)
			require.Equal(t, before.Spec, after.Spec)
			require.Equal(t, before.Fingerprint("t"), after.Fingerprint("t"))
			require.LessOrEqual(t, after.Workers, 2)
		})
	}
}

// ofManyLengths is a dataset of the user's whose rows are far from equally long.
func ofManyLengths(t *testing.T) *dataset.Spec {
	t.Helper()
	own, err := dataset.ParseSpec("own.yaml", []byte(`
version: 1
name: own
columns:
  id: {type: bigint, sequence: {}}
  note: {type: text(400), text: {length: 1..400}}
`), nil)
	require.NoError(t, err)

	text, err := json.Marshal(own)
	require.NoError(t, err)
	kept := new(dataset.Spec)
	require.NoError(t, json.Unmarshal(text, kept)) // without its places in the file
	return kept
}

// A run by duration gets its number of rows in the end, and every batch keeps its length.
func TestEndOfDuration(t *testing.T) {
	in := newInput()
	in.caps.Formats = []batch.Format{batch.PGText}
	in.Rows, in.Duration = 0, time.Second
	p := in.make(t)
	in.Spec = p.EndedAt(7).Spec
	after := in.make(t)
	require.EqualValues(t, 700, after.Rows)
	require.False(t, after.ByDuration())
	require.EqualValues(t, run.MaxDurationRows, after.KeyRows)
	require.Equal(t, p.EncodedRowBytes, after.EncodedRowBytes)
}

func TestFingerprint(t *testing.T) {
	was := newInput().make(t).Fingerprint("t")
	require.Positive(t, was)
	same := func(in *input) { in.Shard, in.Workers, in.Memory = config.Shard{Index: 1, Count: 2}, 2, 1<<19 }
	for name, change := range map[string]func(*input){
		"seed": func(in *input) { in.Seed++ }, "rows": func(in *input) { in.Rows++ }, "batches": func(in *input) { in.Wish.BatchRows++ },
		"first key": func(in *input) { in.FirstKey++ }, "guarantee": func(in *input) { in.Wish.Delivery = loader.AtLeastOnce },
		"distinct": func(in *input) { in.DistinctBytes *= 2 },
	} {
		in := newInput()
		same(&in)
		require.Equal(t, was, in.make(t).Fingerprint("t"))
		change(&in)
		require.NotEqual(t, was, in.make(t).Fingerprint("t"), name)
	}
	require.NotEqual(t, was, newInput().make(t).Fingerprint("u"))
}

// A run that was to deliver exactly once is not continued without that.
func TestWeakerDatabase(t *testing.T) {
	in := newInput()
	in.Spec = in.make(t).Spec
	in.caps.Dedup, in.caps.Reason = loader.DedupNone, "it keeps what was rolled back"
	_, _, err := in.plan()
	weaker := (*run.DeliveryError)(nil)
	require.ErrorAs(t, err, &weaker)
	require.Equal(t, in.caps.Reason, weaker.Reason)
}

func TestRefusals(t *testing.T) {
	for want, change := range map[string]func(*input){
		"--first-key -1 with 10000 rows: dataset pairs has rows 0 to 4611686018427387903":                  func(in *input) { in.FirstKey = -1 },
		"--first-key 4611686018427377905 with 10000 rows: dataset pairs has rows 0 to 4611686018427387903": func(in *input) { in.FirstKey = 1<<62 - 9_999 },
		"--workers: at least 1": func(in *input) { in.Workers = -1 },
		"one batch (--batch-rows 100) needs a buffer of 4.4 KiB, more than --memory 999 B: raise --memory or lower --batch-rows": func(in *input) { in.Memory = 999 },
		"a batch of 1000000000 rows of up to 38 bytes is more than 4 GiB: lower --batch-rows or --batch-bytes": func(in *input) {
			in.Rows, in.Wish.BatchRows = 1e9, 1e9
		},
		"9223372036854775807 rows: a run has 1 to 242720316759336205 rows if a row takes up to 38 bytes (--rows, --bytes)": func(in *input) { in.Rows = math.MaxInt64 },
		"--shard 0/101: the run has only 100 parts of 1 batches: take fewer shards, or smaller batches or commit groups":   func(in *input) { in.Shard.Count = 101 },
	} {
		in := newInput()
		change(&in)
		_, _, err := in.plan()
		require.EqualError(t, err, want)
	}
}

func TestRowCount(t *testing.T) {
	for _, c := range []struct {
		spec run.Spec
		want int64
	}{
		{run.Spec{Rows: 7}, 7},
		{run.Spec{}, int64(config.DefaultPayload)/520 + 1},
		{run.Spec{Bytes: 1}, 1},
		{run.Spec{Bytes: 520}, 1},
		{run.Spec{Bytes: 521}, 2},
		{run.Spec{Bytes: 1 << 30}, 2064889},
		{run.Spec{Bytes: math.MaxInt64}, math.MaxInt64/520 + 1},
		{run.Spec{Duration: time.Second}, run.MaxDurationRows},
	} {
		require.Equal(t, c.want, c.spec.RowCount(520))
	}
}

// Runs have the lower half of the numbers that keys carry, probes the upper one.
func TestKeysOfADataset(t *testing.T) {
	const most = 251_635_075_199_999_999 // a microsecond each, to the year 9999
	in := newInput()
	in.Dataset = "httplogs"
	in.FirstKey = most/2 - in.Rows + 1
	p := in.make(t)
	require.EqualValues(t, most/2, p.ShardKeys().Last)
	in.FirstKey++
	_, _, err := in.plan()
	require.EqualError(t, err, "--first-key 125817537599990001 with 10000 rows: dataset httplogs has rows 0 to 125817537599999999")
}

// A run by duration may have fewer rows than it would get in years.
func TestDurationOfAShortDataset(t *testing.T) {
	in := newInput()
	in.Definition = &dataset.Spec{
		Version: 1, Name: "short", Key: []string{"id"},
		Columns: []dataset.SpecColumn{{Name: "id", Type: "text(4)", Generator: &dataset.SpecSequence{Start: "0", Step: "1", Every: 1, Format: "{:04}"}}},
	}
	in.Rows, in.Duration = 0, time.Hour
	in.Wish.Format = ""
	p := in.make(t)
	require.EqualValues(t, 5000, p.Rows)
}

// Where drawn rows repeat, a column cannot have as many values as its generator makes.
func TestColumnsThatWantMoreValues(t *testing.T) {
	own, err := dataset.ParseSpec("t.yaml", []byte(`
version: 1
columns:
  id: {type: bigint, sequence: {}}
  of: {type: bigint, uniform: {min: 1, max: 5000}}
  few: {type: bigint, uniform: {min: 1, max: 50}}
  any: {type: bigint, uniform: {min: 0, max: 9223372036854775807}}
  email: {type: text(20), text: {}, distinct: 2000}
`), nil)
	require.NoError(t, err)
	in := newInput()
	in.Dataset, in.Definition, in.Rows, in.DistinctBytes = own.Name, own, 10_000, 52*1000
	_, warnings, err := in.plan()
	require.NoError(t, err)
	require.Equal(t, []string{
		"column of wants 5,000 distinct values, but drawn columns repeat after 1,000 rows: raise --distinct-bytes, or derive it",
		"column email wants 2,000 distinct values, but drawn columns repeat after 1,000 rows: raise --distinct-bytes, or derive it",
	}, warnings)

	in.Rows = 1000
	_, warnings, err = in.plan()
	require.NoError(t, err)
	require.Empty(t, warnings, "no row is drawn twice")
}

// What files of samples take is left out of the buffers.
func TestMemoryOfSamples(t *testing.T) {
	file := filepath.Join(t.TempDir(), "people.csv")
	require.NoError(t, os.WriteFile(file, []byte("name\n"+strings.Repeat("Ada\n", 10_000)), 0o600))
	own, err := dataset.ParseSpec("t.yaml", []byte("version: 1\ncolumns:\n  id: {type: bigint, sequence: {}}\n"+
		"  name: {type: text, sample: "+file+"}\n  again: {type: text, sample: {file: "+file+", column: name}}\n"), nil)
	require.NoError(t, err)
	in := newInput()
	in.Dataset, in.Definition, in.Rows = own.Name, own, 1_000_000
	in.Memory = 1 << 20
	p := in.make(t)
	require.InDelta(t, 2*10_000*(3+4+1+8), p.Samples, 50_000)
	require.LessOrEqual(t, p.Memory, in.Memory-p.Samples)

	in.Memory = p.Samples + 100
	_, _, err = in.plan()
	require.ErrorContains(t, err, "files of samples take ")
	require.ErrorContains(t, err, "raise --memory, or take a part of the files")
}

// Batch 0 has all the rows that others refer to, whatever the method's batches are, or there is no run.
func TestRowsThatOthersReferToAreInBatchZero(t *testing.T) {
	own, err := dataset.ParseSpec("t.yaml", []byte("version: 1\ncolumns:\n  id: {type: bigint, sequence: {}}\n"+
		"  up: {ref: {column: id, rows: 70000}, nulls: 5%}\n  next: {ref: t.id}\n"), nil)
	require.NoError(t, err)
	in := newInput()
	in.Dataset, in.Definition, in.Rows = own.Name, own, 1_000_000
	in.Wish.Format, in.Wish.BatchRows, in.Memory = "", 0, 1<<30
	require.EqualValues(t, 70_000, in.make(t).BatchRows)

	in.Wish.BatchRows = 60_000
	_, _, err = in.plan()
	require.ErrorContains(t, err, "column up refers to the first 70000 rows of its table, which batch 0 has to hold, and it has 60000")
	in.Wish.BatchRows, in.Rows = 0, 500
	_, _, err = in.plan()
	require.ErrorContains(t, err, "and it has 500: give more --rows")

	in.Wish.Delivery, in.Rows, in.Shard = loader.AtLeastOnce, 1_000_000, config.Shard{Index: 1, Count: 2}
	_, _, err = in.plan()
	require.ErrorContains(t, err, "--shard: column up refers to rows of batch 0, and without claims a shard cannot tell")
}

func TestWorkers(t *testing.T) {
	const gbps = 1_000_000_000
	for _, c := range []struct {
		name            string
		cores           int
		link            int64
		database, store int
	}{
		{name: "a small machine", cores: 1, database: 4, store: 4},
		{name: "two a core", cores: 8, database: 16, store: 16},
		{name: "many cores", cores: 96, database: 64, store: 64},
		{name: "a slow link takes nothing away", cores: 8, link: gbps, database: 16, store: 16},
		{name: "10 Gbps", cores: 2, link: 10 * gbps, database: 8, store: 21},
		{name: "50 Gbps", cores: 16, link: 50 * gbps, database: 40, store: 105},
		{name: "200 Gbps", cores: 32, link: 200 * gbps, database: 64, store: 256},
		{name: "3200 Gbps", cores: 4, link: 3200 * gbps, database: 640, store: 640},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run.Resources{Cores: c.cores, LinkBits: c.link}
			workers := func(caps loader.Caps) int {
				n, warnings := r.Connections(caps)
				require.Empty(t, warnings)
				return n
			}
			require.Equal(t, c.database, workers(loader.Caps{}))
			require.Equal(t, c.store, workers(loader.Caps{Objects: true}))
			require.Equal(t, c.store, workers(loader.Caps{Staged: true, MaxInFlight: 8}), "staged batches are objects, and run no loads")
			r.Workers = 3
			require.Equal(t, 3, workers(loader.Caps{Objects: true}), "what the user says")
		})
	}

	n, warnings := run.Resources{Workers: 9}.Connections(loader.Caps{MaxInFlight: 8})
	require.Equal(t, 8, n)
	require.Equal(t, []string{
		"9 workers are lowered to 8, the number of loads that the server runs at a time: more would only wait in its queue",
	}, warnings)
}

// Workers by default are reduced to the batches that memory holds; those that were asked for are not, with a warning.
func TestWorkersFitIntoMemory(t *testing.T) {
	in := newInput()
	in.Workers, in.Memory = 40, 7*bufferBytes
	p, warnings, err := in.plan()
	require.NoError(t, err)
	require.Equal(t, []string{"--memory 31 KiB holds 7 batches of 4.4 KiB, so only 7 of 40 workers can have one at a time"}, warnings)
	require.Equal(t, [2]int{40, 7}, [2]int{p.Workers, p.Buffers})

	in.Workers = 8
	_, warnings, err = in.plan()
	require.NoError(t, err)
	require.Len(t, warnings, 1, "one worker waits")

	in.Workers, in.Cores = 0, 4
	p = in.make(t)
	require.Equal(t, [2]int{7, 7}, [2]int{p.Workers, p.Buffers})
}

// The shards of a run have all of its batches, each once, and differ by at most one.
func TestParts(t *testing.T) {
	for _, rows := range []int64{10, 99, 100, 1234} {
		for count := int64(1); count <= 10; count++ {
			next := run.Plan{Spec: run.Spec{FirstKey: 7, Rows: rows, Contract: loader.Contract{BatchRows: 10}}}
			batches, sum := int64(0), int64(0)
			for i := range count {
				p := next
				if count > 1 {
					p.Shard = config.Shard{Index: i, Count: count}
				}
				first, end := p.ShardRange()
				require.Equal(t, batches, first)
				require.InDelta(t, float64(p.Batches())/float64(count), p.ShardBatches(), 1)
				if end > first {
					require.Equal(t, 7+first*10, p.ShardKeys().First)
				}
				batches, sum = end, sum+p.ShardRows()
			}
			require.Equal(t, next.Batches(), batches)
			if next.Batches() >= count {
				require.Equal(t, rows, sum)
			}
		}
	}
}

// A database without a type for a column is refused before it is asked anything.
func TestTypeThatTheDatabaseLacks(t *testing.T) {
	caps := loader.Caps{Formats: []batch.Format{batch.Values}, Lacks: []rows.Type{rows.Bytes}}
	spec := run.Spec{Dataset: "documents", PayloadKind: "bytes", Rows: 10, Wish: run.Wish{Method: "insert"}}
	require.ErrorContains(t, spec.Check(caps), "column payload holds bytes, and the database has no type for them")
	spec.PayloadKind = "text"
	require.NoError(t, spec.Check(caps))
}

// A format that the database does not read for a column is left for the next one, or refused if it is asked for.
func TestFormatThatTheDatabaseRefuses(t *testing.T) {
	caps := loader.Caps{
		Formats: []batch.Format{batch.CSVGzip, batch.NDJSON},
		Refuses: []loader.Refusal{
			{Format: batch.CSV, Type: rows.Text, Why: "take another"}, {Format: batch.NDJSON, Type: rows.Text, Nulls: true},
		},
	}
	spec := run.Spec{Dataset: "documents", PayloadKind: "text", Rows: 10, Wish: run.Wish{Method: "put"}}
	require.NoError(t, spec.Check(caps), "ndjson")
	spec.Wish.Format = batch.CSVGzip
	require.EqualError(t, spec.Check(caps), "format csv.gz cannot carry the values of column payload here: take another")
}

// So are NULLs beside texts of which one could be taken for a NULL.
func TestTextsBesideNulls(t *testing.T) {
	caps := loader.Caps{Formats: []batch.Format{batch.CSV}, NoTextNulls: true}
	for column, refused := range map[string]bool{
		"{type: text(9), values: [a, 'it''s'], nulls: 5%}":     true,
		"{type: char(4), values: [a, 'it''s'], nulls: 5%}":     true,
		"{type: text(9), values: [a, 'it''s']}":                false,
		"{type: text(9), text: {length: 1..9}, nulls: 5%}":     false,
		"{type: bigint, uniform: {min: 1, max: 9}, nulls: 5%}": false,
	} {
		own, err := dataset.ParseSpec("t.yaml", []byte("version: 1\ncolumns:\n  id: {type: bigint, sequence: {}}\n  v: "+column+"\n"), nil)
		require.NoError(t, err, column)
		spec := run.Spec{Dataset: own.Name, Definition: own, Rows: 10, Wish: run.Wish{Method: "m"}}
		err = spec.Check(caps)
		if refused {
			require.ErrorContains(t, err, "some values of column v are NULL", column)
		} else {
			require.NoError(t, err, column)
		}
	}
}
