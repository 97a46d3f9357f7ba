// Package spelling finds the word that was meant.
package spelling

import "strings"

// Bounds of what is compared: words of files come from strangers, and two words take time in proportion to the product of
// their lengths. Names of flags, columns and parameters are shorter.
const (
	longest = 64
	most    = 2000
)

// Nearest returns the valid word nearest to word, the first of several, or "" if none is near. A valid word that begins
// with word is nearest of all; otherwise about a third of the letters may differ. Case is ignored. Nothing is near a word
// of more than 64 bytes, and only the first 2,000 valid words are compared.
func Nearest(word string, valid []string) string {
	word = strings.ToLower(word)
	if word == "" || len(word) > longest {
		return ""
	}

	best, least := "", 0
	for _, v := range valid[:min(len(valid), most)] {
		lower := strings.ToLower(v)
		reach := (max(len(word), len(lower)) + 2) / 3
		d := 0
		switch {
		case strings.HasPrefix(lower, word):
		case len(lower) > longest, len(lower)-len(word) > reach, len(word)-len(lower) > reach:
			continue
		default:
			d = distance(word, lower)
		}
		if d <= reach && (best == "" || d < least) {
			best, least = v, d
		}
	}
	return best
}

// distance is Levenshtein's, in bytes, with one row of the table.
func distance(a, b string) int {
	var cells [longest + 1]int
	row := cells[:len(b)+1]
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
