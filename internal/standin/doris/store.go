package doris

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/terapush/terapush/internal/standin"
)

// table is a table with what Doris knows of it besides. Cluster.mu guards it.
type table struct {
	*standin.Table
	unique     bool // UNIQUE KEY in place of DUPLICATE KEY
	buckets    int
	partition  int64 // its id
	properties map[string]string
	group      *group // under way
}

// find returns a table by its name in a statement: `d`.`t`.
func (c *Cluster) find(quoted string) *table {
	db, name, _ := strings.Cut(strings.ReplaceAll(quoted, "`", ""), ".")
	if db != Database {
		refuse(mysql.ER_BAD_DB_ERROR, "Unknown database '%s'", db)
	}
	t, is := c.tables[name]
	if !is {
		refuse(mysql.ER_BAD_TABLE_ERROR, "Table [%s] does not exist in database [%s].", name, db)
	}
	return t
}

// refuse ends the work on a request with an error in the frontend's form. Most have number 1105.
func refuse(code uint16, format string, args ...any) {
	panic(mysql.NewError(code, "errCode = 2, detailMessage = "+fmt.Sprintf(format, args...)))
}

// try returns the error that ends the work on a request.
func try(work func()) (err error) {
	defer func() {
		switch said := recover().(type) {
		case nil:
		case *mysql.MyError:
			err = said
		default:
			panic(said)
		}
	}()
	work()
	return nil
}

func (c *Cluster) add(t *table) {
	interval := cmp.Or(c.options.GroupInterval, defaultGroupInterval).Milliseconds()
	t.properties[groupInterval] = cmp.Or(t.properties[groupInterval], strconv.FormatInt(interval, 10))
	t.partition = c.newID()
	c.tables[t.Name] = t
}

func (c *Cluster) newID() int64 {
	c.lastID++
	return c.lastID
}

// state is that of a transaction, as get_load_state names it.
type state string

const (
	prepare   state = "PREPARE"
	committed state = "COMMITTED"
	visible   state = "VISIBLE"
	aborted   state = "ABORTED"
)

// txn is a load's transaction.
type txn struct {
	id     int64
	label  string
	table  *table
	state  state
	reason string // of aborted
	rows   []standin.Row
}

// labelUsed is the refusal of a label that another transaction has.
type labelUsed struct {
	label string
	id    int64
	state string // as ExistingJobStatus names it
}

func (e *labelUsed) Error() string {
	return fmt.Sprintf("errCode = 2, detailMessage = Label [%s] has already been used, relate to txn [%d], status [%s].",
		e.label, e.id, e.state)
}

// begin starts a transaction under the label, unless one that is not aborted has it.
func (c *Cluster) begin(t *table, label string) (*txn, error) {
	if old := c.labels[label]; old != nil && old.state != aborted {
		existing := map[state]string{prepare: "RUNNING", committed: "FINISHED", visible: "FINISHED"}[old.state]
		return nil, &labelUsed{label, old.id, existing}
	}
	x := &txn{id: c.newID(), label: label, table: t, state: prepare}
	c.labels[label] = x
	return x, nil
}

// end commits what begin began, or aborts it for an error. The script may leave the outcome open, or delay the rows.
func (c *Cluster) end(x *txn, loaded []standin.Row, err error, fault Fault) error {
	switch {
	case x.state != prepare: // canceled in the meantime
		return fmt.Errorf("errCode = 2, detailMessage = transaction [%d] is already %s. abort reason: %s",
			x.id, strings.ToLower(string(x.state)), x.reason)
	case err != nil:
		x.state, x.reason = aborted, err.Error()
		return err
	}
	x.rows = loaded
	if fault.Linger == nil {
		c.commit(x, fault.PublishTimeout)
		return nil
	}
	c.pending.Go(func() {
		commits := false
		select {
		case commits = <-fault.Linger:
		case <-c.stop:
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case x.state != prepare:
		case commits:
			c.commit(x, nil)
		default:
			x.state, x.reason = aborted, "timeout by txn manager"
		}
	})
	return nil
}

// commit makes the rows durable, and visible when the channel is closed, or at once without one.
func (c *Cluster) commit(x *txn, published <-chan struct{}) {
	x.state = committed
	show := func() {
		x.table.Rows = append(x.table.Rows, x.rows...)
		x.state = visible
	}
	if published == nil {
		show()
		return
	}
	c.pending.Go(func() {
		c.wait(published)
		c.mu.Lock()
		defer c.mu.Unlock()
		show()
	})
}

// cancel aborts the transaction of a label (CancelLoadAction).
func (c *Cluster) cancel(label string) error {
	x := c.labels[label]
	if x == nil || x.state != prepare {
		return fmt.Errorf("errCode = 2, detailMessage = running transaction not found, label=%s", label)
	}
	x.state, x.reason = aborted, "user cancel"
	return nil
}

// group is a group commit under way: the loads of a table that end in one transaction, when its interval is over.
type group struct {
	txn  *txn
	done chan struct{} // closed when its rows are visible
}

const (
	groupInterval        = "group_commit_interval_ms" // a property of tables
	defaultGroupInterval = 10 * time.Second
)

// join adds rows to the table's group, whose first load starts the interval.
func (c *Cluster) join(t *table, loaded []standin.Row) *group {
	if t.group == nil {
		x, _ := c.begin(t, randomLabel("group_commit_")) // a new label
		g := &group{txn: x, done: make(chan struct{})}
		t.group = g
		interval, _ := strconv.Atoi(t.properties[groupInterval])
		time.AfterFunc(time.Duration(interval)*time.Millisecond, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.endGroup(t, g)
		})
	}
	t.group.txn.rows = append(t.group.txn.rows, loaded...)
	return t.group
}

// endGroup commits a group, once.
func (c *Cluster) endGroup(t *table, g *group) {
	if g != nil && t.group == g {
		t.group = nil
		c.commit(g.txn, nil)
		close(g.done)
	}
}

// randomLabel is a label that the server makes up.
func randomLabel(prefix string) string { return prefix + strings.ToLower(rand.Text()) }
