package objstore

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// place is what an s3:// target says.
type place struct {
	bucket, prefix string // prefix without slashes at its ends
	endpoint       string // "" for Amazon's own
	serverEndpoint string // how the database reaches the store, where that differs
	region         string
	pathStyle      bool // as asked for, or as an endpoint without subdomains needs it
}

const credentialsHint = "they come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or the machine's role"

// Check refuses a target that no object store could serve. It is pure.
func Check(t loader.Target) error {
	_, err := placeOf(t)
	return err
}

// bucketName is looser than Amazon's rules: other stores allow capitals and underscores. A regexp that counts to 255
// takes two milliseconds to compile.
var bucketName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

const minBucketName, maxBucketName = 3, 255

func placeOf(t loader.Target) (p place, err error) {
	switch {
	case t.Scheme != "s3" || len(t.Hosts) != 1:
		return p, errors.New("an object store is named s3://bucket/prefix, with one bucket")
	case t.User != "":
		return p, errors.New("an s3:// URL takes no credentials: " + credentialsHint)
	case len(t.Settings) > 0:
		return p, fmt.Errorf("--set: an object store has no sessions to set %s in", t.Settings[0].Name)
	}
	for name, values := range t.Params {
		if !slices.Contains([]string{"endpoint", "server_endpoint", "region", "path_style"}, name) {
			return p, fmt.Errorf("an s3:// URL has no parameter %q; it takes endpoint, server_endpoint, region and path_style", name)
		}
		if len(values) != 1 || values[0] == "" {
			return p, fmt.Errorf("parameter %s of the s3:// URL takes one value", name)
		}
	}
	p.bucket, p.prefix, p.region = t.Hosts[0], strings.Trim(t.Database, "/"), t.Params.Get("region")
	switch {
	case !bucketName.MatchString(p.bucket) || len(p.bucket) < minBucketName || len(p.bucket) > maxBucketName:
		return p, fmt.Errorf("%q is not the name of a bucket: write s3://bucket/prefix, "+
			"and the server's address as ?endpoint=http://host:port", p.bucket)
	case p.prefix != "" && (p.prefix == "." || !fs.ValidPath(p.prefix)): // a server that keeps files would resolve it
		return p, fmt.Errorf("prefix %q has an empty, a . or a .. segment", p.prefix)
	}
	if p.endpoint, err = endpointOf("parameter endpoint of the s3:// URL", t.Params.Get("endpoint")); err != nil {
		return p, err
	}
	p.serverEndpoint, err = endpointOf("parameter server_endpoint of the s3:// URL", t.Params.Get("server_endpoint"))
	if err != nil {
		return p, err
	}
	p.pathStyle = plainHost(p.endpoint)
	if text := t.Params.Get("path_style"); text != "" {
		if p.pathStyle, err = strconv.ParseBool(text); err != nil {
			return p, fmt.Errorf("path_style=%s is neither true nor false", text)
		}
	}
	return p, tlsFits(t.TLS, p.endpoint)
}

// endpointOf reads an endpoint's URL; "" is none. No error repeats it: other clients take keys in it.
func endpointOf(name, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	if strings.Contains(text, "@") {
		return "", fmt.Errorf("%s has a user or a password in it, which do not belong there: %s", name, credentialsHint)
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%s must be http://host:port or https://host:port", name)
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// plainHost reports whether an endpoint is an address or a name without dots, which has no subdomains for buckets.
func plainHost(endpoint string) bool {
	u, err := url.Parse(endpoint)
	return err == nil && u.Host != "" && (net.ParseIP(u.Hostname()) != nil || !strings.Contains(u.Hostname(), "."))
}

// tlsFits refuses a mode that contradicts the endpoint, whose scheme decides about TLS.
func tlsFits(mode loader.TLSMode, endpoint string) error {
	plain := strings.HasPrefix(endpoint, "http:")
	switch {
	case plain && (mode == loader.TLSRequire || mode == loader.TLSVerifyCA || mode == loader.TLSVerify):
		return fmt.Errorf("--tls %s and an http:// endpoint contradict each other: name an https:// endpoint", mode)
	case !plain && mode == loader.TLSOff:
		return errors.New("--tls off and https contradict each other: name an http:// endpoint")
	}
	return nil
}
