package inspect

import (
	"fmt"
	"regexp/syntax"
	"strings"
)

// part is a piece of a pattern.
type part struct {
	least  string // the shortest text that matches it
	digits int    // how many digits match it, too; 0 is none
}

// formatsOf lists the generator of texts that match a pattern and have at most so many characters, 0 for any, each of
// them another one: the longest digits of the pattern count, and the rest is always the same. There is none of a pattern
// without digits.
func formatsOf(pattern string, longest int) []string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}

	before, after, counts := "", "", part{}
	for _, p := range parts(re) {
		if p.digits > counts.digits {
			before, after, counts = before+counts.least+after, "", p
			continue
		}
		after += p.least
	}

	width := min(counts.digits, 18)
	if longest > 0 {
		width = min(width, longest-len(before)-len(after))
	}
	if width < max(len(counts.least), 1) {
		return nil
	}
	return []string{"sequence: {format: " + quoted(fmt.Sprintf("%s{:0%d}%s", before, width, after)) + "}"}
}

// parts divides a pattern. Digits that follow each other are one.
func parts(re *syntax.Regexp) (all []part) {
	switch re.Op {
	case syntax.OpConcat, syntax.OpCapture:
		for _, sub := range re.Sub {
			for _, p := range parts(sub) {
				last := len(all) - 1
				if last >= 0 && all[last].digits > 0 && p.digits > 0 {
					all[last] = part{all[last].least + p.least, all[last].digits + p.digits}
					continue
				}
				all = append(all, p)
			}
		}
		return all
	case syntax.OpAlternate:
		return parts(re.Sub[0])
	case syntax.OpLiteral:
		return []part{{least: string(re.Rune)}}
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			if re.Rune[i] <= '0' && re.Rune[i+1] >= '9' {
				return []part{{"0", 1}}
			}
		}
		return []part{{least: string(re.Rune[:1])}}
	case syntax.OpRepeat:
		return repeated(parts(re.Sub[0]), re.Min, re.Max)
	case syntax.OpQuest:
		return repeated(parts(re.Sub[0]), 0, 1)
	}
	return nil
}

// repeated is what a repetition of a pattern's parts matches.
func repeated(of []part, least, most int) []part {
	if len(of) == 1 && of[0].digits > 0 {
		return []part{{strings.Repeat(of[0].least, least), of[0].digits * most}}
	}

	text := ""
	for _, p := range of {
		text += p.least
	}
	return []part{{least: strings.Repeat(text, least)}}
}
