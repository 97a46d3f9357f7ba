// Package doris is a sink that takes Stream Loads as a frontend and a backend of Apache Doris in one. Over the MySQL
// protocol it claims to be Doris, and takes INSERT.
//
// As a frontend it answers a load whose client waits to be asked for the rows, or sends none, with a redirect to itself,
// and takes the rows there; as a backend it takes a load whose rows come at once. So curl wants --location-trusted, as
// it does of Doris.
//
// Labels and transactions are not remembered: the same label loads twice, and an aborted transaction does not take back
// what was counted. There are no tables, so loads that choose among their rows (where, sql, json_root) are refused, and
// compressed ones.
package doris

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/mysql"
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
	return sink.ListenHTTP(addr, o, c.serve)
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

func (c *Cluster) answer(comment string) sink.Answerer {
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

// asBackend is the parameter of a load that was redirected.
const asBackend = "terapush_sink_backend"

func (c *Cluster) serve(conn *sink.Conn, r *http.Request) sink.Answer {
	if !conn.KnowsPassword(r) {
		user, _, _ := r.BasicAuth()
		return frontend("Unauthorized", http.StatusUnauthorized, "Access denied for "+user+"@"+r.RemoteAddr)
	}
	part := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if part[0] == "api" {
		switch last := part[len(part)-1]; r.Method + " " + last + " " + strconv.Itoa(len(part)) {
		case "PUT _stream_load 4", "PUT _stream_load_forward 4":
			return c.streamLoad(conn, r)
		case "PUT _stream_load_2pc 3", "PUT _stream_load_2pc 4":
			return twoPhase(r.Header)
		case "GET get_load_state 3":
			return frontend("success", 0, "UNKNOWN") // Doris' answer for a label that it has forgotten
		case "POST _cancel 3":
			return frontend("Error", 1, "terapush sink: labels are not remembered, so there is nothing to cancel")
		case "GET bootstrap 2", "GET health 2":
			return frontend("success", 0, map[string]int{"online_backend_num": 1, "total_backend_num": 1})
		case "GET get_wal_size 2":
			return frontend("success", 0, []string{}) // no backend has a write-ahead log
		case "GET backends 2":
			return backends(r)
		}
	}
	return answerJSON(http.StatusNotFound, reply{
		Msg: "terapush sink: it takes stream loads, and knows no " + r.Method + " " + r.URL.Path, Code: http.StatusNotFound,
	})
}

// reply is what a frontend answers (ResponseEntityBuilder), with status 200 and the code inside.
type reply struct {
	Msg   string `json:"msg"`
	Code  int    `json:"code"`
	Data  any    `json:"data"`
	Count int    `json:"count"`
}

func frontend(msg string, code int, data any) sink.Answer {
	return answerJSON(http.StatusOK, reply{Msg: msg, Code: code, Data: data})
}

// answerJSON writes a value in lines, as Doris does.
func answerJSON(status int, value any) sink.Answer {
	a := sink.AnswerJSON(status, value)
	var lines bytes.Buffer
	_ = json.Indent(&lines, a.Body, "", "    ") // it was made just now
	a.Body = lines.Bytes()
	return a
}

// backends names the address that the client used, as the one backend.
func backends(r *http.Request) sink.Answer {
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		host, port = r.Host, "80"
	}
	number, _ := strconv.Atoi(port) // 0 of a port that is none
	type backend struct {
		IP       string `json:"ip"`
		HTTPPort int    `json:"http_port"`
		Alive    bool   `json:"is_alive"`
	}
	return frontend("success", 0, map[string][]backend{"backends": {{host, number, true}}})
}

// twoPhase agrees to the end of a transaction that a load left open.
func twoPhase(h http.Header) sink.Answer {
	type outcome struct {
		Status string `json:"status"`
		Msg    string `json:"msg"`
	}
	what := "transaction [" + h.Get("txn_id") + "]"
	if label := h.Get("label"); label != "" {
		what = "label [" + label + "]"
	}
	operation := strings.ToLower(h.Get("txn_operation"))
	switch {
	case h.Get("txn_id") == "" && h.Get("label") == "":
		return answerJSON(http.StatusOK, outcome{"Fail", "No transaction id or label selected."})
	case operation != "commit" && operation != "abort":
		return answerJSON(http.StatusOK, outcome{"Fail", "No transaction operation('commit' or 'abort') selected."})
	}
	return answerJSON(http.StatusOK, outcome{"Success", what + " " + operation + " successfully."})
}
