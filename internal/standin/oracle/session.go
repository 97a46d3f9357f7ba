package oracle

import (
	"encoding/gob"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/standin"
)

// session is the server's end of a connection.
type session struct {
	server   *Server
	net      net.Conn
	tx       *standin.Transaction // nil: none is open. It begins with the first change or lock
	settings map[string]string
	killed   bool
	idle     bool  // it waits for its client
	written  int64 // the number of its last row in the memory of Fast Ingest
	commits  int64

	request // the current one
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
	x.server.open.Ended.Broadcast()
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

	var a answer
	var err error
	x.server.locked(func() { a, err = x.run(r) })
	out = response{Rows: a.rows, Cells: a.cells}
	switch said := (*Error)(nil); {
	case f.FailAnswer != nil:
		out.Err = f.FailAnswer
	case errors.As(err, &said):
		out.Err = said
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
// fails: then what an INSERT of an array has done stays open.
func (x *session) run(r request) (a answer, err error) {
	if x.killed || x.server.closed {
		return answer{}, Ora(28)
	}
	x.request = r
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

	m := shapeOf(r.SQL)
	if m.parts == nil {
		return answer{}, Ora(900, "the stand-in does not know the statement "+r.SQL)
	}
	before := x.tx.Changes()
	err = try(func() { a = m.run(x, m.parts) })
	switch {
	case err == nil && !r.Explicit:
		x.end(true)
	case err != nil && !m.stays && x.tx != nil:
		x.tx.Undo(before)
	}
	return a, err
}

// try runs what panics with an error of the server, as all work on a statement does, and returns that error.
func try(work func()) (err error) {
	defer func() {
		switch said := recover().(type) {
		case nil:
		case *Error:
			err = said
		default:
			panic(said)
		}
	}()
	work()
	return nil
}

// refuse ends the work on a statement.
func refuse(code int, details ...any) { panic(Ora(code, details...)) }

// begin returns the session's transaction, which begins where none is open.
func (x *session) begin() *standin.Transaction {
	if x.tx == nil {
		x.tx = x.server.open.Begin(x)
	}
	return x.tx
}

// end ends the transaction, if one is open.
func (x *session) end(commit bool) {
	if x.tx == nil {
		return
	}
	if commit {
		x.commits++
	}
	x.tx.End(commit)
	x.tx = nil
}

// wait waits until the other transaction is over.
func (x *session) wait(other *standin.Transaction) {
	s := x.server
	if idle := s.options.IdleBlocker; idle > 0 {
		timer := time.AfterFunc(idle, func() {
			s.locked(func() {
				if blocker, is := other.Owner.(*session); is && !other.Over && blocker.idle {
					blocker.kill()
				}
			})
		})
		defer timer.Stop()
	}
	s.waiting++
	defer func() { s.waiting-- }()
	for !other.Over {
		if s.closed || x.killed {
			refuse(28)
		}
		s.open.Ended.Wait()
	}
}

// lock takes a lock on a table, and waits for others.
func (x *session) lock(t *table, exclusive bool) {
	for other := x.begin().Lock(t.Table, exclusive); other != nil; other = x.begin().Lock(t.Table, exclusive) {
		x.wait(other)
	}
}

// put inserts a row. It waits for a transaction that has inserted or deleted one with the same key.
func (x *session) put(t *table, row standin.Row) {
	for {
		other, duplicate := x.begin().Insert(t.Table, row)
		if duplicate {
			refuse(1, x.server.options.Owner+".PK_"+t.Name)
		}
		if other == nil {
			return
		}
		x.wait(other)
	}
}

// remove deletes rows. It waits for those that have changed one of them, and looks again.
func (x *session) remove(t *table, is func(standin.Row) bool) (gone []standin.Row) {
	for {
		found, other := x.begin().Delete(t.Table, is)
		if other == nil {
			return found
		}
		x.wait(other)
	}
}

// table finds a table by the name in a statement.
func (x *session) table(name string) *table {
	owner, table := x.names(name)
	t := x.server.tables[table]
	if t == nil || owner != x.server.options.Owner {
		refuse(942)
	}
	return t
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
