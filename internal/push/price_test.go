package push_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/loader"
)

func (p *place) prices(text string) (flag string) {
	path := filepath.Join(p.TempDir(), "prices.yaml")
	require.NoError(p, os.WriteFile(path, []byte(text), 0o600))
	return " --prices " + path
}

func objects() *loader.Caps {
	return &loader.Caps{Formats: formats(), Dedup: loader.DedupTx, Atomic: true, DefaultBatchBytes: 1000, Objects: true}
}

func TestARunHasAPrice(t *testing.T) {
	p := newPlace(t)
	p.memory.Caps = objects()
	r := p.succeeds(small + p.prices("currency: EUR\nput_per_1000: 5\nget_per_1000: 1\ninstance_per_hour: 3600\ncross_az: true\ncross_az_per_gb: 1"))
	require.Equal(t, "EUR", r.Price.Currency)
	require.Len(t, r.Price.Items, 2, "nothing went over a wire")
	require.Equal(t, report.PriceItem{Name: "PUT requests", Amount: 0.02, Unit: "1000 requests", Each: 5, Cost: 0.1}, r.Price.Items[0])
	instance := r.Price.Items[1]
	require.Equal(t, "instance", instance.Name)
	require.Greater(t, instance.Cost, r.Result.Seconds/2, "a second costs 1, and there is more to a run than the load")
	require.InDelta(t, 0.1+instance.Cost, r.Price.Total, 1e-9)

	p = newPlace(t)
	require.Equal(t, report.Price{Items: []report.PriceItem{}}, p.succeeds(small).Price, "none without a file")
	p.fails(small+p.prices("currency: EUR\nput_per_1k: 5")+" --set x", push.Usage, "put_per_1k")
	require.ErrorContains(t, func() error { _, err := p.push(small + " --prices nowhere.yaml --set x"); return err }(), "write it as name=value",
		"with whatever else is wrong")
}

func TestADryRunEstimatesThePrice(t *testing.T) {
	const traffic = "currency: USD\ncross_az: true\ncross_az_per_gb: 0.01\nput_per_1000: 5\n"
	for _, c := range []struct {
		name, args, prices, want string
		caps                     *loader.Caps
	}{
		// In pgbinary a row of 520 bytes takes 530, so a tebibyte of columns is 1.1207 TB.
		{name: "a tebibyte", args: "--bytes 1TiB", prices: traffic, want: "about 22.41 USD, cross-AZ traffic 22.41"},
		{
			name: "requests", args: "--rows 1000000000 --batch-rows 1000000", prices: traffic, caps: objects(),
			want: "about 15.60 USD, cross-AZ traffic 10.60, PUT requests 5.00",
		},
		{
			name: "the instance", args: "--bytes 1TiB", prices: "currency: USD\ninstance_per_hour: 7.2",
			want: "not known before",
		},
		{
			name: "traffic and an instance", args: "--rows 1000000000", prices: traffic + "instance_per_hour: 7.2",
			want: "about 10.60 USD, cross-AZ traffic 10.60, without the instance, whose time is not known before",
		},
		{
			name: "the same zone", args: "--bytes 1TiB", prices: "currency: USD\ncross_az_per_gb: 0.01\nput_per_1000: 5",
			want: "nothing: no price of the file is for what the run takes",
		},
		{
			name: "at a rate", args: "--rows 1000000000 --max-rate 147222222B/s", prices: traffic + "instance_per_hour: 7.2",
			want: "about 17.80 USD, cross-AZ traffic 10.60, instance 7.20, at --max-rate all the time",
		},
		{
			name: "for a time", args: "--duration 30m", prices: traffic + "instance_per_hour: 7.2",
			want: "about 3.60 USD, instance 3.60, traffic and requests are not known before",
		},
		{
			name: "for a time at a rate", args: "--duration 1h --max-rate 1GB/s", prices: traffic + "instance_per_hour: 7.2",
			want: "about 79.20 USD, cross-AZ traffic 72.00, instance 7.20, at --max-rate all the time",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			if p.memory.Caps = c.caps; c.caps == nil {
				p.memory.Caps = objects()
				p.memory.Caps.Objects = false
			}
			j := p.job(c.args + " --workers 4 --distinct-bytes 1MiB" + p.prices(c.prices))
			var text strings.Builder
			require.NoError(t, push.Explain(&text, &j.Config, j.Drivers))
			require.Contains(t, text.String(), "\nprice     "+c.want+"\n")
		})
	}
}

func TestTheServersOwnMetricsAreInTheReport(t *testing.T) {
	var asked atomic.Int64
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := asked.Add(1)
		_, _ = io.WriteString(w, "node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} "+strconv.FormatInt(n, 10)+
			"\nnode_cpu_seconds_total{cpu=\"0\",mode=\"user\"} "+strconv.FormatInt(4*n, 10)+"\n")
	}))
	defer node.Close()
	p := newPlace(t)
	with := strings.Replace(node.URL, "http://", "http://u:s3cr3t@", 1) + "/metrics?token=s3cr3t"
	r := p.succeeds(small + " --server-metrics " + with)
	require.Equal(t, report.ServerLoad{URL: node.URL + "/metrics", CPU: 0.8, Cores: 1}, r.BoundBy.Evidence.Server)
	require.Empty(t, r.Warnings)
	require.EqualValues(t, 2, asked.Load(), "when the load began and when it ended")
	require.NotContains(t, p.log.String(), "s3cr3t")
	for name, text := range p.record().Flags {
		require.NotContains(t, strings.Join(text, " "), "s3cr3t", name)
	}

	node.Close()
	p = newPlace(t)
	r = p.succeeds(small + " --server-metrics " + with)
	require.Zero(t, r.BoundBy.Evidence.Server)
	require.Len(t, r.Warnings, 1, "and the run is none the worse")
	require.Contains(t, r.Warnings[0], "--server-metrics: "+node.URL+"/metrics: dial tcp")
	require.NotContains(t, r.Warnings[0], "s3cr3t")
}
