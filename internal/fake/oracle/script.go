package oracle

import (
	"slices"
	"strings"
	"sync"
)

// What a Statement is. Everything but SQL is a boundary.
const (
	Connect  = "CONNECT"
	Begin    = "BEGIN" // noticed with the first statement of an explicit transaction: drivers send nothing for it
	SQL      = "SQL"
	Commit   = "COMMIT"
	Rollback = "ROLLBACK"
	LogOff   = "LOGOFF" // a client that says goodbye: to Oracle its work is done, and what is open is committed
	End      = "END"    // of the session; Script is not asked
)

// Statement is one request as the server took it.
type Statement struct {
	Number  int // 1, 2, …: over all sessions
	Session int // 1, 2, …
	Kind    string
	Text    string // of SQL
	Binds   []Bind
	// Explicit tells that the client has begun a transaction. What changes rows outside of one is committed at once.
	Explicit bool
	Nth      int // 1, 2, …: requests of the same kind and text
}

// Fault is what goes wrong with one request. The zero value is nothing.
type Fault struct {
	// Hold delays the work until the channel is closed; HoldAnswer delays the answer when the work is done.
	Hold, HoldAnswer <-chan struct{}
	// Fail is answered instead of doing the work, FailAfter after it.
	Fail, FailAfter *Error
	// Drop ends the session instead of doing the work, DropAfter instead of answering when it is done.
	Drop, DropAfter bool
	// Linger, with Drop or DropAfter, keeps the session's transaction open until the channel is closed: a server that has
	// not noticed yet that its client is gone.
	Linger <-chan struct{}
	// Twice does the work of an INSERT twice, Lose forgets so many of its rows and says nothing: what a proof has to find.
	Twice bool
	Lose  int
	// Count, unless 0, replaces the number of rows in the answer.
	Count int64
	// Panic does the work and makes the driver panic with this text when it reads the answer.
	Panic string
}

// At strikes the n-th request that contains the text, or the n-th of a kind that is no SQL.
func At(contains string, n int, f Fault) func(Statement) Fault {
	var mu sync.Mutex
	seen := 0
	return func(s Statement) Fault {
		mu.Lock()
		defer mu.Unlock()
		if !s.Is(contains) {
			return Fault{}
		}
		if seen++; seen == n {
			return f
		}
		return Fault{}
	}
}

// Is reports whether the statement contains the text, in whatever case, or is the boundary of that kind: clients that send
// COMMIT as a statement commit as well.
func (s Statement) Is(text string) bool {
	switch {
	case s.Kind != SQL:
		return s.Kind == text
	case text == Commit || text == Rollback:
		return strings.EqualFold(s.Text, text)
	}
	return strings.Contains(strings.ToUpper(s.Text), strings.ToUpper(text))
}

// log numbers requests and asks the script.
type log struct {
	mu      sync.Mutex
	script  func(Statement) Fault
	seen    map[string]int
	entries []Statement
}

func (l *log) ask(s Statement) Fault {
	l.mu.Lock()
	if l.seen == nil {
		l.seen = map[string]int{}
	}
	l.seen[s.Kind+s.Text]++
	s.Nth, s.Number = l.seen[s.Kind+s.Text], len(l.entries)+1
	l.entries = append(l.entries, s)
	script := l.script
	l.mu.Unlock()
	if s.Kind == End || s.Kind == Begin {
		return Fault{}
	}
	return script(s)
}

func (l *log) all() []Statement {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}
