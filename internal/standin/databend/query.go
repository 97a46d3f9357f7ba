package databend

import (
	"cmp"
	"encoding/json"
	"net/http"
	"sync"
)

// query is a statement, running or ended. The same id always means the same one.
type query struct {
	id, session string
	fault       Fault
	kill        func()
	killed      chan struct{}
	done        chan struct{}

	result // once done is closed
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
		SQL        string      `json:"sql"`
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
	q := s.start(id, label, fault, st)
	switch {
	case fault.Cut:
		cut(w)
	case fault.Starting || q.wait(r):
		send(w, http.StatusOK, q.page(true))
	}
}

func tagsOf(r *http.Request) (id, label string) {
	return r.Header.Get("X-DATABEND-QUERY-ID"), r.Header.Get("X-DATABEND-DEDUPLICATE-LABEL")
}

// start returns the query of the id, and runs a new one if there is none.
func (s *Server) start(id, label string, f Fault, st statement) *query {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queries[id]; q != nil {
		return q
	}
	q := newQuery(id, f)
	s.queries[q.id], s.running[q.session] = q, q
	taken := st.writes() && s.labels[label]
	go func() {
		defer s.finish(q)
		if !taken {
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
		q.result = failed(1043, "query is killed")
		return
	default:
	}
	if q.fault.Fail != 0 {
		q.result = failed(q.fault.Fail, "failed by the script")
		return
	}
	if q.result = st.run(); q.err == nil && st.writes() && label != "" {
		s.labels[label] = true
	}
}

// wait waits for the end of a query. It reports whether the client has waited, too.
func (q *query) wait(r *http.Request) bool {
	select {
	case <-q.done:
		return true
	case <-r.Context().Done():
		return false
	}
}

// serveStarted answers what is asked about a query that was started before.
func (s *Server) serveStarted(w http.ResponseWriter, r *http.Request, id, what string) {
	s.mu.Lock()
	q := s.queries[id]
	s.mu.Unlock()
	switch {
	case q == nil:
		refuse(w, http.StatusNotFound, http.StatusNotFound, "query id "+id+" not found")
	case what == "page/1":
		if _, refused := s.next(w, Request{Kind: Page, Label: id, QueryID: id}); !refused && q.wait(r) {
			send(w, http.StatusOK, q.page(false))
		}
	case what == "kill":
		if _, refused := s.next(w, Request{Kind: Kill, Label: id, QueryID: id}); !refused {
			q.kill()
		}
	}
}

// page is an answer about a query that has ended, or the first one about one that starts.
func (q *query) page(first bool) map[string]any {
	uri := "/v1/query/" + q.id
	answer := map[string]any{
		"id": q.id, "node_id": "stand-in", "state": "Succeeded", "error": nil, "data": [][]any{},
		"next_uri": uri + "/final", "final_uri": uri + "/final",
	}
	switch {
	case first && q.fault.Starting:
		answer["state"], answer["next_uri"] = "Starting", uri+"/page/1"
	case q.err != nil:
		answer["state"], answer["error"] = "Failed", map[string]any{"code": codeOf(q.err), "message": q.err.Error()}
	default:
		answer["data"] = q.rows
		answer["stats"] = map[string]any{"write_progress": map[string]int64{"rows": q.written}}
	}
	return answer
}
