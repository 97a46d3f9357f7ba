package e2e_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/faultproxy"
)

// chaos is one way to disturb a run, at moments that chance chooses.
type chaos struct {
	kinds   []kind
	soak    int   // in a soak test, how often runs are hit in all; else there is one round
	hits    int   // how often a run is disturbed before it is left in peace
	codes   []int // besides 0, how a disturbed process may end; the next one goes on from there
	scratch bool  // on a server of its own
	flags   []string
	// way is the target's URL where it is not the database's own.
	way func(t *testing.T, s *subject) string
	// hit disturbs a process, and reports whether it was still at work.
	hit func(t *testing.T, s *subject, p *process) bool
}

// subject is a run that is disturbed, and how to see that its rows are exact.
type subject struct {
	*database
	*rand.Rand
	load
	flags  []string
	exact  func(t *testing.T)
	server *scratch
	proxy  *faultproxy.Proxy
	warned []string // by the last process
}

// Whatever happens to a run, it ends with a documented exit code, and after the last resume the database itself counts
// exactly the rows. Chance chooses method, dataset and moment. $TERAPUSH_CHAOS_SEED repeats the choices of a failed round, though not the machine's part in it.
func TestChaos(t *testing.T) {
	t.Parallel()
	seed, err := strconv.ParseUint(os.Getenv("TERAPUSH_CHAOS_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	all, sql := append(sqlServers(), databend), scaled(backEnds(), sqlServers())
	for name, c := range map[string]chaos{
		"client killed":               {kinds: all, soak: 100, hits: scaled(2, 10), codes: []int{-1}, hit: killClient},
		"server killed":               {kinds: []kind{postgres, mariaDB}, soak: 20, hits: 1, codes: []int{1, 5, 7}, scratch: true, hit: killServer},
		"sessions ended in the probe": {kinds: sql, soak: 20, hits: 1, codes: []int{5}, way: longWay, hit: endSessionsOfProbe},
		"sessions ended in the load":  {kinds: sql, soak: 20, hits: 1, way: longWay, hit: endSessionsOfLoad},
		"sessions ended in the proof": {kinds: sql, soak: 20, hits: 1, way: longWay, hit: endSessionsOfProof},
		"a host goes away": { // what only that host can answer stays unanswered
			kinds: sql, soak: 5, hits: 1, codes: []int{1, 7}, way: besideProxy, hit: closeProxy, flags: []string{"--retries", "3", "--retry-for", "0"},
		},
	} {
		for _, k := range c.kinds {
			t.Run(name+"/"+string(k), func(t *testing.T) {
				t.Parallel()
				c.onRounds(t, k, seed)
			})
		}
	}
}

func (c chaos) onRounds(t *testing.T, k kind, seed uint64) {
	var server *scratch
	if c.scratch {
		server = newScratch(t, k)
	}
	hits, rows := 0, int64(0)
	for n := 0; n == 0 || soak() && hits < c.soak && n < 5*c.soak && !t.Failed(); n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("to repeat: TERAPUSH_SOAK=%d TERAPUSH_CHAOS_SEED=%d go test ./e2e -run '%s'", scaled(0, 1), seed, t.Name())
				}
			}()
			name := fnv.New64()
			_, _ = name.Write([]byte(t.Name()))
			s := &subject{Rand: rand.New(rand.NewPCG(seed, name.Sum64())), server: server}
			methods, loads := (&database{kind: k}).methods(), chaosLoads(t)
			method, l := methods[s.IntN(len(methods))], loads[s.IntN(len(loads))]
			switch {
			case k == databend:
				s.engine(t, method)
			case c.scratch:
				s.transactional(t, server.database(t), method, l)
			default:
				s.transactional(t, newDatabase(t, k), method, l)
			}
			hits += c.happensTo(t, s)
			s.exact(t)
			rows += s.rows
			t.Logf("exact; so far %d rounds, %d times hit, %d rows", n+1, hits, rows)
		})
	}
}

// happensTo runs the subject to its end and counts how often it was hit.
func (c chaos) happensTo(t *testing.T, s *subject) (hits int) {
	target := s.target()
	if c.way != nil {
		target = c.way(t, s)
	}
	for n := 0; ; n++ {
		// Slow enough to be hit in the load, or fast enough to come to its end.
		flags := []string{"--max-rate", []string{"1500KiB/s", "1GiB/s"}[s.IntN(2)]}
		if len(s.runs(t)) > 0 {
			flags = append(flags, "--resume", s.run(t))
		} else {
			flags = append(append(flags, s.flags...), c.flags...)
		}
		p := s.pushTo(target, flags...).start(t)
		disturbed := n < c.hits
		if disturbed && c.hit(t, s, p) {
			hits++
		}
		r := p.wait(t)
		if disturbed && r.code != 0 {
			require.Contains(t, c.codes, r.code, "%s\n%s", r.line, r.stderr)
			if !c.scratch { // of which there was nothing to ask
				assert.NotContains(t, r.stderr, "probing for transactions", "the probe is repeated")
			}
			continue
		}
		is := reportOf(t, r.ends(t, 0))
		s.warned = is.Warnings
		if !disturbed {
			assert.Less(t, r.took, time.Minute, "nobody waits for sessions of the dead: %s", r.stderr)
		}
		assert.Equal(t, []any{true, s.rows}, []any{is.Verify.OK, is.Result.Rows}, "of all processes of the run")
		return hits
	}
}

