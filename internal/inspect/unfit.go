package inspect

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// unfit finds what takes no rows, the tables that no push can name, and those that triggers of others insert into, in
// which a push would find rows.
func unfit(all []*loader.Description) map[string]error {
	left := map[string]error{}
	for _, t := range all {
		if t.Unfit != "" {
			left[t.Table] = errors.New(t.Unfit)
		}
		if strings.Contains(t.Table, ".") {
			left[t.Table] = errors.New("its name has a dot, which stands between a schema and a table: rename it, or fill it by hand")
		}
		for _, trigger := range t.Triggers {
			for _, m := range inserts.FindAllStringSubmatch(trigger.Statement, -1) {
				name := strings.ReplaceAll(strings.Trim(m[1], "`"), "``", "`")
				for _, other := range all {
					if strings.EqualFold(other.Table, name) && other != t {
						left[other.Table] = fmt.Errorf("trigger %s of table %s inserts into it", trigger.Name, t.Table)
					}
				}
			}
		}
	}
	return left
}

var inserts = regexp.MustCompile("(?i)\\b(?:insert|replace)\\s+(?:(?:low_priority|delayed|high_priority|ignore)\\s+)*(?:into\\s+)?" +
	"(?:(?:`[^`]*`|[\\w$]+)\\s*\\.\\s*)?(`(?:[^`]|``)*`|[\\w$]+)")
