package postgres

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgservicefile"

	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/loader"
)

// parameters are libpq's connection parameters. pgconn reads them as well, but does not tell which it found, and drops
// those that it does not know.
type parameters map[string]string

// variables are libpq's, with the parameters that they stand for, of those that decide how the server is reached.
// pgconn reads the others.
var variables = map[string]string{
	"PGSSLMODE": "sslmode", "PGSSLROOTCERT": "sslrootcert", "PGSSLCERT": "sslcert", "PGSSLKEY": "sslkey",
	"PGSSLCERTMODE": "sslcertmode", "PGSSLCRL": "sslcrl", "PGSSLCRLDIR": "sslcrldir", "PGSSLSNI": "sslsni",
	"PGSSLMINPROTOCOLVERSION": "ssl_min_protocol_version", "PGSSLMAXPROTOCOLVERSION": "ssl_max_protocol_version",
	"PGGSSENCMODE": "gssencmode", "PGREQUIREPEER": "requirepeer", "PGHOST": "host", "PGHOSTADDR": "hostaddr",
	"PGPASSWORD": "password", "PGPASSFILE": "passfile", "PGSERVICE": "service", "PGSERVICEFILE": "servicefile",
}

// parametersOf merges what libpq reads: its variables, the service in a file, the target. The last one wins.
func parametersOf(t loader.Target) (parameters, error) {
	all := parameters{}
	if strings.HasPrefix(os.Getenv("PGREQUIRESSL"), "1") {
		all["sslmode"] = "require"
	}
	for variable, name := range variables {
		if value := os.Getenv(variable); value != "" {
			all[name] = value
		}
	}
	given := ofTarget(t)
	if service := cmp.Or(given["service"], all["service"]); service != "" {
		path := cmp.Or(given["servicefile"], all["servicefile"], inHome(".pg_service.conf"))
		file, err := pgservicefile.ReadServicefile(path)
		if err != nil {
			return nil, fmt.Errorf("reading the file of service %s: %w", service, err)
		}
		found, err := file.GetService(service)
		if err != nil {
			return nil, fmt.Errorf("file %s has no service %s", path, service)
		}
		all.add(found.Settings)
	}
	maps.Copy(all, given)
	return all, nil
}

// ofTarget returns the parameters of the URL.
func ofTarget(t loader.Target) parameters {
	all := parameters{}
	for name, values := range t.Params {
		all.add(parameters{name: values[len(values)-1]})
	}
	return all
}

// add adds parameters, and translates older spellings of sslmode as libpq does, and those of other clients in URLs that
// providers hand out.
func (s parameters) add(more parameters) {
	for name, value := range more {
		switch {
		case value == "":
		case name == "requiressl" && strings.HasPrefix(value, "1"), name == "ssl" && (value == "true" || value == "1"):
			s["sslmode"] = cmp.Or(more["sslmode"], "require")
		case name == "requiressl":
			s["sslmode"] = cmp.Or(more["sslmode"], "prefer")
		default:
			s[name] = value
		}
	}
}

// inHome returns the path of a file in the home folder, "" if there is no home.
func inHome(path ...string) string {
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(append([]string{home}, path...)...)
}

