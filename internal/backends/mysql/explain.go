package mysql

import (
	"cmp"
	"context"
	"database/sql/driver"
	"log/slog"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// Explain lets a run load a batch over connections that write down what is sent. The scheme stands for the flavour,
// mysql:// for MySQL.
func (Driver) Explain(t loader.Target, p loader.Preparation) []loader.Statement {
	t.Method = p.Contract.Method
	l := unconnected(t, slog.New(slog.DiscardHandler))
	if _, err := targetTable(t); err != nil {
		l.name = tableName{schema: t.Database, table: t.Table} // Open refuses it; --dry-run shows it
	}
	l.server = server{flavour: ofScheme(t.Scheme)}
	l.home.config = mysql.NewConfig()
	l.hosts.List = []endpoint{l.home}

	r := sqlload.NewRecorder(l.Table)
	r.Missing = &mysql.MySQLError{Number: noSuchTable}
	l.openConn = func(ctx context.Context, _ *mysql.Config) (driver.Conn, error) { return r.Connector().Connect(ctx) }
	var s *session
	l.Open = func(ctx context.Context, c loader.Contract) (_ sqlload.Session, err error) {
		if s, err = l.open(ctx, c); err == nil {
			r.Name(s.reader, "NAME")
		}
		return s, err
	}
	r.Answer = func(query string) [][]string {
		switch {
		case query == selectConnection:
			return [][]string{{"0"}}
		case strings.Contains(query, countClaims): // of claimAndLoad: the server asks for the rows
			s.handOut()
			return [][]string{{"1", strconv.FormatInt(p.Contract.BatchRows, 10)}}
		}
		return nil
	}

	r.Prepare(p, l.Prepare)
	if p.Contract.Method != methodPipeline {
		r.Load(l, p)
		r.Count(p)
		return r.Statements()
	}
	if st, err := l.State(); err == nil {
		first := loader.Ref{ID: batch.ID{Run: st.Want.Run}, Rows: p.Contract.BatchRows * p.Contract.GroupBatches}
		l.statements(st).explainPipeline(r.Add, l.name, t, first)
	}
	r.Count(p)
	r.Add("afterwards", dropPipeline(pipelineName("RUN")))
	return r.Statements()
}

// explainPipeline lists what starts the pipeline, and what is asked about the first group. Region and keys are known
// only once the store is opened.
func (s statements) explainPipeline(add func(when string, texts ...string), name tableName, t loader.Target, group loader.Ref) {
	p := pipe{
		statements: s, name: pipelineName("RUN"), into: name.table, folder: "RUN/",
		access: objstore.Access{Region: "…", KeyID: "…", Secret: "…"},
	}
	_, _ = loader.ReadOptions(New(), t, &p.options) // Check returns the error
	if t.Via != nil {
		p.access.Bucket = strings.Join(t.Via.Hosts, ",")
		p.access.Endpoint = cmp.Or(t.Via.Params.Get("server_endpoint"), t.Via.Params.Get("endpoint"))
		p.access.Region = cmp.Or(t.Via.Params.Get("region"), p.access.Region)
		p.folder = strings.TrimPrefix(strings.Trim(t.Via.Database, "/")+"/", "/") + p.folder
	}
	add("once", p.create(), p.start())
	add("per group", "SELECT file_name, file_state, file_size FROM information_schema.pipelines_files …", p.countOf(group))
}
