package e2e_test

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/faultproxy"
)

// A server that takes no rows for a while, as a standby until it is promoted, is waited for.
func TestReadOnlyForAWhile(t *testing.T) {
	t.Parallel()
	s := newScratch(t, postgres)
	d := s.database(t)
	l := small(15_000)
	p := d.push(l.flags("--workers", "4", "--max-rate", "500KiB/s", "--retries", "0")...).start(t)
	p.until(t, "a third", func() bool { return d.claims() >= l.batches()/3 })
	readOnly := func(how string) {
		d.must(t, "ALTER SYSTEM "+how, "SELECT pg_reload_conf()")
	}
	readOnly("SET default_transaction_read_only = on")
	p.until(t, "an outage", func() bool { return strings.Contains(p.stderr.String(), "the server is away") })
	readOnly("RESET default_transaction_read_only")
	p.wait(t).ends(t, 0).says(t, "the server is back")
	d.isExact(t, l)
}

// After a failover the server's name means another host.
func TestNameMeansAnotherHost(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a process its own /etc/hosts")
	}
	eachServer(t, func(t *testing.T, d *database) {
		first := d.proxy(t)
		_, port, err := net.SplitHostPort(first.Addr())
		require.NoError(t, err)
		second, err := faultproxy.NewAt("127.0.0.2:"+port, d.url.Host)
		require.NoError(t, err)
		defer func() { _ = second.Close() }()
		hosts := filepath.Join(t.TempDir(), "hosts")
		means := func(address string) { require.NoError(t, os.WriteFile(hosts, []byte(address+" db.test\n"), 0o644)) }

		means("127.0.0.1")
		l := small(15_000)
		i := d.pushTo(d.target(through("db.test:"+port)), l.flags("--tls", "off", "--workers", "4", "--max-rate", "500KiB/s", "--retries", "0")...)
		inside := []string{"--mount", "sh", "-c", `mount --bind "$0" /etc/hosts && exec "$@"`, hosts, binary}
		p := startCommand(t, i, "unshare", append(inside, i.args...)...)
		p.until(t, "a third", func() bool { return d.claims() >= l.batches()/3 })
		require.NoError(t, first.Close())
		means("127.0.0.2")
		p.wait(t).ends(t, 0).says(t, "the server is away", "the server is back")
		d.isExact(t, l)
	})
}

// Two servers that know nothing of each other are no hosts of one database, also where both have the table: nothing is pushed.
func TestUnrelatedHosts(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		s := newScratch(t, d.kind)
		other := s.database(t)
		other.must(t, "CREATE DATABASE "+d.name())
		u, err := url.Parse(s.url)
		require.NoError(t, err)
		both := d.target(func(both *url.URL) { both.Host += "," + u.Host })
		l := small(2400)
		d.push(l.flags()...).run(t).ends(t, 0)

		r := d.pushTo(both, l.flags("--append", "--workers", "4")...).run(t).ends(t, 5)
		r.says(t, u.Host+" is another database than the first host", "push into two databases by two runs")
		d.isExact(t, l)
	})
}
