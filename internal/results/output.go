package results

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/terapush/terapush/internal/report"
)

// Format is a way to show tables.
type Format string

// The formats by their names on the command line.
const (
	Text       Format = "text"     // for people and terminals
	Markdown   Format = "markdown" // as GitHub shows it
	JSON       Format = "json"
	Benchmarks Format = "bench" // lines of Go's benchmarks, for benchstat
	HTML       Format = "html"  // one page with charts
	SVG        Format = "svg"   // the first chart of the first table
)

func writers() map[Format]func([]Table) (string, error) {
	return map[Format]func([]Table) (string, error){
		Text: asText, Markdown: asMarkdown, JSON: tablesAsJSON, Benchmarks: asBenchmarks,
		HTML: asHTML, SVG: asSVG,
	}
}

// Formats returns all formats, sorted by name.
func Formats() []Format { return slices.Sorted(maps.Keys(writers())) }

// Write writes tables in the format, all or nothing. The same tables give the same bytes. No tables are an error.
func (f Format) Write(w io.Writer, tables []Table) error {
	if len(tables) == 0 {
		return errors.New("there is no table to show: the records hold no cases")
	}
	text, err := writers()[f](tables)
	if err != nil {
		return fmt.Errorf("write the %s: %w", f, err)
	}
	if f == JSON {
		_, err = io.WriteString(w, text) // the encoder has escaped texts
		return err
	}
	return write(w, string(f), text)
}

// write writes text without control characters other than line feeds. Texts come from servers and records, and an
// escape sequence in one could do anything to a terminal.
func write(w io.Writer, what, text string) error {
	text = strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return printableRune(r)
	}, text)
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write the %s: %w", what, err)
	}
	return nil
}

// printable replaces white space with spaces and other characters that cannot be printed with U+FFFD.
func printable(s string) string { return strings.Map(printableRune, s) }

func printableRune(r rune) rune {
	switch {
	case unicode.IsSpace(r):
		return ' '
	case !unicode.IsPrint(r):
		return unicode.ReplacementChar
	}
	return r
}

// tablesAsJSON formats tables as one object. Times are seconds, sizes are bytes. Fields may be added under the same
// schema.
func tablesAsJSON(tables []Table) (string, error) {
	return asJSON(struct {
		Schema string  `json:"schema"`
		Tables []Table `json:"tables"`
	}{"terapush.table/v1", tables})
}

func asJSON(object any) (string, error) {
	var b strings.Builder
	err := report.WriteJSON(&b, object)
	return b.String(), err
}
