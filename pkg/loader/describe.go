package loader

import (
	"context"

	"github.com/terapush/terapush/pkg/rows"
)

// Describer reads the table that the loader is opened on, as it is: for whoever makes rows for it, and for a load of
// files. Describe and Columns may be called before Prepare, and change nothing.
type Describer interface {
	// Describe says all that whoever makes rows has to know. A missing table is ErrNoTable; a view, or anything else
	// that takes no rows, is an error as well.
	Describe(ctx context.Context) (*Description, error)
	// DescribeAll describes the tables of a schema by name, without partitions and terapush's own. Of what takes no rows
	// they say why. The keys of parents in the same schema are not counted. A server that cannot list tables is an error.
	DescribeAll(ctx context.Context, schema string) ([]*Description, error)
	// Shapes adds what the server's statistics say of the columns of tables, all of one schema. What this user may not
	// see is in their Hidden.
	Shapes(ctx context.Context, all ...*Description) error
	// Columns lists the table's columns in their order, with their Values.
	Columns(ctx context.Context) ([]Column, error)
	// Rows counts all rows of the table, by a scan.
	Rows(ctx context.Context) (int64, error)
	Rereader
}

// Rereader reads records of files back.
type Rereader interface {
	// Reread calls f for every row that has one of the texts as its key, one of the columns, and perhaps for others
	// that the server takes for equal. Values are those of the columns, as Fetcher has them; one that is not the
	// column's type has its text, a string. f must not keep them.
	Reread(ctx context.Context, columns []rows.Column, key int, texts []string, f func(values []any) error) error
}

// Description is a table as the server's catalog has it. Names and expressions are the server's, without quotation
// marks around names; they may hold any character.
type Description struct {
	Schema, Table string
	Rows          int64 // the server's estimate; 0 if it has none
	Columns       []Column
	Keys          []Key // the primary key first
	References    []Reference
	Checks        []string // the conditions of CHECK constraints
	Escapes       bool     // a backslash begins an escape in the literals of conditions and defaults
	// Costs is what every row pays for: "index i", "trigger t", "foreign key f".
	Costs      []string
	Triggers   []Trigger // on INSERT, as far as the server shows what they do
	Partitions string    // by what the table is divided; "" if it is not
	Unfit      string    // why it takes no rows, of which nothing else is said then: "it is a view"; "" if it does
	// Hidden is what the server did not answer, as "CHECKs".
	Hidden []string

	// StandIn says that no real server has ever been asked for this, but a stand-in written from its manual.
	StandIn bool

	// Analyzed is when the statistics of Shapes were gathered, in the server's words; "" is unknown. Analyze is the
	// statement that gathers them.
	Analyzed, Analyze string
}

// Column is a column of a table that exists.
type Column struct {
	Name string
	Type string // as the server writes it
	// Values is how the column is read as one of ours: its type with MaxBytes, Digits, Scale and Labels, as far as the
	// server bounds them. nil: there is no type of ours for it.
	Values *rows.Column
	// Nullable says that a NULL is taken, and is what a load leaves there that omits the column.
	Nullable bool
	Default  string // as the server writes it; "" is none
	// Generated is the expression of a column that holds what the server computes, whatever a load sends: refused by some
	// servers, dropped in silence by MySQL's LOAD DATA.
	Generated string
	Numbered  Numbering
	OnUpdate  string // what an UPDATE of other columns puts there, which is no default
	Invisible bool   // to SELECT *
	Comment   string
	Shape     *Shape // of its values; nil: Shapes was not called, or the server has no statistics
	// NoEmpty and NoNull say that a load of files must not send an empty text or a NULL there, since the server would
	// take it for NULL or for a value, without a word.
	NoEmpty, NoNull bool
	// NoZeroDay says the same of the day 0000-00-00, which the server would take for 1970-01-01.
	NoZeroDay bool
	// FloatBits says the same of a number beyond those of a float of 32 or 64 bits, which would become infinite; 0 = any.
	FloatBits int
	// Quoted says that the server reads a number of JSON as a double, and cuts that: it goes there as a text.
	Quoted bool
}

// Optional reports whether the server fills the column where a load leaves it out.
func (c *Column) Optional() bool {
	return c.Nullable || c.Default != "" || c.Generated != "" || c.Numbered != ""
}

// Numbering is how a server numbers rows by itself, where a load leaves the column out; "" is not at all.
type Numbering string

// The numberings.
const (
	IdentityAlways    Numbering = "identity always"
	IdentityByDefault Numbering = "identity by default"
	AutoIncrement     Numbering = "auto_increment"
	AutoRandom        Numbering = "auto_random"
)

// Key is a primary key or a unique index.
type Key struct {
	Name    string
	Primary bool
	Columns []string
	// Only is why the columns alone do not say what is unique, as a prefix of a text, an expression or a condition; "" if
	// they do. Rows whose values of one of the columns all differ, in the first Prefix characters if that is not 0, and
	// whatever the case of letters, keep the key nevertheless.
	Only   string
	Prefix int
}

// Reference is a foreign key.
type Reference struct {
	Name          string
	Columns       []string // of this table
	Schema, Table string   // of the parent
	Of            []string // the parent's columns
	// Keys are the parent's values where that is one integer column; nil if it is not, or they could not be read.
	Keys *ParentKeys
	// Grid has the values of each of several integer columns, of which the parent has every combination; nil if it has
	// not, or they could not be read.
	Grid []ParentKeys
}

// Trigger is what the server does for every row that is inserted.
type Trigger struct{ Name, Statement string }

// ParentKeys are the values of an integer key.
type ParentKeys struct{ Min, Max, Count int64 }
