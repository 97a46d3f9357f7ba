package doris

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// frontend is the HTTP side of an FE.
type frontend struct {
	*httpServer
	cluster *Cluster

	mu     sync.Mutex
	next   int            // the backend of the next load
	groups map[string]int // by table: group commit keeps to one backend
}

func newFrontend(c *Cluster) (*frontend, error) {
	s, err := listen("127.0.0.1")
	if err != nil {
		return nil, err
	}
	f := &frontend{httpServer: s, cluster: c, groups: map[string]int{}}
	s.handle = f.route
	return f, nil
}

func (f *frontend) route(x *exchange) {
	part := strings.Split(strings.Trim(x.url.Path, "/"), "/")
	switch {
	case len(part) == 4 && part[0] == "api" && part[3] == "_stream_load" && x.method == http.MethodPut:
		f.streamLoad(x, part[1], part[2])
	case part[0] == "api" && part[len(part)-1] == "_stream_load_2pc" && (len(part) == 3 || len(part) == 4) && x.method == http.MethodPut:
		f.twoPhase(x, part[1])
	case len(part) == 3 && part[0] == "api" && part[2] == "get_load_state" && x.method == http.MethodGet:
		f.loadState(x, part[1])
	case len(part) == 3 && part[0] == "api" && part[2] == "_cancel" && x.method == http.MethodPost:
		f.cancel(x, part[1])
	case len(part) == 2 && part[0] == "api" && (part[1] == "bootstrap" || part[1] == "health"):
		f.ok(x, map[string]int{"online_backend_num": len(f.cluster.backends), "total_backend_num": len(f.cluster.backends)})
	}
}

// streamLoad sends the client to a backend, after the checks of LoadAction in their order. It looks at the head only:
// whatever of the body arrives here is counted.
func (f *frontend) streamLoad(x *exchange, db, table string) {
	fault := f.cluster.log.ask(Request{Kind: Redirect, Database: db, Table: table, Label: x.header.Get("label"),
		Bytes: x.bytes(), Header: x.headers()})
	f.cluster.wait(fault.Hold)
	if fault.CutAnswer || fault.CutBody > 0 {
		x.cut()
		return
	}
	if fault.HTTPStatus != 0 {
		x.answer(fault.HTTPStatus, "text/plain", nil)
		return
	}
	mode := strings.ToLower(x.header.Get("group_commit"))
	switch mode {
	case "", "async_mode", "sync_mode", "off_mode":
	default:
		f.refuse(x, "Header `group_commit` can only be `sync_mode`, `async_mode` or `off_mode`.")
		return
	}
	if fault.HTTPS {
		// enable_https: everything is sent to https_port first, whose default is 8050.
		f.redirect(x, "https://127.0.0.1:8050"+x.url.RequestURI())
		return
	}
	if !f.authorized(x) {
		return
	}
	group := mode == "async_mode" || mode == "sync_mode"
	switch {
	case fault.Fail != "":
		f.refuse(x, fault.Fail)
		return
	case x.header.Get("Expect") == "": // it looks for the header, not for its value
		f.refuse(x, "There is no 100-continue header")
		return
	case group && !f.cluster.store.hasDatabase(db): // otherwise the backend is the first to look
		f.refuse(x, "Database not found.")
		return
	case group && !f.cluster.store.hasTable(db, table):
		f.refuse(x, "OlapTable not found.")
		return
	}
	b := f.choose(db+"."+table, group)
	f.redirect(x, f.location(x, b))
}

func (f *frontend) redirect(x *exchange, location string) {
	x.answerWith(http.StatusTemporaryRedirect, http.Header{"Location": {location}, "Content-Type": {"text/html;charset=utf-8"}}, nil)
}

// choose takes the backends in turn; the loads of a group have to meet on one.
func (f *frontend) choose(table string, group bool) *backend {
	f.mu.Lock()
	defer f.mu.Unlock()
	i, known := f.groups[table]
	if !group || !known {
		i = f.next % len(f.cluster.backends)
		f.next++
		if group {
			f.groups[table] = i
		}
	}
	return f.cluster.backends[i]
}

