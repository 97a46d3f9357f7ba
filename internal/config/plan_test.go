package config_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/pkg/loader"
)

// planInput is what a plan is fixed with.
type planInput struct {
	config.Plan
	MaxNumber, DistinctBytes int64
	Resources                config.Resources
}

func makePlan(in planInput) (config.Plan, []string, error) {
	warnings, err := in.Fix(in.MaxNumber, in.DistinctBytes, in.Resources)
	return in.Plan, warnings, err
}

// input is a run of 10,000 rows in batches of 100, a hundred of them, on 4 workers. A buffer takes 1,000 bytes.
func input() planInput {
	return planInput{
		Plan: config.Plan{
			Contract: loader.Contract{BatchRows: 100}, Dataset: "documents", Seed: 1, PayloadBytes: 512, PayloadKind: "bytes",
			Rows: 10_000, RowBytes: 520, EncodedRowBytes: 530,
		},
		MaxNumber: math.MaxInt64, DistinctBytes: 520 * 1000,
		Resources: config.Resources{Workers: 4, Memory: 1 << 20, BufferMemory: func(rows int64) int64 { return 10 * rows }},
	}
}

func TestFix(t *testing.T) {
	p, warnings, err := makePlan(input())
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, config.Plan{
		Contract: loader.Contract{BatchRows: 100}, Dataset: "documents", Seed: 1, PayloadBytes: 512, PayloadKind: "bytes",
		Rows: 10_000, KeyRows: 10_000, DistinctRows: 1000, RowBytes: 520, EncodedRowBytes: 530, Workers: 4, Buffers: 14, Memory: 14_000,
	}, p)
	require.EqualValues(t, 100, p.Batches())
	require.EqualValues(t, 10, p.Templates())
	require.EqualValues(t, 53_000, p.BatchBytes())
	require.EqualValues(t, 5_200_000, p.PayloadTotal())
	require.EqualValues(t, 9_999, p.PartKeys().Last)
	require.EqualValues(t, 100, p.BatchSize(99))
}

func TestSizes(t *testing.T) {
	type sizes struct {
		distinct, batches, last int64 // rows, batches, rows of the last one
		workers, buffers        int
	}
	for name, c := range map[string]struct {
		change func(*planInput)
		want   sizes
	}{
		"distinct rows are rounded up to whole batches": {func(in *planInput) { in.DistinctBytes++ }, sizes{1100, 100, 100, 4, 15}},
		"and at least to one":                           {func(in *planInput) { in.DistinctBytes = 1 }, sizes{100, 100, 100, 4, 5}},
		"as many as there are rows":                     {func(in *planInput) { in.DistinctBytes = math.MaxInt64 }, sizes{10_000, 100, 100, 4, 100}},
		"the last batch is short": {func(in *planInput) { in.Rows, in.DistinctBytes = 9_901, math.MaxInt64 },
			sizes{10_000, 100, 1, 4, 100}},
		"all rows distinct: two buffers a worker": {func(in *planInput) { in.DistinctBytes = 0 }, sizes{0, 100, 100, 4, 8}},
		"one batch":                 {func(in *planInput) { in.Rows = 100 }, sizes{100, 1, 100, 1, 1}},
		"one row in a larger batch": {func(in *planInput) { in.Rows = 1 }, sizes{100, 1, 1, 1, 1}},
		"giant rows, one a batch": {func(in *planInput) {
			in.BatchRows, in.RowBytes, in.EncodedRowBytes, in.DistinctBytes = 1, 1<<20+8, 2<<20, 1<<30
		}, sizes{1024, 10_000, 1, 4, 1028}},
		"less memory than templates": {func(in *planInput) { in.Resources.Memory = 7_999 }, sizes{1000, 100, 100, 4, 7}},
		"by duration": {func(in *planInput) { in.Rows, in.ByDuration = config.MaxDurationRows, true },
			sizes{1000, config.MaxDurationRows / 100, 100, 4, 14}},
		"the largest keys": {func(in *planInput) { in.FirstKey = 1<<62 - 10_000 }, sizes{1000, 100, 100, 4, 14}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input()
			c.change(&in)
			p, warnings, err := makePlan(in)
			require.NoError(t, err)
			require.Empty(t, warnings)
			require.Equal(t, c.want, sizes{p.DistinctRows, p.Batches(), p.BatchSize(p.Batches() - 1), p.Workers, p.Buffers})
			require.Equal(t, int64(p.Buffers)*10*p.BatchRows, p.Memory)
		})
	}
}

// The record of a run holds all of its plan, and a resume reads it back.
func TestJSON(t *testing.T) {
	in := input()
	in.Contract = loader.Contract{
		Method: "copy", Format: "pgbinary", Delivery: loader.ExactlyOnce, Dedup: loader.DedupTx, BatchRows: 100,
	}
	in.Seed, in.FirstKey, in.ByDuration = math.MaxUint64, 1<<61+1, true
	p, _, err := makePlan(in)
	require.NoError(t, err)
	text, err := json.Marshal(p)
	require.NoError(t, err)
	var again config.Plan
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, p, again)
	require.Contains(t, string(text), `"batch_rows":100`, "the contract lies beside the numbers, not below them")
}

