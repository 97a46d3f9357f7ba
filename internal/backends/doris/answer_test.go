package doris

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
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
		"in the write-ahead log": {sent{rows: 10, group: groupAsync}, `{"Label":"group_commit_1","GroupCommit":true,"Status":"Success","NumberLoadedRows":10}`,
			loader.Ack{Rows: 10}},
		"no label": {sent{rows: 10, group: groupOff}, success("random", 10, 10, 0, 0), loader.Ack{Rows: 10}},
	} {
		ack, err := c.sent.judge(http.StatusOK, []byte(c.body))
		require.NoError(t, err, name)
		assert.Equal(t, c.ack, ack, name)
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	type verdict = loader.Verdict
	labelled := sent{label: "l", rows: 10, group: groupOff}
	fail := func(message string) string { return fmt.Sprintf(`{"Label":"l","Status":"Fail","Message":%q}`, message) }
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
		"under way":             {labelled, 200, exists("RUNNING"), verdict{Class: loader.ClassOther, Retry: true}, "Label Already Exists (RUNNING)"},
		"second phase open":     {labelled, 200, exists("PRECOMMITTED"), verdict{Class: loader.ClassOther, Retry: true}, "PRECOMMITTED"},
		"state missing":         {labelled, 200, exists(""), verdict{Class: loader.ClassOther, Retry: true}, "used"},
		"versions":              {labelled, 200, fail("[E-235]failed to init rowset builder. version count: 2001"), verdict{Class: loader.ClassThrottled, Applied: loader.No, Retry: true}, "E-235"},
		"versions in words":     {labelled, 200, fail("TOO_MANY_VERSION"), verdict{Class: loader.ClassThrottled, Applied: loader.No, Retry: true}, ""},
		"transactions":          {labelled, 200, fail("current running txns on db 1 is 1000, larger than limit 1000"), verdict{Class: loader.ClassThrottled, Applied: loader.No, Retry: true}, ""},
		"no backend":            {labelled, 200, fail("No backend load available or there is no available BE"), verdict{Class: loader.ClassShutdown, Applied: loader.No, Retry: true}, ""},
		"schema change":         {labelled, 200, fail("insert table 1 is blocked on schema change"), verdict{Class: loader.ClassLock, Applied: loader.No, Retry: true}, ""},
		"cut body":              {labelled, 200, fail("receive body don't equal with body bytes, body bytes=10, receive bytes=5"), verdict{Class: loader.ClassConnection, Applied: loader.No, Retry: true}, ""},
		"timeout":               {labelled, 200, fail("[TIMEOUT]load timeout"), verdict{Class: loader.ClassTimeout, Retry: true}, ""},
		"rpc":                   {labelled, 200, fail("[THRIFT_RPC_ERROR]"), verdict{Class: loader.ClassConnection, Retry: true}, ""},
		"filtered rows":         {labelled, 200, fail("[DATA_QUALITY_ERROR]too many filtered rows"), verdict{Class: loader.ClassData, Applied: loader.No}, ""},
		"label format":          {labelled, 200, fail("Label format error. regex: ^[-_A-Za-z0-9:]{1,128}$"), verdict{Class: loader.ClassOther, Applied: loader.No}, ""},
		"too large":             {labelled, 200, fail("body exceed max size: 10737418240, data: 1"), verdict{Class: loader.ClassTooLarge, Applied: loader.No}, ""},
		"unknown column":        {labelled, 200, fail("Unknown column 'x' in 't'"), verdict{Class: loader.ClassMissing, Applied: loader.No}, ""},
		"privilege":             {labelled, 200, fail("Access denied; you need (at least one of) the (LOAD) privilege(s)"), verdict{Class: loader.ClassPermission, Applied: loader.No}, ""},
		"disk full":             {labelled, 200, fail("[E-232]disk 10878111130781813261 exceed capacity limit."), verdict{Class: loader.ClassDiskFull, Applied: loader.No}, ""},
		"no space":              {labelled, 200, fail("[IO_ERROR]failed to write: No space left on device"), verdict{Class: loader.ClassDiskFull, Applied: loader.No}, ""},
		"log too small":         {labelled, 200, fail("EXCEEDED_LIMIT: group commit wal"), verdict{Class: loader.ClassDiskFull, Applied: loader.No}, ""},
		"frontend refuses":      {labelled, 200, `{"status":"FAILED","msg":"There is no 100-continue header"}`, verdict{Class: loader.ClassOther, Applied: loader.No}, "There is no 100-continue header"},
		"frontend, no backend":  {labelled, 200, `{"status":"FAILED","msg":"No backend load available"}`, verdict{Class: loader.ClassShutdown, Applied: loader.No, Retry: true}, ""},
		"frontend, no password": {labelled, 200, `{"msg":"Unauthorized","code":401,"data":"Need auth information.","count":0}`, verdict{Class: loader.ClassPermission, Applied: loader.No}, "Unauthorized"},
		"no status":             {labelled, 200, `{"count":0}`, verdict{Class: loader.ClassOther}, "no status"},
		"empty status":          {labelled, 200, `{"Status":"","Message":"x"}`, verdict{Class: loader.ClassOther}, "no status"},
		"unknown status":        {labelled, 200, `{"Status":"Perhaps","Message":"x"}`, verdict{Class: loader.ClassOther}, "Perhaps: x"},
		"truncated":             {labelled, 200, `{"Status":"Success","Label":"l","NumberLo`, verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}, "cannot be read"},
		"nothing":               {labelled, 200, ``, verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}, ""},
		"401":                   {labelled, 401, `no valid Basic authorization`, verdict{Class: loader.ClassPermission, Applied: loader.No}, "HTTP 401"},
		"403":                   {labelled, 403, `{"msg":"denied"}`, verdict{Class: loader.ClassPermission, Applied: loader.No}, "denied"},
		"400":                   {labelled, 400, `bad`, verdict{Class: loader.ClassOther, Applied: loader.No}, "bad"},
		"413":                   {labelled, 413, ``, verdict{Class: loader.ClassTooLarge, Applied: loader.No}, ""},
		"429":                   {labelled, 429, ``, verdict{Class: loader.ClassThrottled, Applied: loader.No, Retry: true}, ""},
		"503":                   {labelled, 503, `busy`, verdict{Class: loader.ClassShutdown, Retry: true}, "busy"},
		"504, a proxy's":        {labelled, 504, `<html>`, verdict{Class: loader.ClassShutdown, Retry: true}, ""},
		"success with a 500":    {labelled, 500, success("l", 10, 10, 0, 0), verdict{Class: loader.ClassShutdown, Retry: true}, ""},
	} {
		_, err := c.sent.judge(c.status, []byte(c.body))
		require.Error(t, err, name)
		assert.Contains(t, err.Error(), c.text, name)
		assert.Equal(t, c.want, New().Classify(failed("load", err)), name)
	}
}

