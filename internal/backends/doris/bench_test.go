package doris

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// sinkVariable makes this test binary a frontend and a backend that read and forget, in a process of their own, so that
// their CPU time is nobody else's.
const sinkVariable = "TERAPUSH_BENCH_SINK"

func TestMain(m *testing.M) {
	if os.Getenv(sinkVariable) != "" {
		sink()
		return
	}
	os.Exit(m.Run())
}

// sink prints its address and serves until its standard input ends.
func sink() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go swallow(c, l.Addr().String())
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func swallow(c net.Conn, self string) {
	in := bufio.NewReaderSize(c, 1<<20)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if r.ContentLength == 0 {
			fmt.Fprintf(c, "HTTP/1.1 307 x\r\nLocation: http://u:p@%s/be\r\nContent-Length: 0\r\n\r\n", self)
			continue
		}
		if _, err := in.Discard(int(r.ContentLength)); err != nil {
			return
		}
		body := success(r.Header.Get("label"), 1000, 1000, 0, 0)
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
}

func startSink(b *testing.B) string {
	self, err := os.Executable()
	require.NoError(b, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), sinkVariable+"=1")
	in, err := cmd.StdinPipe()
	require.NoError(b, err)
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	b.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(b, err)
	return line[:len(line)-1]
}

// cpuSeconds is what this process has used.
func cpuSeconds() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

func perGiB(b *testing.B, size int, f func()) {
	b.SetBytes(int64(size))
	began := cpuSeconds()
	for b.Loop() {
		f()
	}
	b.ReportMetric((cpuSeconds()-began)/(float64(size)*float64(b.N)/(1<<30)), "cpu-s/GiB")
}

const benchBytes = 64 << 20

func BenchmarkStreamLoad(b *testing.B) {
	address := startSink(b)
	target := loader.Target{Scheme: "doris", Hosts: []string{"127.0.0.1"}, Database: "d", Table: "t", Method: streamLoad, TLS: loader.TLSOff}
	db := silent(b, target, documents(b))
	db.frontends[0].http.Host = address
	s, err := db.Session(b.Context(), contractOf(streamLoad, batch.DorisCSV, 1000))
	require.NoError(b, err)
	one := &batch.Batch{ID: batch.ID{Run: "r"}, Format: batch.DorisCSV, Rows: 1000, Encoded: bytes.Repeat([]byte{'x'}, benchBytes)}
	perGiB(b, benchBytes, func() {
		_, err := load(context.Background(), s, one)
		require.NoError(b, err)
	})
}

// The same bytes by a plain loop of PUTs.
func BenchmarkPlainPut(b *testing.B) {
	address := startSink(b)
	data := bytes.Repeat([]byte{'x'}, benchBytes)
	perGiB(b, benchBytes, func() {
		r, err := http.NewRequest(http.MethodPut, "http://"+address+"/be", bytes.NewReader(data))
		require.NoError(b, err)
		answer, err := http.DefaultTransport.RoundTrip(r)
		require.NoError(b, err)
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	})
}
