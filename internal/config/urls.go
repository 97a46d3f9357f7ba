package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// ParseStore reads the URL of an object store; of is the flag or argument that has it. Its error does not quote the
// text, which may contain a secret key.
func ParseStore(of, text string) (loader.Target, error) {
	t, err := loader.ParseTarget(text)
	switch {
	case err != nil || t.Scheme != "s3" || len(t.Hosts) != 1:
		err = fmt.Errorf("%s: write it as s3://bucket/prefix, "+
			"with ?endpoint=https://host:port&path_style=true&region=name for other stores than Amazon's", of)
	case t.User != "" || t.ShowsPassword():
		err = fmt.Errorf("%s s3://%s: leave the keys out of the URL; set AWS_ACCESS_KEY_ID and "+
			"AWS_SECRET_ACCESS_KEY, or use AWS's files or the machine's role", of, t.Hosts[0])
	}
	return t, err
}

// Staging is the object store of --staging, a target of scheme s3. Set leaves an error to Validate: pflag's would quote
// the text.
type Staging struct {
	target *loader.Target
	err    error
}

// Set implements pflag.Value.
func (v *Staging) Set(text string) error {
	t, err := ParseStore("--staging", text)
	*v = Staging{err: err}
	if err == nil {
		v.target = &t
	}
	return nil
}

// String returns the store without secrets.
func (v *Staging) String() string {
	if v.target == nil {
		return ""
	}
	return v.target.String()
}

// Type implements pflag.Value.
func (*Staging) Type() string { return "url" }

// Target returns the store, nil if none was given.
func (v *Staging) Target() *loader.Target { return v.target }

// SameStore reports whether two --staging name the same objects. Their endpoints may differ, as on a resume on another
// machine.
func SameStore(a, b string) bool {
	x, err := loader.ParseTarget(a)
	y, err2 := loader.ParseTarget(b)
	return err == nil && err2 == nil && x.Scheme == y.Scheme && x.Database == y.Database &&
		len(x.Hosts) == 1 && slices.Equal(x.Hosts, y.Hosts)
}

// ServerMetrics are the URLs of --server-metrics. Like Staging it leaves an error to Validate, since a URL may contain
// a password. Append, GetSlice and Replace implement pflag.SliceValue, so that a file may have a list.
type ServerMetrics struct {
	urls []*url.URL
	err  error
}

// Set implements pflag.Value. It adds a URL.
func (m *ServerMetrics) Set(text string) error {
	switch u, err := url.Parse(text); {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		m.err = errors.New("--server-metrics: write it as http://host:9100/metrics; user and password may precede the host")
	default:
		m.urls = append(m.urls, u)
	}
	return nil
}

// String returns the URLs without secrets.
func (m *ServerMetrics) String() string {
	if len(m.urls) == 0 {
		return ""
	}
	return "[" + strings.Join(m.GetSlice(), ",") + "]"
}

// Type implements pflag.Value.
func (*ServerMetrics) Type() string { return "url" }

// Append adds a URL.
func (m *ServerMetrics) Append(text string) error { return m.Set(text) }

// GetSlice returns the URLs without secrets.
func (m *ServerMetrics) GetSlice() []string {
	var all []string
	for _, u := range m.urls {
		all = append(all, (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String())
	}
	return all
}

// Replace sets all URLs.
func (m *ServerMetrics) Replace(all []string) error {
	*m = ServerMetrics{}
	for _, text := range all {
		_ = m.Set(text)
	}
	return nil
}

// URLs returns those that were given, with user and password.
func (m *ServerMetrics) URLs() []*url.URL { return m.urls }
