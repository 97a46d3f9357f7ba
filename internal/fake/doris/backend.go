package doris

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// backend is the HTTP side of a BE.
type backend struct {
	*httpServer
	cluster *Cluster
	number  int
	errors  errorFiles
}

func newBackend(c *Cluster, number int) (*backend, error) {
	// A host of its own: with the frontend's a client would keep its Authorization header over the redirect.
	s, err := listen(fmt.Sprintf("127.0.0.%d", 2+number))
	if err != nil {
		return nil, err
	}
	b := &backend{httpServer: s, cluster: c, number: number}
	s.handle = b.route
	return b, nil
}

func (b *backend) route(x *exchange) {
	part := strings.Split(strings.Trim(x.url.Path, "/"), "/")
	switch {
	case len(part) == 4 && part[0] == "api" && part[3] == "_stream_load" && x.method == http.MethodPut:
		b.streamLoad(x, part[1], part[2])
	case part[0] == "api" && part[len(part)-1] == "_stream_load_2pc" && (len(part) == 3 || len(part) == 4) && x.method == http.MethodPut:
		b.twoPhase(x, part[1])
	case x.url.Path == "/api/_load_error_log" && x.method == http.MethodGet:
		b.errors.serve(x)
	case x.url.Path == "/api/health" && x.method == http.MethodGet:
		x.json(map[string]string{"status": "OK", "msg": "To Be Added"})
	}
}

// streamLoad takes a load: its head, its body, the rows, the transaction, the answer.
func (b *backend) streamLoad(x *exchange, db, name string) {
	fault := b.cluster.log.ask(Request{Kind: Load, Database: db, Table: name, Label: x.header.Get("label"),
		Bytes: x.bytes(), Backend: b.number, Header: x.headers()})
	began := time.Now()
	if fault.HTTPStatus != 0 {
		x.answer(fault.HTTPStatus, "text/plain", []byte(http.StatusText(fault.HTTPStatus)+"\n"))
		return
	}
	l := &load{backend: b, exchange: x, fault: fault, store: b.cluster.store}
	err := l.head(db, name)
	if fault.RefuseEarly != "" || err != nil {
		// A backend that refuses the head answers at once and does not read the body.
		l.abort(cmp.Or(err, error(failure(fault.RefuseEarly))))
		l.send(cmp.Or(err, error(failure(fault.RefuseEarly))), began)
		if fault.RefuseEarly != "" && !x.gone {
			x.reset()
		}
		return
	}
	b.cluster.wait(fault.Hold)
	if fault.CutBody > 0 {
		l.swallow(fault.CutBody)
		l.abort(failure("[CANCELLED]sender is gone"))
		x.cut()
		return
	}
	err = l.body()
	if err == nil && fault.Fail != "" {
		err = failure(fault.Fail)
	}
	if err == nil {
		err = l.finish()
	}
	if errors.Is(err, errAway) {
		return
	}
	if err != nil && !errors.Is(err, errPublish) {
		l.abort(err)
	}
	if fault.CutAnswer {
		x.cut()
		return
	}
	l.send(err, began)
}

// authorized reports whether the backend lets the request in. It reads the header and asks the frontend.
func (b *backend) authorized(x *exchange) error {
	user, password, ok := x.basicAuth()
	switch {
	case !ok:
		return failure("[NOT_AUTHORIZED]no valid Basic authorization")
	case user != b.cluster.options.User || password != b.cluster.options.Password:
		return failure(fmt.Sprintf("[ANALYSIS_ERROR]TStatus: errCode = 2, detailMessage = Access denied for user '%s@%s' (using password: YES)", user, x.conn.RemoteAddr()))
	}
	return nil
}

// twoPhase commits or aborts what a load with two_phase_commit left (stream_load_2pc.cpp).
func (b *backend) twoPhase(x *exchange, db string) {
	err := b.authorized(x)
	id, operation := x.header.Get("txn_id"), x.header.Get("txn_operation")
	if err == nil && operation != "commit" && operation != "abort" {
		err = failure("[INTERNAL_ERROR]transaction operation should be 'commit' or 'abort'")
	}
	if err == nil {
		id, err = b.cluster.store.operate(db, id, x.header.Get("label"), operation)
	}
	answer := struct {
		Status string `json:"status"`
		Msg    string `json:"msg"`
	}{"Success", fmt.Sprintf("transaction [%s] %s successfully.", id, operation)}
	if err != nil {
		answer.Status, answer.Msg = "Fail", err.Error() // assumed: Status::to_json names the code here
	}
	x.json(answer)
}

// operate ends a pre-committed transaction, named by id or label.
func (s *store) operate(db, id, label, operation string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.databases[db]
	if d == nil {
		return id, failure(fmt.Sprintf("[ANALYSIS_ERROR]errCode = 7, detailMessage = Unknown database '%s'", db))
	}
	number, err := strconv.ParseInt(id, 10, 64)
	x := d.txns[number]
	if id == "" {
		x = s.labelled(d, label)
	} else if err != nil {
		return id, failure(fmt.Sprintf("[INTERNAL_ERROR]convert txn_id [%s] failed", id))
	}
	switch {
	case x == nil:
		return id, failure(fmt.Sprintf("[INTERNAL_ERROR]errCode = 2, detailMessage = transaction [%s] not found", cmp.Or(id, label)))
	case x.state != "PRECOMMITTED":
		return id, failure(fmt.Sprintf("[INTERNAL_ERROR]errCode = 2, detailMessage = transaction [%d] is already %s, not pre-committed.", x.id, x.state))
	case operation == "commit":
		s.commit(x, nil)
	default:
		s.abort(x, "User Abort")
	}
	return strconv.FormatInt(x.id, 10), nil
}

// positions are the table's columns that the file's fields go to; -1 for one the table does not have.
func (t *table) positions(names []string) ([]int, error) {
	if names == nil {
		names = t.names()
	}
	var at []int
	for _, name := range names {
		at = append(at, t.column(name))
	}
	for i, c := range t.columns {
		if !slices.Contains(at, i) && c.notNull && c.defaultValue == nil {
			return nil, failure(fmt.Sprintf("[INTERNAL_ERROR]errCode = 2, detailMessage = Column has no default value. column: %s", c.name))
		}
	}
	return at, nil
}
