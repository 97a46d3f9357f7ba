package calibrate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

// errNoSink is a server that is not a sink. Nothing got into a database there, which does not have our table.
var errNoSink = errors.New("the server is not a sink but")

// checkSink refuses a server by its version or header.
func checkSink(version string) error {
	if strings.Contains(version, loader.SinkMark) {
		return nil
	}
	return fmt.Errorf("%w %q", errNoSink, version)
}

// probeHost finds out which protocols the sink at Host has. It fails if there are none.
func (c *Calibration) probeHost(ctx context.Context, found *Found) error {
	c.sink = sink{at: addresses{}, versions: map[string]string{}, refusal: map[string]string{}}
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

// probe checks whether a sink speaks the protocol at Host, and measures the round trip.
func (c *Calibration) probe(ctx context.Context, p Protocol, found *Found) (err error) {
	for _, name := range p.ports() {
		at := net.JoinHostPort(c.Host, strconv.Itoa(c.Ports[name]))
		c.sink.at[name] = at
		seconds, err := roundTrip(ctx, at)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if found.RTTSeconds == 0 || seconds < found.RTTSeconds {
			found.RTTSeconds = seconds
		}
	}
	if !p.http {
		return nil
	}
	if c.sink.versions[p.Name], err = serverHeader(ctx, c.sink.at[p.Name]); err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	return checkSink(c.sink.versions[p.Name])
}

// roundTrip returns the shortest of five connects: TCP's handshake is one round trip.
func roundTrip(ctx context.Context, at string) (seconds float64, err error) {
	dialer := net.Dialer{Timeout: 5 * time.Second}
	for range 5 {
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

// serverHeader returns the name of a web server, whatever its status.
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
