package doris

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
	"github.com/terapush/terapush/pkg/sqlload"
)

// sessionSetup lists what a loading session says first. The user's settings come later and win.
func sessionSetup(g groupCommit, settings []loader.Setting) []string {
	ours := []string{"SET enable_insert_strict = true", "SET group_commit = " + string(g)}
	return append(ours, sessionSettings(settings)...)
}

// controlSetup lists what every other session says first. A query, as of the proof, may take a day; by default it is a
// quarter of an hour.
func controlSetup(settings []loader.Setting) []string {
	return append([]string{"SET query_timeout = 86400"}, sessionSettings(settings)...)
}

// bareValue is a number or a boolean, which the manual does not quote either.
var bareValue = regexp.MustCompile(`^(-?[0-9]+(\.[0-9]+)?|true|false)$`)

// sessionSettings sets the variables of --set, for the proof as well as for the load.
func sessionSettings(settings []loader.Setting) []string {
	return sqlload.SetEach("SET", settings, bareValue, literal)
}

// checkSettings refuses settings that break a session's guarantees.
func checkSettings(t loader.Target) error {
	for _, s := range t.Settings {
		switch {
		case t.Method == methodStreamLoad:
			return fmt.Errorf("--set %s: a stream load has no session to set it in; methods %s and %s have", s.Name, methodInsert, methodS3Load)
		case strings.EqualFold(s.Name, "group_commit"):
			return errors.New("--set group_commit is refused: take --group-commit")
		}
	}
	return mysqlconn.CheckSettings(t.Settings)
}
