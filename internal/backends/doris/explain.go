package doris

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// Explain lets a run load a batch or a group over connections that write down what is sent.
func (Driver) Explain(t loader.Target, p loader.Preparation) []loader.Statement {
	l := newLoader(t, slog.New(slog.DiscardHandler)) // Check returns the error
	r := sqlload.NewRecorder(l.Table)
	r.Traits = []string{properties(l.options.properties())}
	r.Binary = true
	e := &explained{Recorder: r, owner: l, rows: p.Contract.BatchRows, state: statePrepare}
	l.http = httpload.Recorded(e.answer)
	l.control = sql.OpenDB(r.Connector())
	defer func() { _ = l.Close() }()
	l.openConn = func(ctx context.Context, _ *mysql.Config) (driver.Conn, error) { return r.Connector().Connect(ctx) }
	config := mysql.NewConfig()
	l.hosts.List = []endpoint{{config: config, loading: config, http: url.URL{Scheme: "http", Host: atFrontend}}}
	e.whens(p)

	r.Prepare(p, l.Prepare)
	if s, err := l.State(); err == nil && s.Relation != nil && p.Create != loader.CreateRecreate {
		s.Relation.Traits[0] = ""
		r.Step("once, if the table is there with another value", l.alterTable)
	}
	if p.Contract.Staged() {
		all := &staged{inner{l}, objstore.RecordStaging(l, t, e.object)}
		r.Load(all, p)
		r.Commit(all, p.Contract)
	} else {
		r.Load(l, p)
	}
	if p.Contract.Dedup == loader.DedupKey || p.Contract.Staged() { // a group always has its label
		r.Resolve(sqlload.LostAnswer, l, p.Contract)
	}
	r.Step("at the end, over all keys of the run, until every row can be read", func(ctx context.Context) error {
		_, err := l.Finish(ctx, loader.KeyRange{Last: e.rows - 1}, 0)
		return err
	})
	r.Step("at the end", func(ctx context.Context) error {
		l.Measured(ctx)
		return nil
	})
	r.Count(p)
	return r.Statements()
}

// explained is a frontend, and a backend, that write down what they are sent.
type explained struct {
	*sqlload.Recorder
	owner *opened
	rows  int64
	state txnState // of every label
}

// The hosts of the two.
const (
	atFrontend = "frontend"
	atBackend  = "backend"
)

// whens says when requests are sent of which a batch alone does not decide, and shortens what repeats.
func (e *explained) whens(p loader.Preparation) {
	const step = "per batch"
	e.When(step, "PUT "+e.owner.name.loadPath()+" to a "+atFrontend, fmt.Sprintf("per session, and again after %v or an error", backendTime))
	e.When(step, "GET ", step+", if the frontend is not the master and has no last INSERT")
	if e.owner.options.group.on() {
		e.When(step, "SHOW LAST INSERT", "per session")
	}
	e.When(sqlload.LostAnswer, "POST ", sqlload.LostAnswer+", while the load is under way")
	if e.owner.options.Prepared {
		e.When(step, "COM_STMT_PREPARE ", "per session")
		row := ", (?" + strings.Repeat(", ?", len(p.Schema.Columns)-1) + ")"
		e.Name(strings.Repeat(row, int(max(e.rows-1, 1))), ", …")
	}
	e.Name(fmt.Sprintf("1.%s}", p.Contract.Format), fmt.Sprintf("1.%s,…}", p.Contract.Format))
	e.Name("\x01", `\x01`)
	e.Name("\x02", `\x02`)
}

// object writes down a request to the object store.
func (e *explained) object(request string) {
	switch first := strings.Contains(request, "000000000000."); {
	case !strings.HasPrefix(request, "HEAD "):
		e.Write(request)
	case first:
		e.Write("HEAD of every object")
	}
}

// answer writes a request down, a load with those headers that are Doris' own: their names are not canonical.
func (e *explained) answer(r *http.Request) httpload.Response {
	text, answer := r.Method+" "+r.URL.RequestURI(), map[string]any{"data": e.state}
	switch {
	case r.Method == http.MethodPut && r.URL.Host == atFrontend:
		e.Write(text + " to a frontend, without a body")
		to := http.Header{"Location": {"http://" + atBackend + r.URL.EscapedPath()}}
		return httpload.Response{Status: http.StatusTemporaryRedirect, Header: to}
	case r.Method == http.MethodPut:
		text += " to the backend"
		for _, name := range slices.Sorted(maps.Keys(r.Header)) {
			if name != http.CanonicalHeaderKey(name) {
				text += "\n  " + name + ": " + r.Header[name][0]
				answer[name] = r.Header[name][0] // which has the label
			}
		}
		answer["Status"], answer["NumberLoadedRows"], answer["GroupCommit"] = "Success", e.rows, true
	case r.Method == http.MethodPost:
		e.state = stateUnknown
	case r.URL.Path == walPath:
		answer["data"] = []string{}
	}
	e.Write(text)
	body, _ := json.Marshal(answer)
	return httpload.Response{Status: http.StatusOK, Body: body}
}