func TestClassifyOthers(t *testing.T) {
	type verdict = loader.Verdict
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		err  error
		want verdict
	}{
		{refused, verdict{Class: loader.ClassConnection, Applied: loader.No, Retry: true, SessionDead: true}},
		{io.ErrUnexpectedEOF, verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}},
		{syscall.ECONNRESET, verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}},
		{context.DeadlineExceeded, verdict{Class: loader.ClassTimeout, Retry: true, SessionDead: true}},
		{context.Canceled, verdict{Class: loader.ClassOther, SessionDead: true}},
		{errDead, verdict{Class: loader.ClassConnection, Applied: loader.No, Retry: true, SessionDead: true}},
		{mysql.ErrNoTLS, verdict{Class: loader.ClassPermission, Applied: loader.No, SessionDead: true}},
		{mysql.ErrInvalidConn, verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}},
		{&mysql.MySQLError{Number: 1045}, verdict{Class: loader.ClassPermission, Applied: loader.No}},
		{&mysql.MySQLError{Number: 1040}, verdict{Class: loader.ClassThrottled, Applied: loader.No, Retry: true, SessionDead: true}},
		{&mysql.MySQLError{Number: 1049}, verdict{Class: loader.ClassMissing, Applied: loader.No}},
		{&mysql.MySQLError{Number: 1153}, verdict{Class: loader.ClassTooLarge, Applied: loader.No, SessionDead: true}},
		{&mysql.MySQLError{Number: 1105, Message: "errCode = 2, detailMessage = Label [x] has already been used, relate to txn [1]"}, verdict{Class: loader.ClassOther, Retry: true}},
		{&mysql.MySQLError{Number: 1105, Message: "errCode = 2, detailMessage = something new"}, verdict{Class: loader.ClassOther, Applied: loader.No}},
		{&loader.Error{Op: "x", Applied: loader.No, Err: io.EOF}, verdict{Class: loader.ClassConnection, Applied: loader.No, Retry: true, SessionDead: true}},
		{errors.New("what"), verdict{Class: loader.ClassOther, SessionDead: true}},
	} {
		assert.Equal(t, c.want, New().Classify(c.err), "%v", c.err)
	}
}

func TestHintsForTLS(t *testing.T) {
	assert.Contains(t, failed("connect", mysql.ErrNoTLS).Error(), "--tls off")
	assert.Contains(t, failed("connect", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}).Error(), "--tls off")
}
