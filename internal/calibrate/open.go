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
)

// What sinks call themselves, in their version or in the header Server.
const (
	sinkName    = "terapush-sink"
	noCountName = "terapush-sink-no-count"
)

// acquaintance is what is known of one protocol of a sink that somebody else started.
type acquaintance struct {
	refusal string // why nothing is sent there; "" where something is
	says    string // its header Server; "" of protocols without one
}

// unlike refuses what is no sink, by its version or header. A database there has no table of ours, so nothing got into it.
func (a acquaintance) unlike(version string) string {
	if strings.Contains(a.says+version, sinkName) {
		return ""
	}
	return fmt.Sprintf("what listens there is no sink but %q", version+a.says)
}

// counts tells whether the sink looks at what it gets.
func (a acquaintance) counts(version string) bool {
	return !strings.Contains(a.says+version, noCountName)
}

// meetAll makes the acquaintance of the sink at the host, if there is one, and refuses a host that has none.
func (c *Calibration) meetAll(ctx context.Context, found *Found) error {
	c.sink = sink{at: addresses{}, known: map[string]acquaintance{}}
	if c.Host == "" {
		return nil
	}
	var refusals []string
	for _, p := range c.Protocols {
		known, roundTrip := c.meet(ctx, p)
		c.sink.known[p.Name] = known
		if known.refusal != "" {
			refusals = append(refusals, known.refusal)
		}
		if roundTrip > 0 && (found.RTTSeconds == 0 || roundTrip < found.RTTSeconds) {
			found.RTTSeconds = roundTrip
		}
	}
	if len(refusals) == len(c.Protocols) {
		return fmt.Errorf("%s; start `terapush sink --no-count --row-bytes N --host 0.0.0.0` there, as terapush calibrate --help says", strings.Join(refusals, "; "))
	}
	return nil
}

// open starts a sink for one protocol, unless somebody else has.
func (c *Calibration) open(ctx context.Context, p Protocol) (closes func(), err error) {
	if c.Host != "" {
		return func() {}, nil
	}
	rowBytes, err := c.rowBytes(p)
	if err != nil {
		return nil, err
	}
	child, err := startChild(ctx, c.Binary, p.ports(), rowBytes)
	if err != nil {
		return nil, err
	}
	c.sink.at, c.sink.child = child.at, child
	c.sink.known[p.Name] = acquaintance{says: map[bool]string{true: noCountName, false: sinkName}[rowBytes > 0]}
	return child.stop, nil
}

// rowBytes is how many bytes a sink that does not count has to take for a row. Where its answers are compared with what
// was sent whatever --verify says, it is the length that all rows have, or 0 where they have several: then the sink has to
// count. Elsewhere any number will do that makes rows of every load.
func (c *Calibration) rowBytes(p Protocol) (int64, error) {
	one, err := c.fit(p, nowhere(), false, 1, shortest)
	if err != nil {
		return 0, err
	}
	if !p.compares {
		return one.Plan.RowBytes, nil
	}
	d, err := datasetOf(one)
	if err != nil {
		return 0, err
	}
	return lengthOfAll(d, one.Plan.Format, one.Plan.KeyRows)
}

// meet finds out whether a sink speaks the protocol at the host, and how long the way there takes, in seconds.
func (c *Calibration) meet(ctx context.Context, p Protocol) (known acquaintance, roundTrip float64) {
	for _, name := range p.ports() {
		at := net.JoinHostPort(c.Host, strconv.Itoa(c.Ports[name]))
		c.sink.at[name] = at
		took, err := knock(ctx, at)
		if err != nil {
			known.refusal = fmt.Sprintf("%s: nothing at %s: %v", name, at, plainly(err))
			return known, roundTrip
		}
		if roundTrip == 0 || took < roundTrip {
			roundTrip = took
		}
	}
	if p.http {
		var err error
		if known.says, err = askName(ctx, c.sink.at[p.Name]); err != nil {
			known.refusal = fmt.Sprintf("%s: %s speaks no HTTP: %v", p.Name, c.sink.at[p.Name], plainly(err))
		} else {
			known.refusal = known.unlike("")
		}
	}
	return known, roundTrip
}

// knock connects a few times, and tells how long that took at least: TCP's handshake is one round trip.
func knock(ctx context.Context, at string) (seconds float64, err error) {
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

// askName asks a web server what it calls itself, whatever it answers besides.
func askName(ctx context.Context, at string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	question, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+"/", nil)
	if err != nil {
		return "", err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(question)
	if err != nil {
		return "", err
	}
	_ = answer.Body.Close()
	return answer.Header.Get("Server"), nil
}

// plainly is what the system says, "connection refused", without the address that is told already.
func plainly(err error) error {
	var system syscall.Errno
	if errors.As(err, &system) {
		return system
	}
	return err
}
