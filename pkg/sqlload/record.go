package sqlload

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Recorder stands for a server without tables, for loader.Driver.Explain: a Conn that writes down what it is sent. A
// dry run shows what a run sends, since the same code sends it. Look-ups before the first batch are left out.
//
// Words in capitals stand for what differs from run to run: RUN, EPOCH, OWNER.
type Recorder struct {
	// Answer returns the rows of a query; nil: no query has any.
	Answer func(query string) [][]string
	// Binary shows prepared statements as the commands of MySQL's protocol, with the parameters of a whole batch.
	Binary bool
	// Shown are how look-ups begin that are not left out.
	Shown []string
	// Refuse returns the server's error of a statement; nil: it refuses none.
	Refuse func(statement string) error
	// Missing is the server's error of a table that is not there, required of a server with claims.
	Missing error
	// Traits are those of the table, as Relation.Traits.
	Traits []string

	table   *Table
	server  *emptyServer
	when    string // the step, as Statement.When
	written []loader.Statement
	rows    int64       // what a statement that is no claim has changed
	words   []string    // in pairs: what a run makes up, and what stands for it
	whens   [][3]string // step, beginning of a statement, when it is sent
	refused bool        // there are no later steps
}

// LostAnswer begins the names of Resolve's steps.
const LostAnswer = "after a lost answer"

// The steps in which queries are look-ups.
const (
	once       = "once"
	perSession = "per session"
)

// example is the run that is explained.
const example = "RUN"

// NewRecorder makes the server of a table one without tables, and the connections of a table that has no Connect its
// own.
func NewRecorder(t *Table) *Recorder {
	r := &Recorder{table: t, rows: 1}
	r.server = &emptyServer{Catalog: t.Catalog, Claims: t.Claims, recorder: r}
	t.Catalog = r.server
	if t.Claims != nil {
		t.Claims = r.server
	}
	if t.Connect == nil {
		t.Connect = func(context.Context) (Conn, error) { return r, nil }
	}
	if t.Failed == nil {
		t.Failed = func(_ string, err error) error { return err }
	}
	return r
}

// Add adds statements that nobody sends here.
func (r *Recorder) Add(when string, texts ...string) {
	if r.refused {
		return
	}
	for _, text := range texts {
		r.written = append(r.written, loader.Statement{When: when, Text: text})
	}
}

// Write writes down what is no statement, as a request, in the step that sends it.
func (r *Recorder) Write(request string) { r.Add(r.when, request) }

// Name lets a word stand for what a run makes up.
func (r *Recorder) Name(value, word string) { r.words = append(r.words, value, word) }

// When says when the statements of a step are sent that begin so.
func (r *Recorder) When(step, begins, when string) {
	r.whens = append(r.whens, [3]string{step, begins, when})
}

// Step writes down what f sends. Its error is why no server would take the run.
func (r *Recorder) Step(when string, f func(ctx context.Context) error) {
	if r.refused {
		return
	}
	r.when = when
	if err := f(context.Background()); err != nil {
		r.Add("refused: "+strings.ReplaceAll(loader.Explain(err), "\n", "; "), "")
		r.refused = true
	}
}

// Prepare is the step of Prepare. CreateTruncate takes two: a missing table is made, and one that is there emptied.
func (r *Recorder) Prepare(
	p loader.Preparation, prepare func(context.Context, loader.Preparation) (loader.Table, error),
) {
	p.Run, p.Owner = example, "OWNER"
	if p.Begin == nil && !p.Silent {
		p.Begin = new(loader.Beginning)
	}
	step := func(ctx context.Context) error {
		if r.server.Claims != nil && r.Missing == nil { // the table of the runs' rows would seem to be there
			return errors.New("the back-end's Recorder has no Missing")
		}
		made, err := prepare(ctx, p)
		if row := made.Row; row.Run != "" {
			r.Name(strconv.FormatInt(row.Changed.Unix(), 10), "0")
			r.Name(row.Run, example) // that of a shard has letters behind it
		}
		r.server.sayLeftOut()
		return err
	}

	r.server.table = p.Create == loader.CreateNever || p.Create == loader.CreateRecreate
	r.Step(once, step)
	if p.Create != loader.CreateTruncate || p.Silent {
		return
	}

	first := slices.Clone(r.written)
	r.Step("once, if the table is there", step)
	again := r.written[len(first):]
	said := func(s loader.Statement) bool { return r.plain(s.Text) == r.plain(again[0].Text) }
	for len(again) > 0 && slices.ContainsFunc(first, said) { // the run's row, once more
		again = again[1:]
	}
	r.written = append(first, again...)
}

