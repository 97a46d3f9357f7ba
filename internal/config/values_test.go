package config_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/config"
)

func TestSizesAndRates(t *testing.T) {
	for text, want := range map[string]int64{
		"64MiB": 64 << 20, "64MB": 64_000_000, "1GiB": 1 << 30, "1024": 1024, "1.5KiB": 1536, "1 GiB": 1 << 30,
	} {
		var b config.Bytes
		require.NoError(t, b.Set(text))
		require.EqualValues(t, want, b)
	}
	for _, text := range []string{"", "x", "1XB", "-1", "9EiB", "1,5GiB", "1e9", "NaN"} {
		require.ErrorContains(t, new(config.Bytes).Set(text), "is not a size: write it as 64MiB, 64MB or 1GiB", text)
	}
	for text, want := range map[string]int64{
		"500MiB/s": 500 << 20, "500MB/s": 500_000_000, "5Gbps": 625_000_000, "8bps": 1, "1.6Gbps": 200_000_000, "100Mbps": 12_500_000,
	} {
		var r config.Rate
		require.NoError(t, r.Set(text), text)
		require.EqualValues(t, want, r, text)
	}
	for _, text := range []string{"", "5", "5Gb", "0/s", "7bps", "5Gbps/s", "-5Gbps", "5Gb/s", "1,5GB/s", "5mbps"} {
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

func TestSuggest(t *testing.T) {
	schemes := []string{"postgres", "postgresql", "yugabyte", "mysql", "mariadb", "tidb", "singlestore", "discard"}
	methods := []string{"load-data", "copy", "insert"}
	modes := []string{"none", "ack", "count", "full"}
	for _, c := range []struct {
		word  string
		valid []string
		want  string
	}{
		{"postgre", schemes, "postgres"}, // both begin with it: the first one
		{"MySQL", schemes, "mysql"},
		{"maraidb", schemes, "mariadb"}, // two letters swapped
		{"oracle", schemes, ""},
		{"loaddata", methods, "load-data"},
		{"stream-load", methods, ""},
		{"doc", []string{"documents"}, "documents"},
		{"all", modes, "full"},
		{"off", modes, ""},
		{"", modes, ""},
		{"x", nil, ""},
	} {
		require.Equal(t, c.want, config.Suggest(c.word, c.valid), c.word)
	}
}
