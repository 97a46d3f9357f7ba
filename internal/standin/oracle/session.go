package oracle

import (
	"encoding/gob"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/standin"
)

// session is the server's end of a connection.
type session struct {
	server   *Server
	net      net.Conn
	tx       *transaction // nil: none is open
	settings map[string]string
	killed   bool
	idle     bool  // it waits for its client
	written  int64 // the number of its last row in the memory of Fast Ingest
	commits  int64

	request // the current one
	fault   Fault
}

// serve answers one connection until it ends.
func (s *Server) serve(c net.Conn) {
	x := s.newSession(c)
	s.locked(func() {
		s.sessions[x] = true
		if s.closed {
			x.kill()
		}
	})
	x.answerAll()
	_ = c.Close()
	s.locked(func() {
		delete(s.sessions, x)
		x.end(false)
	})
}

// answerAll reads requests until one of the two ends goes.
func (x *session) answerAll() {
	dec, enc := gob.NewDecoder(x.net), gob.NewEncoder(x.net)
	for {
		var r request
		x.server.locked(func() { x.idle = true })
		err := dec.Decode(&r)
		x.server.locked(func() { x.idle = false })
		if err != nil {
			return
		}
		a, f := x.handle(r)
		if f.Cut || f.CutAnswer || enc.Encode(a) != nil {
			return
		}
	}
}

// kill closes the connection; serve ends the session.
func (x *session) kill() {
	x.killed = true
	_ = x.net.Close()
	x.server.changed.Broadcast()
}

// handle does what a request asks for, with the script's fault.
func (x *session) handle(r request) (out response, f Fault) {
	f = x.server.ask(Request{SQL: r.SQL, Binds: r.Binds, Explicit: r.Explicit})
	if f.Hold != nil {
		select {
		case <-f.Hold:
		case <-x.server.stop:
		}
	}
	if f.Cut || f.Fail != nil || f.Answer != nil {
		return response{Err: f.Fail, Cells: f.Answer}, f
	}
	x.server.mu.Lock()
	a, err := x.run(r, f)
	x.server.mu.Unlock()
	out = response{Rows: a.rows, Cells: a.cells}
	switch said := (*Error)(nil); {
	case f.FailAnswer != nil:
		out.Err = f.FailAnswer
	case errors.As(err, &said):
		out.Err = said
	case err != nil:
		out.Err = Ora(20000, err)
	case f.Count != 0:
		out.Rows = f.Count
	}
	return out, f
}

// answer is what a statement returns.
type answer struct {
	rows  int64
	cells [][]any
}

// run works under the server's lock. Outside of the client's transaction a statement is committed at once, unless it
// fails: then what it has done stays open.
func (x *session) run(r request, f Fault) (answer, error) {
	if x.killed || x.server.closed {
		return answer{}, Ora(28)
	}
	x.request, x.fault = r, f
	switch r.SQL {
	case Connect:
		return answer{}, nil
	case Commit, LogOff:
		x.end(true)
		return answer{}, nil
	case Rollback:
		x.end(false)
		return answer{}, nil
	}
	for _, s := range shapes {
		if m := s.pattern.FindStringSubmatch(r.SQL); m != nil {
			a, err := s.run(x, m)
			if err == nil && !r.Explicit {
				x.end(true)
			}
			return a, err
		}
	}
	return answer{}, Ora(900, "the stand-in does not know the statement "+r.SQL)
}

// end ends the transaction, if one is open.
func (x *session) end(commit bool) {
	if x.tx == nil {
		return
	}
	if commit {
		x.commits++
	}
	x.tx.end(commit)
}

// transaction is an open transaction. It begins with the first change or lock.
type transaction struct {
	session *session
	changes []change
	locks   map[*table]lock
	over    bool
}

// change is a row that was inserted, or one that was removed. Others see it when the transaction is committed.
type change struct {
	table   *table
	row     standin.Row
	removed bool
}

// lock is how a table is locked. Only row exclusive locks are compatible, with each other.
type lock int

const (
	rowExclusive lock = iota + 1
	exclusive
)

func (x *session) begin() *transaction {
	if x.tx == nil {
		x.tx = &transaction{session: x, locks: make(map[*table]lock)}
		x.server.open[x.tx] = true
	}
	return x.tx
}

func (tx *transaction) end(commit bool) {
	if !commit {
		tx.undo(0)
	}
	for _, c := range tx.changes {
		c.settle()
	}
	tx.over, tx.session.tx = true, nil
	delete(tx.session.server.open, tx)
	tx.session.server.changed.Broadcast()
}

