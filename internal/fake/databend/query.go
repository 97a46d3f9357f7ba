package databend

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// query is a statement, running or done. The same id always means the same one.
type query struct {
	id, session string
	database    string
	settings    map[string]string
	pageRows    int
	fault       Fault
	killed      chan struct{}
	done        chan struct{}
	once        sync.Once

	result result // once done is closed
	err    error
}

// kill is agreed to in any case.
func (q *query) kill() {
	if !q.fault.Deaf {
		q.once.Do(func() { close(q.killed) })
	}
}

func (q *query) over() bool {
	select {
	case <-q.done:
		return true
	default:
		return false
	}
}

// attachment is a stage_attachment.
type attachment struct {
	Location string            `json:"location"`
	Format   map[string]string `json:"file_format_options"`
	Copy     map[string]string `json:"copy_options"`
}

// sessionState is the session of a request.
type sessionState struct {
	Database string            `json:"database,omitempty"`
	Settings map[string]string `json:"settings,omitempty"`
}

func (s sessionState) open(r *http.Request) session {
	if s.Database == "" {
		s.Database = "default"
	}
	return session{database: s.Database, settings: s.Settings, host: r.Host}
}

func (f *Fake) serveQuery(w http.ResponseWriter, r *http.Request) {
	var body struct {
		SQL        string       `json:"sql"`
		Session    sessionState `json:"session"`
		Pagination struct {
			Rows int `json:"max_rows_per_page"`
			Wait int `json:"wait_time_secs"`
		} `json:"pagination"`
		Attachment *attachment `json:"stage_attachment"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		refuse(w, http.StatusBadRequest, http.StatusBadRequest, err.Error())
		return
	}
	s := body.Session.open(r)
	var p plan
	var err error
	if body.Attachment != nil {
		p, err = f.attached(body.SQL, s, *body.Attachment)
	} else {
		p, err = f.understand(body.SQL, s)
	}
	id, label := r.Header.Get("X-DATABEND-QUERY-ID"), labelOf(r, s)
	if id == "" {
		id = newID()
	}
	fault := f.next(p.kind, body.SQL, label, id, r.Header)
	if fault.Status != 0 {
		refuse(w, fault.Status, fault.Status, fault.words("refused by the script"))
		return
	}
	q := f.start(id, func() *query {
		q := newQuery(id, s, fault)
		q.pageRows = body.Pagination.Rows
		if q.pageRows <= 0 {
			q.pageRows = 10_000
		}
		q.err = err
		return q
	}, func(q *query) { go f.run(q, p, label) })
	if fault.Vanish {
		cut(w)
		return
	}
	if fault.Starting == 0 {
		f.wait(r, q, body.Pagination.Wait)
	}
	if fault.LoseAnswer {
		<-q.done
		cut(w)
		return
	}
	send(w, http.StatusOK, f.page(q, 0), fault.Truncate)
}

func labelOf(r *http.Request, s session) string {
	if label := r.Header.Get("X-DATABEND-DEDUPLICATE-LABEL"); label != "" {
		return label
	}
	return s.settings["deduplicate_label"]
}

func newQuery(id string, s session, fault Fault) *query {
	return &query{id: id, session: newID(), database: s.database, settings: s.settings, fault: fault,
		killed: make(chan struct{}), done: make(chan struct{})}
}

// start gives the query with the id, made and run if there is none.
func (f *Fake) start(id string, make func() *query, run func(*query)) *query {
	f.mu.Lock()
	defer f.mu.Unlock()
	if q := f.queries[id]; q != nil {
		return q
	}
	q := make()
	f.queries[id], f.running[q.session] = q, q
	run(q)
	return q
}

// wait waits for the end of a query: as long as the client wants, and while it is there.
func (f *Fake) wait(r *http.Request, q *query, seconds int) {
	if seconds <= 0 {
		seconds = 10
	}
	patience := time.NewTimer(time.Duration(seconds) * time.Second)
	defer patience.Stop()
	select {
	case <-q.done:
	case <-patience.C:
	case <-r.Context().Done():
	}
}

// run carries a statement of /v1/query out. It does not end with its client.
func (f *Fake) run(q *query, p plan, label string) {
	defer f.finish(q)
	if q.err != nil {
		return
	}
	if !p.write {
		f.mu.Lock()
		defer f.mu.Unlock()
		if q.err = q.fault.failure(); q.err == nil {
			q.result, q.err = p.run()
		}
		return
	}
	if q.err = f.slot(q); q.err != nil {
		return
	}
	defer func() { <-f.slots }()
	if f.taken(label) {
		return
	}
	q.result, q.err = f.commit(q, label, p.run)
}

// finish ends a query: nothing of it is at work any more.
func (f *Fake) finish(q *query) {
	f.mu.Lock()
	delete(f.running, q.session)
	f.mu.Unlock()
	close(q.done)
}

func (f Fault) failure() error {
	if f.Code == 0 {
		return nil
	}
	return failed(f.Code, "%s", f.words("failed by the script"))
}

// slot waits for one of max_running_queries.
func (f *Fake) slot(q *query) error {
	if err := f.await(q, q.fault.Queue); err != nil {
		return err
	}
	select {
	case f.slots <- struct{}{}:
		return nil
	case <-q.killed:
	case <-f.closed:
	}
	return failed(killed, "query is killed")
}

// await waits until the script lets the query go on; without a gate it only looks whether it was killed.
func (f *Fake) await(q *query, gate <-chan struct{}) error {
	select { // first: who was killed does not go on
	case <-q.killed:
		return failed(killed, "query is killed")
	default:
	}
	if gate == nil {
		return nil
	}
	select {
	case <-gate:
		return nil
	case <-q.killed:
	case <-f.closed:
	}
	return failed(killed, "query is killed")
}

func (f *Fake) taken(label string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return label != "" && f.store.labels[label].After(f.options.Now())
}

// commit applies a statement and writes its label, without another look at it. What was killed until now is not applied.
func (f *Fake) commit(q *query, label string, apply func() (result, error)) (result, error) {
	if err := f.await(q, q.fault.Hold); err != nil {
		return result{}, err
	}
	if err := q.fault.failure(); err != nil {
		return result{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := apply()
	if err == nil && label != "" {
		f.store.labels[label] = f.options.Now().Add(f.options.LabelTTL)
	}
	return r, err
}

// serveOld answers what is asked about a query that was started before.
func (f *Fake) serveOld(w http.ResponseWriter, r *http.Request, id, what string) {
	f.mu.Lock()
	q := f.queries[id]
	f.mu.Unlock()
	if q == nil {
		refuse(w, http.StatusNotFound, http.StatusNotFound, "query id "+id+" not found")
		return
	}
	switch text, isPage := strings.CutPrefix(what, "page/"); {
	case isPage:
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			refuse(w, http.StatusNotFound, http.StatusNotFound, "no page "+text)
			return
		}
		fault := f.next(Page, "", id, id, r.Header)
		if fault.Status != 0 {
			refuse(w, fault.Status, fault.Status, fault.words("refused by the script"))
			return
		}
		if n >= q.fault.Starting {
			f.wait(r, q, 0)
		}
		if fault.LoseAnswer {
			cut(w)
			return
		}
		send(w, http.StatusOK, f.page(q, n), fault.Truncate)
	case what == "kill":
		if fault := f.next(Kill, "", id, id, r.Header); fault.Status != 0 {
			refuse(w, fault.Status, fault.Status, fault.words("refused by the script"))
			return
		}
		q.kill()
		w.WriteHeader(http.StatusOK)
	case what == "final":
		last := f.page(q, q.fault.Starting)
		last["data"], last["next_uri"] = [][]*string{}, nil
		answer(w, last)
	default:
		refuse(w, http.StatusNotFound, http.StatusNotFound, "no such route")
	}
}

// page is the answer with page n. The first ones are empty if the script makes the query slow to start.
func (f *Fake) page(q *query, n int) map[string]any {
	uri := "/v1/query/" + q.id
	all := map[string]any{
		"id": q.id, "session_id": q.session, "node_id": "stand-in", "warnings": []string{}, "error": nil,
		"session": map[string]any{"database": q.database, "settings": q.settings, "txn_state": "AutoCommit"},
		"schema":  []any{}, "data": [][]*string{}, "affect": nil, "settings": nil, "result_timeout_secs": 60,
		"stats_uri": uri, "final_uri": uri + "/final", "kill_uri": uri + "/kill",
	}
	if n < q.fault.Starting || !q.over() {
		all["state"], all["stats"] = "Starting", stats(0, 0)
		if n > 0 {
			all["state"] = "Running"
		}
		all["next_uri"] = uri + "/page/" + strconv.Itoa(n+1)
		return all
	}
	if q.err != nil {
		e := &failure{code: 1001, message: q.err.Error()}
		errors.As(q.err, &e)
		all["state"], all["stats"], all["next_uri"] = "Failed", stats(0, 0), uri+"/final"
		all["error"] = map[string]any{"code": e.code, "message": e.message, "detail": ""}
		return all
	}
	var schema []map[string]string
	for i, name := range q.result.names {
		schema = append(schema, map[string]string{"name": name, "type": q.result.types[i]})
	}
	rows := q.result.rows
	from := min((n-q.fault.Starting)*q.pageRows, len(rows))
	to := min(from+q.pageRows, len(rows))
	all["state"], all["stats"] = "Succeeded", stats(q.result.written, len(rows))
	all["data"], all["next_uri"] = append([][]*string{}, rows[from:to]...), uri+"/final"
	if schema != nil {
		all["schema"] = schema
	}
	if to < len(rows) {
		all["next_uri"] = uri + "/page/" + strconv.Itoa(n+1)
	}
	return all
}

func stats(written int64, results int) map[string]any {
	count := func(rows int64) map[string]int64 { return map[string]int64{"rows": rows, "bytes": 0} }
	return map[string]any{
		"scan_progress": count(0), "write_progress": count(written), "result_progress": count(int64(results)), "running_time_ms": 1.5,
	}
}
