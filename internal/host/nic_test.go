package host

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNICs(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  []NIC
	}{
		"none can be seen": {nil, nil},
		"a card, the loopback and the bonding driver's file": {
			map[string]string{
				"sys/class/net/bonding_masters":    "bond0\n",
				"sys/class/net/ens5/type":          "1\n",
				"sys/class/net/ens5/device/driver": "->../../../../bus/pci/drivers/ena",
				"sys/class/net/ens5/speed":         "50000\n",
				"sys/class/net/lo/type":            "772\n",
			},
			[]NIC{
				{Name: "ens5", Driver: "ena", BitsPerSecond: 50e9},
				{Name: "lo"},
			},
		},
		"a speed that is not known": {
			map[string]string{"sys/class/net/eth0/type": "1", "sys/class/net/eth0/speed": "-1\n"}, []NIC{{Name: "eth0"}},
		},
		"a speed that is not known to old kernels": {
			map[string]string{"sys/class/net/eth0/type": "1", "sys/class/net/eth0/speed": "4294967295\n"}, []NIC{{Name: "eth0"}},
		},
		"garbage": {
			map[string]string{
				"sys/class/net/eth0/type": "?", "sys/class/net/eth0/speed": "fast", "sys/class/net/eth0/device/driver": "no link",
			},
			[]NIC{{Name: "eth0"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, nics(plant(t, c.files)))
		})
	}
}

func TestTheWayToThisMachineIsTheLoopback(t *testing.T) {
	require.Equal(t, "lo", Route(t.Context(), "127.0.0.1:80"))
	require.Equal(t, "lo", Route(t.Context(), "127.9.9.9:80"))
	require.Empty(t, Route(t.Context(), "no address"))
}

// The one that succeeds is in TestThisMachine.
func TestRoundTrip(t *testing.T) {
	_, err := roundTrip(t.Context(), "127.0.0.1:1")
	require.ErrorContains(t, err, "refused")
	_, err = roundTrip(t.Context(), "no address")
	require.Error(t, err)
	called, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = roundTrip(called, "127.0.0.1:80")
	require.Error(t, err)
}
