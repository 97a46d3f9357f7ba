package host

import (
	"context"
	"fmt"
	"net"
	"time"
)

// anywhere is an address of documentation (RFC 5737) that no machine has: the way to it is the way to all the world.
const anywhere = "192.0.2.1:9"

// Route is the name of the interface by which packets to host:port leave; for "" those to all the world. It sends none:
// a UDP socket that is connected has the address of the interface it would use. "" is a way that cannot be told.
func Route(ctx context.Context, address string) string {
	if address == "" {
		address = anywhere
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

// owner is the interface that has an address.
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

// connects is how often RoundTrip tries: the shortest of a few has waited for nothing but the way. Servers log or count
// connections that say nothing, so that more are not polite.
const connects = 3

// RoundTrip is the time that a packet to host:port and its answer take, by the shortest of three connections. Names are
// looked up before, so that the time is the network's. The error is that of the first connection that failed.
func RoundTrip(ctx context.Context, address string) (time.Duration, error) {
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
	for range connects {
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
