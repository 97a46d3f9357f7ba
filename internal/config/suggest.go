package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/spelling"
)

// Unknown is the error for a word of some kind that is not among the valid ones. It suggests one, and lists them all.
// Of one that was removed it says what to use instead.
func Unknown(kind, word string, valid []string) error {
	if err := Removed("--" + kind + " " + word); err != nil {
		return err
	}
	list := strings.TrimPrefix(strings.Join(valid, ", "), ", ") // without a default of ""
	if guess := spelling.Nearest(word, valid); guess != "" {
		return fmt.Errorf("%s %q does not exist; did you mean %q? Available: %s", kind, word, guess, list)
	}
	return fmt.Errorf("%s %q does not exist; available: %s", kind, word, list)
}

// known returns Unknown's error unless the word is valid.
func known(kind, word string, valid []string) error {
	if slices.Contains(valid, word) {
		return nil
	}
	return Unknown(kind, word, valid)
}

// Misspelled returns a sentence for each variable, of a list with NAME=value, that is not a flag's but nearly, or that
// of a removed flag. Kubernetes sets some in every pod for a service of the name terapush.
func Misspelled(environ, flags []string) (all []string) {
	valid := []string{strings.TrimPrefix(passwordVariable, envPrefix), "CONFIG"}
	for _, flag := range flags {
		valid = append(valid, variableOf(flag))
	}
	for _, line := range environ {
		variable, value, _ := strings.Cut(line, "=")
		name, ours := strings.CutPrefix(variable, envPrefix)
		kubernetes := strings.Contains(name, "SERVICE_") || strings.HasPrefix(name, "PORT")
		if !ours || value == "" || slices.Contains(valid, name) || kubernetes {
			continue
		}
		if err := Removed("--" + strings.ToLower(name)); err != nil {
			all = append(all, fmt.Sprintf("%s is not read: %v", variable, err))
			continue
		}
		if guess := spelling.Nearest(name, valid); guess != "" {
			all = append(all, fmt.Sprintf("%s is not read: did you mean %s%s?", variable, envPrefix, guess))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
