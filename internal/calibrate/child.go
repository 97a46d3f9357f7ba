package calibrate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// child is a sink in another process, so that the client's CPU time can be told from the sink's. It ends with its input,
// and so with this process, however that ends.
type child struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	stderr *tail
	at     addresses
	ended  chan struct{} // closed when it has
	err    error         // how; set before ended is closed
}

// startup is how long a sink may take to open its ports, and to close them.
const startup = 10 * time.Second

// errSinkEnded is the error of a calibration whose sink is gone.
var errSinkEnded = errors.New("the sink ended in the middle")

// startChild starts a sink on free ports of this machine. It drops what it gets and acknowledges a row for every rowBytes, or
// counts where these are 0.
func startChild(ctx context.Context, binary string, ports []string, rowBytes int64) (*child, error) {
	args := []string{"sink", "--json", "--until-eof"}
	if rowBytes > 0 {
		args = append(args, "--no-count", "--row-bytes", strconv.FormatInt(rowBytes, 10))
	}
	for _, name := range ports {
		args = append(args, "--"+name, "0")
	}
	c := &child{cmd: exec.Command(binary, args...), stderr: new(tail), ended: make(chan struct{})}
	c.cmd.Env = withoutFlags(os.Environ())
	c.cmd.Stderr = c.stderr
	c.cmd.SysProcAttr = apart()
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting a sink: %w", err)
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting a sink: %w", err)
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a sink: %w", err)
	}
	c.stdin = stdin
	first := make(chan []byte, 1)
	go func() {
		out := bufio.NewReader(stdout)
		line, _ := out.ReadBytes('\n') // what is not whole is no JSON
		first <- line
		_, _ = io.Copy(io.Discard, out)
		c.err = c.cmd.Wait()
		close(c.ended)
	}()
	late := time.NewTimer(startup)
	defer late.Stop()
	select {
	case line := <-first:
		err = c.hear(line, ports)
	case <-late.C:
		err = fmt.Errorf("starting a sink: it has opened no port within %s", startup)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		c.stop()
		return nil, fmt.Errorf("%w%s", err, c.stderr.said())
	}
	return c, nil
}

// hear takes the first line of a sink: where it listens.
func (c *child) hear(line []byte, ports []string) error {
	var told struct {
		Listening addresses `json:"listening"`
	}
	if err := json.Unmarshal(line, &told); err != nil {
		return fmt.Errorf("starting a sink: it does not say where it listens: %w", err)
	}
	for _, name := range ports {
		if told.Listening[name] == "" {
			return fmt.Errorf("starting a sink: it has no port for %s", name)
		}
	}
	c.at = told.Listening
	return nil
}

// gone is the error of a sink that has ended although nobody told it to; nil while it lives. A push notices first: its
// connections break while the process still ends.
func (c *child) gone() error {
	const dying = 200 * time.Millisecond
	select {
	case <-c.ended:
	case <-time.After(dying):
		return nil
	}
	why := "without an error"
	if c.err != nil {
		why = c.err.Error()
	}
	return fmt.Errorf("%w: %s%s", errSinkEnded, why, c.stderr.said())
}

// stop ends the sink, at the latest by killing it.
func (c *child) stop() {
	_ = c.stdin.Close()
	select {
	case <-c.ended:
	case <-time.After(startup):
		_ = c.cmd.Process.Kill()
		<-c.ended
	}
}

// withoutFlags is an environment without terapush's own variables: the sink is to be as fast as it can, whatever the
// user's sinks are told.
func withoutFlags(environment []string) []string {
	var kept []string
	for _, entry := range environment {
		if !strings.HasPrefix(entry, "TERAPUSH_") {
			kept = append(kept, entry)
		}
	}
	return kept
}

// tail keeps the last of what somebody says.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	const most = 2 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = bytes.Clone(t.text[max(0, len(t.text)-most):])
	return len(p), nil
}

// said is the text as the end of an error.
func (t *tail) said() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text := strings.TrimSpace(string(t.text)); text != "" {
		return "; it said: " + text
	}
	return ""
}