// undo takes back the changes behind the first n.
func (tx *transaction) undo(n int) {
	for _, c := range slices.Backward(tx.changes[n:]) {
		if key := c.table.keyOf(c.row); c.removed {
			c.table.taken[key] = nil
		} else {
			delete(c.table.taken, key)
		}
	}
	tx.changes = tx.changes[:n]
}

// settle commits a change.
func (c change) settle() {
	key := c.table.keyOf(c.row)
	if c.removed {
		c.table.Rows = slices.DeleteFunc(c.table.Rows, c.isOf)
		delete(c.table.taken, key)
		return
	}
	c.table.Rows = append(c.table.Rows, c.row)
	c.table.taken[key] = nil
}

// isOf reports whether the change is one of this row.
func (c change) isOf(row standin.Row) bool { return &c.row.Values[0] == &row.Values[0] }

// seen returns the rows that a statement of the session sees: those that are committed, and its own.
func (x *session) seen(t *table) []standin.Row {
	found := slices.Clone(t.Rows)
	if x.tx == nil {
		return found
	}
	for _, c := range x.tx.changes {
		switch {
		case c.table != t:
		case c.removed:
			found = slices.DeleteFunc(found, c.isOf)
		default:
			found = append(found, c.row)
		}
	}
	return found
}

// wait waits until the other transaction is over.
func (x *session) wait(other *transaction) *Error {
	s := x.server
	if idle := s.options.IdleBlocker; idle > 0 {
		timer := time.AfterFunc(idle, func() {
			s.locked(func() {
				if !other.over && other.session.idle {
					other.session.kill()
				}
			})
		})
		defer timer.Stop()
	}
	s.waiting++
	defer func() { s.waiting-- }()
	for !other.over {
		if s.closed || x.killed {
			return Ora(28)
		}
		s.changed.Wait()
	}
	return nil
}

// lock takes a lock on a table, and waits for others.
func (x *session) lock(t *table, l lock) error {
	mine := x.begin()
	for {
		other := x.inTheWay(t, l)
		if other == nil {
			mine.locks[t] = max(mine.locks[t], l)
			return nil
		}
		if err := x.wait(other); err != nil {
			return err
		}
	}
}

func (x *session) inTheWay(t *table, l lock) *transaction {
	for tx := range x.server.open {
		if has := tx.locks[t]; tx != x.tx && has != 0 && (has != l || l == exclusive) {
			return tx
		}
	}
	return nil
}

// put inserts a row in the transaction. It waits for a transaction that has inserted or removed one with the same key.
func (x *session) put(t *table, row standin.Row) *Error {
	mine, key := x.begin(), t.keyOf(row)
	for t.key != nil {
		other, taken := t.taken[key]
		if !taken {
			break
		}
		if other == nil || other == mine {
			return Ora(1, x.server.options.Owner+".PK_"+t.Name)
		}
		if err := x.wait(other); err != nil {
			return err
		}
	}
	t.taken[key] = mine
	mine.changes = append(mine.changes, change{table: t, row: row})
	return nil
}

// remove removes the rows of which is is true in the transaction. It waits for those that have changed one of them, and looks
// again.
func (x *session) remove(t *table, is func(standin.Row) bool) (gone []standin.Row, err *Error) {
	mine := x.begin()
	for {
		gone = slices.DeleteFunc(x.seen(t), func(r standin.Row) bool { return !is(r) })
		i := slices.IndexFunc(gone, func(r standin.Row) bool {
			other := t.taken[t.keyOf(r)]
			return t.key != nil && other != nil && other != mine
		})
		if i < 0 {
			break
		}
		if err := x.wait(t.taken[t.keyOf(gone[i])]); err != nil {
			return nil, err
		}
	}
	for _, r := range gone {
		t.taken[t.keyOf(r)] = mine
		mine.changes = append(mine.changes, change{table: t, row: r, removed: true})
	}
	return gone, nil
}

// table finds a table by the name in a statement.
func (x *session) table(name string) (*table, error) {
	owner, table := x.names(name)
	t := x.server.tables[table]
	if t == nil || owner != x.server.options.Owner {
		return nil, Ora(942)
	}
	return t, nil
}

// names returns owner and name of a table.
func (x *session) names(quoted string) (owner, name string) {
	owner, name, both := strings.Cut(strings.Trim(quoted, `"`), `"."`)
	if !both {
		return x.schema(), owner
	}
	return owner, name
}

// schema is where names are looked up that name none.
func (x *session) schema() string {
	if set := x.settings["CURRENT_SCHEMA"]; set != "" {
		return set
	}
	return user
}
