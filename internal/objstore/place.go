package objstore

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// The parameters of an s3:// URL.
const (
	paramEndpoint       = "endpoint"
	paramServerEndpoint = "server_endpoint"
	paramRegion         = "region"
	paramPathStyle      = "path_style"
)

// place is what an s3:// target says.
type place struct {
	bucket, prefix string // prefix without slashes at its ends
	endpoint       string // "" for Amazon's own
	serverEndpoint string // how the database reaches the store, where that differs
	region         string
	pathStyle      bool // as asked for, or as an endpoint without subdomains needs it
}

const whereKeysAre = "they come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or the machine's role"

// Check refuses a target that no object store could serve. It is pure.
func Check(t loader.Target) error {
	_, err := placeOf(t)
	return err
}

func placeOf(t loader.Target) (p place, err error) {
	switch {
	case t.Scheme != "s3":
		return p, fmt.Errorf("an object store is named s3://bucket/prefix, not %s://", t.Scheme)
	case len(t.Hosts) != 1:
		return p, errors.New("an object store is named s3://bucket/prefix, with one bucket")
	case t.User != "":
		return p, errors.New("an s3:// URL takes no credentials: " + whereKeysAre)
	case len(t.Settings) > 0:
		return p, fmt.Errorf("--set: an object store has no sessions to set %s in", t.Settings[0].Name)
	}
	for name, values := range t.Params {
		switch name {
		case paramEndpoint, paramServerEndpoint, paramRegion, paramPathStyle:
		default:
			return p, fmt.Errorf("an s3:// URL has no parameter %q; it takes endpoint, server_endpoint, region and path_style", name)
		}
		if len(values) != 1 || values[0] == "" {
			return p, fmt.Errorf("parameter %s of the s3:// URL wants one value", name)
		}
	}
	p.region = t.Params.Get(paramRegion)
	if p.bucket, err = bucketOf(t.Hosts[0]); err != nil {
		return p, err
	}
	if p.prefix, err = prefixOf(t.Database); err != nil {
		return p, err
	}
	if p.endpoint, err = endpointOf("parameter endpoint of the s3:// URL", t.Params.Get(paramEndpoint)); err != nil {
		return p, err
	}
	if p.serverEndpoint, err = endpointOf("parameter server_endpoint of the s3:// URL", t.Params.Get(paramServerEndpoint)); err != nil {
		return p, err
	}
	p.pathStyle = plainHost(p.endpoint)
	if text := t.Params.Get(paramPathStyle); text != "" {
		if p.pathStyle, err = strconv.ParseBool(text); err != nil {
			return p, fmt.Errorf("path_style=%s is neither true nor false", text)
		}
	}
	return p, tlsFits(t.TLS, p.endpoint)
}

// bucketOf is looser than Amazon's rules: other stores allow capitals and underscores.
func bucketOf(name string) (string, error) {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"
	if len(name) < 3 || len(name) > 255 || strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune(allowed, r)
	}) {
		return "", fmt.Errorf("%q cannot be a bucket: write s3://bucket/prefix, and the server's address as ?endpoint=http://host:port", name)
	}
	return name, nil
}

// prefixOf refuses what servers that keep objects as files would read as another folder.
func prefixOf(path string) (string, error) {
	path = strings.Trim(path, "/")
	if path == "" {
		return "", nil
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return "", fmt.Errorf("prefix %q has an empty, a . or a .. segment", path)
		}
	}
	if strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", fmt.Errorf("prefix %q has control characters", path)
	}
	if len(path) > 512 {
		return "", fmt.Errorf("the prefix has %d bytes; keys have 1024 at most", len(path))
	}
	return path, nil
}

// endpointOf reads an endpoint's URL; none is "". It may hold keys, which other clients look for there, so no error
// repeats it.
func endpointOf(name, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	if strings.Contains(text, "@") {
		return "", fmt.Errorf("%s has a user or a password in it, which do not belong there: %s", name, whereKeysAre)
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%s wants http://host:port or https://host:port", name)
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// plainHost reports whether an endpoint is an address or a name without dots, of which there are no subdomains to name
// buckets by.
func plainHost(endpoint string) bool {
	u, err := url.Parse(endpoint)
	return err == nil && u.Host != "" && (net.ParseIP(u.Hostname()) != nil || !strings.Contains(u.Hostname(), "."))
}

// checkTLS refuses a wish that contradicts the endpoint: whether TLS is spoken is what its scheme says.
func tlsFits(mode loader.TLSMode, endpoint string) error {
	plain := strings.HasPrefix(endpoint, "http:")
	switch {
	case plain && (mode == loader.TLSRequire || mode == loader.TLSVerify):
		return fmt.Errorf("--tls %s and an http:// endpoint contradict each other: name an https:// endpoint", mode)
	case !plain && mode == loader.TLSOff:
		return errors.New("--tls off and https contradict each other: name an http:// endpoint")
	}
	return nil
}