// chaosLoads have keys of all kinds.
func chaosLoads(t *testing.T) []load {
	return []load{
		small(12_000), dataLoad("journal", 1200, 20, 0), dataLoad("lineitem", 12_000, 200, 0), dataLoad("httplogs", 12_000, 200, 0),
		ownLoad(t, 12_000, 200),
	}
}

// transactional makes the subject a run of any settings on a server that has claims.
func (s *subject) transactional(t *testing.T, d *database, method string, l load) {
	s.database, s.load = d, l
	s.flags = s.load.flags("--method", method, "--workers", fmt.Sprint(1+s.IntN(8)), "--verify", []string{"count", "full"}[s.IntN(2)])
	s.exact = func(t *testing.T) {
		s.isExact(t, s.load)
		assert.Equal(t, s.batches(), s.claims())
	}
}

// engine makes the subject a run on Databend's engine, which cannot stop a statement, and keeps what it has seen of a body
// that breaks off.
func (s *subject) engine(t *testing.T, method string) {
	f := newFolder(t)
	s.database, s.load = newEngine(t), dataLoad("journal", 1200, 120, 0)
	s.flags = methodFlags(s.load, method, "--workers", fmt.Sprint(1+s.IntN(4)))
	switch method {
	case "insert":
		s.flags = append(s.flags, "--stage", s.stage(t, f))
	case "stage-load":
		s.flags = append(s.flags, "--staging", f.target())
	}
	s.exact = func(t *testing.T) {
		s.isExact(t, s.load)
		s.nothingLeft(t, f)
	}
}

// moment waits for any moment up to most, or for the end of the process.
func (s *subject) moment(p *process, most time.Duration) {
	select {
	case <-p.done:
	case <-time.After(time.Duration(s.Int64N(int64(most)))):
	}
}

// killClient sends SIGKILL. On a slow machine a process may not have come far in any moment, so every other one is left to
// begin an attempt.
func killClient(t *testing.T, s *subject, p *process) bool {
	if s.IntN(2) == 0 {
		before := s.journalLines(t)
		p.sees(func() bool { return s.journalLines(t) > before })
	}
	s.moment(p, 20*time.Millisecond<<s.IntN(6))
	was := p.running()
	_ = p.Process.Kill()
	<-p.done
	return was
}

// killServer sends SIGKILL to the server, perhaps just after the end of the run, and starts it again soon.
func killServer(t *testing.T, s *subject, p *process) bool {
	s.moment(p, 1200*time.Millisecond)
	was := p.running()
	s.server.kill(t)
	s.moment(p, 500*time.Millisecond)
	s.server.up(t)
	return was
}

// longWay makes every answer take its time, so that there are moments to hit between them.
func longWay(t *testing.T, s *subject) string {
	late := faultproxy.Way{Latency: 2 * time.Millisecond}
	p, err := faultproxy.NewSlow(s.url.Host, late, late)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close() })
	return s.target(through(p.Addr()))
}

// endSessionsOfProbe strikes when the claim table has been made, which is what comes before the probe.
func endSessionsOfProbe(_ *testing.T, s *subject, p *process) bool {
	p.sees(func() bool { return s.query("SELECT 1 FROM terapush_claims", ignore) == nil })
	s.moment(p, 80*time.Millisecond)
	return s.endSessions()
}

func endSessionsOfLoad(_ *testing.T, s *subject, p *process) bool {
	n := s.Int64N(s.batches())
	return p.sees(func() bool { return s.claims() > n }) && s.endSessions()
}

func endSessionsOfProof(_ *testing.T, s *subject, p *process) bool {
	p.sees(func() bool { return s.claims() == s.batches() })
	s.moment(p, 80*time.Millisecond)
	return s.endSessions()
}

// endSessions lets the server end one of terapush's sessions or all of them, and reports whether there was one.
func (s *subject) endSessions() bool {
	find, end := "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()", "SELECT pg_terminate_backend(%d)"
	if s.database.kind != postgres {
		find, end = "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()", "KILL %d"
	}
	var sessions []int64
	_ = s.query(find, func(scan func(...any) error) error {
		sessions = append(sessions, 0)
		return scan(&sessions[len(sessions)-1])
	})
	s.Shuffle(len(sessions), func(i, j int) { sessions[i], sessions[j] = sessions[j], sessions[i] })
	for n, id := range sessions {
		if n > 0 && s.IntN(4) == 0 {
			break
		}
		_ = s.query(fmt.Sprintf(end, id), ignore) // it may have ended by itself
	}
	return len(sessions) > 0
}

// ignore is what to do with a row that tells nothing.
func ignore(func(...any) error) error { return nil }

// besideProxy names the database's host and a proxy to it, in any order.
func besideProxy(t *testing.T, s *subject) string {
	s.proxy = s.database.proxy(t)
	hosts := []string{s.url.Host, s.proxy.Addr()}
	s.Shuffle(2, func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
	return s.target(through(strings.Join(hosts, ",")))
}

func closeProxy(_ *testing.T, s *subject, p *process) bool {
	n := s.Int64N(s.batches())
	was := p.sees(func() bool { return s.claims() >= n })
	_ = s.proxy.Close()
	return was
}
