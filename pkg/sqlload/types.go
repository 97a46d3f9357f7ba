package sqlload

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/rows"
)

// Type is one type of the server for values of one of ours: a row of a Dialect's Types.
type Type struct {
	Ours rows.Type
	// Name is the type in the server's catalog, as ServerType.Name; Also are others that do as well.
	Name string
	Also []string
	// SQL is the type in CREATE TABLE: a format for the length of a text, of raw bytes or of a vector, for digits and
	// scale of a decimal number, for the digits of a time's seconds, for the list of an enum's labels, for the type of
	// an array's elements, where the Name is "[]". "" is a type that existing tables may have and terapush does not make.
	SQL string
	// Check is the condition of a CHECK, in which %[1]s is the column and %[2]s the list of an enum's labels; "" is
	// none.
	Check string
	// Most is the largest length in SQL, or number of digits of a time's seconds or behind the point of a wide decimal; 0
	// has no limit.
	Most int
	// Fits reports whether the parameters of an existing column leave values unchanged; nil: whatever they are.
	Fits Fit
	// Least and Largest are the bounds of a type of integers that is narrower than ours, so that it takes only columns
	// whose values are known to be between them; both 0: as wide as ours.
	Least, Largest int64
	// Unsigned: a difference below 0, from which row numbers may be computed, is an error there.
	Unsigned bool
	// Read is a format for reading a column in a query; "" is the column as it is. That of arrays may have a second
	// %s, for what reads an element e. It is taken from the row by which a column of this type of ours and this length would be
	// made.
	Read string
}

// Types are a server's. Of several with SQL for a type of ours the first one is made whose Most suffices.
type Types []Type

// ServerType is the type of an existing column.
type ServerType struct {
	Name   string   // in small letters, without parameters: "timestamp without time zone"
	Params []int    // of timestamp(6) without time zone, 6
	Labels []string // of an enum, whose Name is "enum"
}

// without returns the first label that an enum does not have, as a literal; "" if it has all, or they are not known.
func (t ServerType) without(labels []string) string {
	for _, label := range labels {
		if t.Labels != nil && !slices.Contains(t.Labels, label) {
			return Literal(label)
		}
	}
	return ""
}

// ParseType reads a type as servers write it: a name with at most one list of parameters, of which units are dropped
// and others than numbers are 0.
func ParseType(text string) ServerType {
	parts := typePattern.FindStringSubmatch(strings.ToLower(text))
	t := ServerType{Name: strings.Join(strings.Fields(parts[1]+" "+parts[3]), " ")}
	if parts[2] == "" {
		return t
	}

	for _, p := range strings.Split(parts[2], ",") {
		number, _, _ := strings.Cut(strings.TrimSpace(p), " ")
		n, _ := strconv.Atoi(number)
		t.Params = append(t.Params, n)
	}
	return t
}

var typePattern = regexp.MustCompile(`(?s)^([^(]*)(?:\(([^)]*)\))?(.*)$`)

// Fit reports whether a column with these parameters of its type stores values of ours unchanged.
type Fit func(params []int, want rows.Column) bool

// LongEnough fits a type without a length, or with one that is enough for every value. As many characters as bytes are
// always enough. Doris writes -1 for no limit.
func LongEnough(params []int, want rows.Column) bool {
	return len(params) == 0 || params[0] < 0 || params[0] >= max(want.MaxBytes, 1)
}

// SameScale fits a decimal number with as many digits before the point, or more: another scale would round, or be read
// back differently.
func SameScale(params []int, want rows.Column) bool {
	digits, scale := decimalParams(params)
	return digits > 0 && scale == want.Scale && digits-scale >= want.Digits-want.Scale
}

// AnyScale is SameScale for a server whose type without digits takes every number, and shows it as it was sent.
func AnyScale(params []int, want rows.Column) bool {
	return len(params) == 0 || SameScale(params, want)
}

// SameDims fits a vector of as many numbers, or of any number.
func SameDims(params []int, want rows.Column) bool {
	return len(params) == 0 || params[0] == want.Dims()
}

// decimalParams are all digits of a decimal type, and those after the point, of which decimal(15) has none. 0 digits
// are not known.
func decimalParams(params []int) (digits, scale int) {
	switch len(params) {
	case 0:
		return 0, 0
	case 1:
		return params[0], 0
	}
	return params[0], params[1]
}

// WholeNumber fits a decimal type of so many digits before the point, and none behind it; or of fewer if all values fit.
func WholeNumber(digits int) Fit {
	return func(params []int, want rows.Column) bool {
		have, scale := decimalParams(params)
		isKnown := want.Most > 0 && len(strconv.FormatInt(want.Most, 10)) <= have
		return scale == 0 && (len(params) == 0 || have >= digits || isKnown)
	}
}

// SecondDigits fits a time that stores as many digits after its seconds as the values have: fewer would round. missing
// is how many it stores where nothing is said.
func SecondDigits(missing int) Fit {
	return func(params []int, want rows.Column) bool {
		have := missing
		if len(params) > 0 {
			have = params[0]
		}
		return have >= rows.SecondDigits-want.Scale
	}
}

