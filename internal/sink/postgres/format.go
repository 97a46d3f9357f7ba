package postgres

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/sink"
)

var tokens = regexp.MustCompile(`(?s)[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\w+|\S`)

// marker is the row that ends data of COPY: psql and old libraries send it as a part of the data.
const marker = `\.`

// copyFormat is how the rows of a COPY lie in its data.
type copyFormat struct {
	binary, csv, header, where bool
	quote, escape              string
}

// counter makes the counter for it, or returns why there is none.
func (f copyFormat) counter() (rows sink.RowCounter, why string) {
	t := sink.Text{Marker: marker}
	switch {
	case f.where:
		return nil, "rows that a WHERE leaves out cannot be told from others here"
	case f.binary:
		return &binaryRows{}, ""
	case f.csv && (len(f.quote) != 1 || len(f.escape) > 1):
		return nil, "COPY quote and escape are one byte each"
	case f.csv:
		t.Quote, t.Anywhere = f.quote[0], true
		t.Escape = (f.escape + f.quote)[0]
	default:
		t.Escape, t.Bare = '\\', true
	}
	if f.header {
		t.Skip = 1
	}
	return sink.NewDelimited(t), ""
}

// formatOf reads the options of a COPY in all the shapes that they have had (PostgreSQL manual, "COPY"): in parentheses,
// behind WITH, or with BINARY in front of the table.
func formatOf(before, options string) copyFormat {
	f := copyFormat{quote: `"`, binary: strings.EqualFold(before, "BINARY")}
	words := tokens.FindAllString(options, -1)
	next := func() (word string) {
		for len(words) > 0 && (word == "" || strings.EqualFold(word, "AS")) {
			word, words = words[0], words[1:]
		}
		return word
	}
	for len(words) > 0 {
		switch strings.ToUpper(next()) {
		case "FORMAT":
			words = append([]string{unquote(next())}, words...) // one of the next two
		case "BINARY":
			f.binary = true
		case "CSV":
			f.csv = true
		case "HEADER":
			f.header = true
			if len(words) > 0 {
				switch strings.ToUpper(unquote(words[0])) {
				case "FALSE", "OFF", "0":
					f.header = false
				}
			}
		case "QUOTE":
			f.quote = unquote(next())
		case "ESCAPE":
			f.escape = unquote(next())
		case "DELIMITER", "DELIMITERS", "NULL", "DEFAULT", "ENCODING":
			next()
		case "FORCE_QUOTE", "FORCE_NOT_NULL", "FORCE_NULL":
			if next() == "(" { // of names, which may be those of options
				for len(words) > 0 && next() != ")" {
					continue
				}
			}
		case "WHERE":
			f.where = true
			return f
		}
	}
	return f
}

// unquote returns what a word or literal stands for.
func unquote(word string) string {
	text, isEscaped := word, false
	if len(word) > 2 && (word[0] == 'e' || word[0] == 'E') && word[1] == '\'' {
		text, isEscaped = word[1:], true
	}
	if len(text) < 2 || text[0] != '\'' {
		return word
	}
	text = strings.ReplaceAll(text[1:len(text)-1], "''", "'")
	if isEscaped {
		if plain, err := strconv.Unquote(`"` + text + `"`); err == nil { // Go's escapes are those of C as well
			return plain
		}
	}
	return text
}
