package sqlload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// Connect opens a connection.
type Connect func(ctx context.Context) (Conn, error)

// Table is the target table of a loader, from Prepare to the proof. Its methods are those of the loader's interfaces.
type Table struct {
	Name     string // as in the target
	Catalog  Catalog
	Claims   Claims                           // nil without transactions
	Connect  Connect                          // to the first host that answers
	Failed   func(op string, err error) error // adds what was being done, and a hint; nil stays nil
	Classify func(error) loader.Verdict
	// SQLState returns the code of a server's error, "" for any other error; nil: the error's method of this name does.
	// By 22003 a table is known whose last key leaves no room for another.
	SQLState func(error) string
	Log      *slog.Logger
	// Split returns conditions that split a scan of a range into at most n parts, none if it cannot be split. nil: it
	// never can.
	Split func(ctx context.Context, c Conn, s *State, r loader.KeyRange, n int) ([]string, error)
	// Indexed reports whether an index finds the rows of a table by their numbers; nil: one does, or the server
	// needs none.
	Indexed func(ctx context.Context, c Conn, s *State) (bool, error)
	// Others returns the target's other hosts, which have to be of the same database; nil if there are none.
	Others func() []Other
	// Effects is a query for what on the table may change, divert or hide rows: what it is, what it may do, and what
	// helps; nil: there is nothing like that.
	Effects func(s *State) string
	// Behind returns the statements that move a sequence of the key's column behind its largest value, where one is before
	// it; nil: the server moves them by itself.
	Behind func(ctx context.Context, c Conn, s *State, largest int64) ([]string, error)
	// Lookups are what Describe asks, and CheckCosts; nil: the server is not asked such things.
	Lookups *Lookups
	// MaxStatement is the longest statement that the server takes, in bytes; 0 is no limit.
	MaxStatement int64
	// MaxFetch is how many rows one statement may ask for by their keys; 0 is no limit.
	MaxFetch int

	state atomic.Pointer[State]
}

// Other is a host beside the one that Connect has.
type Other struct {
	Host    string
	Connect Connect
	// Unfit reports whether an error of connecting says that the host takes no rows, as a standby; nil: none does.
	Unfit func(error) bool
}

// State describes a planned or prepared table.
type State struct {
	Statements
	Want     loader.Preparation
	Relation *Relation // nil if there is none, or the server was not asked

	longScan bool // as loader.Table.LongScan
}

// Plan returns the state before the server was asked.
func (t *Table) Plan(p loader.Preparation) *State {
	if p.PrimaryKey && len(p.Schema.Primary) == 0 {
		p.Schema.Primary = p.Schema.NumberNames()
	}
	s := &State{Statements: t.Catalog.Plan(p), Want: p}
	s.Row.Run, s.Row.Part = p.Run, cmp.Or(p.Shard, loader.WholeRun)
	s.UUID = p.UUID
	return s
}

// State returns the prepared table.
func (t *Table) State() (*State, error) {
	if s := t.state.Load(); s != nil {
		return s, nil
	}
	return nil, errors.New("the loader was not prepared")
}

// Format returns the format of the run's contract.
func (t *Table) Format() (batch.Format, error) {
	s, err := t.State()
	if err != nil {
		return "", err
	}
	return s.Want.Contract.Format, nil
}

// claims reports whether the run claims its batches.
func (s *State) claims() bool { return s.Want.Contract.Dedup == loader.DedupTx }

// connect calls f with a connection.
func (t *Table) connect(ctx context.Context, f func(Conn) error) error {
	c, err := t.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	return f(c)
}

// do calls f with a connection and the prepared table. op says in errors what was being done.
func (t *Table) do(ctx context.Context, op string, f func(Conn, *State) error) error {
	s, err := t.State()
	if err != nil {
		return err
	}
	return t.Failed(op, t.connect(ctx, func(c Conn) error { return f(c, s) }))
}

// number reads the number that a query about the prepared table returns.
func (t *Table) number(ctx context.Context, op string, query func(*State) string) (n int64, err error) {
	err = t.do(ctx, op, func(c Conn, s *State) error {
		n, err = Number(ctx, c, query(s))
		return err
	})
	return n, err
}

// query calls each for the rows of a query. An error of each comes back as it is.
func (t *Table) query(ctx context.Context, connect Connect, op, query string, each func(row [][]byte) error) error {
	c, err := connect(ctx)
	if err != nil {
		return t.Failed(op, err)
	}
	defer func() { _ = c.Close() }()
	var stopped error
	err = c.Query(ctx, query, func(row [][]byte) error {
		stopped = each(row)
		return stopped
	})
	if stopped != nil {
		return stopped
	}
	return t.Failed(op, err)
}

// Parts implements loader.Counter.
func (t *Table) Parts(ctx context.Context, r loader.KeyRange, n int) (parts []string, err error) {
	if t.Split == nil || n < 2 {
		return []string{""}, nil
	}
	err = t.do(ctx, "split the table", func(c Conn, s *State) (err error) {
		parts, err = t.Split(ctx, c, s, r, n)
		return err
	})
	if err != nil && t.refused(err) {
		parts, err = nil, nil
	}
	if len(parts) == 0 {
		parts = []string{""}
	}
	return parts, err
}

// refused reports whether a server that can be asked does not answer: no reason to stop where the answer would only
// save time. It knows other views than we ask, or shows them to others.
func (t *Table) refused(err error) bool {
	v := t.Classify(err)
	if v.Retry || v.SessionDead || loader.Ended(err) {
		return false
	}
	if t.Log != nil {
		t.Log.Debug("a look-up is done without", "error", err)
	}
	return true
}

