package databend

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// query is a statement, running or ended. The same id always means the same one.
type query struct {
	id, session string
	fault       Fault
	pageRows    int
	kill        func()
	killed      chan struct{}
	done        chan struct{}

	result result // once done is closed
	err    error
}

// result is what a statement returns: rows of texts, or nil for NULL.
type result struct {
	rows    [][]any
	written int64
}

func newQuery(id string, f Fault) *query {
	q := &query{id: cmp.Or(id, newID()), session: newID(), fault: f, killed: make(chan struct{}), done: make(chan struct{})}
	q.kill = sync.OnceFunc(func() {
		if !f.Linger {
			close(q.killed)
		}
	})
	return q
}

func (s *Server) serveQuery(w http.ResponseWriter, r *http.Request) {
	var body struct {
		SQL        string `json:"sql"`
		Pagination struct {
			Rows int `json:"max_rows_per_page"`
		} `json:"pagination"`
		Attachment *attachment `json:"stage_attachment"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		refuse(w, http.StatusBadRequest, http.StatusBadRequest, err.Error())
		return
	}
	st := s.recognise(body.SQL, body.Attachment)
	id, label := tagsOf(r)
	fault, refused := s.next(w, Request{Kind: st.kind, SQL: body.SQL, Label: label, QueryID: id})
	if refused {
		return
	}
	q := s.start(id, label, fault, st, body.Pagination.Rows)
	switch {
	case fault.Cut:
		cut(w)
		return
	case fault.CutAnswer:
		<-q.done
		cut(w)
		return
	case !fault.Starting:
		q.wait(r)
	}
	send(w, http.StatusOK, q.page(0), fault.Truncate)
}

func tagsOf(r *http.Request) (id, label string) {
	return r.Header.Get("X-DATABEND-QUERY-ID"), r.Header.Get("X-DATABEND-DEDUPLICATE-LABEL")
}

// start returns the query of the id, and runs a new one if there is none.
func (s *Server) start(id, label string, f Fault, st statement, pageRows int) *query {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queries[id]; q != nil {
		return q
	}
	q := newQuery(id, f)
	q.pageRows = cmp.Or(pageRows, 10_000)
	s.queries[q.id], s.running[q.session] = q, q
	go func() {
		defer s.finish(q)
		if !st.writes() || !s.taken(label) {
			s.commit(q, label, st)
		}
	}()
	return q
}

// finish ends a query.
func (s *Server) finish(q *query) {
	s.mu.Lock()
	delete(s.running, q.session)
	s.mu.Unlock()
	close(q.done)
}

func (s *Server) taken(label string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.labels[label]
}

// commit runs a statement and writes its label, without another look at it. What was killed until now is not applied.
func (s *Server) commit(q *query, label string, st statement) {
	if st.writes() && q.fault.Hold != nil {
		select {
		case <-q.fault.Hold:
		case <-q.killed:
		case <-s.closing:
			q.kill()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-q.killed:
		q.err = failed(1043, "query is killed")
		return
	default:
	}
	if q.fault.Fail != 0 {
		q.err = failed(q.fault.Fail, "%s", cmp.Or(q.fault.Message, "failed by the script"))
		return
	}
	if q.result, q.err = st.run(); q.err == nil && st.writes() && label != "" {
		s.labels[label] = true
	}
}

// wait waits for the end of a query, as long as a server does.
func (q *query) wait(r *http.Request) {
	limit := time.NewTimer(10 * time.Second)
	defer limit.Stop()
	select {
	case <-q.done:
	case <-limit.C:
	case <-r.Context().Done():
	}
}

// serveStarted answers what is asked about a query that was started before.
func (s *Server) serveStarted(w http.ResponseWriter, r *http.Request, id, what string) {
	s.mu.Lock()
	q := s.queries[id]
	s.mu.Unlock()
	number, isPage := strings.CutPrefix(what, "page/")
	switch {
	case q == nil:
		refuse(w, http.StatusNotFound, http.StatusNotFound, "query id "+id+" not found")
	case isPage:
		n, err := strconv.Atoi(number)
		fault, refused := s.next(w, Request{Kind: Page, Label: id, QueryID: id})
		if refused || err != nil {
			return
		}
		q.wait(r)
		send(w, http.StatusOK, q.page(n), fault.Truncate)
	case what == "kill":
		if _, refused := s.next(w, Request{Kind: Kill, Label: id, QueryID: id}); !refused {
			q.kill()
		}
	}
}

// page is the answer with page n.
func (q *query) page(n int) map[string]any {
	uri := "/v1/query/" + q.id
	answer := map[string]any{
		"id": q.id, "node_id": "stand-in", "state": "Succeeded", "error": nil, "data": [][]any{},
		"next_uri": uri + "/final", "final_uri": uri + "/final",
	}
	next := uri + "/page/" + strconv.Itoa(n+1)
	if q.fault.Starting {
		n--
	}
	select {
	case <-q.done:
	default:
		n = -1
	}
	switch {
	case n < 0:
		answer["state"], answer["next_uri"] = "Starting", next
	case q.err != nil:
		code, message := words(q.err)
		answer["state"], answer["error"] = "Failed", map[string]any{"code": code, "message": message}
	default:
		from := min(n*q.pageRows, len(q.result.rows))
		to := min(from+q.pageRows, len(q.result.rows))
		answer["data"] = q.result.rows[from:to]
		answer["stats"] = map[string]any{"write_progress": map[string]int64{"rows": q.result.written}}
		if to < len(q.result.rows) {
			answer["next_uri"] = next
		}
	}
	return answer
}
