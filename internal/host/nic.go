package host

import (
	"os"
	"path/filepath"
	"strings"
)

// NIC is a network interface as it is set up.
type NIC struct {
	Name, Driver       string
	BitsPerSecond      int64 // of the link; 0 where the driver does not tell, as virtual ones do
	MTU                int
	TxQueues, RxQueues int
	MaxTxQueues        int // that the driver could have; 0 where it does not tell
}

// NICs lists the network interfaces that this process sees, the loopback and virtual ones included, by name. What an
// interface does not tell is empty or 0; without /sys there are none.
func NICs() []NIC { return nics("/", native().channels) }

func nics(root tree, channels func(nic string) int) []NIC {
	var all []NIC
	for _, name := range root.names(classNet) {
		if _, ok := root.text(classNet, name, "type"); ok { // bonding_masters is a file among the interfaces
			n := root.nic(name)
			n.MaxTxQueues = channels(name)
			all = append(all, n)
		}
	}
	return all
}

const classNet = "sys/class/net"

func (t tree) nic(name string) NIC {
	n := NIC{Name: name, Driver: t.driver(name)}
	// The link's speed in Mbit/s: -1 where the driver does not know it, and to read it fails where it has none at all or
	// is down.
	if mbit := t.number(classNet, name, "speed"); mbit > 0 && mbit < 1<<31 {
		n.BitsPerSecond = mbit * 1e6
	}
	if mtu := t.number(classNet, name, "mtu"); mtu > 0 && mtu < 1<<31 {
		n.MTU = int(mtu)
	}
	for _, queue := range t.names(classNet, name, "queues") {
		switch {
		case strings.HasPrefix(queue, "tx-"):
			n.TxQueues++
		case strings.HasPrefix(queue, "rx-"):
			n.RxQueues++
		}
	}
	return n
}

// driver is the name of the driver behind an interface, "" for those without a device, as the loopback.
func (t tree) driver(nic string) string {
	link, err := os.Readlink(t.path(classNet, nic, "device/driver"))
	if err != nil {
		return ""
	}
	return filepath.Base(link)
}
