package doris

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"time"
)

// A txn is one load's transaction, named by its label.
type txn struct {
	id       int64
	label    string
	db       *database
	table    *table
	source   string // LoadJobSourceType: BACKEND_STREAMING or INSERT_STREAMING
	state    string // PREPARE, PRECOMMITTED, COMMITTED, VISIBLE or ABORTED
	reason   string // of ABORTED
	rows     [][]value
	loaded   int64
	filtered int64
	url      string // of the rejected rows

	prepared, committed, finished time.Time
}

// labelUsed is the refusal of a label that a live transaction has.
type labelUsed struct {
	label string
	id    int64
	state string // of the transaction
}

func (e *labelUsed) Error() string {
	return fmt.Sprintf("errCode = 2, detailMessage = Label [%s] has already been used, relate to txn [%d], status [%s].", e.label, e.id, e.state)
}

// existing is ExistingJobStatus (LabelAlreadyUsedException).
func (e *labelUsed) existing() string {
	switch e.state {
	case "PREPARE":
		return "RUNNING"
	case "COMMITTED", "VISIBLE":
		return "FINISHED"
	default:
		return e.state
	}
}

// labelForm is label_regex_length's default of 128.
var labelForm = regexp.MustCompile(`^[-_A-Za-z0-9:]{1,128}$`)

// begin starts a transaction under the label, unless one that is not aborted has it.
func (s *store) begin(t *table, label, source string) (*txn, error) {
	if !labelForm.MatchString(label) {
		return nil, fmt.Errorf("errCode = 2, detailMessage = Label format error. regex: %s, label: %s", labelForm, shorten(label))
	}
	if old := s.labelled(t.database, label); old != nil && old.state != "ABORTED" {
		return nil, &labelUsed{label, old.id, old.state}
	}
	x := &txn{id: s.newID(), label: label, db: t.database, table: t, source: source, state: "PREPARE", prepared: s.cluster.options.Now()}
	t.database.labels[label] = append(t.database.labels[label], x)
	t.database.txns[x.id] = x
	return x, nil
}

// labelled is the last transaction of the label that is still remembered. Streaming loads and inserts are "short"
// transactions, forgotten after streaming_label_keep_max_second; one that has not ended never is.
func (s *store) labelled(d *database, label string) *txn {
	all := d.labels[label]
	if len(all) == 0 {
		return nil
	}
	x := all[len(all)-1]
	if !x.finished.IsZero() && s.cluster.options.Now().Sub(x.finished) > s.cluster.options.LabelLife {
		delete(d.labels, label)
		for _, old := range all {
			delete(d.txns, old.id)
		}
		return nil
	}
	return x
}

func (s *store) abort(x *txn, reason string) {
	x.state, x.reason, x.rows, x.finished = "ABORTED", reason, nil, s.cluster.options.Now()
}

// commit makes the transaction's rows durable and visible. With a channel they become visible when it is closed.
func (s *store) commit(x *txn, visible <-chan struct{}) {
	x.state, x.committed = "COMMITTED", s.cluster.options.Now()
	if visible == nil {
		s.show(x)
		return
	}
	s.pending.Go(func() {
		s.cluster.wait(visible)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.show(x)
	})
}

func (s *store) show(x *txn) {
	x.table.publish(x.rows)
	x.state, x.rows, x.finished = "VISIBLE", nil, s.cluster.options.Now()
}

// linger leaves the outcome of a transaction to the channel.
func (s *store) linger(x *txn, outcome <-chan bool) {
	s.pending.Go(func() {
		commits := false
		select {
		case commits = <-outcome:
		case <-s.cluster.stop:
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case x.live() != nil: // cancelled meanwhile
		case commits:
			s.commit(x, nil)
		default:
			s.abort(x, "timeout by txn manager")
		}
	})
}

func (s *store) labelState(db, label string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.databases[db]; d != nil {
		if x := s.labelled(d, label); x != nil {
			return x.state
		}
	}
	return "UNKNOWN"
}

// randomLabel is a label that the server made up.
func randomLabel(prefix string) string {
	var id [16]byte
	rand.Read(id[:])
	return fmt.Sprintf("%s%x-%x-%x-%x-%x", prefix, id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
