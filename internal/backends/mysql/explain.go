package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"log/slog"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// Explain lets a run load a batch or a group over connections that write down what is sent. The scheme stands for the
// flavour, mysql:// for MySQL.
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
	l.control = sql.OpenDB(r.Connector())
	all := &staged{inner: inner{l}, Staging: objstore.RecordStaging(l, t, r.Write)}
	r.Answer = func(query string) [][]string { return all.explained(query, p.Contract) }
	r.When("per session", "", "once, with the first session")
	r.Load(all, p)
	r.Commit(all, p.Contract)
	r.Count(p)
	r.Step("afterwards", func(context.Context) error { return all.Close() })
	return r.Statements()
}

// explained answers as a server whose pipeline has loaded the first group.
func (p *staged) explained(query string, c loader.Contract) (found [][]string) {
	group := sqlload.First(c)
	switch pipe := p.started; {
	case pipe == nil: // not even there
	case strings.HasPrefix(query, "SELECT state "):
		found = [][]string{{running}}
	case strings.HasPrefix(query, "SELECT file_name, "):
		names, _ := p.members(group) // Prepare has made the State
		for _, name := range names {
			found = append(found, []string{name, fileLoaded, ""})
		}
	case query == pipe.countOf(group):
		found = [][]string{{strconv.FormatInt(group.Rows, 10)}}
	}
	return found
}