// A resume fits the plan to another machine, and the rows stay what they are.
func TestFitAgain(t *testing.T) {
	p, _, err := makePlan(input())
	require.NoError(t, err)
	before := p
	r := input().Resources
	r.Workers, r.Memory = 2, 5000
	_, err = p.Fit(r)
	require.NoError(t, err)
	require.Equal(t, 2, p.Workers)
	require.Equal(t, 5, p.Buffers)
	p.Workers, p.Buffers, p.Memory = before.Workers, before.Buffers, before.Memory
	require.Equal(t, before, p, "nothing else has changed")
}

func TestRefusals(t *testing.T) {
	for want, change := range map[string]func(*planInput){
		"--first-key -1 with 10000 rows: keys of documents run from 0 to 4611686018427387903":                  func(in *planInput) { in.FirstKey = -1 },
		"--first-key 4611686018427377905 with 10000 rows: keys of documents run from 0 to 4611686018427387903": func(in *planInput) { in.FirstKey = 1<<62 - 9_999 },
		"--workers: at least 1": func(in *planInput) { in.Resources.Workers = 0 },
		"one batch (--batch-rows 100) needs a buffer of 1000 B, more than --memory 999 B: raise --memory or lower --batch-rows": func(in *planInput) { in.Resources.Memory = 999 },
		"one batch (--batch-rows 1) needs a buffer of 2.0 MiB, more than --memory 1.0 MiB: raise --memory or lower --batch-rows": func(in *planInput) {
			in.BatchRows, in.Resources.BufferMemory = 1, func(int64) int64 { return 2 << 20 }
		},
		"a batch of 10000 rows of up to 429392 bytes is more than 4 GiB: lower --batch-rows or --batch-bytes": func(in *planInput) {
			in.BatchRows, in.EncodedRowBytes = 10_000, (4<<30-1<<20)/10_000+1
		},
		"0 rows: a run has 1 to 17402588748782595 rows if a row takes up to 530 bytes (--rows, --bytes)":                   func(in *planInput) { in.Rows = 0 },
		"9223372036854775807 rows: a run has 1 to 17402588748782595 rows if a row takes up to 530 bytes (--rows, --bytes)": func(in *planInput) { in.Rows = math.MaxInt64 },
	} {
		in := input()
		change(&in)
		_, _, err := makePlan(in)
		require.EqualError(t, err, want)
	}
}

// A run by duration has as many rows as can be counted in bytes, however long a row is: nobody has asked for a number.
func TestLongRowsByDuration(t *testing.T) {
	in := input()
	in.Rows, in.ByDuration, in.EncodedRowBytes = config.MaxDurationRows, true, 64<<20
	in.BatchRows = 1
	p, _, err := makePlan(in)
	require.NoError(t, err)
	require.EqualValues(t, math.MaxInt64/(64<<20), p.Rows)
	require.EqualValues(t, config.MaxDurationRows, p.KeyRows, "the encoder was made for as many")
	require.Positive(t, p.BatchBytes()*p.Batches())
}

func TestRowCount(t *testing.T) {
	for _, c := range []struct {
		push config.Push
		want int64
	}{
		{config.Push{Rows: 7}, 7},
		{config.Push{}, int64(config.DefaultPayload)/520 + 1},
		{config.Push{Bytes: 1}, 1},
		{config.Push{Bytes: 520}, 1},
		{config.Push{Bytes: 521}, 2},
		{config.Push{Bytes: 1 << 30}, 2064889},
		{config.Push{Bytes: math.MaxInt64}, math.MaxInt64/520 + 1},
		{config.Push{Duration: time.Second}, config.MaxDurationRows},
	} {
		require.Equal(t, c.want, c.push.RowCount(520))
	}
}

// Runs have the lower half of the numbers that keys carry, probes the upper one.
func TestKeysOfADataset(t *testing.T) {
	const most = 251_635_075_199_999_999 // a microsecond each, to the year 9999
	in := input()
	in.Dataset, in.MaxNumber = "httplogs", most
	in.FirstKey = most/2 - in.Rows + 1
	p, _, err := makePlan(in)
	require.NoError(t, err)
	require.EqualValues(t, most/2, p.PartKeys().Last)
	in.FirstKey++
	_, _, err = makePlan(in)
	require.EqualError(t, err, "--first-key 125817537599990001 with 10000 rows: keys of httplogs run from 0 to 125817537599999999")
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
			require.Equal(t, c.database, config.DefaultWorkers(c.cores, c.link, loader.Caps{}))
			require.Equal(t, c.store, config.DefaultWorkers(c.cores, c.link, loader.Caps{Objects: true}))
			require.Equal(t, c.store, config.DefaultWorkers(c.cores, c.link, loader.Caps{Staged: true}), "staged batches are objects")
		})
	}
}

// Workers by default are reduced to the batches that memory holds; those that were asked for are not, with a warning.
func TestWorkersFitIntoMemory(t *testing.T) {
	in := input()
	in.Resources.Workers, in.Resources.Memory = 40, 7_500 // seven buffers
	p, warnings, err := makePlan(in)
	require.NoError(t, err)
	require.Equal(t, []string{"--memory 7.3 KiB holds 7 batches of 1000 B, so only 7 of 40 workers can have one at a time"}, warnings)
	require.Equal(t, [2]int{40, 7}, [2]int{p.Workers, p.Buffers})

	in.Resources.Workers = 8
	_, warnings, err = makePlan(in)
	require.NoError(t, err)
	require.Len(t, warnings, 1, "one worker waits")

	in.Resources.Default = true
	p, warnings, err = makePlan(in)
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, [2]int{7, 7}, [2]int{p.Workers, p.Buffers})
}
