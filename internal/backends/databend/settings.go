package databend

import (
	"errors"
	"fmt"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// fixedSettings may not be changed: timestamps of a dataset are in UTC, and rows that are counted and read back must be
// all of those in the table, and not of an earlier answer.
func fixedSettings() map[string]string {
	return map[string]string{"timezone": "UTC", "enable_query_result_cache": "0", "max_result_rows": "0"}
}

// sessionSettings are those of every session: the fixed ones, and those of --set.
func sessionSettings(settings []loader.Setting) map[string]string {
	all := fixedSettings()
	loader.ApplySettings(all, settings)
	return all
}

func checkSettings(settings []loader.Setting) error {
	for _, s := range settings {
		switch fixed, is := fixedSettings()[strings.ToLower(s.Name)]; {
		case strings.EqualFold(s.Name, "deduplicate_label"):
			return errors.New("--set deduplicate_label is refused: every batch has a label of its own")
		case is:
			return fmt.Errorf("--set %s is refused: it must be %s, so that rows are counted and read back as they were sent",
				s.Name, fixed)
		}
	}
	return nil
}
