package sqlload

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// CheckSettings refuses those of --set that change what the bytes of texts and names mean.
func CheckSettings(settings []loader.Setting) error {
	encodings := []string{
		"character_set_client", "character_set_connection", "character_set_results", "collation_connection", "names",
		"client_encoding",
	}
	for _, s := range settings {
		if slices.Contains(encodings, strings.ToLower(s.Name)) {
			return fmt.Errorf("--set %s is refused: all that is sent and read is UTF-8", s.Name)
		}
	}
	return nil
}

// SetEach returns a statement for each of --set, in their order: verb, as in "SET SESSION", and the assignment. Values
// that bare matches stay as they are, as numbers do; literal quotes any other.
func SetEach(
	verb string, settings []loader.Setting, bare *regexp.Regexp, literal func(string) string,
) (all []string) {
	for _, s := range settings {
		value := s.Value
		if !bare.MatchString(value) {
			value = literal(value)
		}
		all = append(all, verb+" "+s.Name+" = "+value)
	}
	return all
}
