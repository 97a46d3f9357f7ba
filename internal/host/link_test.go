package host

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// twoCards is a machine with a slow interface to all the world and a fast one to 10.1.2.3; asked notes the addresses.
func twoCards(asked *[]string) Link {
	return Link{
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
		nics: func() []NIC {
			return []NIC{{Name: "lo"}, {Name: "eth0", BitsPerSecond: 1_000_000_000}, {Name: "eth1", BitsPerSecond: 50_000_000_000}, {Name: "eth2"}}
		},
	}
}

// Amazon's driver tells no speed, and without one nobody knows how full the card was.
func TestCards(t *testing.T) {
	l := Link{nics: func() []NIC {
		return []NIC{{Name: "lo"}, {Name: "docker0", BitsPerSecond: 10_000_000_000}, {Name: "ens5", Driver: "ena"}, {Name: "eth1", Driver: "virtio_net"}}
	}}
	require.Equal(t, l.nics(), l.Cards(), "nobody is asked")
	l.instance = func() int64 { return 50_000_000_000 }
	want := l.nics()
	want[2].BitsPerSecond = 50_000_000_000
	require.Equal(t, want, l.Cards())
}

func TestTheSpeedOfTheLink(t *testing.T) {
	const gbps = 1_000_000_000
	for to, c := range map[string]struct {
		bits, instance int64 // instance is what one of 100 Gbps has
		route          []string
	}{
		"10.1.2.3":       {50 * gbps, 100 * gbps, []string{"10.1.2.3:9"}},
		"fd00::1":        {50 * gbps, 100 * gbps, []string{"[fd00::1]:9"}},
		"db.example.org": {1 * gbps, 100 * gbps, []string{""}}, // names are not looked up
		"10.9.9.9":       {0, 0, []string{"10.9.9.9:9"}},       // nothing leads there
		"127.0.0.1":      {},
		"localhost":      {},
		"":               {}, // a socket of this machine
	} {
		var asked []string
		l := twoCards(&asked)
		require.Equal(t, c.bits, l.Bits(to), to)
		require.Equal(t, c.route, asked, to)
		l.instance = func() int64 { return 0 } // of a type that is not in the table
		require.Equal(t, c.bits, l.Bits(to), to)
		l.instance = func() int64 { return 100 * gbps }
		require.Equal(t, c.instance, l.Bits(to), to)
	}
	require.Zero(t, Link{}.Bits("10.1.2.3"), "nothing is known")
	require.Nil(t, LocalLink(t.Context()).instance, "a dry run sends no request")
}
