package calibrate_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/all"
	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/calibrate"
	"github.com/terapush/terapush/internal/calibrate/baseline"
	"github.com/terapush/terapush/internal/cli"
	"github.com/terapush/terapush/internal/faultproxy"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/sweep"
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
		Push:      map[string][]string{"dataset": {"documents"}, "memory": {"32MiB"}},
		Protocols: chosen, Workers: []int{1}, TLS: []bool{false}, Time: time.Second,
		State: t.TempDir(), Version: "v1.2.3", Binary: binary,
		Drivers: drivers, Log: slog.New(slog.DiscardHandler), Tell: func(string) {},
	}
}

// kept returns the baseline, and makes sure that nothing else is left.
func kept(t *testing.T, c *calibrate.Calibration) []baseline.Measurement {
	t.Helper()
	entries, err := os.ReadDir(c.State)
	require.NoError(t, err)
	for _, e := range entries {
		require.Equal(t, "ceilings.json", e.Name())
	}
	all, err := baseline.Read(c.State)
	require.NoError(t, err)
	return all
}

func TestCalibrate(t *testing.T) {
	t.Setenv("TERAPUSH_READ_RATE", "1KiB/s") // is for other sinks
	c := short(t, "mysql", "doris")
	c.TLS = []bool{false, true}
	var told []string
	c.Tell = func(line string) { told = append(told, line) }
	record, err := c.Run(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, record.Entries, 4)
	require.Len(t, told, 4)
	all := kept(t, c)
	require.Len(t, all, 4)
	for i, m := range all {
		e := record.Entries[i]
		require.Equal(t, results.Measured, e.Status, e.Error)
		require.Equal(t, e.Report.Result.BytesPerSecond, m.BytesPerSecond)
		require.Equal(t, i >= 2, m.TLS)
		require.False(t, m.Counting, "rows of documents have one length")
		require.Greater(t, m.BytesPerSecond, 1e6)
		require.Positive(t, m.CPUSecondsPerGiB)
		require.NotEmpty(t, m.BoundBy)
		require.Equal(t, c.Version, m.Version)
	}
	require.Equal(t, "text", all[1].PayloadKind, "Doris has no type for raw bytes")
	tables := results.Tables([]results.Record{record})
	require.Len(t, tables, 2)
	require.Len(t, tables[1].Points, 2)
	require.Equal(t, []string{"calibrate/plain", "calibrate/TLS"}, []string{tables[0].Name, tables[1].Name})
}

// Rows of several lengths have to be counted where the back-end compares.
func TestSinkThatHasToCount(t *testing.T) {
	backendtest.Long(t)
	c := short(t, "doris")
	c.Push["dataset"] = []string{"lineitem"}
	_, err := c.Run(t.Context(), nil)
	require.NoError(t, err)
	require.True(t, kept(t, c)[0].Counting)
}

func TestStopped(t *testing.T) {
	c := short(t, "mysql", "postgres")
	drain := make(chan struct{})
	c.Tell = func(string) { close(drain) }
	record, err := c.Run(t.Context(), drain)
	require.ErrorIs(t, err, sweep.ErrStopped)
	require.Len(t, record.Entries, 1)
	require.Len(t, kept(t, c), 1, "what came to its end")
	require.Equal(t, 1, c.Kept)
}

func TestSinkDies(t *testing.T) {
	backendtest.Long(t)
	for _, after := range []string{"1s", "5s", "25s"} { // on a busy machine no push has begun by then
		t.Setenv(dies, after)
		c := short(t, "mysql")
		c.Workers, c.Time = []int{1, 2, 3, 4, 5, 6, 7}, time.Minute
		record, err := c.Run(t.Context(), nil)
		require.ErrorIs(t, err, sweep.ErrUnreachable)
		require.ErrorContains(t, err, "the sink ended in the middle: exit status 3; its output: out of luck")
		require.Empty(t, kept(t, c))
		if n := len(record.Entries); n > 0 {
			require.Equal(t, results.Failed, record.Entries[n-1].Status)
			return
		}
	}
	t.Fatal("the sink died before the first push, however late that was")
}

func TestNoSink(t *testing.T) {
	for binary, says := range map[string]string{
		filepath.Join(t.TempDir(), "none"): "no such file",
		"true":                             "does not say where it listens",
	} {
		c := short(t, "mysql")
		c.Binary = binary
		_, err := c.Run(t.Context(), nil)
		require.ErrorIs(t, err, calibrate.ErrNoSink)
		require.ErrorContains(t, err, says)
		require.Empty(t, kept(t, c))
	}
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

// A protocol that Host does not have is left out, and a sink that counts is known for it.
func TestHost(t *testing.T) {
	backendtest.Long(t)
	c := short(t, "mysql", "postgres")
	c.Binary = "none: nothing is started"
	c.Host, c.Ports = "127.0.0.1", listen(t, "--mysql", "0")
	var log strings.Builder
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	record, err := c.Run(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, record.Entries, 1)
	require.Equal(t, "127.0.0.1", kept(t, c)[0].Host)
	require.True(t, kept(t, c)[0].Counting)
	require.Contains(t, log.String(), "postgres: dial tcp 127.0.0.1:"+strconv.Itoa(c.Ports["postgres"])+": connect: connection refused")
}

// A sink that counts nothing has to know how long Doris' rows are, which all others accept.
func TestHostThatDoesNotCount(t *testing.T) {
	backendtest.Long(t)
	for rowBytes, failed := range map[string]int{"526": 0, "520": 1} {
		c := short(t)
		c.Host = "127.0.0.1"
		c.Ports = listen(t, "--no-count", "--row-bytes", rowBytes, "--mysql", "0", "--postgres", "0", "--doris", "0",
			"--doris-sql", "0", "--databend", "0", "--s3", "0")
		record, err := c.Run(t.Context(), nil)
		require.NoError(t, err)
		require.Len(t, record.Entries, 5)
		require.Len(t, kept(t, c), 5-failed)
		require.False(t, kept(t, c)[0].Counting)
		if failed > 0 {
			require.Contains(t, record.Entries[2].Error, "or with --row-bytes 526")
		}
	}
}

func TestHostWithoutSink(t *testing.T) {
	c := short(t, "mysql", "s3")
	c.Host, c.Ports = "127.0.0.1", map[string]int{"mysql": freePort(t), "s3": freePort(t)}
	_, err := c.Run(t.Context(), nil)
	require.ErrorIs(t, err, calibrate.ErrNoSink)
	require.ErrorContains(t, err, "connection refused")
	require.ErrorContains(t, err, "start terapush sink")
}

func TestRefusedBeforeAnythingIsStarted(t *testing.T) {
	c := short(t, "mysql")
	c.Binary = "none: nothing is started"
	require.NoError(t, os.WriteFile(baseline.Path(c.State), []byte("{"), 0o600))
	_, err := c.Run(t.Context(), nil)
	require.ErrorContains(t, err, "damaged")
}

func TestTwoAtATime(t *testing.T) {
	backendtest.Long(t)
	first, second := short(t, "mysql"), short(t, "mysql")
	second.State = first.State
	tried := false
	first.Tell = func(string) {
		_, err := second.Run(t.Context(), nil)
		require.ErrorContains(t, err, "another process calibrates")
		tried = true
	}
	_, err := first.Run(t.Context(), nil)
	require.NoError(t, err)
	require.True(t, tried)
}
