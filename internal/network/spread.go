package network

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// Spread dials the addresses of a name in turn. A store's name has several, each a machine with limits of its own, and
// net.Dialer takes the first one that answers, which is nearly always the same.
//
// An address that cannot be dialled is left out until the name is looked up again, so an IPv6 address without a route to
// it, or a service that listens on one address of localhost only, costs one failed dial and not every second one. (The
// AWS SDK's WithRoundRobinDNS gives up at the first such address.)
type Spread struct {
	// Dial connects to an address.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Lookup finds the addresses of a host; nil for the system's resolver.
	Lookup func(ctx context.Context, host string) ([]string, error)

	mu    sync.Mutex
	names map[string]*addresses
}

// lookupEvery is how long addresses are used: Amazon's names change theirs after five seconds.
const lookupEvery = 5 * time.Second

type addresses struct {
	all  []string
	next int
	old  time.Time
}

// DialContext connects to the next address of the name, or to the one after it if it cannot be reached, and so on.
func (s *Spread) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || net.ParseIP(host) != nil {
		return s.Dial(ctx, network, address)
	}
	inTurn, err := s.inTurn(ctx, host)
	if err != nil {
		return nil, err
	}
	var failures []error
	for _, ip := range inTurn {
		c, err := s.Dial(ctx, network, net.JoinHostPort(ip, port))
		if err == nil {
			return c, nil
		}
		failures = append(failures, err)
		if ctx.Err() != nil {
			break
		}
		s.leaveOut(host, ip)
	}
	return nil, errors.Join(failures...)
}

// inTurn lists the host's addresses, beginning with another one at every call.
func (s *Spread) inTurn(ctx context.Context, host string) ([]string, error) {
	s.mu.Lock()
	known := s.names[host]
	s.mu.Unlock()
	if known == nil || time.Now().After(known.old) {
		lookup := s.Lookup
		if lookup == nil {
			lookup = net.DefaultResolver.LookupHost
		}
		found, err := lookup(ctx, host)
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
		}
		s.mu.Lock()
		if s.names == nil {
			s.names = make(map[string]*addresses)
		}
		fresh := &addresses{all: found, old: time.Now().Add(lookupEvery)}
		if before := s.names[host]; before != nil {
			fresh.next = before.next
		}
		s.names[host] = fresh
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.names[host]
	from := a.next % len(a.all)
	a.next++
	return slices.Concat(a.all[from:], a.all[:from]), nil
}

// leaveOut forgets an address, unless it is the last one.
func (s *Spread) leaveOut(host, ip string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.names[host]
	if i := slices.Index(a.all, ip); i >= 0 && len(a.all) > 1 {
		a.all = slices.Concat(a.all[:i], a.all[i+1:])
	}
}
