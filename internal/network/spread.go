package network

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// Spread dials the addresses of a name in turn. A store's name has several, each a machine with limits of its own, and
// net.Dialer takes the first one that answers, which is nearly always the same.
//
// An address that cannot be dialled is left out for a while, so an IPv6 address without a route to it, or a service that
// listens on one address of localhost only, costs one failed dial and not every second one. (The AWS SDK's
// WithRoundRobinDNS gives up at the first such address.)
//
// It is not for every connection: whether two addresses of a name lead to the same service only a back-end knows
// (loader.Deps.Spread). The name may be that of a primary and its copies, which a list of hosts in the order of
// preference stands for in /etc/hosts. A server may know its own connections only, so that a KILL which reaches
// another one ends nothing, or another session. And an answer in pages has to be fetched where the question went. So
// it is used
//
//   - by stores: every address takes every request;
//   - by Doris for stream loads and sessions of INSERT: labels are the cluster's, whichever frontend is asked. The
//     connections that make the table and check it stay with one, since another may not know of it yet;
//   - by TiDB for loading sessions: every server takes writes, and lists and kills the sessions of all;
//
// and not by PostgreSQL (pgconn tries the addresses itself, in their order, as target_session_attrs needs; the nodes of
// YugabyteDB are asked for, and taken in turn), MySQL, MariaDB and SingleStore (KILL), Databend (pages, and the end of
// queries) and Oracle (Fast Ingest is flushed on the instance that took the rows). There the target lists the hosts that
// are to be taken in turn, and Resolve goes to each.
type Spread struct {
	// Dial connects to an address.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Lookup finds the addresses of a host; nil for the system's resolver.
	Lookup func(ctx context.Context, host string) ([]string, error)

	mu    sync.Mutex
	names map[string]*addresses
}

const (
	// lookupEvery is how long addresses are used: Amazon's names change theirs after five seconds.
	lookupEvery = 5 * time.Second
	// leftOut is how long an address is left out. One that drops packets costs dialTimeout each time.
	leftOut = time.Minute
	// dialTimeout is how long an address may take as long as there is another one: the first packet is sent again
	// after one second. A push tries for ten seconds in all, and net.Dialer waits for an IPv6 address no longer than a
	// third of one.
	dialTimeout = 2 * time.Second
)

type addresses struct {
	all  []string
	old  time.Time // all is looked up again from then on
	next int
	out  map[string]time.Time // by ip:port, until when
}

// inTurn lists addresses of the port, beginning with another one at every call. Those that are left out come last.
func (a *addresses) inTurn(port string, now time.Time) []string {
	var usable, out []string
	for _, ip := range a.all {
		address := net.JoinHostPort(ip, port)
		if now.Before(a.out[address]) {
			out = append(out, address)
		} else {
			usable = append(usable, address)
		}
	}
	if len(usable) == 0 {
		usable, out = out, nil
	}
	from := a.next % len(usable)
	a.next++
	return slices.Concat(usable[from:], usable[:from], out)
}

// DialContext connects to the next address of the name, or to the one after it if it cannot be reached, and so on.
func (s *Spread) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || net.ParseIP(host) != nil || !strings.HasPrefix(network, "tcp") {
		return s.Dial(ctx, network, address)
	}
	if err := s.lookUp(ctx, host); err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	var failures []error
	for all := s.inTurn(host, port); len(all) > 0; all = all[1:] {
		address := all[0]
		c, err := s.dial(ctx, network, address, len(all) == 1)
		if err == nil {
			return c, nil
		}
		failures = append(failures, err)
		if ctx.Err() != nil {
			break
		}
		s.leaveOut(host, address)
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

// lookUp finds the host's addresses, where they are not known or old.
func (s *Spread) lookUp(ctx context.Context, host string) error {
	s.mu.Lock()
	known := s.names[host]
	fresh := known != nil && time.Now().Before(known.old)
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
		s.names[host] = &addresses{out: make(map[string]time.Time)}
	}
	s.names[host].all, s.names[host].old = found, time.Now().Add(lookupEvery)
	return nil
}

func (s *Spread) inTurn(host, port string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names[host].inTurn(port, time.Now())
}

// leaveOut puts an address behind the others for a while, and forgets those whose time is over.
func (s *Spread) leaveOut(host, address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, out := time.Now(), s.names[host].out
	maps.DeleteFunc(out, func(_ string, until time.Time) bool { return now.After(until) })
	out[address] = now.Add(leftOut)
}