// loadState answers GET /api/{db}/get_load_state?label=….
func (f *frontend) loadState(x *exchange, db string) {
	if !f.authorized(x) {
		return
	}
	label := x.url.Query().Get("label")
	switch {
	case label == "":
		f.reply(x, "Bad Request", 403, "No label selected")
	case !f.cluster.store.hasDatabase(db):
		f.reply(x, "Error", 1, fmt.Sprintf("errCode = 7, detailMessage = Unknown database '%s'", db))
	default:
		f.ok(x, f.cluster.store.labelState(db, label))
	}
}

// cancel answers POST /api/{db}/_cancel?label=….
func (f *frontend) cancel(x *exchange, db string) {
	if !f.authorized(x) {
		return
	}
	label := x.url.Query().Get("label")
	if label == "" {
		f.reply(x, "Bad Request", 403, "No label specified")
		return
	}
	if err := f.cluster.store.cancel(db, label); err != nil {
		f.reply(x, "Error", 1, err.Error())
		return
	}
	f.ok(x, nil)
}

// twoPhase answers PUT /api/{db}/_stream_load_2pc. Doris redirects it to a backend as it does a load.
func (f *frontend) twoPhase(x *exchange, db string) {
	if !f.authorized(x) {
		return
	}
	switch {
	case x.header.Get("txn_id") == "" && x.header.Get("label") == "":
		f.refuse(x, "No transaction id or label selected.")
	case x.header.Get("txn_operation") == "":
		f.refuse(x, "No transaction operation('commit' or 'abort') selected.")
	default:
		f.redirect(x, f.location(x, f.choose(db, false)))
	}
}

// location is the request's own address at the backend, with user and password in it as Doris has them.
func (f *frontend) location(x *exchange, b *backend) string {
	u := url.URL{Scheme: "http", Host: b.address(), Path: x.url.Path, RawPath: x.url.RawPath, RawQuery: x.url.RawQuery}
	if !f.cluster.options.PlainLocation {
		user, password, _ := x.basicAuth()
		u.User = url.UserPassword(user, password)
	}
	return u.String()
}

// authorized answers for a request without the right password: with HTTP 200 and the code inside, as the frontend
// does.
func (f *frontend) authorized(x *exchange) bool {
	user, password, ok := x.basicAuth()
	if ok && user == f.cluster.options.User && password == f.cluster.options.Password {
		return true
	}
	data := "Need auth information."
	if ok {
		data = fmt.Sprintf("Access denied for %s@%s", user, x.conn.RemoteAddr().String())
	}
	f.reply(x, "Unauthorized", http.StatusUnauthorized, data)
	return false
}

func (f *frontend) ok(x *exchange, data any) { f.reply(x, "success", 0, data) }

func (f *frontend) reply(x *exchange, msg string, code int, data any) {
	x.json(struct {
		Msg   string `json:"msg"`
		Code  int    `json:"code"`
		Data  any    `json:"data"`
		Count int    `json:"count"`
	}{msg, code, data, 0})
}

// refuse answers in RestBaseResult's shape, whose keys are in lower case.
func (f *frontend) refuse(x *exchange, msg string) {
	x.json(struct {
		Status string `json:"status"`
		Msg    string `json:"msg"`
	}{"FAILED", msg})
}

// json answers with status 200 and the value.
func (x *exchange) json(value any) {
	x.answer(http.StatusOK, "application/json;charset=utf-8", marshal(value))
}

func marshal(value any) []byte {
	text, err := json.MarshalIndent(value, "", "    ")
	if err != nil {
		panic(err) // values of our own
	}
	return append(text, '\n')
}

// bytes is the length of the body as announced; -1 for chunks.
func (x *exchange) bytes() int64 {
	if x.chunks {
		return -1
	}
	return max(x.length, 0)
}

// headers are the headers by lower-case name, without the credentials.
func (x *exchange) headers() map[string]string {
	all := map[string]string{}
	for name, values := range x.header {
		if name != "Authorization" {
			all[strings.ToLower(name)] = values[0]
		}
	}
	return all
}
