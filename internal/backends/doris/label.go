package doris

import (
	"fmt"
	"hash/fnv"

	"github.com/terapush/terapush/pkg/loader"
)

// label names a batch, or a commit group, on the server for as long as it remembers: within ^[-_A-Za-z0-9:]{1,128}$,
// since a run id is made of lower-case letters, digits and dashes and no longer than 64. Labels are unique within a
// database; the table's hash keeps two pushes apart that somebody gave one run id.
func (n tableName) label(ref loader.Ref, staged bool) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(n.String()))
	kind := "" // a run has batches or groups, never both; the letter is for who reads SHOW LOAD
	if staged {
		kind = "g"
	}
	return fmt.Sprintf("terapush_%s_%08x_%s%d", ref.ID.Run, h.Sum32(), kind, ref.ID.Number)
}

// txnState is what a frontend knows of a label: the status of its newest transaction.
type txnState string

// The states (org.apache.doris.transaction.TransactionStatus).
const (
	stateUnknown      txnState = "UNKNOWN" // the label was never used, or is forgotten
	statePrepare      txnState = "PREPARE" // under way
	statePrecommitted txnState = "PRECOMMITTED"
	stateCommitted    txnState = "COMMITTED" // in, and not to be seen yet
	stateVisible      txnState = "VISIBLE"
	stateAborted      txnState = "ABORTED" // nothing is in, and the label is free again
)

// underWay tells that nobody knows yet how the load will end.
func (s txnState) underWay() bool { return s == statePrepare || s == statePrecommitted }
