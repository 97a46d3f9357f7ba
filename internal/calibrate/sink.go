package calibrate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// reach returns where the sink at Host listens. Protocols that it does not have are not measured.
func (c *Calibration) reach(ctx context.Context) (addresses, error) {
	at, dialer := addresses{}, net.Dialer{Timeout: dialTimeout}
	missing := func(p Protocol) error {
		for _, name := range p.ports {
			at[name] = net.JoinHostPort(c.Host, strconv.Itoa(c.Ports[name]))
			conn, err := dialer.DialContext(ctx, "tcp", at[name])
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			_ = conn.Close()
		}
		return nil
	}

	var there []Protocol
	var problems error
	for _, p := range c.Protocols {
		if err := missing(p); err != nil {
			c.Log.Warn(p.Name+" is not measured", "error", err) // one message a protocol, or they become one line
			problems = errors.Join(problems, err)
			continue
		}
		there = append(there, p)
	}
	if len(there) == 0 {
		return nil, fmt.Errorf("%w: start terapush sink --no-count there, as terapush calibrate --help says: %w", ErrNoSink, problems)
	}
	c.Protocols = there
	return at, nil
}

// children are the sinks on this machine.
type children []*child

// startSinks starts a sink for each protocol. What it returns has to be stopped, also if there is an error.
func (c *Calibration) startSinks(ctx context.Context) (started children, at addresses, err error) {
	at = addresses{}
	for _, p := range c.Protocols {
		one, err := startChild(ctx, c.Binary, p.ports, c.rowBytes(p))
		if err != nil {
			return started, nil, fmt.Errorf("%w: %w", ErrNoSink, err)
		}
		started = append(started, one)
		maps.Copy(at, one.at)
	}
	return started, at, nil
}

func (all children) stop() {
	for _, one := range all {
		one.stop()
	}
}

// failure returns the error of a sink that ended early, nil while all run. It waits a little, since connections break
// before the process has ended.
func (all children) failure() error {
	late, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	for _, one := range all {
		select {
		case <-one.ended:
			return fmt.Errorf("the sink ended in the middle: %s%s", one.cmd.ProcessState, one.output())
		case <-late.Done():
		}
	}
	return nil
}

// child is a sink in another process, so that the client's CPU time does not include the sink's. It ends when its stdin is
// closed, and so with this process.
type child struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc // closes its stdin
	stderr bytes.Buffer       // valid after the end
	at     addresses
	ended  chan struct{} // closed at the end
}

// startTimeout is how long a sink may take to open its ports, and to close them.
const startTimeout = 10 * time.Second

const dialTimeout = 5 * time.Second

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

	ctx, cancel := context.WithCancel(ctx)
	c := &child{cmd: exec.CommandContext(ctx, binary, args...), cancel: cancel, ended: make(chan struct{})}
	// The user's settings for sinks, such as a slower rate, do not apply.
	c.cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "TERAPUSH_") })
	c.cmd.Stderr, c.cmd.SysProcAttr = &c.stderr, ownGroup()
	stdin, err := c.cmd.StdinPipe()
	stdout, err2 := c.cmd.StdoutPipe()
	if err = errors.Join(err, err2); err == nil {
		c.cmd.Cancel, c.cmd.WaitDelay = stdin.Close, startTimeout
		err = c.cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("starting a sink: %w", err)
	}

	late := time.AfterFunc(startTimeout, cancel)
	out := bufio.NewReader(stdout)
	line, _ := out.ReadBytes('\n') // an incomplete line is no JSON
	late.Stop()
	go func() {
		_, _ = io.Copy(io.Discard, out)
		_ = c.cmd.Wait() // ProcessState has the result
		close(c.ended)
	}()
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

// stop ends the sink. It is killed if it does not end by itself.
func (c *child) stop() {
	c.cancel()
	<-c.ended
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
