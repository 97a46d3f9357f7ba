package push

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/pkg/loader"
)

const gbps = 1_000_000_000

// twoCards is a machine with a slow interface to all the world and a fast one to 10.1.2.3; asked notes the addresses.
func twoCards(asked *[]string) link {
	return link{
		route: func(address string) string {
			*asked = append(*asked, address)
			switch address {
			case "":
				return "eth0"
			case "10.1.2.3:9", "[fd00::1]:9":
				return "eth1"
			}
			return ""
		},
		nics: func() []host.NIC {
			return []host.NIC{{Name: "lo"}, {Name: "eth0", BitsPerSecond: gbps}, {Name: "eth1", BitsPerSecond: 50 * gbps}, {Name: "eth2"}}
		},
	}
}

// Amazon's driver tells no speed, and without one nobody knows how full the card was.
func TestCards(t *testing.T) {
	l := link{nics: func() []host.NIC {
		return []host.NIC{{Name: "lo"}, {Name: "docker0", BitsPerSecond: 10 * gbps}, {Name: "ens5", Driver: "ena"}, {Name: "eth1", Driver: "virtio_net"}}
	}}
	require.Equal(t, l.nics(), l.cards(), "nobody is asked")
	l.instance = func() int64 { return 50 * gbps }
	want := l.nics()
	want[2].BitsPerSecond = 50 * gbps
	require.Equal(t, want, l.cards())
}

func TestTheSpeedOfTheLink(t *testing.T) {
	for _, c := range []struct {
		name, target, via string
		bits              int64
		route             []string
	}{
		{name: "an address", target: "postgres://u@10.1.2.3:5432/d", bits: 50 * gbps, route: []string{"10.1.2.3:9"}},
		{name: "an address of version 6", target: "mysql://u@[fd00::1]/d", bits: 50 * gbps, route: []string{"[fd00::1]:9"}},
		{name: "the first host counts", target: "mysql://u@10.1.2.3,other/d", bits: 50 * gbps, route: []string{"10.1.2.3:9"}},
		{name: "names are not looked up", target: "mysql://u@db.example.org/d", bits: gbps, route: []string{""}},
		{name: "nobody leads there", target: "mysql://u@10.9.9.9/d", route: []string{"10.9.9.9:9"}},
		{name: "this machine", target: "mysql://u@127.0.0.1/d"},
		{name: "and its name", target: "mysql://u@localhost:3306/d"},
		{name: "a socket", target: "postgres:///d?host=/run/postgresql"},
		{name: "nothing is sent", target: "discard://"},
		{name: "a bucket of Amazon's", target: "s3://bucket/p", bits: gbps, route: []string{""}},
		{name: "a store of somebody else's", target: "s3://bucket/p?endpoint=http://10.1.2.3:9000", bits: 50 * gbps, route: []string{"10.1.2.3:9"}},
		{name: "a store on this machine", target: "s3://bucket/p?endpoint=http://127.0.0.1:9000"},
		{name: "a detour is what is filled", target: "databend://u@127.0.0.1/d", via: "s3://bucket/p?endpoint=http://10.1.2.3:9000", bits: 50 * gbps, route: []string{"10.1.2.3:9"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			target, err := loader.ParseTarget(c.target)
			require.NoError(t, err)
			if c.via != "" {
				via, err := loader.ParseTarget(c.via)
				require.NoError(t, err)
				target.Via = &via
			}
			var asked []string
			require.Equal(t, c.bits, twoCards(&asked).bits(destination(target)))
			require.Equal(t, c.route, asked)
		})
	}
}

func TestTheInstanceKnowsBetterThanTheCard(t *testing.T) {
	var asked []string
	l := twoCards(&asked)
	l.instance = func() int64 { return 100 * gbps }
	require.EqualValues(t, 100*gbps, l.bits("10.1.2.3"))
	require.Zero(t, l.bits("127.0.0.1"), "which is no link of the instance's")
	l.instance = func() int64 { return 0 }
	require.EqualValues(t, 50*gbps, l.bits("10.1.2.3"), "of a type that nobody knows")
	require.Nil(t, localLink(t.Context()).instance, "a dry run asks nobody")
	require.Zero(t, link{}.bits("10.1.2.3"), "nothing is known")
}

func TestWorkers(t *testing.T) {
	target, err := loader.ParseTarget("mysql://u@10.1.2.3/d")
	require.NoError(t, err)
	var asked []string
	chosen := func(workers int, caps loader.Caps) *plan {
		p := &plan{config: &config.Push{Workers: workers}, notes: new(notes)}
		p.chooseWorkers(caps, func() int64 { return twoCards(&asked).bits(destination(target)) })
		return p
	}
	require.GreaterOrEqual(t, chosen(0, loader.Caps{}).workers, 40, "what fills the link")
	require.LessOrEqual(t, chosen(0, loader.Caps{}).workers, 64)
	require.Equal(t, 105, chosen(0, loader.Caps{Objects: true}).workers)
	p := chosen(3, loader.Caps{})
	require.Equal(t, 3, p.workers, "what the user says")
	require.True(t, p.asked)

	few := loader.Caps{MaxInFlight: 8}
	p = chosen(0, few)
	for range 2 {
		p.adjustWorkers(few)
		require.Equal(t, 8, p.workers)
		require.Len(t, p.notes.list, 1)
		require.Contains(t, p.notes.list[0], "workers are lowered to the 8 loads that the server runs at a time")
	}
	staged := loader.Caps{Staged: true, MaxInFlight: 8}
	p = chosen(0, staged)
	p.adjustWorkers(staged)
	require.Empty(t, p.notes.list, "they take no load's place")
	require.Equal(t, 105, p.workers)
}
