package oracle

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

func checkSettings(settings []loader.Setting) error {
	for _, s := range settings {
		if !parameter.MatchString(s.Name) {
			return fmt.Errorf("--set %s: ALTER SESSION has no such parameter", s.Name)
		}
		if strings.EqualFold(s.Name, "isolation_level") {
			return fmt.Errorf("--set %s: only READ COMMITTED sees what was committed while a session waited for a lock", s.Name)
		}
	}
	return nil
}

// sessionSettings sets the parameters of --set, which is all that a session says first. Oracle runs one statement a
// call. Numbers and words are not quoted.
func sessionSettings(settings []loader.Setting) []string {
	return sqlload.SetEach("ALTER SESSION SET", settings, bareValue, sqlload.Literal)
}

// setUp runs statements that set up the session.
func (k *conn) setUp(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if _, err := k.exec(ctx, statement); err != nil {
			return failed("", loader.Mark("set up the session: "+statement, loader.No, err))
		}
	}
	return nil
}

// useHints enables the hints that fast and direct depend on. Autonomous databases ignore hints by default.
const useHints = "ALTER SESSION SET OPTIMIZER_IGNORE_HINTS = FALSE"

var (
	parameter = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$#]*$`)
	bareValue = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_$#]*|-?[0-9]+(\.[0-9]+)?[KMGkmg]?)$`)
)