// existing returns the path if there is a file.
func existing(path string) string {
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// ignored are the parameters that nobody misses: what they set is set for every database, is always so or never used.
func ignored() []string {
	return []string{
		"keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout", // see netio.Dialer
		"gssencmode", "gssdelegation", "gsslib", "requirepeer", "authtype", "tty", "sslcompression", "sslkeylogfile", "replication",
		"client_encoding", "fallback_application_name", // ours are set
		"load_balance", "load_balance_hosts", // all nodes are used anyway
	}
}

// own are the parameters that are read here and not by pgconn, which would send those that it does not know to the
// server.
func own() []string {
	return append(ignored(), "host", "port", "hostaddr", "password", "passfile", "ssl", "requiressl", "sslmode", "sslrootcert",
		"sslcert", "sslkey", "sslpassword", "sslcrl", "sslcrldir", "sslsni", "ssl_min_protocol_version", "ssl_max_protocol_version")
}

// tlsVersions are libpq's names in lower case; "" is no limit.
var tlsVersions = map[string]uint16{
	"": 0, "tlsv1": tls.VersionTLS10, "tlsv1.1": tls.VersionTLS11, "tlsv1.2": tls.VersionTLS12, "tlsv1.3": tls.VersionTLS13,
}

// sslModes are libpq's.
var sslModes = map[string]loader.TLSMode{
	"": loader.TLSAuto, "disable": loader.TLSOff, "allow": loader.TLSPrefer, "prefer": loader.TLSPrefer,
	"require": loader.TLSRequire, "verify-ca": loader.TLSVerifyCA, "verify-full": loader.TLSVerify,
	"no-verify": loader.TLSRequire, // of node-postgres
}

// mode reads sslmode.
func (s parameters) mode() (loader.TLSMode, error) {
	mode, ok := sslModes[s["sslmode"]]
	if !ok {
		return "", fmt.Errorf("sslmode %q: valid are disable, allow, prefer, require, verify-ca and verify-full", s["sslmode"])
	}
	if mode == loader.TLSOff && s["sslnegotiation"] == "direct" {
		return "", errors.New("sslmode=disable and sslnegotiation=direct contradict each other")
	}
	return mode, nil
}

// encryption makes the TLS configuration of a host as libpq does, after the flags: they come before its settings.
func (s parameters) encryption(t loader.Target, d loader.Deps, host string) (config *tls.Config, plain bool, err error) {
	mode, err := s.mode()
	if err != nil {
		return nil, false, err
	}
	if t.TLS != loader.TLSAuto {
		mode = t.TLS
	}
	trust := netio.Trust{CAFile: s["sslrootcert"]}
	switch {
	case trust.CAFile == "system": // for which libpq allows nothing weaker
		trust.CAFile = ""
		if mode != loader.TLSOff {
			mode = loader.TLSVerify
		}
	case trust.CAFile != "":
		mode = trust.Checked(mode)
	default:
		// What is there by itself is not checked more than in libpq: where TLS is only preferred, a connection without
		// may follow one that failed.
		trust.CAFile = existing(inHome(".postgresql", "root.crt"))
		if mode == loader.TLSRequire {
			mode = trust.Checked(mode)
		}
	}
	named := false // by a flag
	config, plain, err = trust.After(func(mode loader.TLSMode, host string) (*tls.Config, bool, error) {
		config, plain, err := d.TLS(mode, host)
		named = config != nil && config.RootCAs != nil
		return config, plain, err
	}, mode, host)
	if err != nil || config == nil {
		return nil, plain, err
	}
	if crl := existing(inHome(".postgresql", "root.crl")); crl != "" && trust.CAFile != "" && !named {
		return nil, false, fmt.Errorf("%s: lists of revoked certificates are not read; --tls-ca names an authority without one", crl)
	}
	if len(config.Certificates) == 0 && s["sslcertmode"] != "disable" {
		if err := s.addClientCertificate(config); err != nil {
			return nil, false, err
		}
	}
	config.MinVersion = max(config.MinVersion, tlsVersions[strings.ToLower(s["ssl_min_protocol_version"])])
	config.MaxVersion = tlsVersions[strings.ToLower(s["ssl_max_protocol_version"])]
	if s["sslnegotiation"] == "direct" { // which has no way back, and names its protocol
		config.NextProtos, plain = []string{"postgresql"}, false
	}
	return config, plain, nil
}

// addClientCertificate adds that of sslcert and sslkey, or that at its usual place. A key that others can read is
// refused, as libpq does.
func (s parameters) addClientCertificate(config *tls.Config) error {
	cert := cmp.Or(s["sslcert"], existing(inHome(".postgresql", "postgresql.crt")))
	if cert == "" {
		return nil
	}
	key := cmp.Or(s["sslkey"], inHome(".postgresql", "postgresql.key"))
	info, err := os.Stat(key)
	if err != nil {
		return fmt.Errorf("the key of certificate %s: %w", cert, err)
	}
	if open := info.Mode().Perm() & 0o037; open != 0 { // root's keys may be for a group to read
		return fmt.Errorf("key %s can be read by others: chmod 600 %s", key, key)
	}
	return netio.Trust{CertFile: cert, KeyFile: key}.Add(config)
}

// passfile returns the file with passwords. One that others can read is not used, as in libpq, and problem says so; it
// is empty if a password is given anyway.
func (s parameters) passfile() (path, problem string) {
	path = existing(cmp.Or(s["passfile"], inHome(".pgpass")))
	if path == "" {
		return "", ""
	}
	info, err := os.Stat(path)
	switch {
	case err != nil, s["password"] != "":
	case !info.Mode().IsRegular():
		return "", fmt.Sprintf("password file %s is not a plain file, and is not read", path)
	case info.Mode().Perm()&0o077 != 0:
		return "", fmt.Sprintf("password file %s can be read by others, and is not read: chmod 600 %s", path, path)
	}
	return path, ""
}

// address returns the address to connect to in place of a host's name, "" if there is none.
func (s parameters) address(t loader.Target, host string) (string, error) {
	addresses := strings.Split(s["hostaddr"], ",")
	if s["hostaddr"] == "" {
		return "", nil
	}
	var hosts []string
	for i := range t.Hosts {
		name, _, _ := net.SplitHostPort(t.Address(i, "0"))
		hosts = append(hosts, name)
	}
	if len(hosts) == 0 && s["host"] != "" {
		hosts = strings.Split(s["host"], ",")
	}
	if len(hosts) == 0 { // the addresses are the hosts
		return "", nil
	}
	if len(hosts) != len(addresses) {
		return "", fmt.Errorf("hostaddr has %d addresses for %d hosts", len(addresses), len(hosts))
	}
	if i := slices.Index(hosts, host); i >= 0 {
		return addresses[i], nil
	}
	return "", nil
}
