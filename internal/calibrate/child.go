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
	"slices"
	"strconv"
	"strings"
	"time"
)

// child is a sink in another process, so that the client's CPU time does not include the sink's. It ends when its stdin is
// closed, and so with this process.
type child struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	stderr bytes.Buffer // valid after the end
	at     addresses
	ended  chan struct{} // closed at the end
}

// startTimeout is how long a sink may take to open its ports, and to close them.
const startTimeout = 10 * time.Second

// errSinkEnded is the error of a calibration whose sink ended.
var errSinkEnded = errors.New("the sink ended in the middle")

// startChild starts a sink on free ports of this machine. It discards what it gets and acknowledges a row for every
// rowBytes, or counts rows if rowBytes is 0.
func startChild(ctx context.Context, binary string, ports []string, rowBytes int64) (*child, error) {
	args := []string{"sink", "--json", "--until-eof"}
	if rowBytes > 0 {
		args = append(args, "--no-count", "--row-bytes", strconv.FormatInt(rowBytes, 10))
	}
	for _, name := range ports {
		args = append(args, "--"+name, "0")
	}
	c := &child{cmd: exec.Command(binary, args...), ended: make(chan struct{})}
	// The user's settings for sinks, such as a slower rate, do not apply.
	c.cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "TERAPUSH_") })
	c.cmd.Stderr, c.cmd.SysProcAttr = &c.stderr, ownGroup()
	stdin, err := c.cmd.StdinPipe()
	stdout, err2 := c.cmd.StdoutPipe()
	if err = errors.Join(err, err2); err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("starting a sink: %w", err)
	}
	c.stdin = stdin
	late := time.AfterFunc(startTimeout, c.kill)
	stopped := context.AfterFunc(ctx, c.kill)
	out := bufio.NewReader(stdout)
	line, _ := out.ReadBytes('\n') // an incomplete line is no JSON
	late.Stop()
	go func() {
		_, _ = io.Copy(io.Discard, out)
		_ = c.cmd.Wait() // ProcessState has the result
		close(c.ended)
	}()
	if !stopped() {
		c.stop()
		return nil, context.Cause(ctx)
	}
	if c.at, err = listening(line, ports); err != nil {
		c.stop()
		return nil, fmt.Errorf("starting a sink: %w%s", err, c.output())
	}
	return c, nil
}

// listening reads the first line of a sink: where it listens.
func listening(line []byte, ports []string) (addresses, error) {
	var first struct {
		Listening addresses `json:"listening"`
	}
	if err := json.Unmarshal(line, &first); err != nil {
		return nil, fmt.Errorf("it does not say where it listens: %w", err)
	}
	for _, name := range ports {
		if first.Listening[name] == "" {
			return nil, fmt.Errorf("it has no port for %s", name)
		}
	}
	return first.Listening, nil
}

// failure returns the error of a sink that ended early, nil while it runs. It waits a little, since connections break
// before the process has ended.
func (c *child) failure() error {
	select {
	case <-c.ended:
	case <-time.After(200 * time.Millisecond):
		return nil
	}
	return fmt.Errorf("%w: %s%s", errSinkEnded, c.cmd.ProcessState, c.output())
}

func (c *child) kill() { _ = c.cmd.Process.Kill() }

// stop ends the sink, and kills it after startTimeout.
func (c *child) stop() {
	_ = c.stdin.Close()
	late := time.AfterFunc(startTimeout, c.kill)
	<-c.ended
	late.Stop()
}

// output returns the end of what an ended sink wrote to stderr, as the end of an error.
func (c *child) output() string {
	const most = 2 << 10
	text := strings.TrimSpace(c.stderr.String())
	if text == "" {
		return ""
	}
	return "; its output: " + text[max(0, len(text)-most):]
}
