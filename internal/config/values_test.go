package config_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/config"
)

func TestSizesAndRates(t *testing.T) {
	for text, want := range map[string]int64{
		"64MiB": 64 << 20, "64MB": 64_000_000, "1GiB": 1 << 30, "1024": 1024, "1.5KiB": 1536, "1 GiB": 1 << 30,
		"1e9": 1_000_000_000, "1_000_000": 1_000_000, "10M": 10_000_000, "16Ki": 16 << 10,
	} {
		var b config.Bytes
		require.NoError(t, b.Set(text))
		require.EqualValues(t, want, b)
	}
	for _, text := range []string{"", "x", "1XB", "-1", "9EiB", "1,5GiB", "1e-9", "NaN"} {
		require.ErrorContains(t, new(config.Bytes).Set(text), "is not a size: write it as 64MiB, 64MB or 1GiB", text)
	}
	for _, text := range []string{"1Gb", "1gb", "512b", "1 Mib", "8kb"} {
		require.ErrorContains(t, new(config.Bytes).Set(text), "bits or bytes?", text)
	}
	for text, want := range map[string]int64{
		"500MiB/s": 500 << 20, "500MB/s": 500_000_000, "5Gbps": 625_000_000, "8bps": 1, "1.6Gbps": 200_000_000, "100Mbps": 12_500_000,
		"5 Gbps": 625_000_000, "5Gbit/s": 625_000_000, "500MBps": 500_000_000, "1e9/s": 1_000_000_000,
	} {
		var r config.Rate
		require.NoError(t, r.Set(text), text)
		require.EqualValues(t, want, r, text)
	}
	for _, text := range []string{"", "5", "5Gb", "0/s", "7bps", "5Gbps/s", "-5Gbps", "5Gb/s", "5gb/s", "5b/s", "1,5GB/s", "5mbps"} {
		require.ErrorContains(t, new(config.Rate).Set(text), "is not a rate: write it as 500MiB/s or 5Gbps", text)
	}
	for text, want := range map[string]config.DistinctBytes{"all": {All: true}, "2GiB": {Bytes: 2 << 30}} {
		var d, again config.DistinctBytes
		require.NoError(t, d.Set(text))
		require.Equal(t, want, d)
		require.NoError(t, again.Set(d.String()))
		require.Equal(t, d, again)
	}
	require.ErrorContains(t, new(config.DistinctBytes).Set("0"), "write a size above 0, or all")
	require.ErrorContains(t, new(config.DistinctBytes).Set("al"), "or as all")
}

// A variable is refused where it is given, once, and a refused list changes nothing.
func TestSettings(t *testing.T) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(config.Push).Flags(f, drivers(t))
	require.EqualError(t, f.Parse([]string{"--set", "x"}), `invalid argument "x" for "--set" flag: write it as name=value`)
	_, _, err := parse(t, "", env{"TERAPUSH_SET": "=y"}, "")
	require.EqualError(t, err, `TERAPUSH_SET: invalid argument "=y" for "--set" flag: write it as name=value`)

	c, _, err := parse(t, "--set a=1,2 --set b=", nil, "")
	require.NoError(t, err)
	want := config.Settings{{Name: "a", Value: "1,2"}, {Name: "b"}}
	require.Equal(t, want, c.Set)
	require.EqualError(t, c.Set.Replace([]string{"c=3", "d"}), `"d": write it as name=value`)
	require.Equal(t, want, c.Set)
	require.Equal(t, "[a=1,2,b=]", c.Set.String())
}

// Every flag of a quantity takes what can mean one thing only, whatever has it, and says what to write instead.
func TestQuantities(t *testing.T) {
	for line, want := range map[string]any{
		"--rows 1e6": int64(1_000_000), "--rows 10M": int64(10_000_000), "-n 1.5k": int64(1500), "--rows 2,064,889": int64(2_064_889),
		"--rows 1_000": int64(1000), "--rows 16Ki": int64(16384), "--rows 0x10": int64(16), "--rows 010": int64(10), "--rows 2G": int64(2e9),
	} {
		c, _, err := parse(t, line, nil, "")
		require.NoError(t, err, line)
		require.Equal(t, want, c.Rows, line)
	}
	c, f, err := parse(t, "--payload-bytes 1KiB --duration 10 --retry-for 1d --batch-rows 1e4 --workers 0x8 --seed 18446744073709551615 "+
		"--first-key 1e9 --verify-rows 1k --retries 1e1 --commit-batches 16", nil, "")
	require.NoError(t, err)
	require.Equal(t, []any{1024, 10 * time.Second, 24 * time.Hour, int64(10_000), 8, uint64(math.MaxUint64), int64(1e9), 1000, 10, int64(16)},
		[]any{c.PayloadBytes, c.Duration, c.RetryFor, c.BatchRows, c.Workers, c.Seed, c.FirstKey.Key, c.VerifyRows, c.Retries, c.CommitBatches})
	given := config.Given(f)
	require.Equal(t, []any{"10000", "1024", "10s"}, []any{given["batch-rows"][0], given["payload-bytes"][0], given["duration"][0]},
		"a record has one spelling")

	c, _, err = parse(t, "", map[string]string{"TERAPUSH_PAYLOAD_BYTES": "512B", "TERAPUSH_WARM_UP": "2"}, "rows: 1M\nbatch-timeout: 90\n")
	require.NoError(t, err)
	require.Equal(t, []any{512, 2 * time.Second, int64(1_000_000), 90 * time.Second}, []any{c.PayloadBytes, c.WarmUp, c.Rows, c.BatchTimeout})

	for line, want := range map[string]string{
		"--rows 10m": "write it as 2000000, 2e6 or 2M", "--rows 1.5": "not a whole number", "--rows 1e-3": "not a whole number",
		"--rows 1e30": "too large", "--rows many": "not a whole number", "--rows 1,5": "not a whole number", "--workers -1e30": "below 0",
		"--seed -1": "below 0", "--payload-bytes 512b": "bits or bytes?", "--payload-bytes x": "is not a size",
		"--duration 10x": "write it as 90s, 10m or 1h30m", "--duration 999999999d": "is not a time", "--duration 1e30": "is not a time",
		"--append=maybe": "write true or false",
	} {
		f := pflag.NewFlagSet("push", pflag.ContinueOnError)
		new(config.Push).Flags(f, drivers(t))
		err := f.Parse(strings.Fields(line))
		require.ErrorContains(t, config.PlainError(err), want, line)
		require.NotContains(t, config.PlainError(err).Error(), "strconv", line)
	}
	_, _, err = parse(t, "", map[string]string{"TERAPUSH_APPEND": "maybe"}, "")
	require.ErrorContains(t, err, "TERAPUSH_APPEND")
	require.NotContains(t, err.Error(), "strconv")

	var gbps float64
	link := config.Link(&gbps, 50)
	for text, want := range map[string]float64{"25": 25, "25Gbps": 25, "100Mbps": 0.1, "25 Gbit/s": 25, "1GB/s": 8, "2.5": 2.5} {
		require.NoError(t, link.Set(text), text)
		require.InDelta(t, want, gbps, 1e-9, text)
	}
	require.ErrorContains(t, link.Set("25G"), "write it as 25 or 25Gbps")
}

