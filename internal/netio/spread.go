package netio

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// Spread dials the addresses of a name in turn. A store's name has several, each a machine with limits of its own, and
// net.Dialer nearly always takes the same one.
//
// An address that cannot be dialled is excluded for a while, so an IPv6 address without a route, or a service on only
// one address of localhost, costs one failed dial and not every second one. (The AWS SDK's WithRoundRobinDNS gives up at
// the first such address.)
//
// Only a back-end knows whether two addresses of a name lead to the same service (loader.Deps.Spread): the name may be
// that of a primary and its copies, a KILL may reach only the server's own sessions, and the pages of an answer are
// where the query went. So it is used by stores, whose addresses take every request; by Doris for stream loads and
// sessions of INSERT, since labels belong to the cluster, but not for what makes and checks the table, which another
// frontend may not know yet; and by TiDB for loading sessions, since every server takes writes and kills any session.
// PostgreSQL (target_session_attrs), MySQL, MariaDB and SingleStore (KILL), Databend (pages, KILL) and Oracle (Fast
// Ingest is flushed on its instance) do not use it: there the target lists the hosts, and Resolve goes to each.
type Spread struct {
	// Dial connects to an address.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Lookup finds the addresses of a host; nil is the system's resolver.
	Lookup func(ctx context.Context, host string) ([]string, error)

	mu    sync.Mutex
	names map[string]*addresses
}

const (
	// lookupInterval is how long addresses are used: Amazon's names change theirs after five seconds.
	lookupInterval = 5 * time.Second
	// exclusion is how long an address is tried last. One that drops packets costs dialTimeout each time.
	exclusion = time.Minute
	// dialTimeout bounds a dial while there is another address: the first packet is sent again after one second, and a
	// push tries for ten seconds in all.
	dialTimeout = 2 * time.Second
)

// addresses are those of a name.
type addresses struct {
	all      []string
	expire   time.Time
	next     int
	excluded map[string]time.Time // by ip:port, until when
}

// DialContext connects to the next address of the name, or to the first after it that can be reached.
func (s *Spread) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || net.ParseIP(host) != nil || !strings.HasPrefix(network, "tcp") {
		return s.Dial(ctx, network, address)
	}
	if err := s.lookUp(ctx, host); err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	var failures []error
	order := s.order(host, port)
	for i, address := range order {
		c, err := s.dial(ctx, network, address, i == len(order)-1)
		if err == nil {
			return c, nil
		}
		failures = append(failures, err)
		if ctx.Err() != nil {
			break
		}
		s.exclude(host, address)
	}
	return nil, errors.Join(failures...)
}

func (s *Spread) dial(ctx context.Context, network, address string, last bool) (net.Conn, error) {
	if !last {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, dialTimeout)
		defer cancel()
	}
	return s.Dial(ctx, network, address)
}

// lookUp finds the host's addresses where they are unknown or expired.
func (s *Spread) lookUp(ctx context.Context, host string) error {
	s.mu.Lock()
	known := s.names[host]
	fresh := known != nil && time.Now().Before(known.expire)
	s.mu.Unlock()
	if fresh {
		return nil
	}
	lookup := s.Lookup
	if lookup == nil {
		lookup = net.DefaultResolver.LookupHost
	}
	found, err := lookup(ctx, host)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return &net.DNSError{Err: "the name has no address", Name: host, IsNotFound: true}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil {
		s.names = make(map[string]*addresses)
	}
	if s.names[host] == nil {
		s.names[host] = &addresses{excluded: make(map[string]time.Time)}
	}
	s.names[host].all, s.names[host].expire = found, time.Now().Add(lookupInterval)
	return nil
}

// order lists the addresses of a host, from another one at every call, excluded ones last.
func (s *Spread) order(host, port string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, now := s.names[host], time.Now()
	var usable, excluded []string
	for _, ip := range a.all {
		address := net.JoinHostPort(ip, port)
		if now.Before(a.excluded[address]) {
			excluded = append(excluded, address)
		} else {
			usable = append(usable, address)
		}
	}
	if len(usable) == 0 {
		usable, excluded = excluded, nil
	}
	from := a.next % len(usable)
	a.next++
	return slices.Concat(usable[from:], usable[:from], excluded)
}

func (s *Spread) exclude(host, address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[host].excluded[address] = time.Now().Add(exclusion)
}
