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

// answer is a backend's answer to a stream load, or a frontend's to anything. JSON names match in any case, so a
// frontend's "status" is read into Status; its "msg" is not Message.
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

	// Of frontends.
	Msg  string
	Code int             // 401: the user is refused
	Data json.RawMessage // details of a refusal, or the answer
}

// refusal is an answer that is not success, of whatever shape.
type refusal struct {
	http    int    // status
	status  string // "Fail", "Label Already Exists", "FAILED", or "" if the answer has none
	job     string // ExistingJobStatus
	code    int    // a frontend's
	message string // the server's words
	url     string // where the backend keeps the rows that it could not read
	rows    string // what was found there
}

// Error implements error.
func (r *refusal) Error() string {
	text := cmp.Or(r.status, "no status")
	if r.status == "" && r.code != 0 {
		text = fmt.Sprintf("code %d", r.code)
	}
	if r.http != http.StatusOK {
		text = fmt.Sprintf("HTTP %d %s", r.http, text)
	}
	if r.job != "" {
		text += " (" + r.job + ")"
	}
	text += ": " + r.message
	switch {
	case r.rows != "":
		text += "; " + r.rows
	case r.url != "":
		text += "; see " + publicAddress(r.url)
	}
	return text
}

// publicAddress cuts what may give access off an address: user, password, and the signature of an object store.
func publicAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that cannot be read"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// statusExists is the Status of a load whose label is taken.
const statusExists = "Label Already Exists"

// parseAnswer reads an answer of any server.
func parseAnswer(status int, body []byte) (a answer, err error) {
	err = json.Unmarshal(body, &a)
	switch {
	case status != http.StatusOK:
		return a, &refusal{http: status, status: a.Status, code: a.Code, message: cmp.Or(a.Message, a.Msg, excerpt(body))}
	case err != nil:
		return a, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return a, nil
}

// parseLoad reads an answer to a load, or to the request for a backend. An error means that no backend answered a load;
// nil does not mean success.
func parseLoad(status int, body []byte) (answer, error) {
	a, err := parseAnswer(status, body)
	if err != nil {
		return a, err
	}
	good := strings.EqualFold(a.Status, "success") || strings.EqualFold(a.Status, "ok")
	if a.Status == "" || a.Msg != "" && a.Message == "" && !good {
		message := cmp.Or(a.Msg, string(a.Data), excerpt(body))
		return a, &refusal{http: status, status: a.Status, code: a.Code, message: message}
	}
	return a, nil
}

// sent is what an answer to a load must confirm.
type sent struct {
	label string // "" under group commit
	rows  int64
	group groupCommit
}

// judge returns what an answer to a load means for the batch. Applied rows need not be visible yet: Finish waits for
// them. "Success" alone proves nothing: a server may drop the label, load without group commit, or have read another
// number of rows.
func (s sent) judge(status int, body []byte) (ack loader.Ack, err error) {
	a, err := parseLoad(status, body)
	if err != nil {
		return ack, err
	}
	switch {
	case a.Status == statusExists && a.ExistingJobStatus == "FINISHED" && s.label != "": // committed, visible or not
		return loader.Ack{Rows: s.rows, AlreadyApplied: true, Detail: []string{a.Message}}, nil
	case a.Status != "Success" && a.Status != "Publish Timeout": // a load under an existing label may end either way
		return ack, &refusal{
			http: status, status: a.Status, job: a.ExistingJobStatus, message: cmp.Or(a.Message, a.Msg),
			url: a.ErrorURL, rows: a.FirstErrorMsg,
		}
	case s.label != "" && a.Label != s.label:
		return ack, labelReplaced(s.label, a.Label)
	case s.group.on() && !a.GroupCommit:
		return ack, notMerged(a.Label)
	}
	ack.Rows = a.NumberLoadedRows
	filtered, unselected := a.NumberFilteredRows, a.NumberUnselectedRows
	if filtered > 0 || unselected > 0 {
		ack.Detail = append(ack.Detail, fmt.Sprintf("%d rows filtered, %d not selected", filtered, unselected))
	}
	for _, message := range []string{a.FirstErrorMsg, a.Message} {
		if message != "" && message != "OK" {
			ack.Detail = append(ack.Detail, message)
		}
	}
	if read := ack.Rows + filtered + unselected; read != s.rows {
		detail := append(ack.Detail, fmt.Sprintf("%d rows read", read))
		err = &loader.RowsError{Sent: s.rows, Acknowledged: ack.Rows, Detail: detail}
	}
	return ack, err
}

// excerpt returns the beginning of a body that may be anything.
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
