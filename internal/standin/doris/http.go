package doris

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/standin"
)

func (c *Cluster) frontend() http.Handler {
	routes := http.NewServeMux()
	routes.HandleFunc("PUT /api/{db}/{table}/_stream_load", c.redirect)
	routes.HandleFunc("GET /api/{db}/get_load_state", c.question(func(label string) (any, error) {
		if x := c.labels[label]; x != nil {
			return x.state, nil
		}
		return "UNKNOWN", nil
	}))
	routes.HandleFunc("POST /api/{db}/_cancel", c.question(func(label string) (any, error) {
		return nil, c.cancel(label)
	}))
	routes.HandleFunc("GET /api/get_wal_size", c.countWAL)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, _, _ := r.BasicAuth(); !c.knows(r) {
			reply(w, http.StatusUnauthorized, "Unauthorized", "Access denied for "+user)
			return
		}
		routes.ServeHTTP(w, r)
	})
}

// countWAL says how many files the write-ahead log of each backend has: one for each group that the first takes.
func (c *Cluster) countWAL(w http.ResponseWriter, _ *http.Request) {
	files := 0
	c.mu.Lock()
	for _, t := range c.tables {
		if t.group != nil {
			files++
		}
	}
	c.mu.Unlock()
	var all []string
	for _, address := range c.Backends {
		host, _, _ := net.SplitHostPort(address)
		all = append(all, fmt.Sprintf("%s:9050:%d", host, files))
		files = 0
	}
	reply(w, 0, "success", all)
}

// redirect sends the client to a backend, after the checks of LoadAction.
func (c *Cluster) redirect(w http.ResponseWriter, r *http.Request) {
	fault := c.askHTTP(Redirect, r)
	mode := r.Header.Get("group_commit")
	group := mode == "sync_mode" || mode == "async_mode"
	c.mu.Lock()
	err := try(func() { c.find(r.PathValue("db") + "." + r.PathValue("table")) })
	c.turn++
	next := c.turn % len(c.Backends)
	c.mu.Unlock()
	if group {
		next = 0 // the table's own
	}
	refuse := func(message string) { writeJSON(w, map[string]any{"status": "FAILED", "msg": message}) }
	switch {
	case fault.Cut:
		panic(http.ErrAbortHandler)
	case fault.HTTPStatus != 0:
		w.WriteHeader(fault.HTTPStatus)
	case !slices.Contains([]string{"", "off_mode", "sync_mode", "async_mode"}, mode):
		refuse("Header `group_commit` can only be `sync_mode`, `async_mode` or `off_mode`.")
	case fault.Fail != "":
		refuse(fault.Fail)
	case r.Header.Get("Expect") == "":
		refuse("There is no 100-continue header")
	case group && err != nil: // otherwise the backend is the first to look
		refuse("Table not found. " + err.Error())
	default: // Doris writes user and password into the address
		user, password, _ := r.BasicAuth()
		to := *r.URL
		to.Scheme, to.Host, to.User = "http", c.Backends[next], url.UserPassword(user, password)
		w.Header().Set("Location", to.String())
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
}

// knows reports whether the request has the right user and password.
func (c *Cluster) knows(r *http.Request) bool {
	user, password, given := r.BasicAuth()
	return given && user == "root" && password == c.options.Password
}

// question answers one about a label.
func (c *Cluster) question(f func(label string) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		found, err := f(r.FormValue("label"))
		if r.PathValue("db") != Database {
			err = errors.New("Unknown database " + r.PathValue("db"))
		}
		if err != nil {
			reply(w, 1, "Error", err.Error())
			return
		}
		reply(w, 0, "success", found)
	}
}

// reply answers in the shape of ResponseEntityBuilder: with HTTP 200, whatever the code.
func reply(w http.ResponseWriter, code int, msg string, data any) {
	writeJSON(w, map[string]any{"msg": msg, "code": code, "data": data, "count": 0})
}

func marshal(value any) []byte {
	text, _ := json.MarshalIndent(value, "", "    ") // values of our own
	return append(text, '\n')
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json;charset=utf-8")
	_, _ = w.Write(marshal(value))
}

