package results

import (
	"fmt"
	"io"
	"strings"
)

// Markdown writes tables as GitHub shows them, with the words of Text.
func Markdown(w io.Writer, tables []Table) error {
	if len(tables) == 0 {
		return errNothing
	}
	var b strings.Builder
	inputs := func(all []Input) {
		if len(all) > 0 {
			b.WriteString("\n| input | value |\n| :-- | :-- |\n")
		}
		for _, in := range all {
			fmt.Fprintf(&b, "| %s | %s |\n", escape(in.Name), escape(in.Value))
		}
	}
	tables = legible(tables)
	common := inCommon(tables)
	for i, t := range tables {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "## %s\n\n", escape(heading(t)))
		if len(t.Points) > 0 {
			b.WriteString(gridOf(t, notes).markdown() + "\n")
		}
		for _, line := range append(shortenedErrors(t), conclusions(t)...) {
			fmt.Fprintf(&b, "- **%s** %s\n", line.Name, escape(line.Value))
		}
		for _, text := range t.Warnings {
			fmt.Fprintf(&b, "- **warning** %s\n", escape(text))
		}
		inputs(append(besides(t), except(depends(t), common)...))
	}
	if len(common) > 0 {
		b.WriteString("\n## All tables\n")
		inputs(common)
	}
	return write(w, "Markdown", b.String())
}
