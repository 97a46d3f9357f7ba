package loader

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Secret is a password. It prints as stars; only Reveal returns it.
type Secret string

const stars = "***"

// String hides the secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return stars
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the secret from JSON and every other text codec.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Reveal returns the password itself.
func (s Secret) Reveal() string { return string(s) }

// TLSMode is how a connection uses TLS.
type TLSMode string

// The TLS modes. TLSAuto leaves the choice to the URL, and where that is silent prefers TLS on loopback and on Unix
// sockets and verifies the server everywhere else; where a port speaks either TLS or none, as Oracle's listener does,
// the URL alone decides.
const (
	TLSAuto    TLSMode = ""
	TLSOff     TLSMode = "off"
	TLSPrefer  TLSMode = "prefer"  // when the server offers it, unverified
	TLSRequire TLSMode = "require" // unverified: protects against listening, not against a false server
	// TLSVerifyCA verifies that a given authority has signed the certificate, and not the host name. Without a given
	// authority it is TLSVerify.
	TLSVerifyCA TLSMode = "verify-ca"
	TLSVerify   TLSMode = "verify" // certificate and host name
)

// Setting is one session variable of --set.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ApplySettings writes those of --set over settings by name, in small letters: to a server SQL_MODE is sql_mode.
func ApplySettings(to map[string]string, set []Setting) {
	for _, s := range set {
		to[strings.ToLower(s.Name)] = s.Value
	}
}

// Target is where rows go and how to connect.
type Target struct {
	Scheme   string
	Hosts    []string // host:port or host, at least one unless a Unix socket is named in Params
	User     string
	Password Secret
	Database string
	Params   url.Values // what follows the question mark

	Table    string // name, or schema.name
	Method   string
	Options  map[string]string // given ones of the method, by Option.Name; see ReadOptions
	Settings []Setting
	TLS      TLSMode
	// Via is the object store that staged methods put their objects into; nil when none was named.
	Via *Target
}

// ParseTarget parses a database URL: scheme://user:password@host1:port,host2:port/database?name=value. Unlike package
// url it accepts several hosts, and unescaped special characters in passwords: the last '@' ends the password, so
// after one an '@' in a parameter is written %40. Errors never contain the password.
func ParseTarget(text string) (Target, error) {
	scheme, rest, found := strings.Cut(text, "://")
	if !found || !isScheme(scheme) {
		return Target{}, errors.New("the target is not a URL: write it as scheme://user@host:port/database")
	}
	t := Target{Scheme: strings.ToLower(scheme)}
	if at := endOfCredentials(rest); at >= 0 {
		user, password, _ := strings.Cut(rest[:at], ":")
		t.User, t.Password = unescape(user), Secret(unescape(password))
		rest = rest[at+1:]
	}
	rest, query, _ := strings.Cut(rest, "?")
	hosts, database, _ := strings.Cut(rest, "/")
	t.Database = unescape(database)
	for host := range strings.SplitSeq(hosts, ",") {
		if host = unescape(strings.TrimSpace(host)); host != "" {
			t.Hosts = append(t.Hosts, host)
		}
	}
	params, err := url.ParseQuery(query)
	if err != nil {
		return Target{}, errors.New("the part of the target after '?' is not name=value&name=value")
	}
	t.Params = params
	return t, nil
}

// isScheme reports whether s is a scheme and not a password before a "://".
func isScheme(s string) bool {
	return s != "" && !strings.ContainsFunc(strings.ToLower(s), func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789+-.", r)
	})
}

// endOfCredentials finds the '@' before the hosts, or -1. A password begins after a ':'; where a database or
// parameters come first there is none, and an '@' in them is theirs.
func endOfCredentials(rest string) int {
	if i := strings.IndexAny(rest, ":/?"); i >= 0 && rest[i] != ':' {
		rest = rest[:i]
	}
	return strings.LastIndexByte(rest, '@')
}

