package calibrate_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/all"
	"github.com/terapush/terapush/internal/calibrate"
	"github.com/terapush/terapush/internal/calibrate/baseline"
	"github.com/terapush/terapush/internal/cli"
	"github.com/terapush/terapush/internal/faultproxy"
)

// dies makes the sink's process end after that time, with status 3.
const dies = "CALIBRATE_TEST_DIES"

// TestMain is terapush where it is started as the sink, so that the tests need no other binary.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != "sink" {
		os.Exit(m.Run())
	}
	if after, err := time.ParseDuration(os.Getenv(dies)); err == nil {
		time.AfterFunc(after, func() {
			_, _ = os.Stderr.WriteString("out of luck\n")
			os.Exit(3)
		})
	}
	os.Exit(cli.Run(context.Background(), os.Args[1:], cli.Process{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, LookupEnv: os.LookupEnv, Signals: make(chan os.Signal),
	}))
}

// short is a calibration of some protocols, as short as it can be.
func short(t *testing.T, protocols ...string) *calibrate.Calibration {
	t.Helper()
	drivers, err := all.Drivers()
	require.NoError(t, err)
	chosen, err := calibrate.Chosen(protocols)
	require.NoError(t, err)
	binary, err := os.Executable()
	require.NoError(t, err)
	return &calibrate.Calibration{
		Dataset: "documents", Memory: "32MiB", Protocols: chosen, Workers: []int{1, 2}, TLS: []bool{false},
		Time: 700 * time.Millisecond, State: t.TempDir(), Version: "v1.2.3",
		Drivers: drivers, Binary: binary, LookupEnv: os.LookupEnv,
	}
}

// leavesNothing but the file and its locks.
func leavesNothing(t *testing.T, c *calibrate.Calibration) {
	t.Helper()
	entries, err := os.ReadDir(c.State)
	require.NoError(t, err)
	for _, e := range entries {
		require.Contains(t, []string{"ceilings.json", ".ceilings.lock", ".calibrate.lock"}, e.Name())
	}
}

func TestCalibrate(t *testing.T) {
	t.Setenv("TERAPUSH_READ_RATE", "1KiB/s") // is for other sinks
	t.Setenv("TERAPUSH_MAX_RATE", "1KiB/s")  // and for other pushes
	t.Setenv("AWS_ACCESS_KEY_ID", "mine")
	c := short(t, "mysql", "doris")
	c.TLS, c.Workers = []bool{false, true}, []int{2}
	var told []string
	c.Tell = func(line string) { told = append(told, line) }
	found, err := c.Run(t.Context(), nil)
	require.NoError(t, err)
	leavesNothing(t, c)
	require.Equal(t, "mine", os.Getenv("AWS_ACCESS_KEY_ID"))

	require.Len(t, found.Series, 4)
	require.Len(t, told, len(found.Source)+4)
	kept, err := baseline.Read(c.State)
	require.NoError(t, err)
	for _, s := range found.Series {
		require.True(t, s.Complete, s.Error)
		require.Len(t, s.Points, 1)
		require.Zero(t, s.Best)
		p := s.Points[0]
		require.Equal(t, s.TLS, p.TLS)
		require.False(t, p.Counting, "rows of documents have one length")
		require.Greater(t, p.BytesPerSecond, 1e6)
		require.Greater(t, p.CPUSecondsPerGiB, 0.0)
		require.NotEmpty(t, p.BoundBy)
		require.Contains(t, kept, p)
	}
	require.Len(t, kept, len(found.Source)+4)
	require.Equal(t, baseline.Key{
		Stage: baseline.Load, Backend: "mysql", Method: "load-data", Format: "tsv", Dataset: "documents", PayloadBytes: 512, PayloadKind: "bytes",
	}, found.Series[0].Points[0].Key)
	require.Equal(t, "text", found.Series[2].Points[0].PayloadKind, "Doris has no type for raw bytes")
	for _, s := range found.Source {
		require.Greater(t, s.BytesPerSecond, 1e6, s)
		require.InDelta(t, s.BytesPerSecond/s.RowsPerSecond, 520, 1)
	}
}

