package postgres

import (
	"context"
	"log/slog"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// Explain lets a run load a batch or a group over connections that write down what is sent. It knows the flavour from
// scheme and method only.
func (Driver) Explain(t loader.Target, p loader.Preparation) []loader.Statement {
	_, o, _ := planOf(t) // Check returns the error
	l := unconnected(t, loader.Deps{Log: slog.New(slog.DiscardHandler)}, p.Contract.Method, o)
	switch {
	case t.Scheme == schemeYugabyte:
		l.flavour = yugabyteDB
	case p.Contract.Method == methodS3Copy:
		l.flavour = redshift
	}
	l.setup, l.ahead = l.flavour.sessionSetup(t), takesAhead[l.flavour]

	r := sqlload.NewRecorder(l.Table)
	r.Traits = []string{traitPersistence: "p", traitMayInsert: "t"}
	if o.Unlogged {
		r.Traits[traitPersistence] = "u"
	}
	r.Missing = &pgconn.PgError{Code: "42P01"}
	r.Answer = func(query string) [][]string {
		switch query {
		case selectOwnBackend:
			return [][]string{{"PID", "STARTED"}}
		case copyCount:
			return [][]string{{strconv.FormatInt(p.Contract.BatchRows*p.Contract.GroupBatches, 10)}}
		}
		return nil
	}
	l.join = func(ctx context.Context, s *session) error {
		s.conn, s.load = recorded{r}, recorded{r}.load
		_, err := s.conn.Exec(ctx, l.setup)
		return err
	}

	r.Prepare(p, l.Prepare)
	if p.Contract.Staged() {
		all := newStaged(l, objstore.RecordStaging(l, t, r.Write))
		r.Load(all, p)
		r.Commit(all, p.Contract)
	} else {
		r.Load(l, p)
	}
	r.Count(p)
	return r.Statements()
}

// recorded is a session's connection that writes down what is sent.
type recorded struct{ *sqlload.Recorder }

func (c recorded) commit(ctx context.Context) (tag string, err error) {
	_, err = c.Exec(ctx, "COMMIT")
	return "COMMIT", err
}

// IsClosed implements sessionConn.
func (recorded) IsClosed() bool { return false }

// load answers as the server does to claimAndLoad, or to the load alone.
func (c recorded) load(ctx context.Context, statements string, b *batch.Batch) (a answer) {
	if b.Format == batch.PGValues {
		statements += string(b.Encoded)
	}
	if strings.HasPrefix(statements, begin) {
		a.rows = []int64{1}
	}
	_, a.err = c.Exec(ctx, statements)
	a.rows = append(a.rows, b.Rows)
	return a
}
