package config

import (
	"fmt"
	"strings"
)

// Suggest returns the valid word nearest to word, the first of several that are equally near, or "" when none is near
// enough to be what was meant. A valid word that begins with word is nearest of all; otherwise about a third of the
// letters may differ. Case does not count.
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

// Unknown is the error for a word that is not among the valid ones: it says what kind of word it was to be, names the
// nearest valid one, and lists them all.
func Unknown(kind, word string, valid []string) error {
	list := strings.Join(valid, ", ")
	if guess := Suggest(word, valid); guess != "" {
		return fmt.Errorf("%s %q does not exist; did you mean %q? There is: %s", kind, word, guess, list)
	}
	return fmt.Errorf("%s %q does not exist; there is: %s", kind, word, list)
}

// distance is Levenshtein's: how many letters to insert, delete or replace to make b of a. It counts bytes, since the
// words here are ASCII names. One row of the table is kept.
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
