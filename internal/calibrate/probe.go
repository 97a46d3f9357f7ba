package calibrate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

// errNoSink is a server that is not a sink. A database there has no table of ours, so nothing got into it.
var errNoSink = errors.New("what listens there is no sink but")

// checkSink refuses a server by its version or header.
func checkSink(says string) error {
	if strings.Contains(says, loader.SinkMark) {
		return nil
	}
	return fmt.Errorf("%w %q", errNoSink, says)
}

// probeHost asks the sink at the host, if there is one, what it speaks, and refuses a host that has none.
func (c *Calibration) probeHost(ctx context.Context, found *Found) error {
	c.sink = sink{at: addresses{}, says: map[string]string{}, refusal: map[string]string{}}
	if c.Host == "" {
		return nil
	}
	var refusals []string
	for _, p := range c.Protocols {
		if err := c.probe(ctx, p, found); err != nil {
			c.sink.refusal[p.Name] = err.Error()
			refusals = append(refusals, err.Error())
		}
	}
	if len(refusals) < len(c.Protocols) {
		return nil
	}
	return fmt.Errorf("%s; start `terapush sink --no-count --row-bytes N --host 0.0.0.0` there, as terapush calibrate --help says",
		strings.Join(refusals, "; "))
}

// probe finds out whether a sink speaks the protocol at the host, and how long the way there takes.
func (c *Calibration) probe(ctx context.Context, p Protocol, found *Found) (err error) {
	for _, name := range p.ports() {
		at := net.JoinHostPort(c.Host, strconv.Itoa(c.Ports[name]))
		c.sink.at[name] = at
		seconds, err := roundTrip(ctx, at)
		if err != nil {
			return fmt.Errorf("%s: nothing at %s: %w", name, at, systemError(err))
		}
		if found.RTTSeconds == 0 || seconds < found.RTTSeconds {
			found.RTTSeconds = seconds
		}
	}
	if !p.http {
		return nil
	}
	at := c.sink.at[p.Name]
	if c.sink.says[p.Name], err = serverHeader(ctx, at); err != nil {
		return fmt.Errorf("%s: %s speaks no HTTP: %w", p.Name, at, systemError(err))
	}
	return checkSink(c.sink.says[p.Name])
}

// roundTrip returns the shortest of a few connects: TCP's handshake is one round trip.
func roundTrip(ctx context.Context, at string) (seconds float64, err error) {
	const times = 5
	dialer := net.Dialer{Timeout: 5 * time.Second}
	for range times {
		began := time.Now()
		conn, err := dialer.DialContext(ctx, "tcp", at)
		if err != nil {
			return 0, err
		}
		took := time.Since(began).Seconds()
		_ = conn.Close()
		if seconds == 0 || took < seconds {
			seconds = took
		}
	}
	return seconds, nil
}

// serverHeader returns what a web server calls itself, whatever it answers otherwise.
func serverHeader(ctx context.Context, at string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+"/", nil)
	if err != nil {
		return "", err
	}
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	return response.Header.Get("Server"), response.Body.Close()
}

// systemError returns what the system says, "connection refused", without the address.
func systemError(err error) error {
	var system syscall.Errno
	if errors.As(err, &system) {
		return system
	}
	return err
}