func (c *Cluster) backend(number int) http.Handler {
	routes := http.NewServeMux()
	routes.HandleFunc("PUT /api/{db}/{table}/_stream_load", func(w http.ResponseWriter, r *http.Request) {
		c.streamLoad(number, w, r)
	})
	routes.HandleFunc("GET /api/_load_error_log", func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if i, err := strconv.Atoi(r.FormValue("file")); err == nil && i < len(c.rejected) {
			_, _ = io.WriteString(w, c.rejected[i])
		}
	})
	return routes
}

// load is one stream load at a backend.
type load struct {
	*Cluster
	fault  Fault
	table  *table
	txn    *txn   // nil with group commit
	group  string // sync_mode or async_mode
	answer answer
}

// answer is that of a load, with the keys of StreamLoadContext::to_json that say something here.
type answer struct {
	TxnID              int64 `json:"TxnId"`
	Label              string
	GroupCommit        bool `json:",omitempty"`
	Status             string
	ExistingJobStatus  string `json:",omitempty"`
	Message            string
	NumberTotalRows    int
	NumberLoadedRows   int
	NumberFilteredRows int
	LoadBytes          int
	ErrorURL           string `json:",omitempty"`
}

// streamLoad takes a load: its head, its body, the transaction, the answer.
func (c *Cluster) streamLoad(number int, w http.ResponseWriter, r *http.Request) {
	l := &load{Cluster: c, fault: c.askHTTP(Load, r)}
	switch {
	case l.fault.Cut:
		panic(http.ErrAbortHandler)
	case l.fault.HTTPStatus != 0:
		w.WriteHeader(l.fault.HTTPStatus)
		return
	}
	err := l.head(r)
	if err == nil {
		c.wait(l.fault.Hold)
		var loaded []standin.Row
		loaded, err = l.body(number, r)
		err = l.finish(loaded, err)
	}
	if l.fault.CutAnswer || l.fault.Linger != nil {
		panic(http.ErrAbortHandler)
	}
	text := marshal(l.answered(err))
	if l.fault.Truncate {
		text = text[:len(text)/2]
	}
	if l.fault.RefuseEarly != "" {
		reset(w, text)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}

// head checks the head and begins the transaction, in the order of StreamLoadAction::on_header.
func (l *load) head(r *http.Request) (err error) {
	l.answer.TxnID, l.answer.Label = -1, cmp.Or(l.fault.Label, r.Header.Get("label"))
	mode := r.Header.Get("group_commit")
	if mode != "" && mode != "off_mode" && !l.fault.NoGroup {
		l.group = mode
	}
	switch {
	case l.group != "" && r.Header.Get("label") != "":
		return errors.New("[INVALID_ARGUMENT]label and group_commit can't be set at the same time")
	case !l.knows(r):
		return errors.New("[NOT_AUTHORIZED]no valid Basic authorization")
	case r.ContentLength < 0 && mode != "off_mode":
		l.answer.Label = "" // releases of 2026 drop the label of a load in chunks
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err = try(func() { l.table = l.find(r.PathValue("db") + "." + r.PathValue("table")) }); err != nil {
		return errors.New("[ANALYSIS_ERROR]TStatus: " + err.Error())
	}
	l.answer.Label = cmp.Or(l.answer.Label, randomLabel(""))
	switch {
	case l.group != "":
		return nil
	case l.fault.Existing != "":
		return &labelUsed{l.answer.Label, l.lastID, l.fault.Existing}
	}
	if l.txn, err = l.begin(l.table, l.answer.Label); err == nil {
		l.answer.TxnID = l.txn.id
	}
	return err
}

// body reads the rows, unless the script says otherwise.
func (l *load) body(number int, r *http.Request) ([]standin.Row, error) {
	if l.fault.RefuseEarly != "" {
		return nil, errors.New(l.fault.RefuseEarly)
	}
	data, err := io.ReadAll(r.Body)
	l.answer.LoadBytes = len(data)
	if err != nil {
		return nil, errors.New("[NETWORK_ERROR]receive body don't equal with body bytes")
	}
	if r.Header.Get("compress_type") == "gz" {
		plain, err := gzip.NewReader(bytes.NewReader(data))
		if err == nil {
			data, err = io.ReadAll(plain)
		}
		if err != nil {
			return nil, errors.New("[INTERNAL_ERROR]fail to do gzip decompress: " + err.Error())
		}
	}
	if l.fault.Fail != "" {
		return nil, errors.New(l.fault.Fail)
	}
	header := func(name string) string {
		return strings.NewReplacer(`\x01`, "\x01", `\x02`, "\x02").Replace(r.Header.Get(name))
	}
	f := format(header("format"), header("column_separator"), header("line_delimiter"))
	loaded, err := l.table.decode(f, columnsOf(header("columns")), data)
	if err != nil {
		return nil, l.filter(number, err)
	}
	l.answer.NumberTotalRows, l.answer.NumberLoadedRows = len(loaded), len(loaded)
	return loaded, nil
}

// columnsOf reads a list of quoted names.
func columnsOf(list string) []string { return strings.Split(strings.ReplaceAll(list, "`", ""), ", ") }

// format is a format by its name.
func format(name, comma, newline string) standin.Format {
	kinds := map[string]standin.Kind{"csv": standin.Separated, "json": standin.NDJSON, "parquet": standin.Parquet}
	return standin.Format{Kind: kinds[name], Comma: comma, Newline: newline}
}

// decode reads a body or an object. It does not look at the rows of the table, so nothing is locked.
func (t *table) decode(f standin.Format, columns []string, data []byte) ([]standin.Row, error) {
	loaded, err := t.Decode(f, columns, data)
	if err != nil {
		return nil, err
	}
	return loaded, t.fits(loaded)
}

// fits refuses a text that is longer than its column.
func (t *table) fits(loaded []standin.Row) error {
	for i, c := range t.Schema.Columns {
		most := t.Column(c.Name).Length()
		if !c.Type.IsText() || most == 0 {
			continue
		}
		for _, r := range loaded {
			if text, _ := r.Values[i].([]byte); len(text) > most {
				return fmt.Errorf("column(%s): the length of input is too long than schema. schema length: %d, actual length: %d",
					c.Name, most, len(text))
			}
		}
	}
	return nil
}

// filter keeps the reason why the rows cannot be read where ErrorURL says.
func (l *load) filter(number int, reason error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answer.ErrorURL = fmt.Sprintf("http://%s/api/_load_error_log?file=%d", l.Backends[number], len(l.rejected))
	l.answer.NumberFilteredRows = l.answer.NumberTotalRows
	l.rejected = append(l.rejected, "Reason: "+reason.Error()+". src line []; \n")
	return errors.New("[DATA_QUALITY_ERROR]too many filtered rows")
}

// finish ends the transaction, or joins the table's group: sync_mode waits for the group's end, async_mode is answered
// once the rows are in a log.
func (l *load) finish(loaded []standin.Row, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.txn != nil:
		if err = l.end(l.txn, loaded, err, l.fault); err == nil && l.fault.PublishTimeout != nil {
			l.answer.Status = "Publish Timeout"
		}
	case err == nil:
		g := l.joinGroup(l.table, loaded, l.group, l.fault)
		l.answer.GroupCommit, l.answer.Label, l.answer.TxnID = true, g.txn.label, g.txn.id
	}
	return err
}

// joinGroup is join, which it waits for in sync_mode. The cluster is locked, but not while it waits.
func (c *Cluster) joinGroup(t *table, loaded []standin.Row, mode string, fault Fault) *group {
	if fault.LoseWAL {
		loaded = nil
	}
	g := c.join(t, loaded)
	if mode == "sync_mode" {
		c.mu.Unlock()
		c.wait(g.done)
		c.mu.Lock()
	}
	return g
}

// answered completes the answer.
func (l *load) answered(err error) answer {
	a := l.answer
	a.Status, a.Message = cmp.Or(a.Status, "Success"), "OK"
	if err != nil {
		a.Status, a.Message, a.NumberLoadedRows = "Fail", err.Error(), 0
	}
	if used := (*labelUsed)(nil); errors.As(err, &used) {
		a.Status, a.ExistingJobStatus = "Label Already Exists", used.state
	}
	return a
}

// reset answers without looking at the body, and ends the connection by RST.
func reset(w http.ResponseWriter, text []byte) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	_ = conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
}