// Count implements loader.Counter in one scan.
func (t *Table) Count(ctx context.Context, g loader.Grouping, f func(loader.Bucket) error) error {
	s, err := t.State()
	if err != nil {
		return err
	}
	return t.query(ctx, t.Connect, "count", s.SelectBuckets(g), func(row [][]byte) error {
		b, err := readBucket(row, g.Mix != nil)
		if err != nil {
			return fmt.Errorf("count: %w", err)
		}
		return f(b)
	})
}

// CountDistinct counts the distinct row numbers of a range in one scan.
func (t *Table) CountDistinct(ctx context.Context, r loader.KeyRange) (int64, error) {
	return t.number(ctx, "count distinct rows", func(s *State) string { return s.SelectDistinct(r) })
}

// CountRows counts the rows of a range.
func (t *Table) CountRows(ctx context.Context, r loader.KeyRange) (int64, error) {
	return t.number(ctx, "count rows", func(s *State) string { return s.SelectCount(r) })
}

// Columns implements loader.Describer.
func (t *Table) Columns(ctx context.Context) (all []loader.Column, err error) {
	err = t.connect(ctx, func(c Conn) error {
		s := t.Plan(loader.Preparation{Create: loader.CreateNever, Records: true})
		found, err := t.Locate(ctx, c, s)
		if err != nil {
			return err
		}
		columns, err := t.Catalog.Columns(ctx, c, s, found)
		for _, c := range columns {
			c.Values = s.Types.ours(c)
			all = append(all, c.Column)
		}
		return err
	})
	return all, t.Failed("read the table's columns", err)
}

// Rows implements loader.Describer.
func (t *Table) Rows(ctx context.Context) (int64, error) {
	return t.number(ctx, "count the table's rows", (*State).selectRows)
}

// selectRows counts all rows of the table.
func (s *State) selectRows() string {
	return fmt.Sprintf("SELECT %s FROM %s", s.digits("COUNT(*)"), s.own())
}

// Reread implements loader.Describer.
func (t *Table) Reread(ctx context.Context, columns []rows.Column, key int, texts []string, f func(values []any) error) error {
	s, err := t.State()
	if err != nil || len(texts) == 0 {
		return err
	}
	values := make([]any, len(columns))
	return t.query(ctx, t.Connect, "read records back", s.SelectRecords(columns, key, texts), func(row [][]byte) error {
		if len(row) != len(columns) {
			return fmt.Errorf("a row has %d values, and %d were asked for", len(row), len(columns))
		}
		for i, c := range columns {
			text := string(row[i]) // readValue may decode in place
			if values[i], err = s.readValue(c, row[i]); err != nil {
				values[i] = text
			}
		}
		return f(values)
	})
}

// Stored implements loader.Sizer.
func (t *Table) Stored(ctx context.Context) (n int64, err error) {
	err = t.do(ctx, "read the table's size", func(c Conn, s *State) (err error) {
		n, err = t.stored(ctx, c, s)
		return err
	})
	return n, err
}

func (t *Table) stored(ctx context.Context, c Conn, s *State) (int64, error) {
	statements := t.Catalog.Stored(s)
	last := len(statements) - 1
	for _, statement := range statements[:last] {
		if _, err := c.Exec(ctx, statement); err != nil {
			return 0, err
		}
	}
	return Number(ctx, c, statements[last])
}

// Fetch implements loader.Fetcher in one statement, unless it would be longer than MaxStatement or ask for more than
// MaxFetch.
func (t *Table) Fetch(ctx context.Context, numbers []int64, f func(number int64, values []any) error) error {
	return t.FetchOver(ctx, t.Connect, numbers, f)
}

// FetchOver is Fetch over a connection of another kind, for a server that has to be told how large rows are.
func (t *Table) FetchOver(
	ctx context.Context, connect Connect, numbers []int64, f func(number int64, values []any) error,
) error {
	s, err := t.State()
	if err != nil || len(numbers) == 0 {
		return err
	}
	query := s.SelectRows(numbers)
	tooLong := t.MaxStatement > 0 && int64(len(query)) > t.MaxStatement
	tooMany := t.MaxFetch > 0 && len(numbers) > t.MaxFetch
	if half := len(numbers) / 2; half > 0 && (tooLong || tooMany) {
		if err := t.FetchOver(ctx, connect, numbers[:half], f); err != nil {
			return err
		}
		return t.FetchOver(ctx, connect, numbers[half:], f)
	}
	return t.readRows(ctx, connect, s, query, f)
}

// FetchWhere calls f for the rows that meet the condition.
func (t *Table) FetchWhere(ctx context.Context, condition string, f func(number int64, values []any) error) error {
	s, err := t.State()
	if err != nil {
		return err
	}
	return t.readRows(ctx, t.Connect, s, s.SelectWhere(condition), f)
}

func (t *Table) readRows(
	ctx context.Context, connect Connect, s *State, query string, f func(number int64, values []any) error,
) error {
	values := make([]any, len(s.Schema.Columns))
	return t.query(ctx, connect, "fetch rows", query, func(row [][]byte) error {
		number, err := s.readRow(row, values)
		if err != nil {
			return fmt.Errorf("fetch: %w", err)
		}
		return f(number, values)
	})
}