// Rows of several lengths have to be counted where the back-end compares.
func TestSinkThatHasToCount(t *testing.T) {
	c := short(t, "doris")
	c.Dataset, c.Workers = "lineitem", []int{1}
	found, err := c.Run(t.Context(), nil)
	require.NoError(t, err)
	require.True(t, found.Series[0].Complete, found.Series[0].Error)
	require.True(t, found.Series[0].Points[0].Counting)
}

func TestStopped(t *testing.T) {
	c := short(t, "mysql", "postgres")
	drain := make(chan struct{})
	c.Tell = func(line string) {
		if strings.HasPrefix(line, "mysql") {
			close(drain)
		}
	}
	found, err := c.Run(t.Context(), drain)
	require.ErrorIs(t, err, calibrate.ErrStopped)
	leavesNothing(t, c)
	require.True(t, found.Series[0].Complete)
	for _, s := range found.Series[1:] {
		require.False(t, s.Complete)
		require.Contains(t, s.Error, "stopped")
	}
	_, ok, err := baseline.Best(c.State, found.Series[0].Points[0].Key)
	require.NoError(t, err)
	require.True(t, ok, "what came to its end is kept")
}

func TestSinkDies(t *testing.T) {
	t.Setenv(dies, "400ms")
	c := short(t, "mysql", "postgres")
	c.Workers, c.Time = []int{1, 2, 4, 8, 16, 32, 64, 128}, 3*time.Second
	found, err := c.Run(t.Context(), nil)
	require.ErrorContains(t, err, "the sink ended in the middle: exit status 3; its output: out of luck")
	leavesNothing(t, c)
	require.Len(t, found.Series, 1)
	require.False(t, found.Series[0].Complete)
	require.NotEmpty(t, found.Series[0].Error)
}

func TestNoSink(t *testing.T) {
	for binary, says := range map[string]string{
		filepath.Join(t.TempDir(), "none"): "no such file",
		"true":                             "does not say where it listens",
	} {
		c := short(t, "mysql")
		c.Binary = binary
		_, err := c.Run(t.Context(), nil)
		require.ErrorContains(t, err, says)
		leavesNothing(t, c)
	}
}

func TestNoMemory(t *testing.T) {
	c := short(t, "mysql")
	c.Memory, c.Workers = "8MiB", []int{1, 64, 128}
	found, err := c.Run(t.Context(), nil)
	require.NoError(t, err)
	s := found.Series[0]
	require.True(t, s.Complete)
	require.Len(t, s.Points, 1)
	require.Len(t, s.Skipped, 2)
	require.Equal(t, 64, s.Skipped[0].Workers)
	require.Contains(t, s.Skipped[0].Why, "--memory has no room")

	c = short(t, "mysql")
	c.Memory, c.Workers = "8MiB", []int{64}
	found, err = c.Run(t.Context(), nil)
	require.ErrorContains(t, err, "nothing could be sent")
	require.Contains(t, found.Series[0].Error, "--memory has no room")
}

// listen starts a sink as somebody else would.
func listen(t *testing.T, flags ...string) (ports map[string]int) {
	t.Helper()
	binary, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(binary, append([]string{"sink", "--json", "--until-eof"}, flags...)...)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		_, _ = io.Copy(io.Discard, stdout)
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	require.NoError(t, err)
	var told struct{ Listening map[string]string }
	require.NoError(t, json.Unmarshal(line, &told))
	ports = map[string]int{}
	for _, name := range calibrate.Ports() {
		ports[name] = freePort(t)
	}
	for name, at := range told.Listening {
		_, port, err := net.SplitHostPort(at)
		require.NoError(t, err)
		ports[name], err = strconv.Atoi(port)
		require.NoError(t, err)
	}
	return ports
}

// freePort is one that nobody listens at.
func freePort(t *testing.T) int {
	port, err := strconv.Atoi(faultproxy.FreePort(t))
	require.NoError(t, err)
	return port
}

