package mysql

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// asFake makes the test binary a fake server, so that a benchmark measures the client's CPU time alone.
const asFake = "TERAPUSH_TEST_AS_FAKE_MYSQL"

func TestMain(m *testing.M) {
	if os.Getenv(asFake) == "" {
		os.Exit(m.Run())
	}
	fake, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	sink, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(fake.Addr(), sink.Addr())
	go (&fakeServer{vars: map[string]string{"version": "9.0.0", "max_allowed_packet": "67108864"}}).serve(fake)
	go discard(sink)
	_, _ = os.Stdin.Read(make([]byte, 1)) // until the parent is gone
}

// discard reads whatever anybody sends.
func discard(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = c.Close() }()
			buffer := make([]byte, 256<<10)
			for err := error(nil); err == nil; {
				_, err = c.Read(buffer)
			}
		}()
	}
}

// fakeProcess starts a fake server and a sink that reads and discards.
func fakeProcess(b *testing.B) (target loader.Target, sink string) {
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), asFake+"=1")
	in, err := command.StdinPipe()
	require.NoError(b, err)
	out, err := command.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, command.Start())
	b.Cleanup(func() {
		_ = in.Close()
		_ = command.Wait()
	})
	var fake string
	_, err = fmt.Fscan(out, &fake, &sink)
	require.NoError(b, err)
	return loader.Target{
		Scheme: "mysql", Hosts: []string{fake}, User: "root", Database: "db",
		Table: "documents", Method: loadData, TLS: loader.TLSOff,
	}, sink
}

// BenchmarkClient measures the client's CPU seconds per GiB into a server that discards, with and without the
// coalescing connection, beside a plain loop of 256 KiB writes of the same bytes.
func BenchmarkClient(b *testing.B) {
	target, sink := fakeProcess(b)
	d := documents(b, 512)
	batches := make([]*batch.Batch, 16) // 256 MiB: more than the caches hold
	for i := range batches {
		batches[i] = batchOf(b, d, batch.TSV, id(int64(i)), 0, 31000)
	}
	b.Run("write loop", func(b *testing.B) {
		c, err := net.Dial("tcp", sink)
		require.NoError(b, err)
		defer func() { _ = c.Close() }()
		perGiB(b, batches, func(x *batch.Batch) {
			for rest := x.Encoded; len(rest) > 0; {
				n, err := c.Write(rest[:min(len(rest), 256<<10)])
				require.NoError(b, err)
				rest = rest[n:]
			}
		})
	})
	for _, name := range []string{"as the driver comes", "coalesced"} {
		b.Run(name, func(b *testing.B) { benchSession(b, target, batches, name == "coalesced") })
	}
}

func benchSession(b *testing.B, target loader.Target, batches []*batch.Batch, coalesce bool) {
	l, err := New().Open(b.Context(), target, testDeps())
	require.NoError(b, err)
	defer func() { _ = l.Close() }()
	db := l.(*opened)
	p := preparation(documents(b, 512), contractOf(loadData, 1))
	p.Silent = true
	_, err = db.Prepare(b.Context(), p)
	require.NoError(b, err)
	s, err := db.open(b.Context(), loader.Contract{Method: loadData})
	require.NoError(b, err)
	defer func() { _ = s.Close() }()
	if !coalesce {
		s.conn, err = connector(db.endpoints[0].config, nil).Dial(b.Context())
		require.NoError(b, err)
	}
	perGiB(b, batches, func(x *batch.Batch) {
		ack, err := s.Load(b.Context(), x)
		require.NoError(b, err)
		require.Equal(b, x.Rows, ack.Rows)
	})
}

func perGiB(b *testing.B, batches []*batch.Batch, send func(*batch.Batch)) {
	b.SetBytes(int64(len(batches[0].Encoded)))
	began := cpu()
	i := 0
	for b.Loop() {
		send(batches[i%len(batches)])
		i++
	}
	b.ReportMetric((cpu()-began).Seconds()/(float64(i)*float64(len(batches[0].Encoded))/(1<<30)), "cpu-s/GiB")
}

// cpu is what this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkBatchSize loads real servers in batches of 1 to 128 MiB, one session, claims and commits included.
func BenchmarkBatchSize(b *testing.B) {
	d := documents(b, 512)
	for name, variable := range servers() {
		url := os.Getenv(variable)
		if url == "" {
			b.Logf("%s is not set", variable)
			continue
		}
		for _, size := range []int64{1, 4, 8, 16, 32, 64, 128} {
			b.Run(fmt.Sprintf("%s/%dMiB", name, size), func(b *testing.B) {
				s := newTestServer(b, url)
				contract := contractOf(loadData, size<<20/535)
				db := s.open(b, s.table("t"), preparation(d, contract))
				session := db.testSession(b, contract)
				one := batchOf(b, d, contract.Format, id(0), 0, contract.BatchRows)
				perGiB(b, []*batch.Batch{one}, func(x *batch.Batch) {
					_, err := session.Load(b.Context(), x)
					require.NoError(b, err)
					x.ID.Number++ // the same rows again: there is no key
				})
			})
		}
	}
}
