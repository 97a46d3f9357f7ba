package databend

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"sync"

	"github.com/terapush/terapush/pkg/batch"
)

// kind says what a number counts: batches, or the commit groups of a staged contract.
type kind string

const (
	ofBatch kind = "batch"
	ofGroup kind = "group"
)

// removal is the kind of the tries to delete what an attempt at a batch has left, counted from 1.
func removal(try int) kind { return kind(fmt.Sprintf("removal-%d", try)) }

// marksOf are the label and the query id of an attempt.
//
// The label names the batch: the server keeps labels under their bare text, for all tables and tenants, so it holds
// whatever makes the batch unique. The query id names the attempt, so that Resolve, in this process or in a later one,
// finds the query without anything having been kept: it follows from run, number and attempt. A server that is given
// one id twice answers with the earlier query's result and runs nothing.
func (l *opened) marksOf(k kind, id batch.ID, attempt int) marks {
	return marks{label: l.labels.of(label(l.plan.name, k, id)), queryID: queryID(k, id, attempt)}
}

// queryID has the form that the server makes ids of: 32 hexadecimal digits.
func queryID(k kind, id batch.ID, attempt int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "terapush/%s/%s/%d/%d", k, id.Run, id.Number, attempt))
	return hex.EncodeToString(sum[:16])
}

// queryIDs are those of the attempts 1 … attempt.
func queryIDs(k kind, id batch.ID, attempt int) []string {
	all := make([]string, 0, attempt)
	for a := 1; a <= attempt; a++ {
		all = append(all, queryID(k, id, a))
	}
	return all
}

// label is terapush:<run>:<database>.<table>:<number>, with group- before the number of a commit group. Names are
// escaped, since a label travels in a header.
func label(t tableName, k kind, id batch.ID) string {
	number := fmt.Sprint(id.Number)
	if k == ofGroup {
		number = "group-" + number
	}
	return fmt.Sprintf("terapush:%s:%s.%s:%s", id.Run, url.PathEscape(t.database), url.PathEscape(t.table), number)
}

// removalLabel is the label of the deletion of what an attempt has left. Of two with one label the second does nothing.
func removalLabel(t tableName, id batch.ID, attempt int) string {
	return fmt.Sprintf("%s:removal-%d", label(t, ofBatch, id), attempt)
}

// labels knows how many labels of a batch are spent: taken by a statement that wrote nothing, such as a streaming load
// whose connection broke early, or by one whose rows somebody has removed since. The server would skip every further
// attempt, so those get the next label, :again-1, once it is certain that no earlier query runs and no row is there;
// and all attempts get that one until it is spent too, since a label protects only what has the same. A process that
// resumes the run begins with the first one and finds out, one attempt at a time, which are spent.
type labels struct {
	mu    sync.Mutex
	spent map[string]int // by the first label
	tries map[string]int // to remove rows, likewise
}

func (l *labels) of(first string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current(first)
}

func (l *labels) current(first string) string {
	if n := l.spent[first]; n > 0 {
		return fmt.Sprintf("%s:again-%d", first, n)
	}
	return first
}

// spend notes that the label that is used now is taken. The rows that it was written with are gone, and their tries
// too.
func (l *labels) spend(first string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next(first)
}

// spendThis is spend for a label that an attempt has found taken.
func (l *labels) spendThis(first, taken string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current(first) == taken {
		l.next(first)
	}
}

func (l *labels) next(first string) {
	if l.spent == nil {
		l.spent = make(map[string]int)
	}
	l.spent[first]++
	delete(l.tries, first)
}

// removes counts a try to remove what an attempt has left.
func (l *labels) removes(first string) (try int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tries == nil {
		l.tries = make(map[string]int)
	}
	l.tries[first]++
	return l.tries[first]
}
