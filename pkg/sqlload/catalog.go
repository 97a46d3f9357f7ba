package sqlload

import (
	"context"
	"fmt"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// Catalog queries the server's system catalog, and has its DDL.
type Catalog interface {
	// Plan returns the statements of a run before the server was asked.
	Plan(p loader.Preparation) Statements
	// Locate returns the relation with the table's name, of any kind; nil if there is none.
	Locate(ctx context.Context, c Conn, s *State) (*Relation, error)
	// Columns lists the relation's columns in their order.
	Columns(ctx context.Context, c Conn, s *State, r *Relation) ([]Column, error)
	// Fits returns why the run cannot or must not use the relation, apart from its columns; nil if it can.
	Fits(ctx context.Context, c Conn, s *State, r *Relation) error
	// Create returns the statements that create the table, with the comment of Preparation.Comment. It may ask the
	// server, as Doris for the number of its backends; Explain calls it without a connection.
	Create(ctx context.Context, c Conn, s *State) ([]string, error)
	// Exists reports whether a statement of Create or CreateClaims failed because another process was quicker.
	Exists(err error) bool
	// Grant returns the statement that gives this user a privilege on a table, which may not exist: "CREATE",
	// "TRUNCATE" or a list.
	Grant(ctx context.Context, c Conn, privileges, table string) string
	// Stored returns statements of which the last reads the size of the table with its indexes, in bytes.
	Stored(s *State) []string
}

// Claims is the part of a server with transactions.
type Claims interface {
	// CreateClaims returns the statement that creates the claim table: run, batch, first_key and row_count as in
	// RunColumns, the primary key (run, batch), and claimed_at, which is by default the time. Further columns need a
	// default as well.
	CreateClaims(s *State) string
	// CheckClaims reports whether the claim table exists. Its error is why the claims in it cannot be relied on.
	CheckClaims(ctx context.Context, c Conn, s *State) (exists bool, err error)
	// EndOthers ends all that may still load a batch, on all hosts. What it cannot end is an error, unless ResolveBatch
	// waits for it.
	EndOthers(ctx context.Context, s *State, ref loader.Ref) error
	// ResolveBatch waits for all that may still commit a batch, and then looks for it: its "not applied" is final.
	ResolveBatch(ctx context.Context, c Conn, s *State, ref loader.Ref) (loader.Resolution, error)
	// CreateRuns returns the statement that creates the table of the runs' rows, of RunColumns.
	CreateRuns(s *State) string
	// SelectRunSchemas reads the schemas, as they are named and not quoted, in which this user sees a table of runs'
	// rows.
	SelectRunSchemas() string
	// Fence calls change, which reads and writes the rows of runs over c, and commits. Before change every transaction
	// that has a claim in one of the fence's tables ends, and until the commit no other begins; where the server has no
	// such lock, the sessions of the fence's run are ended after it. Of two processes one waits for the other. Fence
	// may call change again.
	Fence(ctx context.Context, s *State, f Fence, change func(c Conn) error) error
	// Guard keeps others from changing the row of this process while the table is dropped or emptied.
	Guard(s *State) Guard
}

// Guard is what surrounds statements that drop or empty a table.
type Guard struct {
	Before, After string // "" is none
	Check         string // what follows the SELECT of the run's row, to lock it
	Failed        string // in place of After where a statement has failed; "" is After
}

// Relation is what has the table's name.
type Relation struct {
	Schema, Name string // as the server has them
	Table        string // both, quoted
	Own          string // see Statements
	Kind         string // for example "view"; "" is a table
	ID           string // in the catalog, for Columns and Fits
	Identity     string // see loader.Table
	Comment      string
	Claims       string   // the table's claim table, quoted
	NextClaims   string   // the claim table after CreateRecreate, if it is another
	Traits       []string // read by Locate for Fits
	Columns      []Column // read by Table.Fits; nil of a table that was just made
}

// String returns the name for messages and Table.Name.
func (r *Relation) String() string {
	if r.Schema == "" {
		return r.Name
	}
	return r.Schema + "." + r.Name
}

// isLike reports whether a relation may be the table that a new one is to be like. Where case may count or not, as a
// setting of MySQL decides, names that differ in it alone are taken for one: the table would be gone.
func (s *State) isLike(r *Relation) bool {
	like := s.Want.Like
	if s.Fold {
		return like.Name != "" && strings.EqualFold(r.Schema, like.Schema) && strings.EqualFold(r.Name, like.Name)
	}
	return like.Name != "" && r.Schema == like.Schema && r.Name == like.Name
}

// Elsewhere is the advice for a table that cannot take the run's rows. One that terapush has not made is never to be
// dropped for them.
func (r *Relation) Elsewhere() string {
	if _, is := loader.IsMade(r.Comment); !is {
		return "choose another --table"
	}
	return "choose another --table, or use --create recreate"
}

// Refuse returns the error of a relation that the run cannot use, as Fits and CheckClaims find it: nothing is applied,
// and the hint says what helps.
func Refuse(hint, format string, values ...any) error {
	return &loader.Error{Op: "check the table", Applied: loader.No, Err: fmt.Errorf(format, values...), Hint: hint}
}
