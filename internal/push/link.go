package push

import (
	"context"
	"net"
	"net/url"
	"sync"

	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/network"
	"github.com/terapush/terapush/pkg/loader"
)

// link finds the speed of the way to a target without sending it anything.
type link struct {
	route func(address string) (nic string) // by which packets to host:port leave, or for "" those to all the world
	nics  func() []host.NIC
	// instance is the bandwidth of the EC2 instance in bits a second, 0 where this is none or nobody knows. A dry run,
	// which is to ask nobody, has nil.
	instance func() int64
}

// localLink asks this machine only.
func localLink(ctx context.Context) link {
	return link{route: func(address string) string { return host.Route(ctx, address) }, nics: host.NICs}
}

// fullLink asks Amazon's metadata service besides, if this is an instance. Its network driver does not tell a speed, and
// others who do (those of containers) know nothing of the instance's limit.
func fullLink(ctx context.Context) link {
	l := localLink(ctx)
	l.instance = sync.OnceValue(func() int64 {
		bits, _ := host.AskEC2(ctx).Bandwidth()
		return bits
	})
	return l
}

// cards returns the network interfaces, those of Amazon's driver with the instance's speed.
func (l link) cards() []host.NIC {
	all := l.nics()
	for i, n := range all {
		if n.Driver == "ena" && n.BitsPerSecond == 0 && l.instance != nil {
			all[i].BitsPerSecond = l.instance()
		}
	}
	return all
}

// leavesBy returns the interface by which a host is reached; "" where it is not known. This machine itself is reached by the
// loopback's, as Linux calls it.
//
// A name is not looked up and taken to be where all the world is: a dry run may not ask, and a run is to take what it
// showed. Where another interface leads to it --workers says what is wanted.
func (l link) leavesBy(to string) string {
	switch {
	case l.route == nil:
		return ""
	case network.Local(to):
		return "lo"
	case net.ParseIP(to) != nil:
		return l.route(net.JoinHostPort(to, "9")) // any port will do
	}
	return l.route("")
}

// bits returns the speed of the link in bits a second by which a host is reached; 0 where it is not known, and for this machine
// itself.
func (l link) bits(to string) int64 {
	nic := l.leavesBy(to)
	if nic == "" || network.Local(to) {
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

// destination returns the host that the sessions send to; "" for this machine, and where nothing goes over a network. A store has
// its host in the parameter endpoint; without one it is a bucket that stands there, which is as good as any name.
func destination(t loader.Target) string {
	if t.Via != nil {
		t = *t.Via
	}
	if u, err := url.Parse(t.Params.Get("endpoint")); err == nil && u.Host != "" {
		return u.Hostname()
	}
	if len(t.Hosts) == 0 {
		return ""
	}
	host, _, err := net.SplitHostPort(t.Address(0, "0"))
	if err != nil {
		return ""
	}
	return host
}

// world returns the speed of the link by which all the world is reached.
func (l link) world() int64 {
	const documentation = "192.0.2.1" // RFC 5737: nobody's address, and the default route leads there
	return l.bits(documentation)
}
