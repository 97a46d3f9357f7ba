package calibrate

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/all"
	"github.com/terapush/terapush/internal/calibrate/baseline"
	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/pkg/loader"
)

// planned is a calibration of some protocols that is planned and not begun.
func planned(t *testing.T, protocols string, change ...func(*Calibration)) *Calibration {
	t.Helper()
	drivers, err := all.Drivers()
	require.NoError(t, err)
	chosen, err := Chosen(strings.Fields(protocols))
	require.NoError(t, err)
	c := &Calibration{
		Push: map[string][]string{"dataset": {"documents"}, "memory": {"512MiB"}}, Protocols: chosen, Workers: []int{1, 64},
		TLS: []bool{false, true}, Time: time.Minute, State: t.TempDir(), Version: "v1.2.3", Drivers: drivers,
		Log: slog.New(slog.DiscardHandler), Tell: func(string) {},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func with(name, value string) func(*Calibration) {
	return func(c *Calibration) { c.Push[name] = []string{value} }
}

func TestPlan(t *testing.T) {
	t.Setenv("TERAPUSH_MAX_RATE", "1KiB/s") // is for other pushes
	c := planned(t, "mysql doris s3")
	require.NoError(t, c.Check())
	require.Len(t, c.sweep.Cases, 2*3*2)
	var cases []string
	for _, one := range c.sweep.Cases {
		p, flags := one.Plan, one.Config
		require.LessOrEqual(t, int64(p.Workers)*p.BatchBytes(), int64(inFlight))
		require.GreaterOrEqual(t, int64(p.Buffers), p.Templates()+int64(p.Workers), "no batch is encoded while it is measured")
		require.Equal(t, 5*time.Second, flags.Duration, "12 pushes a minute")
		require.Zero(t, flags.MaxRate)
		driver, target, err := one.Config.LoaderTarget(c.Drivers, config.Earlier{})
		require.NoError(t, err)
		cases = append(cases, fmt.Sprintf("%s %s %d %s %s", driver.Name(), flags.Method, p.Workers, target.TLS, p.PayloadKind))
	}
	require.Equal(t, []string{
		"mysql load-data 1 off bytes", "mysql load-data 64 off bytes", "doris stream-load 1 off text", "doris stream-load 64 off text",
		"s3 put 1 off bytes", "s3 put 64 off bytes",
		"mysql load-data 1 require bytes", "mysql load-data 64 require bytes", "doris stream-load 1 require text", "doris stream-load 64 require text",
		"s3 put 1 require bytes", "s3 put 64 require bytes",
	}, cases)
}

// Where there is little memory batches are smaller and rows repeat earlier.
func TestLittleMemory(t *testing.T) {
	c := planned(t, "mysql databend", with("memory", "32MiB"))
	require.NoError(t, c.Check())
	for _, one := range c.sweep.Cases {
		require.GreaterOrEqual(t, int64(one.Plan.Buffers), one.Plan.Templates()+int64(one.Plan.Workers))
		require.LessOrEqual(t, one.Plan.Memory, int64(32<<20))
	}
}

func TestRefusals(t *testing.T) {
	for says, change := range map[string]func(*Calibration){
		`dataset "nothing"`:      with("dataset", "nothing"),
		"a payload has 1 to":     with("payload-bytes", "1GiB"),
		`value "hope" does not`:  with("payload-kind", "hope"),
		"not a size":             with("memory", "much"),
		"more than --memory":     with("memory", "64KiB"),
		"--workers 64: memory h": with("memory", "8MiB"),
	} {
		require.ErrorContains(t, planned(t, "mysql", change).Check(), says)
	}
	_, err := Chosen([]string{"mysql", "oracle"})
	require.ErrorContains(t, err, `"oracle"`)
}

// A sink that does not count rows needs their length where the back-end compares them.
func TestRowBytes(t *testing.T) {
	for name, want := range map[string]int64{"documents": 526, "lineitem": 0} {
		c := planned(t, "doris databend", with("dataset", name))
		require.NoError(t, c.Check())
		require.Equal(t, want, c.rowBytes(c.Protocols[0]), name)
		require.Positive(t, c.rowBytes(c.Protocols[1]), "any number will do")
	}
}

// entry is a push of a case with so many workers.
func entry(c *Calibration, part int, workers string, status results.Status, bytes float64) results.Entry {
	e := results.Entry{Part: part, Status: status, Started: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}
	for _, one := range c.sweep.Cases {
		if one.Part == part && one.Settings.Value("workers") == workers {
			e.Cell, e.Settings = one.Number, one.Settings
		}
	}
	if status == results.Skipped {
		return e
	}
	r := &report.Report{}
	r.Target.Backend, r.Target.Server = "mysql", "MySQL 8.4.0-"+loader.NoCountMark
	r.Plan.Method, r.Plan.Format, r.Plan.Dataset = "load-data", "tsv", "documents"
	r.Result.BytesPerSecond, r.Result.RowsPerSecond, r.Result.Seconds = bytes, bytes/520, 2
	r.Client.LoadSeconds, r.BoundBy.Verdict = 3, "client-cpu"
	_, _ = fmt.Sscan(workers, &r.Plan.Workers)
	e.Report = r
	return e
}

// The best of a row is kept once the row has come to its end, and unless a push of it failed.
func TestKeep(t *testing.T) {
	workers := func(c *Calibration) { c.Workers = []int{1, 2, 4} }
	kept := func(c *Calibration) []baseline.Measurement {
		all, err := baseline.Read(c.State)
		require.NoError(t, err)
		return all
	}
	c := planned(t, "mysql", workers)
	require.NoError(t, c.Check())
	require.NoError(t, c.keep(entry(c, 0, "1", results.Measured, gib)))
	require.NoError(t, c.keep(entry(c, 0, "2", results.Measured, 3*gib)))
	require.NoError(t, c.keep(entry(c, 1, "1", results.Measured, gib/2)), "with TLS")
	require.Empty(t, kept(c), "a larger number may be better")
	require.NoError(t, c.keep(entry(c, 0, "4", results.Skipped, 0)))
	want := baseline.Measurement{
		Key: baseline.Key{
			Backend: "mysql", Method: "load-data", Format: "tsv", Dataset: "documents", PayloadBytes: 512, PayloadKind: "bytes",
		},
		Measured: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Version: "v1.2.3",
		Workers: 2, BytesPerSecond: 3 * gib, RowsPerSecond: 3 * gib / 520., CPUSecondsPerGiB: 0.5, BoundBy: "client-cpu",
	}
	require.Equal(t, []baseline.Measurement{want}, kept(c))

	require.NoError(t, c.keep(entry(c, 1, "2", results.Measured, gib)))
	require.NoError(t, c.keep(entry(c, 1, "4", results.Measured, gib)))
	require.Len(t, kept(c), 2)
	require.True(t, kept(c)[1].TLS)
	require.Equal(t, 2, kept(c)[1].Workers, "of equals the first")

	for _, failed := range []string{"1", "2", "4"} {
		c := planned(t, "mysql", workers)
		require.NoError(t, c.Check())
		for _, n := range []string{"1", "2", "4"} {
			status := results.Measured
			if n == failed {
				status = results.Failed
			}
			require.NoError(t, c.keep(entry(c, 0, n, status, gib)))
		}
		require.Empty(t, kept(c), failed)
	}
	c = planned(t, "mysql", func(c *Calibration) { c.Workers = []int{1} })
	require.NoError(t, c.Check())
	require.NoError(t, os.WriteFile(baseline.Path(c.State), []byte("{"), 0o600))
	require.ErrorContains(t, c.keep(entry(c, 0, "1", results.Measured, 1)), "damaged")
}

func TestJudge(t *testing.T) {
	c := planned(t, "mysql doris")
	require.NoError(t, c.Check())
	mysql, doris := c.sweep.Cases[0], c.sweep.Cases[2]
	good, nothing, other := entry(c, 0, "1", results.Measured, 1).Report, &report.Report{}, &report.Report{}
	good.Result.Rows, other.Target.Server = 1, "MySQL 8.4.0"
	broken := errors.New("broken")
	require.NoError(t, c.judge(mysql, good, nil))
	require.ErrorContains(t, c.judge(mysql, nothing, nil), "nothing was acknowledged within 5s")
	require.ErrorContains(t, c.judge(mysql, other, broken), `the server is not a sink but "MySQL 8.4.0"`)
	require.Equal(t, broken, c.judge(doris, good, broken))

	c.Host = "10.0.0.7"
	require.Equal(t, broken, c.judge(mysql, good, broken), "which compares nothing")
	require.ErrorContains(t, c.judge(doris, good, broken), "broken; for doris start the sink without --no-count, or with --row-bytes 526")
	c = planned(t, "doris", with("dataset", "lineitem"))
	c.Host = "10.0.0.7"
	require.NoError(t, c.Check())
	require.ErrorContains(t, c.judge(c.sweep.Cases[0], good, broken), "broken; for doris start the sink without --no-count")
}

func TestOutput(t *testing.T) {
	var c child
	require.Empty(t, c.output())
	c.stderr.WriteString(strings.Repeat("all is well\n", 1000) + "panic: no\n")
	require.True(t, strings.HasSuffix(c.output(), "panic: no"))
	require.Less(t, len(c.output()), 3<<10)
}
