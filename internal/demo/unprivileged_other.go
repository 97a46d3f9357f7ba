//go:build !linux

package demo

import (
	"context"
	"errors"
	"io"
	"os"
)

// Unprivileged runs this program once more as a user without privileges, on Linux. Elsewhere root gets an error, and
// for everybody else it does nothing and ran is false.
func Unprivileged(context.Context, []string, io.Reader, io.Writer, io.Writer) (ran bool, exitCode int, err error) {
	if os.Geteuid() == 0 {
		return false, 0, errors.New("PostgreSQL refuses to run as root: run the demo as an ordinary user")
	}
	return false, 0, nil
}
