// Package doris is a sink that takes Stream Loads as a frontend and a backend of Apache Doris in one. Over the MySQL
// protocol it claims to be Doris, and takes INSERT.
//
// As a frontend it answers a load whose client waits to be asked for the rows, or sends none, with a redirect to itself,
// and takes the rows there; as a backend it takes a load whose rows come at once. So curl wants --location-trusted, as
// it does of Doris.
//
// Labels and transactions are not remembered: the same label loads twice, and an aborted transaction does not take back
// what was counted. No row is filtered, since there are no tables: loads that choose among their rows (where, sql,
// json_root) are refused, and so are compressed ones.
package doris

import (
	"encoding/json"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/mysql"
	"github.com/terapush/terapush/internal/sink/web"
)

// version of Doris that the sink is like.
const version = "3.1.0"

// Cluster is one Doris: its HTTP port and the port for statements beside it. The zero value is ready.
type Cluster struct {
	transactions atomic.Int64 // begun so far
	rows         atomic.Int64 // taken by loads so far
	sql          atomic.Pointer[sink.Server]
}

// Listen opens the sink for Stream Loads on addr.
func (c *Cluster) Listen(addr string, o sink.Options) (*sink.Server, error) {
	return sink.Listen(addr, o, web.Talk(c.serve))
}

// ListenSQL opens the port for statements on addr. It claims to be Doris, takes INSERT, and answers a count of a table
// with all rows that the cluster has taken, of whatever table: it remembers none, and its clients wait for those that
// they have loaded.
func (c *Cluster) ListenSQL(addr string, o sink.Options) (*sink.Server, error) {
	o.Answer = c.answer("Doris version doris-" + version + "-" + o.Name())
	s, err := mysql.Listen(addr, o)
	if err == nil {
		c.sql.Store(s)
	}
	return s, err
}

var (
	versionComment = regexp.MustCompile(`(?is)^SELECT\s+@@(?:session\.|global\.)?version_comment(?:\s+LIMIT\s+1)?[\s;]*$`)
	counted        = regexp.MustCompile(`(?is)^SELECT\s+(?:CAST\(\s*)?COUNT\s*\(.*\sFROM\s`)
)

func (c *Cluster) answer(comment string) sink.Answer {
	return func(sql string) (columns []string, rows [][]string, ok bool) {
		switch sql = sink.Plain(sql); {
		case versionComment.MatchString(sql):
			return []string{"@@version_comment"}, [][]string{{comment}}, true
		case counted.MatchString(sql):
			n := c.rows.Load()
			if s := c.sql.Load(); s != nil {
				n += s.Stats().Rows
			}
			return []string{"count(*)"}, [][]string{{strconv.FormatInt(n, 10)}}, true
		}
		return nil, nil, false
	}
}

// request is one request.
type request struct {
	*web.Exchange
	cluster *Cluster
}

// asBackend is the parameter of a load that was redirected.
const asBackend = "terapush_sink_backend"

func (c *Cluster) serve(x *web.Exchange) error {
	r := &request{Exchange: x, cluster: c}
	if !x.Password() {
		return r.unauthorized()
	}
	part := strings.Split(strings.Trim(x.URL.Path, "/"), "/")
	last := part[len(part)-1]
	switch {
	case part[0] != "api":
	case len(part) == 4 && (last == "_stream_load" || last == "_stream_load_forward") && x.Method == http.MethodPut:
		return r.streamLoad()
	case (len(part) == 3 || len(part) == 4) && last == "_stream_load_2pc" && x.Method == http.MethodPut:
		return r.twoPhase()
	case len(part) == 3 && last == "get_load_state" && x.Method == http.MethodGet:
		return r.frontend("success", 0, "UNKNOWN") // Doris' answer for a label that it has forgotten
	case len(part) == 3 && last == "_cancel" && x.Method == http.MethodPost:
		return r.frontend("Error", 1, "terapush sink: labels are not remembered, so there is nothing to cancel")
	case len(part) == 2 && (last == "bootstrap" || last == "health") && x.Method == http.MethodGet:
		return r.frontend("success", 0, map[string]int{"online_backend_num": 1, "total_backend_num": 1})
	case len(part) == 2 && last == "backends" && x.Method == http.MethodGet:
		return r.backends()
	}
	return r.json(http.StatusNotFound, reply{Msg: "terapush sink: it takes stream loads, and knows no " + x.Method + " " + x.URL.Path, Code: http.StatusNotFound})
}

// reply is what a frontend answers (ResponseEntityBuilder).
type reply struct {
	Msg   string `json:"msg"`
	Code  int    `json:"code"`
	Data  any    `json:"data"`
	Count int    `json:"count"`
}

func (r *request) frontend(msg string, code int, data any) error {
	return r.json(http.StatusOK, reply{Msg: msg, Code: code, Data: data})
}

// unauthorized answers as a frontend does: with status 200 and the code inside.
func (r *request) unauthorized() error {
	if r.Header.Get("Authorization") == "" {
		return r.frontend("Unauthorized", http.StatusUnauthorized, "Need auth information.")
	}
	return r.frontend("Unauthorized", http.StatusUnauthorized, "Access denied for "+r.User()+"@"+r.Stream.Client())
}

// backends names the address that the client used, as the one backend.
func (r *request) backends() error {
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		host, port = r.Host, "80"
	}
	type backend struct {
		IP       string      `json:"ip"`
		HTTPPort json.Number `json:"http_port"`
		Alive    bool        `json:"is_alive"`
	}
	if _, err := json.Number(port).Int64(); err != nil {
		port = "0"
	}
	return r.frontend("success", 0, map[string][]backend{"backends": {{host, json.Number(port), true}}})
}

func (r *request) json(status int, value any) error {
	text, err := json.MarshalIndent(value, "", "    ")
	if err != nil {
		return err
	}
	return r.Answer(status, "application/json;charset=utf-8", append(text, '\n'))
}

// twoPhase agrees to the end of a transaction that a load left open.
func (r *request) twoPhase() error {
	type outcome struct {
		Status string `json:"status"`
		Msg    string `json:"msg"`
	}
	what := "transaction [" + r.Header.Get("txn_id") + "]"
	if label := r.Header.Get("label"); label != "" {
		what = "label [" + label + "]"
	}
	operation := strings.ToLower(r.Header.Get("txn_operation"))
	switch {
	case r.Header.Get("txn_id") == "" && r.Header.Get("label") == "":
		return r.json(http.StatusOK, outcome{"Fail", "No transaction id or label selected."})
	case operation != "commit" && operation != "abort":
		return r.json(http.StatusOK, outcome{"Fail", "No transaction operation('commit' or 'abort') selected."})
	}
	return r.json(http.StatusOK, outcome{"Success", what + " " + operation + " successfully."})
}
