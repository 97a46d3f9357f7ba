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

// child is a sink in another process, so that the client's CPU time is not mixed with the sink's. It ends with its input,
// and so with this process, however that ends.
type child struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	stderr bytes.Buffer // to be read after the end
	at     addresses
	ended  chan struct{} // closed at the end
	err    error         // how it ended; set before ended is closed
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
	c := &child{cmd: exec.Command(binary, args...), ended: make(chan struct{})}
	// The sink is to be as fast as it can, whatever the user's sinks are told.
	c.cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "TERAPUSH_") })
	c.cmd.Stderr, c.cmd.SysProcAttr = &c.stderr, apart()
	stdin, err := c.cmd.StdinPipe()
	stdout, err2 := c.cmd.StdoutPipe()
	if err = errors.Join(err, err2); err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
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
		c.at, err = listening(line, ports)
	case <-late.C:
		err = fmt.Errorf("it has opened no port within %s", startup)
	case <-ctx.Done():
		c.stop()
		return nil, context.Cause(ctx)
	}
	if err != nil {
		c.stop()
		return nil, fmt.Errorf("starting a sink: %w%s", err, c.said())
	}
	return c, nil
}

// listening reads the first line of a sink: where it listens.
func listening(line []byte, ports []string) (addresses, error) {
	var told struct {
		Listening addresses `json:"listening"`
	}
	if err := json.Unmarshal(line, &told); err != nil {
		return nil, fmt.Errorf("it does not say where it listens: %w", err)
	}
	for _, name := range ports {
		if told.Listening[name] == "" {
			return nil, fmt.Errorf("it has no port for %s", name)
		}
	}
	return told.Listening, nil
}

// failure is the error of a sink that has ended although nobody told it to; nil while it lives. A push notices first: its
// connections break while the process still ends.
func (c *child) failure() error {
	const dying = 200 * time.Millisecond
	select {
	case <-c.ended:
	case <-time.After(dying):
		return nil
	}
	if c.err == nil {
		return fmt.Errorf("%w: without an error%s", errSinkEnded, c.said())
	}
	return fmt.Errorf("%w: %w%s", errSinkEnded, c.err, c.said())
}

// stop ends the sink, at the latest by killing it.
func (c *child) stop() {
	_ = c.stdin.Close()
	late := time.AfterFunc(startup, func() { _ = c.cmd.Process.Kill() })
	<-c.ended
	late.Stop()
}

// said returns the last of what an ended sink wrote to stderr, as the end of an error.
func (c *child) said() string {
	const most = 2 << 10
	text := strings.TrimSpace(c.stderr.String())
	if text == "" {
		return ""
	}
	return "; it said: " + text[max(0, len(text)-most):]
}
