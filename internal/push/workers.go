package push

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"runtime"
	"sync"

	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/network"
	"github.com/terapush/terapush/internal/plan"
	"github.com/terapush/terapush/pkg/loader"
)

// crew is how many workers load at the same time, and whether somebody asked for so many.
type crew struct {
	workers int
	asked   bool
}

// hire settles the number of workers as far as no server has a say.
func (p *push) hire(caps loader.Caps) {
	p.crew = crew{workers: p.Config.Workers, asked: p.Config.Workers > 0}
	if !p.crew.asked {
		p.crew.workers = plan.Workers(runtime.GOMAXPROCS(0), p.link.bits(destination(p.target)), caps)
	}
}

// heed lowers what goes on at the same time to what the server runs.
func (p *push) heed(caps loader.Caps) {
	if warning := p.lower(caps); warning != "" {
		p.warn(warning)
	}
}

// lower is heed without a log, for dry runs too. Workers of a staged method take no load's place.
func (p *push) lower(caps loader.Caps) (warning string) {
	most, was := caps.MaxInFlight, p.crew.workers
	if most <= 0 || was <= most || caps.Staged {
		return ""
	}
	p.crew.workers = most
	loads := fmt.Sprintf("the %d loads", most)
	if most == 1 {
		loads = "the one load"
	}
	return fmt.Sprintf("%d workers are lowered to %s that the server runs at a time: more would only wait in its queue", was, loads)
}

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

// cards are the network interfaces, those of Amazon's driver with the instance's speed.
func (l link) cards() []host.NIC {
	all := l.nics()
	for i, n := range all {
		if n.Driver == "ena" && n.BitsPerSecond == 0 && l.instance != nil {
			all[i].BitsPerSecond = l.instance()
		}
	}
	return all
}

// leavesBy is the interface by which a host is reached; "" where it is not known. This machine itself is reached by the
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

// bits is the speed of the link in bits a second by which a host is reached; 0 where it is not known, and for this machine
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

// destination is the host that the sessions send to; "" for this machine, and where nothing goes over a network. A store has
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