// Every number that a flag can hold survives the record of a run.
func TestSizesComeBack(t *testing.T) {
	check := func(n int64) {
		b, r := config.Bytes(n), config.Rate(n)
		var b2 config.Bytes
		var r2 config.Rate
		require.NoError(t, b2.Set(b.String()))
		require.NoError(t, r2.Set(r.String()))
		require.Equal(t, b, b2)
		require.Equal(t, r, r2)
	}
	dice := rand.New(rand.NewPCG(1, 2))
	for shift := range 63 {
		for _, n := range []int64{1 << shift, 1<<shift + 1, 3 << shift >> 1, 1 + dice.Int64N(1<<shift)} {
			check(max(n, 1))
		}
	}
	check(math.MaxInt64)
}

func TestServerMetrics(t *testing.T) {
	c, f, err := parse(t, "--server-metrics http://u:s3cr3t@h:9100/metrics?token=s3cr3t --server-metrics https://be/metrics", nil, "")
	require.NoError(t, err)
	require.NoError(t, c.Validate())
	require.Equal(t, "[http://h:9100/metrics,https://be/metrics]", c.ServerMetrics.String(), "nothing secret is shown")
	urls := c.ServerMetrics.URLs()
	require.Len(t, urls, 2)
	require.Equal(t, "http://u:s3cr3t@h:9100/metrics?token=s3cr3t", urls[0].String())
	require.NotContains(t, config.Given(f), "server-metrics", "it is of one process, and may hold a password")

	c, _, err = parse(t, "", nil, "server-metrics: [http://a/metrics, http://b/metrics]")
	require.NoError(t, err)
	require.Len(t, c.ServerMetrics.URLs(), 2)

	for _, text := range []string{"s3cr3t", "h:9100", "ftp://h/s3cr3t", "http:///s3cr3t", "http://h:s3cr3t/", "http://%zzs3cr3t"} {
		c, _, err := parse(t, "--server-metrics "+text, nil, "")
		require.NoError(t, err)
		err = c.Validate()
		require.ErrorContains(t, err, "--server-metrics: write it as http://host:9100/metrics", text)
		require.NotContains(t, err.Error(), "s3cr3t")
	}
}

func TestMisspelled(t *testing.T) {
	flags := []string{"batch-rows", "rows", "report", "allow-drop"}
	require.Equal(t, []string{
		"TERAPUSH_BATCHROWS is not read: did you mean TERAPUSH_BATCH_ROWS?",
		"TERAPUSH_CREDENTIAL is not read: --credential was removed: it was for method cloud-copy, which is gone too; " +
			"--method array needs none",
		"TERAPUSH_PASSWROD is not read: did you mean TERAPUSH_PASSWORD?",
		"TERAPUSH_ROW is not read: did you mean TERAPUSH_ROWS?",
		"TERAPUSH_YES_DROP is not read: --yes-drop was removed: it is called --allow-drop",
		"TERAPUSH_batch_rows is not read: did you mean TERAPUSH_BATCH_ROWS?",
	}, config.Misspelled([]string{
		"TERAPUSH_ROW=5", "TERAPUSH_BATCHROWS=1", "TERAPUSH_BATCH_ROWS=1", "TERAPUSH_YES_DROP=x", "TERAPUSH_PASSWROD=hunter2",
		"TERAPUSH_ORACLE_16_ECPU=oracle://…", "TERAPUSH_PORT=tcp://10.0.0.1:80", "TERAPUSH_SERVICE_HOST=10.0.0.1", "TERAPUSH_REPOR=",
		"TERAPUSH_batch_rows=1", "TERAPUSH_CREDENTIAL=LOADER", "HOME=/", "broken",
	}, flags))
}