// holds reports whether the type's bounds are those of the values, or wider.
func (t *Type) holds(want rows.Column) bool {
	if t.Least == t.Largest {
		return true
	}
	known := want.Least != 0 || want.Most != 0
	return known && want.Least >= t.Least && want.Most <= t.Largest
}

// made returns the row by which a column is made; nil if the server has no type for it.
func (all Types) made(c rows.Column) *Type {
	if c.Type == rows.Arrays && (!c.Of.Type.IsElement() || all.made(*c.Of) == nil) {
		return nil
	}
	i := slices.IndexFunc(all, func(t Type) bool {
		return t.Ours == c.Type && t.SQL != "" && (t.Most == 0 || length(c) <= t.Most)
	})
	if i < 0 {
		return nil
	}
	return &all[i]
}

// SQL returns the type of a column for CREATE TABLE; "" if the server has none.
func (d Dialect) SQL(c rows.Column) string {
	t := d.Types.made(c)
	switch {
	case c.SQL != "":
		return c.SQL
	case t == nil:
		return ""
	case !strings.Contains(t.SQL, "%"):
		return t.SQL
	case c.Type == rows.Arrays:
		return fmt.Sprintf(t.SQL, d.SQL(*c.Of))
	case strings.Contains(t.SQL, "%s"):
		return fmt.Sprintf(t.SQL, d.literals(c.Labels))
	case c.Type.IsDecimal():
		return fmt.Sprintf(t.SQL, c.Digits, c.Scale)
	}
	return fmt.Sprintf(t.SQL, length(c))
}

// Lacks lists the types of ours for which the server has none.
func (all Types) Lacks() (types []rows.Type) {
	for _, t := range rows.Types() {
		if !slices.ContainsFunc(all, func(one Type) bool { return one.Ours == t && one.SQL != "" }) {
			types = append(types, t)
		}
	}
	return types
}

// Define returns a column as CREATE TABLE has it.
func (s Statements) Define(c rows.Column) string {
	name := s.Column(c.Name)
	null := " NOT NULL"
	if c.Nullable || c.TakesNull {
		null = " NULL" // a TIMESTAMP of MySQL may be NOT NULL otherwise
	}
	return name + " " + s.SQL(c) + null + s.CheckOf(c)
}

// CheckOf returns the CHECK of a column, with a blank before it; "" without one.
func (d Dialect) CheckOf(c rows.Column) string {
	t := d.Types.made(c)
	if c.SQL != "" || t == nil || t.Check == "" {
		return ""
	}
	condition := strings.NewReplacer("%[1]s", d.Column(c.Name), "%[2]s", d.literals(c.Labels)).Replace(t.Check)
	return " CHECK (" + condition + ")"
}

// length is that of a variable column as a table declares it, the number of digits of a time's seconds, or that of a
// wide decimal's behind the point.
func length(c rows.Column) int {
	switch {
	case c.Type.HasSeconds():
		return rows.SecondDigits - c.Scale
	case c.Type == rows.Wide:
		return c.Scale
	case c.Type == rows.Float32s:
		return c.Dims()
	}
	return max(c.Declared, c.MaxBytes, 1)
}

// read returns the expression that reads a column for the proof; of a type that only the server knows, whether it is
// NULL.
func (all Types) read(c rows.Column, name string) string {
	if c.SQL != "" && c.Type != rows.JSON {
		return "CASE WHEN " + name + " IS NOT NULL THEN 1 END"
	}
	t := all.made(c)
	switch {
	case t == nil || t.Read == "":
		return name
	case c.Type == rows.Arrays:
		return fmt.Sprintf(t.Read, name, all.read(*c.Of, "e"))
	default:
		return fmt.Sprintf(t.Read, name)
	}
}

// element returns the type of an array's elements, where the server has arrays.
func (all Types) element(have ServerType) (of ServerType, is bool) {
	name, is := strings.CutSuffix(have.Name, "[]")
	known := slices.ContainsFunc(all, func(t Type) bool { return t.Ours == rows.Arrays })
	return ServerType{Name: strings.TrimSpace(name), Params: have.Params}, is && known
}

// Take reports whether a column of the type stores values of ours, and returns them, unchanged. computed says that row
// numbers are computed from them. A type that only the server knows is as the user says.
func (all Types) Take(have ServerType, want rows.Column, computed bool) bool {
	if want.SQL != "" {
		return true
	}
	if have.without(want.Labels) != "" {
		return false
	}
	if of, is := all.element(have); is && want.Type == rows.Arrays {
		return all.made(want) != nil && all.made(*want.Of).Name == of.Name && all.Take(of, *want.Of, false)
	}
	return slices.ContainsFunc(all, func(t Type) bool {
		named := t.Name == have.Name || slices.Contains(t.Also, have.Name)
		if t.Ours != want.Type || !named || t.Unsigned && computed || !t.holds(want) {
			return false
		}
		return t.Fits == nil || t.Fits(have.Params, want)
	})
}
