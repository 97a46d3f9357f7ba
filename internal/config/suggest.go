package config

import (
	"fmt"
	"slices"
	"strings"
)

// Suggest returns the valid word nearest to word, the first of several, or "" if none is near. A valid word that begins
// with word is nearest of all; otherwise about a third of the letters may differ. Case is ignored.
func Suggest(word string, valid []string) string {
	word = strings.ToLower(word)
	if word == "" {
		return ""
	}
	best, least := "", 0
	for _, v := range valid {
		lower := strings.ToLower(v)
		d := distance(word, lower)
		if strings.HasPrefix(lower, word) {
			d = 0
		}
		near := d <= (max(len(word), len(lower))+2)/3
		if near && (best == "" || d < least) {
			best, least = v, d
		}
	}
	return best
}

// Unknown is the error for a word of some kind that is not among the valid ones. It suggests one, and lists them all.
// Of one that was removed it says what to use instead.
func Unknown(kind, word string, valid []string) error {
	if err := Removed("--" + kind + " " + word); err != nil {
		return err
	}
	list := strings.Join(valid, ", ")
	if guess := Suggest(word, valid); guess != "" {
		return fmt.Errorf("%s %q does not exist; did you mean %q? There is: %s", kind, word, guess, list)
	}
	return fmt.Errorf("%s %q does not exist; there is: %s", kind, word, list)
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
		if guess := Suggest(name, valid); guess != "" {
			all = append(all, fmt.Sprintf("%s is not read: did you mean %s%s?", variable, envPrefix, guess))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// distance is Levenshtein's, in bytes, with one row of the table.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
