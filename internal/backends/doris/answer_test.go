package doris

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

func success(label string, total, loaded, filtered, unselected int) string {
	return fmt.Sprintf(`{"TxnId":7,"Label":%q,"Comment":"","TwoPhaseCommit":"false","Status":"Success","Message":"OK","NumberTotalRows":%d,`+
		`"NumberLoadedRows":%d,"NumberFilteredRows":%d,"NumberUnselectedRows":%d,"LoadBytes":10}`, label, total, loaded, filtered, unselected)
}

func TestAnswersThatAreSuccess(t *testing.T) {
	labelled := sent{label: "l", rows: 10, group: groupOff}
	for name, c := range map[string]struct {
		sent sent
		body string
		ack  loader.Ack
	}{
		"success": {labelled, success("l", 10, 10, 0, 0), loader.Ack{Rows: 10}},
		"filtered": {labelled, success("l", 10, 8, 1, 1),
			loader.Ack{Rows: 8, Detail: []string{"1 rows filtered, 1 not selected"}}},
		"published later": {labelled, `{"Label":"l","Status":"Publish Timeout","Message":"PUBLISH_TIMEOUT","NumberTotalRows":10,"NumberLoadedRows":10}`,
			loader.Ack{Rows: 10, Detail: []string{"PUBLISH_TIMEOUT"}}},
		"an earlier attempt": {labelled, `{"Label":"l","Status":"Label Already Exists","ExistingJobStatus":"FINISHED","Message":"used"}`,
			loader.Ack{Rows: 10, AlreadyApplied: true, Detail: []string{"used"}}},
		"merged": {sent{rows: 10, group: groupSync}, `{"Label":"group_commit_1","GroupCommit":true,"Status":"Success","Message":"OK","NumberLoadedRows":10}`,
			loader.Ack{Rows: 10}},
	} {
		ack, err := c.sent.judge(http.StatusOK, []byte(c.body))
		require.NoError(t, err, name)
		assert.Equal(t, c.ack, ack, name)
	}
}

// What the server's words mean is in verdicts.golden.
func TestAnswersThatAreNone(t *testing.T) {
	type verdict = loader.Verdict
	labelled := sent{label: "l", rows: 10, group: groupOff}
	exists := func(state string) string {
		return fmt.Sprintf(`{"Label":"l","Status":"Label Already Exists","ExistingJobStatus":%q,"Message":"used"}`, state)
	}
	for name, c := range map[string]struct {
		sent   sent
		status int
		body   string
		want   verdict
		text   string
	}{
		"another number of rows": {labelled, 200, success("l", 9, 9, 0, 0), verdict{Class: loader.ClassRows}, "the server took 9 of 10 rows"},
		"label replaced":         {labelled, 200, success("e3b0", 10, 10, 0, 0), verdict{Class: loader.ClassOther}, "by e3b0"},
		"not merged": {sent{rows: 10, group: groupSync}, 200, success("x", 10, 10, 0, 0),
			verdict{Class: loader.ClassOther, Applied: loader.Yes}, "did not merge"},
		"under way":            {labelled, 200, exists("RUNNING"), verdict{Class: loader.ClassOther, Retry: true}, "Label Already Exists (RUNNING)"},
		"frontend refuses":     {labelled, 200, `{"status":"FAILED","msg":"There is no 100-continue header"}`, verdict{Class: loader.ClassOther, Applied: loader.No}, "There is no 100-continue header"},
		"frontend, no backend": {labelled, 200, `{"status":"FAILED","msg":"No backend load available"}`, verdict{Class: loader.ClassShutdown, Applied: loader.No, Retry: true}, ""},
		"no status":            {labelled, 200, `{"count":0}`, verdict{Class: loader.ClassOther}, "no status"},
		"unknown status":       {labelled, 200, `{"Status":"Perhaps","Message":"x"}`, verdict{Class: loader.ClassOther}, "Perhaps: x"},
		"truncated":            {labelled, 200, `{"Status":"Success","Label":"l","NumberLo`, verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}, "cannot be read"},
		"401":                  {labelled, 401, `no valid Basic authorization`, verdict{Class: loader.ClassPermission, Applied: loader.No}, "HTTP 401"},
		"success with a 500":   {labelled, 500, success("l", 10, 10, 0, 0), verdict{Class: loader.ClassShutdown, Retry: true}, ""},
	} {
		_, err := c.sent.judge(c.status, []byte(c.body))
		require.Error(t, err, name)
		assert.Contains(t, err.Error(), c.text, name)
		assert.Equal(t, c.want, New().Classify(failed("load", err)), name)
	}
}
