package mysql

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/pkg/loader"
)

const defaultPort = "3306"

// endpoint is one server of the target and how to connect to it.
type endpoint struct {
	address string // host:port, or the path of a socket
	config  *mysql.Config
	dialAny dial // to any server that the address's name stands for
}

// endpoints makes one driver configuration for each host. They are built field by field and never written as a DSN,
// so that no string exists that holds the password among other things.
func endpoints(t loader.Target, d loader.Deps) ([]endpoint, error) {
	if err := checkParams(t); err != nil {
		return nil, err
	}
	mode, err := tlsMode(t)
	if err != nil {
		return nil, err
	}
	if path := t.Params.Get("socket"); path != "" {
		e, err := newEndpoint(t, d, mode, "unix", path, path)
		return []endpoint{e}, err
	}
	var all []endpoint
	for i := range max(len(t.Hosts), 1) {
		address := t.Address(i, defaultPort)
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("host %q of the target: %w", t.Hosts[i], err)
		}
		e, err := newEndpoint(t, d, mode, "tcp", address, host)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

func newEndpoint(t loader.Target, d loader.Deps, mode loader.TLSMode, network, address, host string) (endpoint, error) {
	c := mysql.NewConfig()
	c.Net, c.Addr = network, address
	c.User, c.Passwd, c.DBName = t.User, t.Password.Reveal(), t.Database
	c.DialFunc = d.Dial
	c.Logger = driverLog{d.Log}
	// RejectReadOnly stays off: it reconnects after a failover by hiding the server's answer, and Classify does as much
	// with the answer.
	c.InterpolateParams = true // control statements have arguments; without this each takes two more round trips
	var err error
	c.TLS, c.AllowFallbackToPlaintext, err = d.TLS(mode, host)
	if err != nil {
		return endpoint{}, fmt.Errorf("TLS for %s: %w", address, err)
	}
	return endpoint{address: address, config: c, dialAny: d.DialAny()}, nil
}

// checkParams refuses what it does not know: a parameter that is silently ignored is a setting that somebody trusts.
func checkParams(t loader.Target) error {
	known := []string{"socket", "tls"}
	for name := range t.Params {
		switch {
		case name == "multiStatements":
			return fmt.Errorf("parameter multiStatements is refused: every batch is one statement, and several in one" +
				" packet would leave the answer to all but the first unread; leave it out")
		case !slices.Contains(known, name):
			return fmt.Errorf("parameter %q of the target is not known; there are: %s; session variables go into --set %s=…",
				name, strings.Join(known, ", "), name)
		}
	}
	return nil
}

// tlsMode reads the driver's usual tls parameter. What the user says beside the URL wins.
func tlsMode(t loader.Target) (loader.TLSMode, error) {
	if t.TLS != loader.TLSAuto {
		return t.TLS, nil
	}
	switch value := t.Params.Get("tls"); value {
	case "":
		return loader.TLSAuto, nil
	case "false":
		return loader.TLSOff, nil
	case "preferred":
		return loader.TLSPrefer, nil
	case "skip-verify":
		return loader.TLSRequire, nil
	case "true":
		return loader.TLSVerify, nil
	default:
		return "", fmt.Errorf("parameter tls=%s is not known; there are: true, skip-verify, preferred, false", value)
	}
}

// dial is the type of loader.Deps.Dial and of the driver's DialFunc.
type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// driverLog takes what the driver would print to stderr. It repeats errors that are returned as well.
type driverLog struct{ log *slog.Logger }

func (l driverLog) Print(v ...any) { l.log.Debug("mysql driver", "message", fmt.Sprint(v...)) }
