package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/faultproxy"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/event"
)

// Each test makes one thing slow and nothing else, and wants every window of the run to say so, after the first and before
// the last, which are no whole seconds.

// windows is how many have to say so.
func windows() int { return scaled(3, 10) }

// sinkAt is a `terapush sink` in a process of its own.
type sinkAt struct {
	addresses map[string]string // by protocol
}

// startSink starts a sink on free ports. prefix is a command to start it by, as `ip netns exec NAME` is.
func startSink(t *testing.T, prefix []string, flags ...string) sinkAt {
	t.Helper()
	line := append(append(prefix, first()...), binary, "sink", "--json", "--until-eof",
		"--mysql", "0", "--postgres", "0", "--doris", "0", "--doris-sql", "0", "--databend", "0", "--s3", "0")
	c := exec.Command(line[0], append(line[1:], flags...)...)
	c.Env = cleanEnvironment(t.TempDir())
	c.Stderr = os.Stderr
	stdin, err := c.StdinPipe()
	require.NoError(t, err)
	stdout, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		_, _ = io.Copy(io.Discard, stdout)
		assert.NoError(t, c.Wait(), "the sink")
	})
	var said struct {
		Listening map[string]string `json:"listening"`
	}
	first, err := bufio.NewReader(stdout).ReadBytes('\n')
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(first, &said), "%s", first)
	return sinkAt{said.Listening}
}

// first is a command that starts another one before whatever else the machine does: on full cores a run is bound by
// them, and rightly says so.
func first() []string {
	if os.Getuid() != 0 {
		return nil
	}
	return []string{"nice", "-n", "-15"}
}

// url is the target of a protocol; at takes the place of its address, if it is not empty.
func (s sinkAt) url(protocol, at string) string {
	if at == "" {
		at = s.addresses[protocol]
	}
	_, httpPort, _ := net.SplitHostPort(s.addresses["doris"])
	return map[string]string{
		"mysql":    "mysql://root@" + at + "/d",
		"postgres": "postgres://root@" + at + "/d?sslmode=disable",
		"databend": "databend://root:x@" + at + "/default?sslmode=disable",
		"doris":    "doris://root@" + s.addresses["doris-sql"] + "/d?http_port=" + httpPort,
		"s3":       "s3://bucket/p?endpoint=http://" + at + "&path_style=true&region=us-east-1",
	}[protocol]
}

// into pushes into a sink.
func into(t *testing.T, target string, env []string, flags ...string) result {
	t.Helper()
	line := append(first(), binary, "push", target, "--state-dir", t.TempDir(), "--progress", "none", "--verify", "none", "--workers", "4")
	if strings.HasPrefix(target, "s3:") {
		env = append(env, "AWS_ACCESS_KEY_ID=k", "AWS_SECRET_ACCESS_KEY=s")
	} else {
		line = append(line, "--create", "never", "--delivery", "at-least-once")
	}
	line = append(line, flags...)
	return startCommand(t, invocation{env: env}, line[0], line[1:]...).wait(t).ends(t, 0)
}

func TestSinkHasNoTables(t *testing.T) {
	t.Parallel()
	sink := startSink(t, nil)
	for _, protocol := range []string{"mysql", "postgres", "databend", "doris"} {
		push := []string{"push", sink.url(protocol, ""), "--state-dir", t.TempDir(), "--payload-kind", "text"}
		invocation{args: push}.run(t).ends(t, 5).says(t, "a sink has no tables: push into it with --create never")
	}
}

// limited is a push into a sink that is long enough to be judged by its windows.
func limited(t *testing.T, target string, env []string, flags ...string) report.Report {
	t.Helper()
	return reportOf(t, into(t, target, env, append([]string{"--json", "--duration", fmt.Sprintf("%ds", windows()+2)}, flags...)...))
}

// loadedBy is what each second of the load was bound by.
func loadedBy(r report.Report) (saw []string) {
	for _, m := range r.Timeline.Moments {
		if m.Phase == string(event.Load) || m.Phase == string(event.Stage) {
			saw = append(saw, m.BoundBy)
		}
	}
	return saw
}

// boundBy asserts that a run was bound by one thing from its beginning to its end, but for a second in which other processes
// kept this machine busy.
func boundBy(t *testing.T, r report.Report, want event.Limit) {
	t.Helper()
	saw := loadedBy(r)
	require.Equal(t, 1.0, r.Timeline.Interval)
	require.GreaterOrEqual(t, len(saw), windows()+1, "windows of the run")
	others := 0
	for _, w := range saw[1 : windows()+1] {
		if w != string(want) {
			others++
		}
	}
	assert.LessOrEqual(t, others, 1, "windows of %v that were not bound by %s", saw, want)
	assert.Equal(t, string(want), r.BoundBy.Verdict)
	var seconds, workers float64
	for _, s := range r.BoundBy.Seconds {
		seconds += s
	}
	for _, s := range r.WorkerSeconds {
		workers += s
	}
	assert.InDelta(t, workers, seconds, 0.02*workers, "%v beside %v", r.BoundBy.Seconds, r.WorkerSeconds)
	if t.Failed() {
		t.Logf("%+v", r.BoundBy)
	}
}