// Load is the steps of a worker: a session of l that loads a batch, and ends.
func (r *Recorder) Load(l loader.Loader, p loader.Preparation) {
	var s loader.Session
	r.Step(perSession, func(ctx context.Context) (err error) {
		s, err = l.Session(ctx, p.Contract)
		return err
	})
	b := exampleBatch(p, r.Binary)
	r.rows = b.Rows
	r.Step("per batch", func(ctx context.Context) error {
		_, err := s.Load(ctx, b)
		return err
	})
	r.Step("when a session ends", func(context.Context) error { return s.Close() })
}

// exampleBatch is the first batch: a text in place of its rows, or columns of one row or of all.
func exampleBatch(p loader.Preparation, whole bool) *batch.Batch {
	b := &batch.Batch{
		ID: batch.ID{Run: example}, Format: p.Contract.Format, Rows: p.Contract.BatchRows, Attempt: 1,
		Encoded: []byte("(…), …"), Layout: p.Layout,
	}
	if b.Format == batch.ColumnArrays {
		if !whole {
			b.Rows = 1
		}
		_, size := batch.ColumnPlaces(p.Schema, int(b.Rows))
		b.Encoded = make([]byte, size)
	}
	b.Hold()
	return b
}

// Commit is the step of a commit group, the first one, which it returns. Two of its batches have names.
func (r *Recorder) Commit(l loader.Committer, c loader.Contract) loader.Group {
	g := loader.Group{Ref: First(c)}
	for n := range min(c.GroupBatches, 2) {
		g.Members = append(g.Members, loader.Ref{ID: batch.ID{Run: example, Number: n}, Rows: c.BatchRows})
	}
	r.rows = g.Rows
	r.Step("per group", func(ctx context.Context) error {
		_, err := l.Commit(ctx, g)
		return err
	})
	return g
}

// Resolve is a step after LostAnswer: of a batch, or of a commit group, and its second attempt.
func (r *Recorder) Resolve(when string, l loader.Resolver, c loader.Contract) {
	ref := First(c)
	ref.Attempt = 2
	r.Step(when, func(ctx context.Context) error {
		_, err := l.Resolve(ctx, ref)
		return err
	})
}

// First is the first batch of the run, or of a staged contract the first commit group.
func First(c loader.Contract) loader.Ref {
	return loader.Ref{ID: batch.ID{Run: example}, Rows: c.BatchRows * max(c.GroupBatches, 1)}
}

// Count is the step of the proof, of one batch's rows; of a user's files it counts those of the table.
func (r *Recorder) Count(p loader.Preparation) {
	if p.Records {
		r.Step("to verify, where the rows are counted", func(ctx context.Context) error {
			_, err := r.table.Rows(ctx)
			return err
		})
		return
	}
	size := p.Contract.BatchRows
	g := loader.Grouping{KeyRange: loader.KeyRange{Last: size - 1}, Size: size}
	r.Step("to verify", func(ctx context.Context) error {
		return r.table.Count(ctx, g, func(loader.Bucket) error { return nil })
	})
}

