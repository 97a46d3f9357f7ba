package databend

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/terapush/terapush/internal/sink"
)

// Bounds of what is kept of a question, in bytes. Of an INSERT with values, which may be as large as anybody likes, only
// the beginning is: its rows are counted on the way. A COPY names its files.
const (
	longestRest = 64 << 10 // all but the statement
	longestHead = 64 << 10
	longestCopy = 4 << 20
)

// body reads the JSON of a question as it comes in. It takes the statement out of it, so that the rest is small.
type body struct {
	statement sink.Statement
	text      []byte // the statement's beginning
	limit     int    // of the text, once it is long; 0 before
	bytes     int64  // of the whole statement
	rest      []byte // the JSON with an empty statement
	tooLong   bool   // the rest is

	depth  int
	key    []byte // of the object, as far as it has come
	isKey  bool   // the string that comes next is one
	string role
	escape []byte // what has come of an escape in a string
	high   rune   // the first half of a character in two escapes
}

// role is what the string is that we are in.
type role int

const (
	outside role = iota
	aKey
	theStatement
	another
)

func newBody(checked bool) *body {
	b := &body{statement: sink.Statement{Backslash: true, CRC: checked}}
	b.statement.Reset()
	return b
}

// Write takes in p.
func (b *body) Write(p []byte) {
	for len(p) > 0 {
		switch {
		case b.string == outside:
			b.plain(p[0])
			p = p[1:]
		case len(b.escape) > 0:
			b.escaped(p[0])
			p = p[1:]
		default:
			p = b.inString(p)
		}
	}
}

// plain takes in a byte outside of strings.
func (b *body) plain(c byte) {
	b.keep(c)
	switch c {
	case '{', '[':
		b.depth++
		b.isKey = c == '{' && b.depth == 1
		b.key = b.key[:0]
	case '}', ']':
		b.depth--
	case ':':
		b.isKey = false
	case ',':
		if b.depth == 1 {
			b.isKey, b.key = true, b.key[:0]
		}
	case '"':
		switch {
		case b.depth != 1:
			b.string = another
		case b.isKey:
			b.string = aKey
		case string(b.key) == "sql":
			b.string = theStatement
		default:
			b.string = another
		}
	}
}

// inString takes in a string up to its end or an escape, and returns what is behind it.
func (b *body) inString(p []byte) []byte {
	i := bytes.IndexAny(p, `"\`)
	if i < 0 {
		b.inside(p)
		return nil
	}
	b.inside(p[:i])
	if p[i] == '\\' {
		b.escape = append(b.escape[:0], '\\')
		return p[i+1:]
	}
	b.half()
	b.string = outside
	b.keep('"')
	return p[i+1:]
}

// inside takes in what stands in a string as it is.
func (b *body) inside(p []byte) {
	if len(p) == 0 {
		return
	}
	b.half()
	switch b.string {
	case theStatement:
		b.say(p)
		return
	case aKey:
		b.key = append(b.key, p[:min(len(p), len("sql ")-min(len(b.key), len("sql ")))]...)
	}
	b.keep(p...)
}

// escaped takes in a byte of an escape: one letter, or u and four digits.
func (b *body) escaped(c byte) {
	b.escape = append(b.escape, c)
	if b.escape[1] == 'u' && len(b.escape) < len(`\u0000`) {
		return
	}
	escape := b.escape
	b.escape = b.escape[:0]
	if b.string != theStatement {
		b.keep(escape...)
		return
	}
	if escape[1] == 'u' {
		n, err := strconv.ParseUint(string(escape[2:]), 16, 16)
		if err != nil {
			n = utf8.RuneError
		}
		b.rune(rune(n))
		return
	}
	b.half()
	b.say([]byte{letter(c)})
}

// letter returns what a letter behind a backslash stands for.
func letter(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	}
	return c
}

func (b *body) rune(r rune) {
	if b.high != 0 {
		if both := utf16.DecodeRune(b.high, r); both != utf8.RuneError {
			b.high = 0
			b.say(utf8.AppendRune(nil, both))
			return
		}
		b.half()
	}
	if utf16.IsSurrogate(r) && r < 0xdc00 {
		b.high = r
		return
	}
	b.say(utf8.AppendRune(nil, r))
}

// half returns what to do about half a character that has no other half.
func (b *body) half() {
	if b.high != 0 {
		b.high = 0
		b.say(utf8.AppendRune(nil, utf8.RuneError))
	}
}

// say takes in a piece of the statement.
func (b *body) say(p []byte) {
	b.bytes += int64(len(p))
	b.statement.Write(p)
	if b.limit == 0 && len(b.text)+len(p) > longestHead {
		b.limit = longestHead
		if verb, _ := sink.Verb(string(append(b.text, p[:min(len(p), longestHead-len(b.text))]...))); verb == "COPY" || verb == "REMOVE" {
			b.limit = longestCopy
		}
	}
	if b.limit > 0 {
		p = p[:max(0, min(len(p), b.limit-len(b.text)))]
	}
	b.text = append(b.text, p...)
}

func (b *body) keep(p ...byte) {
	if len(b.rest)+len(p) > longestRest {
		b.tooLong = true
		return
	}
	b.rest = append(b.rest, p...)
}

// question is what a body asks.
type question struct {
	SQL        string `json:"sql"`
	Attachment *struct {
		Location string            `json:"location"`
		Format   map[string]string `json:"file_format_options"`
	} `json:"stage_attachment"`
	Session json.RawMessage `json:"session"`
}

var (
	errTooLong = errors.New("all but the statement is longer than 64 KiB")
	errNoSQL   = errors.New("there is no statement")
)

// question reads the rest.
func (b *body) question() (q question, err error) {
	if b.tooLong {
		return q, errTooLong
	}
	if err := json.Unmarshal(b.rest, &q); err != nil {
		return q, err
	}
	if q.SQL != "" { // its key was written in some other way
		b.say([]byte(q.SQL))
	}
	if b.bytes == 0 {
		return q, errNoSQL
	}
	q.SQL = string(b.text)
	return q, nil
}