// unescape decodes percent escapes; it returns text with invalid ones unchanged.
func unescape(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

// ShowsPassword reports whether the URL holds a password in the clear, before the host or among the parameters. That
// includes a user in the URL of an object store's endpoint, where some clients take keys from; none is ever right
// there.
func (t Target) ShowsPassword() bool {
	return t.Password != "" || t.Params.Get("password") != "" || slices.ContainsFunc(endpoints(), func(name string) bool {
		return slices.ContainsFunc(t.Params[name], func(text string) bool { return strings.Contains(text, "@") })
	})
}

// endpoints returns the parameters that are URLs.
func endpoints() []string { return []string{"endpoint", "server_endpoint"} }

// shownEndpoint returns an endpoint without possible secrets, or "" if it cannot be parsed.
func shownEndpoint(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return ""
	}
	u.User = nil
	if text = u.String(); strings.Contains(text+u.Path, "@") { // the password has a slash
		return ""
	}
	return text
}

// Address returns host i, modulo their number, with its port or else the given one.
func (t Target) Address(i int, port string) string {
	if len(t.Hosts) == 0 {
		return net.JoinHostPort("127.0.0.1", port)
	}
	host := t.Hosts[i%len(t.Hosts)]
	if h, p, err := net.SplitHostPort(host); err == nil {
		return net.JoinHostPort(h, orElse(p, port))
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}

// secretNames matches parameters and session variables whose values are hidden.
var secretNames = regexp.MustCompile(`(?i)pass(w|code|phrase|[._-]|$)|pwd|secret|token|jwt|credential|private|(api|access|encryption|signing).?key|(^|[^a-z])key($|[^a-z])`)

// IsSecret reports whether the value of a parameter or session variable is hidden, by its name.
func IsSecret(name string) bool { return secretNames.MatchString(name) }

// reaching reports whether a parameter is part of the server's address, or of how it is reached.
func reaching(name string) bool {
	return slices.Contains([]string{
		"host", "hostaddr", "port", "socket", "dbname", "user", "tls", "http_port", "region", "path_style", "sid",
		"service", "servicefile", "gssencmode", "channel_binding", "require_auth", "requirepeer", "tls-version",
		"verifyServerCertificate", "trustServerCertificate", "allowPublicKeyRetrieval",
	}, name) || strings.Contains(strings.ToLower(name), "ssl") || slices.Contains(endpoints(), name)
}

// Inherit adds the parameters of another URL that this one does not have, except those by which the server is reached:
// a resumed run keeps its settings, but may take another way.
func (t *Target) Inherit(from Target) {
	for name, values := range from.Params {
		if !t.Params.Has(name) && !reaching(name) {
			t.Params[name] = values
		}
	}
}

// shown returns the parameters without possible secrets. libpq's options may set any variable.
func (t Target) shown() url.Values {
	params := url.Values{}
	for name, values := range t.Params {
		for _, text := range values {
			switch {
			case slices.Contains(endpoints(), name):
				if text = shownEndpoint(text); text == "" {
					continue
				}
			case IsSecret(name) || name == "options" && IsSecret(text):
				continue
			}
			params.Add(name, text)
		}
	}
	return params
}

// String returns the target without the password and possible secrets in parameters, so that it can be shown and used
// again. An endpoint has no user; one that is no plain URL is left out.
func (t Target) String() string {
	user := ""
	if t.User != "" {
		user = url.User(t.User).String() + "@"
	}
	where := t.shown()
	query := ""
	if len(where) > 0 {
		query = "?" + where.Encode()
	}
	hosts := make([]string, len(t.Hosts))
	for i, host := range t.Hosts {
		hosts[i] = strings.NewReplacer("%", "%25", "/", "%2F", "?", "%3F", "@", "%40", ",", "%2C").Replace(host)
	}
	segments := strings.Split(t.Database, "/") // an object store's prefix is a path
	for i, s := range segments {
		segments[i] = strings.ReplaceAll(url.PathEscape(s), "@", "%40")
	}
	database := strings.Join(segments, "/")
	return fmt.Sprintf("%s://%s%s/%s%s", t.Scheme, user, strings.Join(hosts, ","), database, query)
}

// GoString is String for %#v.
func (t Target) GoString() string { return t.String() }

// MarshalText is String for JSON and every other text codec.
func (t Target) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
