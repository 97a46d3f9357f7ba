package dataset

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Spec describes a user's dataset: its columns, their generators and the key. It is frozen: parameters are replaced
// and defaults are filled in. Its JSON is canonical: equal specs have equal JSON; it is kept in the run's record and
// hashed.
//
// Values are texts in the notation of their column's type, so that a difference of two specs can be read: 42, 0.50,
// 2026-01-31, 2026-01-31 23:59:59.000000, 250us, and bytes in hex.
type Spec struct {
	Version int          `json:"version"` // of this format and of all bytes of its generators: 1
	Name    string       `json:"name"`    // the dataset's, and the default name of the table
	Rows    int64        `json:"rows"`    // default number of rows; 0 = none given
	Columns []SpecColumn `json:"columns"` // in the table's order
	Key     []string     `json:"key"`     // up to maxKey columns, the slow ones first
	Unique  [][]string   `json:"unique"`  // sets of columns of which no two rows have the same values
	// Primary is the primary key of a table that is made; nil: it is Key; empty: there is none.
	Primary []string `json:"primary,omitzero"`
}

// SpecColumn is a column and its generator. In JSON the generator's name is the key of its parameters.
type SpecColumn struct {
	Name      string    `json:"name"`
	Type      string    `json:"type"`          // bigint, text(n) or another of specTypes
	SQL       string    `json:"sql,omitempty"` // a type of the server, which parses the column's text; ""
	Generator Generator `json:"-"`
	// Nulls is the share that is NULL, in percent, of which noNulls is 0; "": the table takes none.
	Nulls string `json:"nulls,omitempty"`
	// Distinct is how many different values there are at most; 0: as many as the generator makes.
	Distinct int64 `json:"distinct,omitempty"`
	// Of a field of a document: the share of those that do not have it, and how many values an array has, as 3 or 0..5.
	Absent string `json:"absent,omitempty"`
	Items  string `json:"items,omitempty"`
	// Common are values with shares of their own, of those that are not NULL; the generator has the rest.
	Common SpecValues `json:"common,omitempty"`

	place []string // in the file
}

// SpecSequence is the one generator of derived columns: row i has start + (i / every) mod cycle × step.
type SpecSequence struct {
	Start  string `json:"start"`
	Step   string `json:"step"`
	Every  int64  `json:"every"`
	Cycle  int64  `json:"cycle,omitempty"`  // 0 = the sequence does not start over
	Format string `json:"format,omitempty"` // of a text: a prefix, {:0N} for N digits, a suffix
	Most   string `json:"most,omitempty"`   // that the column takes; "" = what its type does
	// Of is table.column, a key of the same file that the rows refer to one after the other, until ParseTables has
	// replaced it by its start, step and format.
	Of string `json:"of,omitempty"`
}

// SpecRange is the values min, min + step … up to max.
type SpecRange struct {
	Min  string `json:"min"`
	Max  string `json:"max"`
	Step string `json:"step"`
}

// SpecZipf draws the value of rank k, from 1, in proportion to k^−s.
type SpecZipf struct {
	S       string     `json:"s"` // more than 0, at most 20, with up to 6 digits after the point
	Scatter bool       `json:"scatter,omitempty"`
	Range   *SpecRange `json:"range,omitempty"`  // in the order of ranks, unless they are scattered
	Values  []string   `json:"values,omitempty"` // instead of a range
}

// SpecNormal draws from a normal distribution that is cut off at the ends of a range.
type SpecNormal struct {
	Mean   string    `json:"mean"`
	Stddev string    `json:"stddev"`
	Range  SpecRange `json:"range"`
}

// SpecValue is one of a list of values.
type SpecValue struct {
	Value string `json:"value"`
	Share string `json:"share,omitempty"` // in percent, with up to 9 digits after the point; "" = all are equally frequent
}

// SpecValues is a list of values, of which each row has one.
type SpecValues []SpecValue

// SpecConstant is one value in all rows.
type SpecConstant string

// SpecLength is a length in bytes: any from Min to Max, all equally frequent.
type SpecLength struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// unknownLength is that of a length that is not given.
var unknownLength = SpecLength{-1, -1}

// SpecWords is English prose of a length.
type SpecWords struct{ SpecLength }

// SpecBytes is random bytes of a length.
type SpecBytes struct{ SpecLength }

// SpecText is random symbols of an alphabet.
type SpecText struct {
	SpecLength
	Alphabet string `json:"alphabet"` // one of namedAlphabets
}

// SpecVersion is the only version of specs.
const SpecVersion = 1

// The bounds of a spec. The library that reads YAML takes time in proportion to the square of some sizes.
const (
	maxSpecBytes   = 128 << 10
	maxSpecNesting = 256
	maxColumns     = 1000
	maxKey         = 4 // columns
	maxValues      = 4096
	maxName        = 63       // bytes: PostgreSQL cuts longer ones off
	maxSpecRow     = 16 << 20 // bytes of column data
	maxEntries     = 1 << 22  // of the tables of all distributions: 128 MiB, and a second to make them
	maxProblems    = 100      // that are listed
)

