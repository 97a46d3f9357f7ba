package cli_test

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/cli"
	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/internal/sink"
)

// running is a sink that somebody else talks to.
type running struct {
	stdout  *bufio.Reader
	stdin   io.Closer
	signals chan os.Signal
	code    chan int
	stderr  *bytes.Buffer
}

func (s shell) sink(args ...string) *running {
	stdin, parent := io.Pipe()
	output, stdout := io.Pipe()
	r := &running{bufio.NewReader(output), parent, make(chan os.Signal, 1), make(chan int, 1), new(bytes.Buffer)}
	go func() {
		p := s.process(stdout, r.stderr, r.signals)
		p.Stdin = stdin
		code := cli.Run(s.Context(), append([]string{"sink"}, args...), p)
		stdout.Close()
		r.code <- code
	}()
	s.Cleanup(func() { parent.Close() })
	return r
}

// line reads one.
func (r *running) line(t *testing.T, to any) {
	t.Helper()
	text, err := r.stdout.ReadString('\n')
	require.NoError(t, err, "%s", r.stderr)
	require.NoError(t, json.Unmarshal([]byte(text), to), text)
}

// end ends it and returns what it says then.
func (r *running) end(t *testing.T) string {
	t.Helper()
	r.signals <- syscall.SIGINT
	text, err := io.ReadAll(r.stdout)
	require.NoError(t, err)
	require.Zero(t, <-r.code, "%s", r.stderr)
	return string(text)
}

type listening struct {
	Listening map[string]string
	Counting  bool
}

// free are flags that open every port that is free.
func free(more ...string) []string {
	return append([]string{"--mysql=0", "--postgres=0", "--databend=0", "--doris=0", "--doris-sql=0", "--s3=0", "--raw=0"}, more...)
}

func TestSinkTellsItsParent(t *testing.T) {
	r := newShell(t).sink("--raw=0", "--mysql=0", "--json", "--until-eof", "--crc")
	var at listening
	r.line(t, &at)
	require.True(t, at.Counting)
	require.Len(t, at.Listening, 2)
	c, err := net.Dial("tcp", at.Listening["raw"])
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write([]byte("\x00\x00\x00\x00\x00\x00\x00\x03a\nb"))
	require.NoError(t, err)
	answer := make([]byte, 8)
	_, err = io.ReadFull(c, answer)
	require.NoError(t, err)
	require.EqualValues(t, 2, answer[7])
	r.stdin.Close()
	var took struct{ Took map[string]sink.Stats }
	r.line(t, &took)
	require.Equal(t, sink.Stats{Connections: 1, Statements: 1, Bytes: 3, Rows: 2, CRC: "d9a85a0a"}, took.Took["raw"])
	require.Equal(t, sink.Stats{CRC: "00000000"}, took.Took["mysql"])
	require.Zero(t, <-r.code)
	_, err = c.Read(answer)
	require.Error(t, err, "the sink has closed the connection")
}

// What it says to type works as it stands.
func TestSinkCommands(t *testing.T) {
	for name, how := range map[string]struct {
		args []string
		says string // in place of a golden file, what is not in another's
	}{
		"counting":  {args: []string{"--fail", "1/4", "--crc"}},
		"row-bytes": {args: []string{"--no-count", "--row-bytes", "400"}},
		"no-count":  {[]string{"--no-count"}, "take an answer of no rows for a failure: they need --row-bytes, and Doris the exact size.\n"},
		"slow":      {[]string{"--ack-delay", "1ms", "--read-rate", "1GiB/s"}, "Every port but raw takes TLS as well"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t)
			r := s.sink(free(how.args...)...)
			var said strings.Builder
			for !strings.Contains(said.String(), "Ctrl-C") {
				line, err := r.stdout.ReadString('\n')
				require.NoError(t, err, "%s", r.stderr)
				said.WriteString(line)
			}
			if how.says != "" {
				require.Contains(t, said.String(), how.says)
			} else {
				text := regexp.MustCompile(`(127\.0\.0\.1:|http_port=)\d+`).ReplaceAllString(said.String(), "${1}PORT")
				columns := regexp.MustCompile(` +(MySQL:|PostgreSQL:|Databend:|Doris:|Doris' |S3:|bytes )`)
				golden.Equal(t, "sink-"+name+".txt", columns.ReplaceAllString(text, "  $1"))
			}
			commands := regexp.MustCompile(`(?m)^  ((?:AWS_\S+ )*)terapush (push .*)$`).FindAllStringSubmatch(said.String(), -1)
			require.Len(t, commands, map[bool]int{true: 3, false: 5}[name == "no-count"])
			counts := name == "counting" || name == "slow"
			for _, c := range commands {
				if name == "row-bytes" && strings.Contains(c[2], "doris:") {
					continue // it wants the exact size
				}
				for _, pair := range strings.Fields(c[1]) {
					key, value, _ := strings.Cut(pair, "=")
					s.env[key] = value
					t.Setenv(key, value) // the SDK's chain reads the process's own
				}
				p := s.run(append(strings.Fields(strings.ReplaceAll(c[2], "'", "")), "--rows", "4000", "--batch-rows", "500", "--retries", "3", "--progress", "none", "--json")...)
				require.Zero(t, p.code, "%s\n%s", c[2], p.stderr)
				require.Contains(t, p.stdout, `"rows": 4000`)
				if strings.Contains(c[2], "s3:") {
					continue // its report names no version
				}
				require.Contains(t, p.stdout, map[bool]string{false: "terapush-sink-no-count", true: "terapush-sink"}[counts], c[2])
			}
			took := r.end(t)
			if counts {
				require.Equal(t, 5, strings.Count(took, "  4000  "), took)
			}
			if name == "counting" {
				require.Contains(t, took, "told to fail")
			}
		})
	}
}

func TestSinkThatCannotListen(t *testing.T) {
	s := newShell(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	require.NoError(t, err)
	r := s.run("sink", "--raw", "0", "--s3", port)
	require.Equal(t, 5, r.code)
	require.Contains(t, r.stderr, "127.0.0.1:"+port)
	require.Contains(t, r.stderr, "give another port with --s3 PORT")
	r = s.run("sink", "--raw", "0", "--host", "nowhere.invalid")
	require.Equal(t, 5, r.code, r.stderr)
}

// A certificate of one's own is the one that clients see.
func TestSinkTakesACertificate(t *testing.T) {
	s := newShell(t)
	certificate, key := writeCertificate(t)
	r := s.sink("--postgres=0", "--json", "--tls-cert", certificate, "--tls-key", key)
	var at listening
	r.line(t, &at)
	other, _ := writeCertificate(t)
	for trusted, code := range map[string]int{certificate: 0, other: 5} {
		p := s.run("push", "postgres://me@"+at.Listening["postgres"]+"/db", "--tls", "verify", "--tls-ca", trusted, "--rows", "10",
			"--create", "never", "--delivery", "at-least-once", "--verify", "none", "--progress", "none")
		require.Equal(t, code, p.code, p.stderr)
	}
	require.Contains(t, r.end(t), `"rows":10`)
}

func writeCertificate(t *testing.T) (certificate, key string) {
	own, err := sink.SelfSigned()
	require.NoError(t, err)
	folder := t.TempDir()
	certificate, key = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	der, err := x509.MarshalPKCS8PrivateKey(own.Certificates[0].PrivateKey)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own.Certificates[0].Certificate[0]}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	return certificate, key
}
