package sweep

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// problems are all that is wrong with a plan file. The same line is complained about once in the same words, since
// parts share what stands above them.
type problems struct {
	file string
	all  []problem
	said map[problem]bool
}

type problem struct {
	line int // 0: of no line
	text string
}

func (p *problems) add(line int, format string, args ...any) {
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	one := problem{line, text}
	if p.said[one] {
		return
	}
	if p.said == nil {
		p.said = make(map[problem]bool)
	}
	p.said[one] = true
	p.all = append(p.all, one)
}

// maxProblems is how many are said: a file of which more is wrong is another kind of file.
const maxProblems = 50

func (p *problems) err() error {
	slices.SortStableFunc(p.all, func(a, b problem) int { return cmp.Compare(a.line, b.line) })
	var all []error
	for i, one := range p.all {
		switch {
		case i == maxProblems:
			all = append(all, fmt.Errorf("%s: and %d more problems", p.file, len(p.all)-i))
			return errors.Join(all...)
		case one.line == 0:
			all = append(all, fmt.Errorf("%s: %s", p.file, one.text))
		default:
			all = append(all, fmt.Errorf("%s:%d: %s", p.file, one.line, one.text))
		}
	}
	return errors.Join(all...)
}
