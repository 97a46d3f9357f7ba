package sqlload

import (
	"context"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// Catalog is what is special to a server in the life of a table: the questions to its catalog, and its DDL.
type Catalog interface {
	// Plan writes the statements of a run before the server was asked.
	Plan(p loader.Preparation) Statements
	// Locate finds what has the table's name, of whatever kind; nil if nothing has.
	Locate(ctx context.Context, c Conn, s *State) (*Relation, error)
	// Columns lists the relation's columns in their order.
	Columns(ctx context.Context, c Conn, s *State, r *Relation) ([]Column, error)
	// Fits says why the run cannot use the relation, or must not, beyond its columns.
	Fits(ctx context.Context, c Conn, s *State, r *Relation) error
	// Create lists the statements that make the table, with the comment loader.MadeBy. Some servers have to be asked first:
	// how many buckets a table of Doris has follows from the number of its backends. c is nil for Explain, which asks nobody.
	Create(ctx context.Context, c Conn, s *State) ([]string, error)
	// Exists reports whether a statement of Create or CreateClaims failed since another process was quicker.
	Exists(err error) bool
	// Grant is the statement that gives this user a privilege on a table, there or not: "CREATE", "TRUNCATE" or a list.
	Grant(ctx context.Context, c Conn, privileges, table string) string
	// Stored lists the statements that find the size of the table with its indexes; the last one reads it, in bytes.
	Stored(s *State) []string
}

// Claims is what is special to a server that has transactions, and so claims.
type Claims interface {
	// CreateClaims makes the claim table.
	CreateClaims(s *State) string
	// CheckClaims reports whether the claim table is there. Its error says why claims in it cannot be relied on.
	CheckClaims(ctx context.Context, c Conn, s *State) (there bool, err error)
	// EndOthers ends what may still be at work on a batch, on all hosts. What it could not end may remain where ResolveBatch
	// waits for it; otherwise that is an error.
	EndOthers(ctx context.Context, s *State, ref loader.Ref) error
	// ResolveBatch looks for a batch in a way that waits for whoever may still commit it: "not applied" is final.
	ResolveBatch(ctx context.Context, c Conn, s *State, ref loader.Ref) (loader.Resolution, error)
	// Serialize calls reserve, which reads and writes over c, in a way that of two runs one comes behind the other, and makes
	// what it wrote last. It may call it again.
	Serialize(ctx context.Context, c Conn, s *State, reserve func() error) error
}

// Relation is what has the table's name.
type Relation struct {
	Schema, Name string // as the server has them
	Table        string // both, quoted
	Kind         string // what it is if it is no table, for example "view"
	ID           string // by which the catalog knows it, where Columns and Fits ask for that
	Identity     string // see loader.Table
	Comment      string
	Claims       string // the claim table that belongs to it, quoted
	// NextClaims is the claim table of the one that CreateRecreate puts in its place, where that is another.
	NextClaims string
	// Traits are what Fits wants to know of what Locate has read.
	Traits []string
}

// String is the name as messages and Table.Name show it.
func (r *Relation) String() string {
	if r.Schema == "" {
		return r.Name
	}
	return r.Schema + "." + r.Name
}

// Column is a column of a relation.
type Column struct {
	Name, Type string // Type is for messages
	Optional   bool   // the server fills it where a load leaves it out
	// Takes reports whether values of the dataset's column come back from this one as they went in.
	Takes func(want rows.Column) bool
}