// slowLink is a network namespace behind a link of so many bits a second: the host's address on it is 10.77.N.1, that of
// the namespace 10.77.N.2. N is the process's, so that two of them can be tested on one machine.
func slowLink(t *testing.T, rate string) (prefix []string, host string) {
	t.Helper()
	if os.Getuid() != 0 {
		missing(t, "network namespaces need root")
	}
	number := os.Getpid() % 256
	name := fmt.Sprintf("tplimit%d", number)
	near, far := fmt.Sprintf("10.77.%d.1/24", number), fmt.Sprintf("10.77.%d.2", number)
	remove := func() {
		_ = exec.Command("ip", "netns", "del", name).Run() // takes both ends of the link along
		_ = exec.Command("ip", "link", "del", name).Run()
	}
	remove() // what a killed test left
	t.Cleanup(remove)
	for _, line := range []string{
		"ip netns add " + name,
		"ip link add " + name + " type veth peer name inside netns " + name,
		"ip addr add " + near + " dev " + name,
		"ip link set " + name + " up",
		"ip -n " + name + " addr add " + far + "/24 dev inside",
		"ip -n " + name + " link set inside up",
		"ip -n " + name + " link set lo up",
		"tc qdisc add dev " + name + " root tbf rate " + rate + " burst 256kb latency 50ms",
	} {
		word := strings.Fields(line)
		if said, err := exec.Command(word[0], word[1:]...).CombinedOutput(); err != nil {
			missing(t, "%s: %v: %s", line, err, said)
		}
	}
	return []string{"ip", "netns", "exec", name}, far
}

// TestBoundBy is not parallel: on cores that other tests keep busy, a run is bound by them.
func TestBoundBy(t *testing.T) {
	backendtest.Long(t)
	t.Run("client CPU", boundByClientCPU)
	t.Run("source", boundBySource)
	slow := map[string]func(t *testing.T){
		"network": boundByNetwork, "rate": boundByRate, "tail": boundByTail, "target": boundByTarget, "protocol": boundByProtocol,
	}
	for name, test := range slow {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

func boundByNetwork(t *testing.T) {
	prefix, host := slowLink(t, "200mbit")
	sink := startSink(t, prefix, "--host", host)
	for _, protocol := range []string{"mysql", "s3"} {
		t.Run(protocol, func(t *testing.T) { // one after the other: the link is one
			r := limited(t, sink.url(protocol, ""), nil, "--batch-bytes", "2MiB", "--distinct-bytes", "64MiB", "--tls", "off")
			boundBy(t, r, event.LimitNetwork)
		})
	}
}

func boundByTarget(t *testing.T) {
	for name, c := range map[string]struct{ sink, push, protocols []string }{
		// That writes wait is seen by the connection, plain or of an HTTP client; that an answer does, by every back-end itself.
		"slow reads": {[]string{"--read-rate", "10MiB/s"}, []string{"--batch-bytes", "8MiB"}, []string{"mysql", "s3"}},
		"slow acks": {
			[]string{"--ack-delay", "300ms"}, []string{"--batch-bytes", "1MiB"}, []string{"mysql", "postgres", "doris", "databend", "s3"},
		},
	} {
		for _, protocol := range c.protocols {
			t.Run(name+" "+protocol, func(t *testing.T) {
				t.Parallel()
				sink := startSink(t, nil, c.sink...)
				flags := append([]string{"--distinct-bytes", "64MiB", "--tls", "off", "--payload-kind", "text"}, c.push...)
				boundBy(t, limited(t, sink.url(protocol, ""), nil, flags...), event.LimitTarget)
			})
		}
	}
}

func boundByClientCPU(t *testing.T) {
	sink := startSink(t, nil, "--no-count")
	env := []string{"GOMAXPROCS=1"}
	boundBy(t, limited(t, sink.url("mysql", ""), env, "--tls", "require", "--distinct-bytes", "all"), event.LimitClient)
}

func boundBySource(t *testing.T) {
	if runtime.NumCPU() < 2 {
		missing(t, "with one core the client's CPU is the limit")
	}
	sink := startSink(t, nil, "--no-count")
	r := limited(t, sink.url("postgres", ""), nil, "--workers", "1", "--distinct-bytes", "all", "--tls", "off")
	boundBy(t, r, event.LimitSource)
}

func boundByRate(t *testing.T) {
	sink := startSink(t, nil)
	r := limited(t, sink.url("postgres", ""), nil, "--max-rate", "10MiB/s", "--batch-bytes", "1MiB", "--distinct-bytes", "64MiB")
	boundBy(t, r, event.LimitRate)
}

func boundByProtocol(t *testing.T) {
	for _, protocol := range []string{"mysql", "postgres"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			sink := startSink(t, nil)
			slow := faultproxy.Way{Latency: 25 * time.Millisecond} // 50 ms there and back
			p, err := faultproxy.NewSlow(sink.addresses[protocol], slow, slow)
			require.NoError(t, err)
			defer p.Close()
			r := limited(t, sink.url(protocol, p.Addr()), nil, "--batch-rows", "100", "--distinct-bytes", "8MiB", "--tls", "off")
			boundBy(t, r, event.LimitProtocol)
		})
	}
}

// Nine batches for eight workers: for half of the run one sends, and seven have nothing to do.
func boundByTail(t *testing.T) {
	sink := startSink(t, nil, "--read-rate", "2MiB/s")
	r := reportOf(t, into(t, sink.url("mysql", ""), nil, "--json", "--workers", "8", "--batch-bytes", "12MiB", "--bytes", "100MiB", "--tls", "off"))
	require.EqualValues(t, 9, r.Result.Batches)
	saw := loadedBy(r)
	require.GreaterOrEqual(t, len(saw), 6)
	assert.Equal(t, string(event.LimitTarget), saw[len(saw)/4], "%v", saw)
	for _, w := range saw[len(saw)*3/4 : len(saw)-1] {
		assert.Equal(t, string(event.LimitTail), w, "%v", saw)
	}
}
