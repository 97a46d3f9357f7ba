package config

import (
	"errors"
	"net/url"
	"slices"
	"strings"
)

// ServerMetrics are the URLs of --server-metrics. Set keeps an error for Validate instead of returning it, as Via does: a
// URL may hold a password, and whoever reports a flag's error repeats the flag's text.
type ServerMetrics struct {
	urls []*url.URL
	err  error
}

var errMetricsURL = errors.New("--server-metrics: write it as http://host:9100/metrics; user and password may stand in front of the host")

// Set adds a URL.
func (m *ServerMetrics) Set(text string) error {
	switch u, err := url.Parse(text); {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		m.err = errMetricsURL
	default:
		m.urls = append(m.urls, u)
	}
	return nil
}

// String is the URLs without anything that may be secret.
func (m *ServerMetrics) String() string {
	if len(m.urls) == 0 {
		return ""
	}
	return "[" + strings.Join(m.GetSlice(), ",") + "]"
}

// Type names the kind of value in --help.
func (*ServerMetrics) Type() string { return "url" }

// Append is Set; GetSlice shows what String does, and Replace is all at once: with them a file may have a list.
func (m *ServerMetrics) Append(text string) error { return m.Set(text) }

// GetSlice is each URL as String shows it.
func (m *ServerMetrics) GetSlice() []string {
	var all []string
	for _, u := range m.urls {
		all = append(all, (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String())
	}
	return all
}

// Replace forgets what was set before.
func (m *ServerMetrics) Replace(all []string) error {
	*m = ServerMetrics{}
	for _, text := range all {
		if err := m.Set(text); err != nil {
			return err
		}
	}
	return nil
}

// URLs are those that were given, with user and password.
func (m *ServerMetrics) URLs() []*url.URL { return slices.Clone(m.urls) }
