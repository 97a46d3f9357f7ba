package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/terapush/terapush/internal/file"
	"github.com/terapush/terapush/pkg/loader"
)

// passwordVariable holds the password of TARGET.
const passwordVariable = "TERAPUSH_PASSWORD"

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

// password reads the file, or else the environment. One line end at the end of the file is not part of it.
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
	return loader.Secret(text), text != "", nil // empty is not given, as with every other variable
}

// PasswordInArguments reports whether a target given on the command line shows its password to everybody who may list
// processes.
func PasswordInArguments(target string) bool {
	t, err := loader.ParseTarget(target)
	return err == nil && t.ShowsPassword()
}
