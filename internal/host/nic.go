package host

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// NIC is a network interface as it is set up.
type NIC struct {
	Name, Driver       string
	BitsPerSecond      int64 // of the link; 0 where the driver does not report it, as of virtual ones
	MTU                int
	TxQueues, RxQueues int
	MaxTxQueues        int // that the driver could have; 0 where it does not report that
}

// NICs returns the network interfaces that this process sees, the loopback and virtual ones included, by name. What an
// interface does not report is empty or 0; without /sys there are none.
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
	// The link's speed in Mbit/s: -1 where the driver does not know it. Reading fails where the link has none or is down.
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

// driver returns the name of an interface's driver, "" for those without a device, as the loopback.
func (t tree) driver(nic string) string {
	link, err := os.Readlink(t.path(classNet, nic, "device/driver"))
	if err != nil {
		return ""
	}
	return filepath.Base(link)
}

// drivers holds the calls to drivers of network interfaces. A test's folder cannot stand in for them.
type drivers struct {
	// statistics are the counters that a driver keeps beside the kernel's, as ethtool -S prints them.
	statistics func(nic string) map[string]uint64
	// channels returns how many queues it could have for sending, as ethtool -l prints it; 0 where it is not known.
	channels func(nic string) int
}

// outside is an address of documentation (RFC 5737) that no machine has: the route to it is the default route.
const outside = "192.0.2.1:9"

// Route returns the interface by which packets to host:port leave; for "" those of the default route. It sends none: a
// connected UDP socket has the address of the interface it would use. It returns "" where there is no route.
func Route(ctx context.Context, address string) string {
	if address == "" {
		address = outside
	}
	conn, err := new(net.Dialer).DialContext(ctx, "udp", address)
	if err != nil {
		return ""
	}
	defer conn.Close()
	local, ok := conn.LocalAddr().(*net.UDPAddr)
	if !ok {
		return ""
	}
	return owner(local.IP)
}

// owner returns the interface that has an address.
func owner(ip net.IP) string {
	all, _ := net.Interfaces() // an error leaves none
	for _, i := range all {
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
				return i.Name
			}
		}
	}
	// The whole of 127.0.0.0/8 is the loopback's, which has one address of it.
	if ip.IsLoopback() {
		return "lo"
	}
	return ""
}

// dials is how many connections roundTrip makes: the shortest of a few has waited for nothing but the network. It is no
// more since servers log or count connections that send nothing.
const dials = 3

// roundTrip returns the time that a packet to host:port and its answer take, by the shortest of three connections. Names
// are looked up before, so that the time is the network's. The error is that of the first connection that failed.
func roundTrip(ctx context.Context, address string) (time.Duration, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0, err
	}
	ips, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return 0, err
	}
	if len(ips) == 0 {
		return 0, fmt.Errorf("%s has no address", host)
	}
	var shortest time.Duration
	for range dials {
		began := time.Now()
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(ips[0], port))
		if err != nil {
			return 0, err
		}
		took := time.Since(began)
		conn.Close()
		if shortest == 0 || took < shortest {
			shortest = took
		}
	}
	return shortest, nil
}
