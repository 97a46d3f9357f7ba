package oracle

import (
	"bufio"
	"encoding/gob"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"
)

// session is the server's end of a connection.
type session struct {
	server   *Server
	number   int
	net      *counter
	tx       *transaction
	settings map[string]string
	killed   bool
	idle     bool // waits for its client
	explicit bool // Begin was written down
	sequence int64
	cost     struct{ redo, trips, commits int64 }
}

// serve answers one connection until it ends.
func (s *Server) serve(c net.Conn) {
	n := &counter{Conn: c}
	x := &session{server: s, net: n, settings: map[string]string{"OPTIMIZER_IGNORE_HINTS": strings.ToUpper(strconv.FormatBool(s.options.IgnoreHints))}}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		_ = c.Close()
		return
	}
	s.numbers.session++
	x.number = int(s.numbers.session)
	s.sessions[x] = struct{}{}
	s.mu.Unlock()
	linger := x.answerAll(n)
	_ = c.Close()
	s.log.ask(Statement{Session: x.number, Kind: End})
	if linger != nil {
		x.hold(linger)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, x)
	if x.tx != nil {
		x.tx.rollback()
	}
}

// answerAll reads requests until one of the two ends goes; linger is what then still keeps the transaction open.
func (x *session) answerAll(n net.Conn) (linger <-chan struct{}) {
	dec, enc := gob.NewDecoder(bufio.NewReaderSize(n, packet)), newEncoder(n)
	for {
		x.waits(true)
		var r request
		if dec.Decode(&r) != nil {
			return nil
		}
		x.waits(false)
		a, f, alive := x.handle(r)
		if !alive {
			return f.Linger
		}
		if enc.send(a) != nil {
			return nil
		}
	}
}

func (x *session) waits(idle bool) {
	x.server.mu.Lock()
	defer x.server.mu.Unlock()
	x.idle = idle
	x.cost.trips++
}

// hold waits for a channel, or for the server to close.
func (x *session) hold(until <-chan struct{}) {
	if until == nil {
		return
	}
	select {
	case <-until:
	case <-x.server.stop:
	}
}

// kill closes the connection; the session's own goroutine ends it.
func (x *session) kill() {
	x.killed = true
	_ = x.net.Close()
	x.server.changed.Broadcast()
}

// handle does what a request asks for, with what the script has in store for it.
func (x *session) handle(r request) (response, Fault, bool) {
	if r.Explicit && !x.explicit {
		x.server.log.ask(Statement{Session: x.number, Kind: Begin})
	}
	ends := r.Kind != SQL || strings.EqualFold(r.Text, Commit) || strings.EqualFold(r.Text, Rollback)
	x.explicit = r.Explicit && !ends
	f := x.server.log.ask(Statement{Session: x.number, Kind: r.Kind, Text: r.Text, Binds: r.Binds, Explicit: r.Explicit})
	x.hold(f.Hold)
	if f.Drop {
		return response{}, f, false
	}
	if f.Fail != nil {
		return response{Err: f.Fail}, f, true
	}
	x.server.mu.Lock()
	a, err := x.work(r, f)
	var out response
	if err == nil {
		out = answered(a)
	}
	x.server.mu.Unlock()
	if err != nil {
		said := (*Error)(nil)
		if !errors.As(err, &said) {
			said = ora(600, "internal error code: %v", err)
		}
		out = response{Err: said}
	}
	x.hold(f.HoldAnswer)
	if f.DropAfter {
		return response{}, f, false
	}
	if f.FailAfter != nil {
		out = response{Err: f.FailAfter}
	}
	if f.Count != 0 {
		out.Rows = f.Count
	}
	out.Panic = f.Panic
	return out, f, true
}

func answered(a *answer) response {
	out := response{Rows: a.affected, Columns: a.names}
	for _, row := range a.rows {
		cells := make([]Cell, len(row))
		for i, v := range row {
			cells[i] = cell(v)
		}
		out.Cells = append(out.Cells, cells)
	}
	for _, v := range a.outs {
		out.Outs = append(out.Outs, cell(v))
	}
	return out
}

// work runs under the store's lock.
func (x *session) work(r request, f Fault) (*answer, error) {
	if x.killed || x.server.closed {
		return nil, ora(28, "your session has been killed")
	}
	switch r.Kind {
	case Connect:
		return &answer{}, nil
	case Commit, LogOff:
		x.commit()
		return &answer{}, nil
	case Rollback:
		x.rollback()
		return &answer{}, nil
	}
	st, err := parse(r.Text)
	if err != nil {
		return nil, err
	}
	a, err := st.run(x, &execution{request: r, fault: f})
	// Outside of a transaction of the client's a statement that goes well is committed at once.
	if err == nil && !r.Explicit && x.tx != nil {
		x.commit()
	}
	return a, err
}

func (x *session) commit() {
	if x.tx != nil {
		x.cost.commits++
		x.tx.commit()
	}
}

func (x *session) rollback() {
	if x.tx != nil {
		x.tx.rollback()
	}
}

// execution is one execution of a statement, with its binds.
type execution struct {
	request
	fault Fault
}

// rows is how often the statement is executed: once for each element of its arrays.
func (e *execution) rows() int {
	for _, b := range e.Binds {
		if b.Array {
			return b.Len()
		}
	}
	return 1
}

// binds are the values of the i-th row.
func (e *execution) binds(i int) []value {
	values := make([]value, len(e.Binds))
	for n, b := range e.Binds {
		if !b.Array {
			values[n] = bound(b.Value(0))
			continue
		}
		values[n] = bound(b.Value(i))
	}
	return values
}

// bound is a bind's value as the server sees it: ” is NULL, and a time its wall clock.
func bound(v any) value {
	switch v := v.(type) {
	case string:
		return emptyIsNull(v)
	case []byte:
		if len(v) == 0 {
			return nil
		}
		return raw(v)
	case time.Time:
		return time.Date(v.Year(), v.Month(), v.Day(), v.Hour(), v.Minute(), v.Second(), v.Nanosecond(), time.UTC)
	}
	return v
}

// complete says whether there is a bind for every placeholder.
func (e *execution) complete(placeholders int) error {
	switch {
	case len(e.Binds) < placeholders:
		return ora(1008, "not all variables bound")
	case len(e.Binds) > placeholders:
		return ora(1036, "illegal variable name/number")
	}
	return nil
}
