package host

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
)

func TestOf(t *testing.T) {
	all, err := ReadPrices("testdata/prices.yaml")
	require.NoError(t, err)
	through := all
	through.CrossAZ, through.NAT = false, true
	for _, c := range []struct {
		name   string
		prices Prices
		usage  Usage
		total  float64
		items  []string
	}{
		{name: "nothing was used", prices: all},
		{name: "nothing has a price", usage: Usage{WireBytes: 1 << 40, Puts: 1, Gets: 1, Time: time.Hour}},
		{
			name: "a terabyte into another zone is 20 USD", prices: all, usage: Usage{WireBytes: 1_000_000_000_000},
			total: 20, items: []string{"cross-AZ traffic"},
		},
		{
			name: "an hour at 50 Gbps is 450 USD, and the instance", prices: all,
			usage: Usage{WireBytes: 3600 * 50e9 / 8, Time: time.Hour},
			total: 450 + 7.2576, items: []string{"cross-AZ traffic", "instance"},
		},
		{
			name: "the file says which way the bytes go", prices: through, usage: Usage{WireBytes: 1_000_000_000_000},
			total: 45, items: []string{"NAT gateway"},
		},
		{
			name: "a terabyte of objects of 64 MiB", prices: all, usage: Usage{Puts: 14_902, Gets: 14_902},
			total: 14.902 * 0.0054, items: []string{"PUT requests", "GET requests"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			bill := c.prices.Cost(c.usage)
			require.Equal(t, c.prices.Currency, bill.Currency)
			require.InDelta(t, c.total, bill.Total, 1e-9)
			var names []string
			sum := 0.0
			for _, item := range bill.Items {
				names = append(names, item.Name)
				require.InDelta(t, item.Amount*item.Each, item.Cost, 1e-9)
				sum += item.Cost
			}
			require.Equal(t, c.items, names)
			require.InDelta(t, bill.Total, sum, 1e-9)
		})
	}
	require.Equal(t, []report.PriceItem{{Name: "cross-AZ traffic", Amount: 1000, Unit: "GB", Each: 0.02, Cost: 20}},
		all.Cost(Usage{WireBytes: 1_000_000_000_000}).Items)
}

func TestRead(t *testing.T) {
	for _, c := range []struct{ name, text, wrong string }{
		{name: "one price", text: "currency: EUR\ninstance_per_hour: 1"},
		{name: "prices that do not count here", text: "currency: EUR\ncross_az_per_gb: 0.01\nnat_per_gb: 0.045"},
		{name: "empty", wrong: "it holds no price"},
		{name: "unknown key", text: "currency: USD\ncross_az_per_gib: 0.01", wrong: `unknown field "cross_az_per_gib"`},
		{name: "no currency", text: "instance_per_hour: 1", wrong: "currency is missing"},
		{name: "negative", text: "currency: USD\nput_per_1000: -1", wrong: "put_per_1000: -1 is no price"},
		{name: "not a number", text: "currency: USD\nput_per_1000: .nan", wrong: "put_per_1000: NaN is no price"},
		{name: "words", text: "currency: USD\nput_per_1000: cheap", wrong: "[2:15]"},
		{name: "a zone without a price", text: "currency: USD\ncross_az: true\nput_per_1000: 1", wrong: "cross_az: true without a price: write cross_az_per_gb"},
		{name: "a gateway without a price", text: "currency: USD\nnat: true\nput_per_1000: 1", wrong: "nat: true without a price: write nat_per_gb"},
		{name: "two documents", text: "currency: USD\nput_per_1000: 1\n---\ncurrency: EUR", wrong: "more than one document"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "prices.yaml")
			require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
			_, err := ReadPrices(path)
			if c.wrong == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.wrong)
			require.ErrorContains(t, err, "--prices "+path)
			require.NotContains(t, err.Error(), "cheap", "what stands in the file")
		})
	}
	_, err := ReadPrices("/dev/zero")
	require.ErrorContains(t, err, "--prices: /dev/zero has more than 1.0 MiB")
	_, err = ReadPrices("testdata/none.yaml")
	require.ErrorContains(t, err, "--prices: open testdata/none.yaml")
}
