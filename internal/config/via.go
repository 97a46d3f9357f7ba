package config

import (
	"errors"
	"fmt"

	"github.com/terapush/terapush/pkg/loader"
)

// Via is the object store of --via, a target of scheme s3. Set keeps an error for Validate instead of returning it:
// whoever reports a flag's error repeats the flag's text, and somebody may have put a secret key into it.
type Via struct {
	target *loader.Target
	err    error
}

// Set reads the text of the flag.
func (v *Via) Set(text string) error {
	*v = Via{}
	t, err := loader.ParseTarget(text)
	switch {
	case err != nil || t.Scheme != "s3" || len(t.Hosts) != 1:
		v.err = errors.New("--via: write it as s3://bucket/prefix, with ?endpoint=https://host:port&path_style=true&region=name for other stores than Amazon's")
	case t.User != "" || t.ShowsPassword():
		v.err = fmt.Errorf("--via s3://%s: keys do not belong into the URL; AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS's files or the machine's role give them", t.Hosts[0])
	default:
		v.target = &t
	}
	return nil
}

// String is the store without anything that may be secret.
func (v *Via) String() string {
	if v.target == nil {
		return ""
	}
	return v.target.String()
}

// Type names the kind of value in --help.
func (*Via) Type() string { return "url" }

// Target is the store, nil when none was given.
func (v *Via) Target() *loader.Target { return v.target }

// SameStore reports whether two --via name the same objects. How they are reached may differ: a resume on another machine
// may need another endpoint.
func SameStore(a, b string) bool {
	was, err := loader.ParseTarget(a)
	is, problem := loader.ParseTarget(b)
	return err == nil && problem == nil && was.Scheme == is.Scheme && len(was.Hosts) == 1 && len(is.Hosts) == 1 &&
		was.Hosts[0] == is.Hosts[0] && was.Database == is.Database
}
