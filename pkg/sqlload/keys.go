package sqlload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/rows"
)

// KeyRule is which keys the tables of a server have. Those that it leaves out are named by a dry run.
type KeyRule uint8

// The rules.
const (
	AllKeys     KeyRule = iota
	ShardedKeys         // of the unique keys, those that contain the column by which rows are distributed
	OnlyPrimary
	NoKeys
)

// why says why a key is left out.
func (r KeyRule) why() string {
	return [...]string{
		ShardedKeys: "a unique key there contains the column by which rows are distributed",
		OnlyPrimary: "a table there has no unique key beside the primary one",
		NoKeys:      "a table there has no keys, or none that the server enforces",
	}[r]
}

// LeadingNames are the columns of the primary key, or else those of a row's number. By the first of them rows are
// distributed.
func (s Statements) LeadingNames() []string {
	if len(s.Schema.Primary) > 0 {
		return s.Schema.Primary
	}
	return s.Schema.NumberNames()
}

// LeadingColumns quotes LeadingNames.
func (s Statements) LeadingColumns() string { return s.columns(s.LeadingNames()) }

// Constraints returns the keys of the schema as CREATE TABLE has them, the primary one first, and those that are left
// out.
func (s Statements) Constraints() (made, without []string) {
	if key := s.Schema.Primary; len(key) > 0 {
		first := s.Column(key[0])
		text := "PRIMARY KEY (" + first + s.FirstInKey + strings.TrimPrefix(s.columns(key), first) + ")"
		if s.Keys == NoKeys {
			without = append(without, text)
		} else {
			made = append(made, text)
		}
	}

	seen := [][]string{s.Schema.Primary}
	for _, key := range s.Schema.Unique {
		if slices.ContainsFunc(seen, func(other []string) bool { return slices.Equal(other, key) }) {
			continue // a second index of the same, which Oracle refuses
		}
		seen = append(seen, key)
		text := fmt.Sprintf(cmp.Or(s.Unique, "UNIQUE (%s)"), s.columns(key))
		if s.Keys == AllKeys || s.Keys == ShardedKeys && slices.Contains(key, s.LeadingNames()[0]) {
			made = append(made, text)
		} else {
			without = append(without, text)
		}
	}
	return made, without
}

// leftOut says which keys of the schema a table that is made does not have, and why; "" if it has all.
func (s *State) leftOut() string {
	_, without := s.Constraints()
	if len(without) == 0 || s.Want.Like.Name != "" {
		return ""
	}
	return strings.Join(without, ", ") + ": " + s.Keys.why()
}

// inKey reports whether a column is in a key of the table, or in that by which rows are found.
func (s Statements) inKey(name string) bool {
	keys := append([][]string{s.Schema.Primary, s.Schema.NumberNames()}, s.Schema.Unique...)
	return slices.ContainsFunc(keys, func(key []string) bool { return slices.Contains(key, name) })
}

// SQL returns the type of a column for CREATE TABLE; "" if the server has none, or none for a key that the column is
// in.
func (s Statements) SQL(c rows.Column) string {
	i := slices.IndexFunc(s.KeyTypes, func(t Type) bool { return t.Ours == c.Type })
	if i < 0 || c.SQL != "" || !s.inKey(c.Name) {
		return s.Dialect.SQL(c)
	}
	if most := s.KeyTypes[i].Most; c.Declared > most {
		c.Declared = 0
	}
	keyed := s.Dialect
	keyed.Types = s.KeyTypes
	return keyed.SQL(c)
}