// ParseSpec reads a spec in YAML. file is its name in messages, and, without its extension, the name of a dataset
// that names none. parameters replace those of the file, which has to declare them. The error joins all mistakes, one
// a line, each with file and line.
func ParseSpec(file string, text []byte, parameters map[string]string) (*Spec, error) {
	r := &specReader{file: file, given: parameters, lines: map[string]int{}}
	s := r.read(text)
	if len(r.problems) > 0 {
		return nil, r.err()
	}

	problems := s.ownColumns()
	if len(problems) == 0 {
		_, problems = s.plan()
	}
	for _, p := range problems {
		r.add(r.lineOf(p.at), "%s", p.text)
	}
	if len(problems) > 0 {
		return nil, r.err()
	}
	return s, nil
}

// columnIndex returns the index of a column, −1 if there is none.
func (s *Spec) columnIndex(name string) int {
	return slices.IndexFunc(s.Columns, func(c SpecColumn) bool { return c.Name == name })
}

// column returns a column by its name, nil if there is none.
func (s *Spec) column(name string) *SpecColumn {
	if i := s.columnIndex(name); i >= 0 {
		return &s.Columns[i]
	}
	return nil
}

func (s *Spec) columnNames() (all []string) {
	for _, c := range s.Columns {
		all = append(all, c.Name)
	}
	return all
}

// Compile returns the dataset of a spec for a seed. It checks the spec, which may come from a record, and does not
// change it.
func (s *Spec) Compile(seed uint64) (Dataset, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("dataset %s: %w", s.Name, err)
	}

	return made.Get(fmt.Sprintf("%d %s", seed, text), func() (Dataset, error) { return s.compile(text, seed) })
}

// compile is Compile of a spec whose JSON is text.
func (s *Spec) compile(text []byte, seed uint64) (Dataset, error) {
	frozen := new(Spec)
	if err := strictly(text, frozen); err != nil {
		return nil, fmt.Errorf("dataset %s: %w", s.Name, err)
	}

	p, problems := frozen.plan()
	if len(problems) > 0 {
		var all []string
		for _, one := range problems {
			all = append(all, one.text)
		}
		return nil, fmt.Errorf("dataset %s: %s", s.Name, strings.Join(all, "; "))
	}
	return p.compile(seed), nil
}

// problem is a mistake in a spec. at is the path of the part that is wrong, whose line the file's reader knows.
type problem struct{ at, text string }

// path joins the parts of a place in a file. Names of columns may contain any separator that can be seen.
func path(parts ...string) string { return strings.Join(parts, "\x00") }

// unknown says that a word is none of the valid ones.
func unknown(kind, word string, valid []string) string {
	if guess := nearest(word, valid); guess != "" {
		return fmt.Sprintf("%s %s: did you mean %s?", kind, quoted(word), guess)
	}
	return fmt.Sprintf("%s %s: there is %s", kind, quoted(word), listed(valid))
}

// listed returns words for a message, of many the first ones.
func listed(words []string) string {
	const most = 40
	var all []string
	for i, word := range words {
		if i == most {
			return strings.Join(append(all, "…"), ", ")
		}
		all = append(all, shortened(word))
	}
	return strings.Join(all, ", ")
}

// shortened cuts a word that is longer than a line.
func shortened(word string) string {
	const most = 60
	if len(word) <= most {
		return word
	}
	return strings.ToValidUTF8(word[:most], "") + "…"
}

// quoted returns a word of a file for a message: as it is if it is a plain one, and never longer than a line.
func quoted(word string) string {
	word = shortened(word)
	plain := func(r rune) bool { return r > ' ' && r != '"' && r != '\\' && r < 0x7F }
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return fmt.Sprintf("%q", word)
}

// Differences lists how the rows of a spec differ from those of an earlier one, a column or another topic each; none if
// they are equal.
func (s *Spec) Differences(was *Spec) (all []string) {
	s, was = s.Portable(), was.Portable()
	differ := func(what string, was, is any) {
		if before, now := asJSON(was), asJSON(is); before != now {
			all = append(all, fmt.Sprintf("%s was %s, now %s", what, before, now))
		}
	}

	for _, c := range s.Columns {
		if before := was.column(c.Name); before != nil {
			differ("column "+c.Name, *before, c)
		}
	}
	differ("columns", was.columnNames(), s.columnNames())
	differ("name", was.Name, s.Name)
	differ("key", was.Key, s.Key)
	differ("primary", was.Primary, s.Primary)
	differ("unique", was.Unique, s.Unique)
	return all
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // numbers and texts
	}
	return string(text)
}

// Digest identifies the rows of a spec: the first 16 hexadecimal digits of the SHA-256 of its JSON without their
// default number, on which no row depends.
func (s *Spec) Digest() string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(asJSON(s.Portable().Unsized()))))[:16]
}

// Unsized returns the spec without the default number of rows.
func (s *Spec) Unsized() *Spec {
	c := *s
	c.Rows = 0
	return &c
}
