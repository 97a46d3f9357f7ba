package standin

import (
	"slices"
	"sync"
)

// Transactions are those that are open on a server, whose lock guards them.
type Transactions struct {
	// Ended is told whenever one ends. It is made with the server's lock.
	Ended *sync.Cond

	open map[*Transaction]bool
}

// NewTransactions returns none, on a server with that lock.
func NewTransactions(lock sync.Locker) *Transactions {
	return &Transactions{Ended: sync.NewCond(lock), open: make(map[*Transaction]bool)}
}

// Open returns how many there are.
func (s *Transactions) Open() int { return len(s.open) }

// RollBack ends all of them.
func (s *Transactions) RollBack() {
	for tx := range s.open {
		tx.End(false)
	}
}

// Begin opens one. owner is whoever a server wants to find in it.
func (s *Transactions) Begin(owner any) *Transaction {
	tx := &Transaction{Owner: owner, all: s, locks: make(map[*Table]lock)}
	s.open[tx] = true
	return tx
}

// Blocker returns a transaction other than this one that has a lock on the table which the wanted one excludes; nil if
// there is none. Only shared locks go with each other.
func (s *Transactions) Blocker(t *Table, exclusive bool, but *Transaction) *Transaction {
	for tx := range s.open {
		if has := tx.locks[t]; tx != but && (has == forItself || has == shared && exclusive) {
			return tx
		}
	}
	return nil
}

// Transaction is changes that nobody else sees before its end. Its methods do not wait: they return whoever is in the
// way. Of a nil one, nothing has changed.
type Transaction struct {
	Owner any
	Over  bool

	all     *Transactions
	changes []change
	locks   map[*Table]lock
}

// change is a row that was inserted, or one that was deleted.
type change struct {
	table   *Table
	row     Row
	deleted bool
}

type lock int

const (
	shared lock = iota + 1
	forItself
)

// Lock takes a lock on the table, which it holds to its end.
func (tx *Transaction) Lock(t *Table, exclusive bool) (blocker *Transaction) {
	if blocker = tx.all.Blocker(t, exclusive, tx); blocker != nil {
		return blocker
	}
	wanted := shared
	if exclusive {
		wanted = forItself
	}
	tx.locks[t] = max(tx.locks[t], wanted)
	return nil
}

// Insert inserts a row, unless its key is there, or another transaction has inserted or deleted it.
func (tx *Transaction) Insert(t *Table, row Row) (blocker *Transaction, duplicate bool) {
	key, unique := t.keyOf(row)
	switch other, taken := t.keys[key]; {
	case !unique || !taken:
	case other == nil:
		return nil, true
	case other != tx:
		return other, false
	case slices.ContainsFunc(tx.Rows(t), func(r Row) bool { its, _ := t.keyOf(r); return its == key }):
		return nil, true // it was not deleted
	}
	if unique {
		t.keys[key] = tx
	}
	tx.changes = append(tx.changes, change{table: t, row: row})
	return nil, false
}

// Delete deletes the rows that it sees and of which is is true, unless another transaction has changed one of them.
func (tx *Transaction) Delete(t *Table, is func(Row) bool) (gone []Row, blocker *Transaction) {
	gone = slices.DeleteFunc(tx.Rows(t), func(r Row) bool { return !is(r) })
	for _, r := range gone {
		key, unique := t.keyOf(r)
		if other := t.keys[key]; unique && other != nil && other != tx {
			return nil, other
		}
	}
	for _, r := range gone {
		if key, unique := t.keyOf(r); unique {
			t.keys[key] = tx
		}
		tx.changes = append(tx.changes, change{table: t, row: r, deleted: true})
	}
	return gone, nil
}

// Rows are the rows that it sees: those that are committed, and its own.
func (tx *Transaction) Rows(t *Table) []Row {
	found := slices.Clone(t.Rows)
	if tx == nil {
		return found
	}
	for _, c := range tx.changes {
		switch {
		case c.table != t:
		case c.deleted:
			found = slices.DeleteFunc(found, c.isOf)
		default:
			found = append(found, c.row)
		}
	}
	return found
}

// Changes returns how many rows it has inserted and deleted.
func (tx *Transaction) Changes() int {
	if tx == nil {
		return 0
	}
	return len(tx.changes)
}

// Undo takes back the changes behind the first n.
func (tx *Transaction) Undo(n int) {
	for _, c := range slices.Backward(tx.changes[min(n, len(tx.changes)):]) {
		switch key, unique := c.table.keyOf(c.row); {
		case !unique:
		case c.deleted:
			c.table.keys[key] = nil
		default:
			delete(c.table.keys, key)
		}
	}
	tx.changes = tx.changes[:min(n, len(tx.changes))]
}

// End commits, or rolls back.
func (tx *Transaction) End(commit bool) {
	if !commit {
		tx.Undo(0)
	}
	for _, c := range tx.changes {
		key, unique := c.table.keyOf(c.row)
		switch {
		case c.deleted:
			c.table.Rows = slices.DeleteFunc(c.table.Rows, c.isOf)
			delete(c.table.keys, key)
		case unique:
			c.table.keys[key] = nil
			fallthrough
		default:
			c.table.Rows = append(c.table.Rows, c.row)
		}
	}
	tx.Over = true
	delete(tx.all.open, tx)
	tx.all.Ended.Broadcast()
}

// isOf reports whether the change is one of this very row.
func (c change) isOf(row Row) bool { return &c.row.Values[0] == &row.Values[0] }