// Statements returns all that was written down. What is asked after a lost answer until it is another one is in it
// once. A block of PL/SQL has its own semicolon, which whoever prints it adds.
func (r *Recorder) Statements() (all []loader.Statement) {
	for _, s := range r.written {
		s.Text = strings.TrimSuffix(r.plain(s.Text), ";")
		for _, w := range r.whens {
			if s.When == w[0] && strings.HasPrefix(s.Text, w[1]) {
				s.When = w[2]
				break
			}
		}
		if !strings.HasPrefix(s.When, LostAnswer) || !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// epochs finds those of runs' rows.
var epochs = regexp.MustCompile(`\b\d+-[a-z2-7]{10}\b`)

func (r *Recorder) plain(text string) string {
	return strings.NewReplacer(r.words...).Replace(epochs.ReplaceAllString(text, "EPOCH"))
}

// Exec implements Conn.
func (r *Recorder) Exec(_ context.Context, statement string) (rows int64, err error) {
	r.Write(statement)
	if r.Refuse != nil {
		if err := r.Refuse(statement); err != nil {
			return 0, err
		}
	}
	if strings.Contains(strings.ToLower(statement), ClaimsTable) {
		return 1, nil
	}
	return r.rows, nil
}

// Query implements Conn.
func (r *Recorder) Query(_ context.Context, query string, each func(row [][]byte) error) error {
	leftOut := strings.HasPrefix(r.when, once) || r.when == perSession
	shown := func(begins string) bool { return strings.HasPrefix(query, begins) }
	if !leftOut || slices.ContainsFunc(r.Shown, shown) {
		r.Write(query)
	}
	found, err := r.find(query)
	for _, row := range found {
		values := make([][]byte, len(row))
		for i, text := range row {
			values[i] = []byte(text)
		}
		if err := each(values); err != nil {
			return err
		}
	}
	return err
}

func (r *Recorder) find(query string) ([][]string, error) {
	if r.Answer != nil {
		if found := r.Answer(query); found != nil {
			return found, nil
		}
	}
	s := r.server.state
	switch {
	case strings.HasPrefix(query, "SELECT COUNT("):
		return [][]string{{"0"}}, nil
	case s == nil:
		return nil, nil
	case query == s.lookForRuns() && !r.server.runs:
		return nil, r.Missing
	case strings.HasPrefix(query, s.selectOurs()):
		return [][]string{{"1"}}, nil
	case query == s.selectRows():
		return [][]string{{"0"}}, nil
	}
	return nil, nil
}

// Close implements Conn.
func (*Recorder) Close() error { return nil }

// emptyServer is the catalog of a server that has the tables which were made.
type emptyServer struct {
	Catalog
	Claims
	recorder            *Recorder
	state               *State // of the newest Prepare
	table, claims, runs bool
	made                bool // by the newest Prepare
}

// sayLeftOut writes down which keys the table that was made does not have.
func (e *emptyServer) sayLeftOut() {
	if !e.made {
		return
	}
	e.made = false
	if left := e.state.leftOut(); left != "" {
		e.recorder.Add("left out", left)
	}
}

// Locate implements Catalog.
func (e *emptyServer) Locate(_ context.Context, _ Conn, s *State) (*Relation, error) {
	e.state = s
	if !e.table {
		return nil, nil
	}
	return &Relation{Name: s.bareTable(), Table: s.Table, Claims: s.Claims, Comment: loader.MadeBy, Traits: e.recorder.Traits}, nil
}

// Create implements Catalog.
func (e *emptyServer) Create(ctx context.Context, _ Conn, s *State) ([]string, error) {
	e.table, e.made = true, true
	return e.Catalog.Create(ctx, nil, s)
}

// Columns implements Catalog: they are as they were made.
func (e *emptyServer) Columns(_ context.Context, _ Conn, s *State, _ *Relation) (all []Column, err error) {
	for _, c := range s.Schema.Columns {
		name := c.Name
		if s.Upper {
			name = strings.ToUpper(name)
		}
		if made := s.Types.made(c); made != nil {
			is := ServerType{Name: made.Name, Params: ParseType(s.SQL(c)).Params}
			if made.Name == "[]" {
				is.Name = s.Types.made(*c.Of).Name + "[]"
			}
			all = append(all, Column{loader.Column{Name: name, Nullable: c.Nullable}, is})
		}
	}
	return all, nil
}

// Fits implements Catalog.
func (*emptyServer) Fits(context.Context, Conn, *State, *Relation) error { return nil }

// CreateClaims implements Claims.
func (e *emptyServer) CreateClaims(s *State) string {
	e.claims = true
	return e.Claims.CreateClaims(s)
}

// CheckClaims implements Claims.
func (e *emptyServer) CheckClaims(context.Context, Conn, *State) (exists bool, err error) {
	return e.claims, nil
}

// CreateRuns implements Claims.
func (e *emptyServer) CreateRuns(s *State) string {
	e.runs = true
	return e.Claims.CreateRuns(s)
}

// Fence implements Claims. What it sends is a step by itself.
func (e *emptyServer) Fence(ctx context.Context, s *State, f Fence, change func(Conn) error) error {
	step := e.recorder.when
	defer func() { e.recorder.when = step }()
	e.recorder.when = "once, to begin the run"
	return e.Claims.Fence(ctx, s, f, change)
}