func TestHost(t *testing.T) {
	c := short(t, "mysql", "postgres")
	c.Binary = "none: nothing is started"
	c.Workers, c.Host = []int{1}, "127.0.0.1"
	c.Ports = listen(t, "--mysql", "0")
	found, err := c.Run(t.Context(), nil)
	require.NoError(t, err)
	require.Greater(t, found.RTTSeconds, 0.0)
	require.True(t, found.Series[0].Complete, found.Series[0].Error)
	require.Equal(t, "127.0.0.1", found.Series[0].Points[0].Host)
	require.True(t, found.Series[0].Points[0].Counting)
	require.Contains(t, found.Series[1].Error, "postgres: dial tcp 127.0.0.1:"+strconv.Itoa(c.Ports["postgres"])+": connect: connection refused")
	var text strings.Builder
	require.NoError(t, found.WriteText(&text))
	require.Contains(t, text.String(), "note      mysql load-data: the sink counts rows")
}

// A sink that counts nothing says so, and cannot answer Doris.
func TestHostThatDoesNotCount(t *testing.T) {
	c := short(t, "mysql", "doris")
	c.Workers, c.Host = []int{1}, "127.0.0.1"
	c.Ports = listen(t, "--no-count", "--mysql", "0", "--doris", "0", "--doris-sql", "0")
	found, err := c.Run(t.Context(), nil)
	require.NoError(t, err)
	require.False(t, found.Series[0].Points[0].Counting)
	require.Contains(t, found.Series[1].Error, "a sink that does not count needs --row-bytes 52")
}

func TestHostWithoutSink(t *testing.T) {
	c := short(t, "mysql", "s3")
	c.Host, c.Ports = "127.0.0.1", map[string]int{"mysql": freePort(t), "s3": freePort(t)}
	_, err := c.Run(t.Context(), nil)
	require.ErrorContains(t, err, "connection refused")
	require.ErrorContains(t, err, "start `terapush sink")

	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Server", "MinIO")
		w.WriteHeader(http.StatusForbidden)
	}))
	defer web.Close()
	c.Ports["s3"] = web.Listener.Addr().(*net.TCPAddr).Port
	_, err = c.Run(t.Context(), nil)
	require.ErrorContains(t, err, `not a sink but "MinIO"`)
}

func TestRefusals(t *testing.T) {
	c := short(t, "mysql")
	require.NoError(t, os.WriteFile(baseline.Path(c.State), []byte("{"), 0o600))
	_, err := c.Run(t.Context(), nil)
	require.ErrorContains(t, err, "damaged", "before a minute is spent")

	for says, change := range map[string]func(*calibrate.Calibration){
		`dataset "nothing"`:  func(c *calibrate.Calibration) { c.Dataset = "nothing" },
		"a payload has 1 to": func(c *calibrate.Calibration) { c.PayloadBytes = 1 << 30 },
		"does not exist":     func(c *calibrate.Calibration) { c.PayloadKind = "hope" },
		"not a size":         func(c *calibrate.Calibration) { c.Memory = "much" },
		"a buffer of":        func(c *calibrate.Calibration) { c.Memory, c.PayloadBytes = "64KiB", 1<<20 },
	} {
		c := short(t, "mysql")
		change(c)
		err := c.Check()
		require.Error(t, err, says)
		require.Contains(t, strings.ToLower(err.Error()), strings.ToLower(says))
	}
	_, err = calibrate.Chosen([]string{"mysql", "oracle"})
	require.ErrorContains(t, err, `"oracle"`)
}

func TestTwoAtATime(t *testing.T) {
	first := short(t, "mysql")
	second := short(t, "mysql")
	second.State = first.State
	tried, drain := make(chan error, 1), make(chan struct{})
	once := false
	first.Tell = func(string) {
		if !once {
			once = true
			_, err := second.Run(t.Context(), nil)
			tried <- err
			close(drain)
		}
	}
	_, err := first.Run(t.Context(), drain)
	require.ErrorIs(t, err, calibrate.ErrStopped)
	require.ErrorContains(t, <-tried, "another process calibrates")
}
