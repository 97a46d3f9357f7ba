package mysqlconn

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

var settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// CheckSettings refuses those of --set that change what literals mean, and names that are none of a variable.
func CheckSettings(settings []loader.Setting) error {
	for _, s := range settings {
		if !settingName.MatchString(s.Name) {
			return fmt.Errorf("--set %s: not the name of a session variable", s.Name)
		}
		value := strings.ToUpper(s.Value)
		if strings.EqualFold(s.Name, "sql_mode") && strings.Contains(value, "NO_BACKSLASH_ESCAPES") {
			return errors.New("--set sql_mode with NO_BACKSLASH_ESCAPES is refused: " +
				"the rows are escaped with backslashes")
		}
	}
	return sqlload.CheckSettings(settings)
}
