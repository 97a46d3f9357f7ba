package doris

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// answer is what a backend says of a stream load, and what a frontend says that takes none. JSON names are matched
// without regard to case, so a frontend's "status" lands in Status; its "msg" is no "Message".
type answer struct {
	Label                string
	Status               string
	ExistingJobStatus    string
	Message              string
	GroupCommit          bool
	NumberLoadedRows     int64
	NumberFilteredRows   int64
	NumberUnselectedRows int64
	ErrorURL             string
	FirstErrorMsg        string

	Msg  string          // a frontend's refusal
	Code int             // a frontend's refusal of the user: 401
	Data json.RawMessage // its details, or what was asked for
}

// refusal is an answer that is no success, whatever its shape.
type refusal struct {
	http    int    // status
	status  string // "Fail", "Label Already Exists", "FAILED", or "" where the answer has none
	job     string // ExistingJobStatus
	code    int    // a frontend's
	message string // the server's words
	url     string // where the backend keeps the rows that it could not read
	rows    string // what was found there
}

// Error repeats the server's words.
func (r *refusal) Error() string {
	var b strings.Builder
	if r.http != http.StatusOK {
		fmt.Fprintf(&b, "HTTP %d ", r.http)
	}
	switch {
	case r.status != "":
		b.WriteString(r.status)
	case r.code != 0:
		fmt.Fprintf(&b, "code %d", r.code)
	default:
		b.WriteString("no status")
	}
	if r.job != "" {
		b.WriteString(" (" + r.job + ")")
	}
	b.WriteString(": " + r.message)
	if r.rows != "" {
		b.WriteString("; " + r.rows)
	} else if r.url != "" {
		b.WriteString("; see " + shownAddress(r.url))
	}
	return b.String()
}

// shownAddress is an address without what may give access to it: user and password, or the signature of an object
// store.
func shownAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that cannot be read"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// unreadable is an answer that is no JSON: cut off on the way, or by somebody in between.
type unreadable struct{ err error }

func (u *unreadable) Error() string { return "the answer cannot be read: " + u.err.Error() }
func (u *unreadable) Unwrap() error { return u.err }

// notMergedError says that a load was not merged although it had to be.
type notMergedError struct{ label string }

func (e *notMergedError) Error() string {
	return fmt.Sprintf("group commit was asked for, and the server did without (label %q)", e.label)
}

// statusExists is the Status of a load whose label is taken.
const statusExists = "Label Already Exists"

// sent is what an answer is held against.
type sent struct {
	label string // "" under group commit
	rows  int64
	group groupCommit
}

// readAnswer reads an answer to a load or to a probe. Its error says why it is no answer of a backend to a load; nil
// does not mean success.
func readAnswer(status int, body []byte) (answer, error) {
	var a answer
	err := json.Unmarshal(body, &a)
	switch {
	case status != http.StatusOK && err == nil:
		return a, &refusal{http: status, status: a.Status, code: a.Code, message: cmp.Or(a.Message, a.Msg, excerpt(body))}
	case status != http.StatusOK:
		return a, &refusal{http: status, message: excerpt(body)}
	case err != nil:
		return a, &unreadable{err}
	}
	good := strings.EqualFold(a.Status, "success") || strings.EqualFold(a.Status, "ok")
	if a.Status == "" || a.Msg != "" && a.Message == "" && !good {
		words := cmp.Or(a.Msg, string(a.Data), excerpt(body))
		return a, &refusal{http: status, status: a.Status, code: a.Code, message: words}
	}
	return a, nil
}

// judge says what an answer to a load means for the batch. Rows that are in need not be visible yet: Finish waits for
// them.
//
// "Success" alone proves nothing: a server may drop the label, load without group commit, or have read another number
// of rows.
func (s sent) judge(status int, body []byte) (ack loader.Ack, err error) {
	a, err := readAnswer(status, body)
	if err != nil {
		return ack, err
	}
	switch {
	case a.Status == statusExists && a.ExistingJobStatus == "FINISHED" && s.label != "": // committed, visible or not
		return loader.Ack{Rows: s.rows, AlreadyApplied: true, Detail: []string{a.Message}}, nil
	case a.Status != "Success" && a.Status != "Publish Timeout": // where a label exists nobody knows how its load ends
		return ack, &refusal{
			http: status, status: a.Status, job: a.ExistingJobStatus, message: cmp.Or(a.Message, a.Msg),
			url: a.ErrorURL, rows: a.FirstErrorMsg,
		}
	case s.label != "" && a.Label != s.label:
		return ack, &replacedError{sent: s.label, got: a.Label}
	case s.group.on() && !a.GroupCommit:
		return ack, &notMergedError{label: a.Label}
	}
	ack.Rows = a.NumberLoadedRows
	filtered, unselected := a.NumberFilteredRows, a.NumberUnselectedRows
	if filtered > 0 || unselected > 0 {
		ack.Detail = append(ack.Detail, fmt.Sprintf("%d rows filtered, %d not selected", filtered, unselected))
	}
	for _, words := range []string{a.FirstErrorMsg, a.Message} {
		if words != "" && words != "OK" {
			ack.Detail = append(ack.Detail, words)
		}
	}
	if read := ack.Rows + filtered + unselected; read != s.rows {
		detail := append(ack.Detail, fmt.Sprintf("%d rows read", read))
		err = &loader.RowsError{Sent: s.rows, Acknowledged: ack.Rows, Detail: detail}
	}
	return ack, err
}

// readReply reads what a frontend answers to a question: {"msg":"success","code":0,"data":…}.
func readReply(status int, body []byte) (a answer, err error) {
	err = json.Unmarshal(body, &a)
	switch {
	case status != http.StatusOK:
		return a, &refusal{http: status, code: a.Code, message: cmp.Or(a.Msg, excerpt(body))}
	case err != nil:
		return a, &unreadable{err}
	case a.Code != 0:
		return a, &refusal{http: status, code: a.Code, message: cmp.Or(string(a.Data), a.Msg) + ": " + a.Msg}
	}
	return a, nil
}

// excerpt is the beginning of a body that may be anything.
func excerpt(body []byte) string {
	const most = 300
	body = bytes.TrimSpace(body)
	if len(body) > most {
		return string(body[:most]) + " …"
	}
	return string(body)
}

// and joins errors on one line; the first may be nil.
func and(first, second error) error {
	if first == nil {
		return second
	}
	return fmt.Errorf("%w; %w", first, second)
}
