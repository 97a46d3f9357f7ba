// Package doris is a sink that takes Stream Loads as a frontend and a backend of Apache Doris in one. Over the MySQL
// protocol it claims to be Doris, and takes INSERT.
//
// As a frontend it answers a load whose client waits to be asked for the rows, or sends none, with a redirect to
// itself, and takes the rows there; as a backend it takes a load whose rows come at once. So curl wants
// --location-trusted, as it does of Doris.
//
// Labels and transactions are not remembered: the same label loads twice. There are no tables, so loads that choose
// among their rows (where, sql, json_root) are refused, and so are compressed ones, two-phase commit, and JSON that is
// not one value in a line.
package doris

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
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
	comment := "Doris version doris-" + version + "-" + o.Name()
	s, err := mysql.ListenAs(addr, o, func(s sink.Statement) (value string, ok bool) {
		switch {
		case s.Item() == "@@version_comment":
			return comment, true
		case strings.HasPrefix(strings.ToUpper(s.Text), "SELECT COUNT("):
			return strconv.FormatInt(c.taken(), 10), true
		}
		return "", false
	})
	if err == nil {
		c.sql.Store(s)
	}
	return s, err
}

// taken returns how many rows have come over both ports.
func (c *Cluster) taken() int64 {
	n := c.rows.Load()
	if s := c.sql.Load(); s != nil {
		n += s.Stats().Rows
	}
	return n
}

// asBackend is the parameter of a load that was redirected.
const asBackend = "terapush_sink_backend"

func (c *Cluster) serve(conn *sink.Conn, r *http.Request) sink.Answer {
	part := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.Method == http.MethodPut && len(part) == 4 && part[0] == "api" && part[3] == "_stream_load":
		// LoadAction looks at the header Expect, not at its value.
		if !r.URL.Query().Has(asBackend) && (r.Header.Get("Expect") != "" || r.ContentLength == 0) {
			return redirect(r)
		}
		return c.streamLoad(conn, r)
	case r.Method == http.MethodGet && r.URL.Path == "/api/get_wal_size":
		return answerJSON(http.StatusOK, reply{"success", 0, []string{}}) // no backend has a write-ahead log
	}
	return answerJSON(http.StatusNotFound, reply{
		"terapush sink: it takes stream loads, and knows no " + r.Method + " " + r.URL.Path, http.StatusNotFound, nil,
	})
}

// reply is what a frontend answers (ResponseEntityBuilder), with status 200 and the code inside.
type reply struct {
	Msg  string `json:"msg"`
	Code int    `json:"code"`
	Data any    `json:"data"`
}

// answerJSON writes a value in lines, as Doris does.
func answerJSON(status int, value any) sink.Answer {
	a := sink.AnswerJSON(status, value)
	var lines bytes.Buffer
	_ = json.Indent(&lines, a.Body, "", "    ") // it was made just now
	a.Body = lines.Bytes()
	return a
}

// redirect sends the client to where its rows are taken: to this same server. The address has neither scheme nor host,
// so that it is right behind whatever address and encryption the client came by.
func redirect(r *http.Request) sink.Answer {
	to := url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath}
	parameters := r.URL.Query()
	parameters.Set(asBackend, "1")
	to.RawQuery = parameters.Encode()
	return sink.Answer{Status: http.StatusTemporaryRedirect, Header: []string{"Location", to.RequestURI()}}
}
