package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/file"
	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/loader"
)

// Connect is how to connect, for every command that does.
type Connect struct {
	PasswordFile string
	TLS          string
	Trust        netio.Trust
	LookupEnv    func(string) (string, bool) // for TERAPUSH_PASSWORD; nil finds nothing
}

// flags declares how to connect.
func (c *Connect) flags(f *pflag.FlagSet) {
	f.StringVar(&c.PasswordFile, "password-file", "",
		"file with the password (default: "+passwordVariable+", the URL, the client's own files)")
	modes := []string{
		"auto", string(loader.TLSOff), string(loader.TLSPrefer), string(loader.TLSRequire), string(loader.TLSVerifyCA),
		string(loader.TLSVerify),
	}
	f.Var(newChoice(&c.TLS, modes...), "tls",
		"auto: as the URL says, else prefer on this machine and verify elsewhere; verify-ca: not the host name")
	f.StringVar(&c.Trust.CAFile, "tls-ca", "",
		"PEM file with certificate authorities to trust; the server is verified, whatever --tls")
	f.StringVar(&c.Trust.CertFile, "tls-cert", "", "PEM file with the client's certificate")
	f.StringVar(&c.Trust.KeyFile, "tls-key", "", "PEM file with the client's key")
	f.StringVar(&c.Trust.ServerName, "tls-server-name", "", "name in the server's certificate, if the URL has another")
}

// Earlier is what an earlier process of a run has settled of its target. It is zero for a run that begins.
type Earlier struct {
	Target string // the URL, whose parameters are inherited
	Via    string // the object store, unless --staging names it
	Table  string
	Method string
}

// LoaderTarget returns the target with method, options and settings, and the driver of its scheme.
func (p *Push) LoaderTarget(drivers *loader.Registry, earlier Earlier) (loader.Driver, loader.Target, error) {
	driver, target, err := FindTarget(p.Target, p.Connect, drivers)
	if err != nil {
		return nil, target, err
	}
	if earlier.Target != "" {
		was, err := loader.ParseTarget(earlier.Target)
		if err != nil {
			return nil, target, fmt.Errorf("the run's target: %w", err)
		}
		target.Inherit(was)
	}
	name, staging := cmp.Or(earlier.Method, p.Method), p.Staging
	if name == "" && p.Files != nil { // the first that takes files, or else the default, which says that it takes none
		takes := func(m loader.Method) bool { return len(m.Caps.Files) > 0 }
		if i := slices.IndexFunc(driver.Methods(), takes); i >= 0 {
			name = driver.Methods()[i].Name
		}
	}
	method, ok := loader.FindMethod(driver, name)
	if !ok {
		return nil, target, unknownMethod(name, target.Scheme, driver, drivers)
	}
	if staging.target == nil && earlier.Via != "" {
		if err := staging.Set(earlier.Via); err != nil {
			return nil, target, err
		}
	}
	table := p.Dataset
	switch {
	case p.RowsOfLike():
		table = p.Like
	case p.Own != nil:
		table = p.Own.Name
	}
	target.Method, target.Table = method.Name, cmp.Or(earlier.Table, p.Table, table)
	if target.Via = staging.Target(); target.Via != nil && !method.Caps.Staged {
		return nil, target, fmt.Errorf("method %s stages no objects: leave out --staging", method.Name)
	}
	if err := method.CheckOptions(p.Options); err != nil {
		return nil, target, err
	}
	target.Options = maps.Clone(p.Options)
	target.Settings = p.Set
	return driver, target, nil
}

// Takes reports whether a flag has an effect on a method: options on the methods that have them, the store and its
// commit groups on those that store objects first, all others on every method.
func Takes(m loader.Method, flag string, drivers *loader.Registry) bool {
	has := func(m loader.Method) bool {
		return slices.ContainsFunc(m.Options, func(o loader.Option) bool { return o.Name == flag })
	}
	if flag == "staging" || flag == "commit-batches" {
		return m.Caps.Staged
	}
	if has(m) {
		return true
	}
	for _, d := range drivers.Drivers() {
		if slices.ContainsFunc(d.Methods(), has) {
			return false
		}
	}
	return true
}

// unknownMethod distinguishes a method of another database from one that does not exist.
func unknownMethod(name, scheme string, d loader.Driver, drivers *loader.Registry) error {
	for _, other := range drivers.Drivers() {
		if slices.Contains(methodNames(other), name) {
			return fmt.Errorf("method %s does not fit the target: %s:// has %s; %s is a method of %s://",
				name, scheme, strings.Join(methodNames(d), ", "), name, other.Schemes()[0])
		}
	}
	return Unknown("method", name, methodNames(d))
}

func methodNames(d loader.Driver) []string {
	var names []string
	for _, m := range d.Methods() {
		names = append(names, m.Name)
	}
	return names
}

// FindTarget reads a target URL, completes it with password and TLS mode, and finds the driver of its scheme.
func FindTarget(text string, c Connect, drivers *loader.Registry) (loader.Driver, loader.Target, error) {
	if text == "" {
		return nil, loader.Target{}, errors.New("a target is needed: scheme://user@host:port/database")
	}
	target, err := loader.ParseTarget(text)
	if err != nil {
		return nil, target, err
	}
	driver, ok := drivers.Lookup(target.Scheme)
	if !ok {
		return nil, target, Unknown("target scheme", target.Scheme, drivers.Schemes())
	}
	target.TLS = loader.TLSMode(c.TLS)
	if c.TLS == "auto" {
		target.TLS = loader.TLSAuto
	}
	password, given, err := c.password()
	if given {
		target.Password = password
	}
	return driver, target, err
}

// passwordVariable holds the password of TARGET.
const passwordVariable = "TERAPUSH_PASSWORD"

// password reads the file, without one line end at its end, or else the environment.
func (c Connect) password() (password loader.Secret, given bool, err error) {
	if c.PasswordFile != "" {
		text, err := file.Read(c.PasswordFile, file.MaxSettings)
		if err != nil {
			return "", false, fmt.Errorf("--password-file: %w", err)
		}
		return loader.Secret(strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")), true, nil
	}
	if c.LookupEnv == nil {
		return "", false, nil
	}
	text, _ := c.LookupEnv(passwordVariable)
	return loader.Secret(text), text != "", nil // an empty variable is not given, as with all others
}

// PasswordInArguments reports whether a target on the command line shows its password to other users of the machine.
func PasswordInArguments(target string) bool {
	t, err := loader.ParseTarget(target)
	return err == nil && t.ShowsPassword()
}
