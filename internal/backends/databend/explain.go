package databend

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// Explain lets a run load a batch or a group over HTTP connections that write down what is sent. RUN stands for the
// run's id, ATTEMPT for 1, 2 ….
func (d Driver) Explain(t loader.Target, p loader.Preparation) []loader.Statement {
	asked, _ := planOf(t) // Check has reported the error
	l := d.unconnected(asked, loader.Deps{Log: slog.New(slog.DiscardHandler)})
	r := sqlload.NewRecorder(l.Table)
	r.Shown = []string{listsProcesses, listsLoaded}
	e := explained{Recorder: r, owner: l, contract: p.Contract, running: new([][]string)}
	r.Answer = e.rows

	const host = "http://node"
	client := httpload.Recorded(e.answer)
	login, _ := newLogin(t)
	l.hosts.List = []*endpoint{{base: host, http: client, login: login}}
	l.clients.open = map[string]*httpload.Client{host: client}
	if t.Via != nil {
		l.store = objstore.Recorded(*t.Via, r.Write)
	}
	r.Name("RUN/1-", "RUN/ATTEMPT-")
	r.Name("X-DATABEND-QUERY-ID: QUERY-ID", "X-DATABEND-QUERY-ID: of RUN, number and ATTEMPT")

	r.Prepare(p, l.Prepare)
	r.Load(l, p)
	if !p.Contract.Staged() {
		e.lostAnswer()
		r.Count(p)
		return r.Statements()
	}

	r.Name(l.files.path(1), "…")
	r.Name("000000000000|000000000001", "…") // in a pattern
	group := r.Commit(l, p.Contract)
	e.lostAnswer()
	if own, is := l.files.(*serverStage); is {
		r.Step("per batch that is sent again", func(ctx context.Context) error { return own.list(ctx, own.path(0), nil) })
	}
	r.Count(p)
	r.Step("per group, once it is in the table", func(ctx context.Context) error { return l.Discard(ctx, group) })
	r.Step("afterwards", func(ctx context.Context) error { return l.Objects(ctx, group.ID.Run, nil) })
	r.Step("afterwards", func(context.Context) error { return l.Close() })
	return r.Statements()
}

// explained is a server that writes down what it is sent.
type explained struct {
	*sqlload.Recorder
	owner    *opened
	contract loader.Contract
	running  *[][]string // sessions of earlier attempts
}

var presigned = &url.URL{Scheme: "http", Host: "node", Path: "/presigned"}

// lostAnswer is the steps of a resolve. A query that runs is ended before, since Resolve would wait for its end.
func (e explained) lostAnswer() {
	if e.contract.Dedup != loader.DedupKey {
		return
	}
	const again = sqlload.LostAnswer + " and on a resume"
	e.When(again, "GET ", again+", on every host for every ATTEMPT so far")
	e.When(again, listsProcesses, again+", on every host until there is none")
	e.When(again, "KILL ", again+", on every host until there is none")

	k, ref := batchKind, sqlload.First(e.contract)
	if e.contract.Staged() {
		k = groupKind
	}
	*e.running = [][]string{{"SESSION"}}
	e.Step(again, func(ctx context.Context) error { return e.owner.endQueries(ctx, queryIDs(k, ref.ID, 2), 1) })
	*e.running = nil
	e.Resolve(again, e.owner, e.contract)

	if e.owner.plan.method.Name != methodStreamingLoad {
		return
	}
	const removal = ":removal-ATTEMPT\nX-DATABEND-QUERY-ID: of RUN, number, ATTEMPT and try"
	e.Name(":removal-1\nX-DATABEND-QUERY-ID: QUERY-ID", removal)
	e.Step("where a broken connection left a part of the rows in a table that terapush made", func(ctx context.Context) error {
		s, err := e.owner.State()
		if err == nil {
			_, err = e.owner.removePart(ctx, s, ref, 1)
		}
		return err
	})
}

// answer writes a request down, and answers as a node does.
func (e explained) answer(r *http.Request) httpload.Response {
	text, answer := r.Method+" "+r.URL.Path, map[string]any{}
	switch r.URL.Path {
	case "/v1/query":
		answer = e.query(r)
	case "/v1/upload_to_stage":
		form, _ := r.MultipartReader()
		file, _ := form.NextPart()
		e.Write(text + " to @" + r.Header.Get("X-DATABEND-STAGE-NAME") + "/" + r.Header.Get("X-DATABEND-RELATIVE-PATH") + "/" + file.FileName())
		answer["state"], answer["files"] = "SUCCESS", []string{file.FileName()}
	case presigned.Path: // not shown: such a URL has a signature
		e.Write(r.Method + " the presigned URL")
	case "/v1/streaming_load":
		answer["stats"] = map[string]int64{"rows": e.contract.BatchRows}
		fallthrough
	default:
		e.Write(withTags(text, r))
	}
	body, _ := json.Marshal(answer)
	return httpload.Response{Status: http.StatusOK, Body: body}
}

// query is the answer to a statement.
func (e explained) query(r *http.Request) map[string]any {
	var q queryRequest
	_ = json.NewDecoder(r.Body).Decode(&q)
	text := q.SQL
	if q.Attachment != nil {
		text += "\nfrom " + q.Attachment.Location
	}
	text = withTags(text, r)

	word, _, _ := strings.Cut(text, " ")
	if slices.Contains([]string{"SELECT", "LIST", "PRESIGN", "COPY"}, word) {
		found, _ := sqlload.Rows(r.Context(), e, text)
		return map[string]any{"data": found}
	}
	written, _ := e.Exec(r.Context(), text)
	return map[string]any{"stats": map[string]any{"write_progress": map[string]int64{"rows": written}}}
}

// queryIDs32 finds a query id, or a list of those of several attempts.
var queryIDs32 = regexp.MustCompile(`'[0-9a-f]{32}'(, '[0-9a-f]{32}')+|[0-9a-f]{32}`)

// withTags is the text of a request with the headers that say what it does.
func withTags(text string, r *http.Request) string {
	text = httpload.WithHeaders(text, r, "X-DATABEND-SQL", "X-DATABEND-DEDUPLICATE-LABEL", "X-DATABEND-QUERY-ID")
	return queryIDs32.ReplaceAllStringFunc(text, func(ids string) string {
		if strings.Contains(ids, ",") {
			return "'QUERY-ID', '…'"
		}
		return "QUERY-ID"
	})
}

// rows is Recorder.Answer.
func (e explained) rows(query string) (found [][]string) {
	switch word, _, _ := strings.Cut(query, " "); {
	case strings.HasPrefix(query, listsProcesses):
		return *e.running
	case word == "PRESIGN":
		return [][]string{{http.MethodPut, "{}", presigned.String()}}
	case word == "COPY":
		for n := range max(e.contract.GroupBatches, 1) {
			file := ""
			if e.owner.files != nil {
				file = e.owner.files.path(n)
			}
			found = append(found, []string{file, strconv.FormatInt(e.contract.BatchRows, 10), "0", ""})
		}
	}
	return found
}
