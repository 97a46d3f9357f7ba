package inspect

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

var (
	plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// Words that are no text to one version of YAML or another.
	yamlWords = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
)

// name writes a name as a key.
func name(text string) string {
	if plainName.MatchString(text) && !slices.Contains(yamlWords, strings.ToLower(text)) {
		return text
	}
	return quoted(text)
}

var dottedName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+$`)

// dotted writes a name of one part or several.
func dotted(text string) string {
	if dottedName.MatchString(text) {
		return text
	}
	return name(strings.ReplaceAll(text, "${", "$${"))
}

// quoted writes a text in quotation marks, so that no character of it is one of YAML's.
func quoted(text string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			out.WriteByte('\\')
			out.WriteRune(r)
		case unicode.IsPrint(r):
			out.WriteRune(r)
		case r > 0xFFFF:
			fmt.Fprintf(&out, `\U%08X`, r)
		default:
			fmt.Fprintf(&out, `\u%04X`, r)
		}
	}
	out.WriteByte('"')
	return out.String()
}

// value writes a value, in which ${ is no parameter.
func value(text string) string {
	text = strings.ReplaceAll(text, "${", "$${")
	if _, err := strconv.ParseInt(text, 10, 64); err == nil || plainName.MatchString(text) && name(text) == text {
		return text
	}
	return quoted(text)
}

// values writes a list of values.
func values(all []string) string {
	texts := make([]string, len(all))
	for i, v := range all {
		texts[i] = value(v)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// names writes a list of names, which are values: ${ is no parameter in them.
func names(all []string) string {
	texts := make([]string, len(all))
	for i, v := range all {
		texts[i] = name(strings.ReplaceAll(v, "${", "$${"))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// maxComment is the most characters of a comment, of which a server's words are only a part.
const maxComment = 400

// comment writes words that may come from the server on one line: nothing in them ends a comment.
func comment(text string) string {
	var out strings.Builder
	n := 0
	for _, r := range text {
		if n++; n > maxComment {
			out.WriteString(" …")
			break
		}
		switch {
		case unicode.IsPrint(r):
			out.WriteRune(r)
		case unicode.IsSpace(r):
			out.WriteByte(' ')
		default:
			fmt.Fprintf(&out, `\u%04X`, r)
		}
	}
	return strings.Join(strings.Fields(out.String()), " ")
}
