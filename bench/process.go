//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
)

// sinkProcess is terapush sink, in a process of its own. It ends when its input does, so it outlives nobody.
type sinkProcess struct {
	addresses map[string]string
	command   *exec.Cmd
	input     io.Closer
}

// startSink starts one that drops rows of a length in the kernel, or looks at them if it is asked to.
func startSink(ctx context.Context, o options, rowBytes int) (*sinkProcess, error) {
	args := []string{"sink", "--json", "--until-eof", "--mysql=0", "--postgres=0", "--s3=0", "--databend=0", "--doris=0", "--doris-sql=0", "--raw=0"}
	if !o.count {
		args = append(args, "--no-count", fmt.Sprint("--row-bytes=", rowBytes))
	}
	c := exec.CommandContext(ctx, o.terapush, args...)
	c.Stderr = os.Stderr
	input, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("starting the sink: %w", err)
	}
	s := &sinkProcess{command: c, input: input}
	var opened struct{ Listening map[string]string }
	if err := json.NewDecoder(output).Decode(&opened); err != nil {
		s.stop()
		return nil, fmt.Errorf("reading the sink's addresses: %w", err)
	}
	s.addresses = opened.Listening
	return s, nil
}

// url is the target that terapush and the drivers push to.
func (s *sinkProcess) url(family string) string {
	_, dorisPort, _ := net.SplitHostPort(s.addresses["doris"])
	return map[string]string{
		"mysql":    "mysql://bench@" + s.addresses["mysql"] + "/bench?tls=false",
		"postgres": "postgres://bench@" + s.addresses["postgres"] + "/bench?sslmode=disable",
		"s3":       "s3://bench/prefix?path_style=true&region=us-east-1&endpoint=http://" + s.addresses["s3"],
		"databend": "databend://bench@" + s.addresses["databend"] + "/bench?sslmode=disable",
		"doris":    "doris://bench@" + s.addresses["doris-sql"] + "/bench?http_port=" + dorisPort,
	}[family]
}

// encrypted is the target of a push that has --tls.
func (s *sinkProcess) encrypted(family string) string {
	return strings.NewReplacer("?tls=false", "", "?sslmode=disable", "", "http://", "https://").Replace(s.url(family))
}

func (s *sinkProcess) pid() int { return s.command.Process.Pid }

func (s *sinkProcess) stop() {
	_ = s.input.Close()
	_ = s.command.Wait() // it has done its work
}
