package databend

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"github.com/terapush/terapush/pkg/batch"
)

// kind says what a number counts: batches, or the commit groups of a staged contract.
type kind string

const (
	batchKind kind = "batch"
	groupKind kind = "group"
)

// removalKind is the kind of the n-th deletion of what an attempt has left, from 1.
func removalKind(n int) kind { return kind(fmt.Sprintf("removal-%d", n)) }

// tags identify a statement to the server. Without them the server makes up a query id.
//
// The label names the batch. The server keeps labels as plain text for all tables and tenants, so it holds whatever
// makes the batch unique. The query id names the attempt and follows from run, number and attempt, so Resolve finds the
// query, also in a later process. A server that receives an id twice answers with the earlier query's result and runs
// nothing.
type tags struct{ label, queryID string }

func (t tags) set(h http.Header) {
	if t.label != "" {
		h.Set("X-DATABEND-DEDUPLICATE-LABEL", t.label)
	}
	if t.queryID != "" {
		h.Set("X-DATABEND-QUERY-ID", t.queryID)
	}
}

func (l *opened) tagsOf(k kind, id batch.ID, attempt int) tags {
	return tags{label: l.labels.current(label(l.plan.name, k, id)), queryID: queryID(k, id, max(attempt, 1))}
}

// queryID has the form of the server's own ids: 32 hexadecimal digits.
func queryID(k kind, id batch.ID, attempt int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "terapush/%s/%s/%d/%d", k, id.Run, id.Number, attempt))
	return hex.EncodeToString(sum[:16])
}

// queryIDs are those of the attempts 1 … attempt.
func queryIDs(k kind, id batch.ID, attempt int) []string {
	all := make([]string, attempt)
	for i := range all {
		all[i] = queryID(k, id, i+1)
	}
	return all
}

// label is terapush:<run>:<database>.<table>:<number>, with group- before the number of a commit group. Names are
// escaped, since a label travels in a header.
func label(t tableName, k kind, id batch.ID) string {
	group := ""
	if k == groupKind {
		group = "group-"
	}
	return fmt.Sprintf("terapush:%s:%s.%s:%s%d", id.Run, url.PathEscape(t.schema), url.PathEscape(t.table), group, id.Number)
}

// removalLabel is the label of the deletion of what an attempt has left. Of two with one label the second does nothing.
func removalLabel(t tableName, id batch.ID, attempt int) string {
	return fmt.Sprintf("%s:removal-%d", label(t, batchKind, id), attempt)
}

// labels counts the spent labels of each batch. A label is spent if a statement took it and wrote nothing, such as a
// streaming load whose connection broke early, or if its rows have been removed since. The server would skip every
// further attempt. Once no earlier query runs and no row is there, all attempts use the next label, :again-1, until
// that is spent too: a label protects only statements that share it. A process that resumes the run starts with the
// first label and finds the spent ones, one per attempt.
type labels struct {
	mu       sync.Mutex
	spent    map[string]int // by first label
	removals map[string]int // by first label: deletions tried since a label was spent
}

func newLabels() *labels { return &labels{spent: make(map[string]int), removals: make(map[string]int)} }

// current is the label to use in place of the first one.
func (l *labels) current(first string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return nth(first, l.spent[first])
}

func nth(first string, n int) string {
	if n == 0 {
		return first
	}
	return fmt.Sprintf("%s:again-%d", first, n)
}

// spend notes that a label is spent, unless a later one is in use already.
func (l *labels) spend(first, label string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if nth(first, l.spent[first]) == label {
		l.spent[first]++
		delete(l.removals, first)
	}
}

// nextRemoval counts a deletion and returns its number, from 1.
func (l *labels) nextRemoval(first string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removals[first]++
	return l.removals[first]
}
