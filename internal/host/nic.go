package host

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/terapush/terapush/internal/netio"
)

// NIC is a network interface.
type NIC struct {
	Name, Driver  string // a virtual interface has no driver
	BitsPerSecond int64  // of the link; 0 if the driver does not report it
}

// NICs returns the network interfaces that this process sees, by name, with the loopback and virtual ones. What an
// interface does not report is empty or 0; without /sys there are none.
func NICs() []NIC { return nics("/") }

const classNet = "sys/class/net"

func nics(root tree) (all []NIC) {
	for _, name := range root.names(classNet) {
		if _, ok := root.text(classNet, name, "type"); ok { // bonding_masters is a file among the interfaces
			all = append(all, root.nic(name))
		}
	}
	return all
}

func (t tree) nic(name string) NIC {
	n := NIC{Name: name, Driver: t.driver(name)}
	// In Mbit/s, -1 or 2^32-1 where the driver does not know it. Reading fails where the link is down.
	if mbit := t.number(classNet, name, "speed"); mbit > 0 && mbit < 1<<31 {
		n.BitsPerSecond = mbit * 1e6
	}
	return n
}

// driver returns the name of an interface's driver, "" without a device.
func (t tree) driver(nic string) string {
	link, err := os.Readlink(t.path(classNet, nic, "device/driver"))
	if err != nil {
		return ""
	}
	return filepath.Base(link)
}

// loopback is the interface of targets on this machine.
const loopback = "lo"

// outside is an address of documentation (RFC 5737): the route to it is the default route.
const outside = "192.0.2.1:9"

// Route returns the interface of the route to host:port, and for "" of the default route; "" where there is none. It
// sends nothing: a connected UDP socket has the address of the interface it would use.
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

// owner returns the interface that has an address. The loopback has one of all addresses in 127.0.0.0/8.
func owner(ip net.IP) string {
	all, _ := net.Interfaces()
	for _, i := range all {
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
				return i.Name
			}
		}
	}
	if ip.IsLoopback() {
		return loopback
	}
	return ""
}

// dials is how many connections roundTrip makes. Servers log or count connections that send nothing.
const dials = 3

// roundTrip returns the time that a packet to host:port and its answer take: the shortest of three connects, after the
// name was looked up.
func roundTrip(ctx context.Context, address string) (shortest time.Duration, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0, err
	}
	ips, err := net.DefaultResolver.LookupHost(ctx, host)
	if err == nil && len(ips) == 0 {
		err = fmt.Errorf("%s has no address", host)
	}
	if err != nil {
		return 0, err
	}
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

// Link finds the speed of the route to a target without sending anything to it.
type Link struct {
	route func(address string) (nic string) // as Route
	nics  func() []NIC
	// instance returns the bandwidth of the EC2 instance in bits a second, 0 if unknown. It is nil in a dry run, which
	// sends no requests.
	instance func() int64
}

// LocalLink asks this machine only.
func LocalLink(ctx context.Context) Link {
	return Link{route: func(address string) string { return Route(ctx, address) }, nics: NICs}
}

// FullLink also asks Amazon's metadata service on an instance: its network driver reports no speed, and other drivers,
// those of containers, do not know the instance's limit.
func FullLink(ctx context.Context) Link {
	l := LocalLink(ctx)
	l.instance = sync.OnceValue(func() int64 {
		bits, _ := AskEC2(ctx).Bandwidth()
		return bits
	})
	return l
}

// Cards returns the network interfaces, those of Amazon's driver with the instance's speed.
func (l Link) Cards() []NIC {
	all := l.nics()
	for i, n := range all {
		if n.Driver == ena && n.BitsPerSecond == 0 && l.instance != nil {
			all[i].BitsPerSecond = l.instance()
		}
	}
	return all
}

// LeavesBy returns the interface of the route to a host; "" if unknown.
//
// A name is not looked up and is taken to be on the default route: a dry run must not ask a resolver, and a run uses
// what the dry run showed. Where that is wrong, users set --workers.
func (l Link) LeavesBy(to string) string {
	switch {
	case l.route == nil:
		return ""
	case netio.Local(to):
		return loopback
	case net.ParseIP(to) != nil:
		return l.route(net.JoinHostPort(to, "9")) // any port
	}
	return l.route("")
}

// Bits returns the speed of the link to a host in bits a second; 0 if unknown, and for this machine.
func (l Link) Bits(to string) int64 {
	nic := l.LeavesBy(to)
	if nic == "" || netio.Local(to) {
		return 0
	}
	if l.instance != nil {
		if bits := l.instance(); bits > 0 {
			return bits
		}
	}
	for _, n := range l.nics() {
		if n.Name == nic {
			return n.BitsPerSecond
		}
	}
	return 0
}

// World returns the speed of the default route's link.
func (l Link) World() int64 {
	address, _, _ := net.SplitHostPort(outside)
	return l.Bits(address)
}
