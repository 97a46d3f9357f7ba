package host

import (
	"context"
	"net"
	"sync"

	"github.com/terapush/terapush/internal/netio"
)

// Link finds the speed of the route to a target without sending it anything.
type Link struct {
	route func(address string) (nic string) // by which packets to host:port leave, or for "" those of the default route
	nics  func() []NIC
	// instance returns the bandwidth of the EC2 instance in bits a second, 0 where this is none or it is not known. It
	// is nil in a dry run, which must not ask any service.
	instance func() int64
}

// LocalLink asks this machine only.
func LocalLink(ctx context.Context) Link {
	return Link{route: func(address string) string { return Route(ctx, address) }, nics: NICs}
}

// FullLink also asks Amazon's metadata service, if this is an instance. Its network driver reports no speed, and other
// drivers that do (those of containers) do not have the instance's limit.
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
		if n.Driver == "ena" && n.BitsPerSecond == 0 && l.instance != nil {
			all[i].BitsPerSecond = l.instance()
		}
	}
	return all
}

// LeavesBy returns the interface by which a host is reached; "" where it is not known. This machine itself is reached
// by the loopback's, as Linux calls it.
//
// A name is not looked up and taken to be on the default route: a dry run must not ask a resolver, and a run must use
// what the dry run showed. Where another interface leads to it, users set --workers.
func (l Link) LeavesBy(to string) string {
	switch {
	case l.route == nil:
		return ""
	case netio.Local(to):
		return "lo"
	case net.ParseIP(to) != nil:
		return l.route(net.JoinHostPort(to, "9")) // any port will do
	}
	return l.route("")
}

// Bits returns the speed of the link in bits a second by which a host is reached; 0 where it is not known, and for
// this machine itself.
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
