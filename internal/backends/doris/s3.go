package doris

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// staged is the loader of s3-load: sessions store objects, and Commit makes Doris read them.
type staged struct {
	*opened
	*objstore.Staging
}

func openStaged(ctx context.Context, l *opened, d loader.Deps) (loader.Loader, error) {
	store, err := objstore.Open(ctx, *l.target.Via, d)
	if err != nil {
		return nil, err
	}
	return &staged{opened: l, Staging: &objstore.Staging{Store: store, Format: l.Format}}, nil
}

// CheckServer adds what is to be said of the store.
func (l *staged) CheckServer(ctx context.Context, i loader.Intent) ([]loader.Finding, error) {
	all, err := l.opened.CheckServer(ctx, i)
	if err != nil {
		return all, err
	}
	found, err := l.Store.CheckServer(ctx, i, "Doris")
	return append(all, found...), err
}

// Close closes the connections to the server and to the store.
func (l *staged) Close() error { return errors.Join(l.opened.Close(), l.Store.Close()) }

// Session implements loader.Loader.
func (l *staged) Session(ctx context.Context, c loader.Contract) (loader.Session, error) {
	return l.Staging.Session(ctx, c)
}

// Commit loads the objects of a group by one statement, which is one transaction under the group's label.
func (l *staged) Commit(ctx context.Context, g loader.Group) (loader.Ack, error) {
	s, err := l.State()
	if err != nil {
		return loader.Ack{}, err
	}
	run, format := l.Place(g.ID), s.Want.Contract.Format
	names := make([]string, len(g.Members))
	for i, m := range g.Members {
		names[i] = run.Name(m.ID.Number, format)
		// Doris loads what it finds of a list, and calls it success.
		if there, err := run.Holds(ctx, m, format); err != nil || !there {
			return l.withoutObject(ctx, g, names[i], err)
		}
	}
	label := l.name.label(g.Ref, true)
	return l.once(ctx, g.Ref, label, func() (loader.Ack, error) {
		access, err := l.Store.Access(ctx) // anew for every attempt: keys of a role expire
		if err != nil {
			return loader.Ack{}, err
		}
		// Every object is named: a pattern could match what somebody else puts there, or half of a group.
		from := source{uri: "s3://" + access.Bucket + "/" + alternatives(run.Folder(), names), access: access, format: format}
		return l.read(ctx, g, statements{s.Statements}.loadObjects(label, from), access)
	})
}

// withoutObject answers for a group that cannot be loaded: unless it was, and its objects are discarded already.
func (l *staged) withoutObject(ctx context.Context, g loader.Group, name string, cause error) (loader.Ack, error) {
	if cause != nil {
		return loader.Ack{}, &loader.Error{Op: "look for " + name, Applied: loader.No, Err: cause}
	}
	found, err := l.Resolve(ctx, g.Ref)
	if err == nil && found.Applied == loader.Yes {
		return loader.Ack{Rows: g.Rows, AlreadyApplied: true}, nil
	}
	cause = fmt.Errorf("object %s of %s is not there, or not whole", name, g.ID)
	switch {
	case err != nil:
		cause = and(cause, err)
	case found.Reason != "":
		cause = fmt.Errorf("%w; %s", cause, found.Reason)
	}
	return loader.Ack{}, &loader.Error{Op: "commit", Applied: found.Applied, Err: cause}
}

// read makes Doris read the objects of the group once, by a session of its own.
func (l *staged) read(ctx context.Context, g loader.Group, statement string, access objstore.Access) (loader.Ack, error) {
	session, err := l.openInsert(ctx, statements{}, false)
	if err != nil {
		return loader.Ack{}, err
	}
	defer func() { _ = session.Close() }()
	n, err := affected(session.conn.ExecContext(ctx, statement))
	if err != nil {
		return loader.Ack{}, failed("commit", conceal(err, access))
	}
	// Some objects that are not there are no error to Doris. None at all may be one or not, depending on the release
	// (apache/doris#25280).
	if n != g.Rows {
		return loader.Ack{}, &loader.Error{
			Op: "commit", Applied: loader.Unknown, Err: &loader.RowsError{Sent: g.Rows, Acknowledged: n},
			Hint: "can Doris reach the object store, as ?server_endpoint= names it?",
		}
	}
	return loader.Ack{Rows: n}, nil
}

// source is where a statement reads from.
type source struct {
	uri    string
	access objstore.Access
	format batch.Format
}

// alternatives writes names in one folder as folder{a,b,…}. Releases from 4.1 on ask for each by HEAD
// (apache/doris#60414); earlier ones list what begins like the first wildcard's left side, here the run's folder, and
// pick. One name is written as it is.
func alternatives(folder string, names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	short := make([]string, len(names))
	for i, n := range names {
		short[i] = strings.TrimPrefix(n, folder)
	}
	return folder + "{" + strings.Join(short, ",") + "}"
}

// loadObjects is the statement that loads a group. Columns of CSV are c1, c2, … of type STRING, and of parquet what the
// file says: each is cast to what the table has.
func (s statements) loadObjects(label string, from source) string {
	columns := make([]string, len(s.Schema.Columns))
	for i, c := range s.Schema.Columns {
		name := fmt.Sprintf("c%d", i+1)
		if from.format == batch.Parquet {
			name = quote(c.Name)
		}
		columns[i] = fmt.Sprintf("CAST(%s AS %s)", name, castType(c))
	}
	return fmt.Sprintf("INSERT INTO %s%s (%s) SELECT %s FROM S3(%s)",
		s.Table, withLabel(label), s.Columns(s.Schema), strings.Join(columns, ", "), from.properties())
}

// castType is columnType without VARCHAR's length: a cast would cut a value that is too long, and the table refuses it.
func castType(c rows.Column) string {
	if c.Type == rows.Text {
		return "STRING"
	}
	return columnType(c)
}

// properties are those of the table function.
func (f source) properties() string {
	a := f.access
	all := map[string]string{
		"uri": f.uri, "s3.endpoint": a.Endpoint, "s3.region": cmp.Or(a.Region, "us-east-1"),
		"s3.access_key": a.KeyID, "s3.secret_key": a.Secret.Reveal(),
		"use_path_style": fmt.Sprint(a.PathStyle),
	}
	if a.Endpoint == "" {
		all["s3.endpoint"] = "https://s3." + cmp.Or(a.Region, "us-east-1") + ".amazonaws.com"
	}
	if a.Token != "" {
		all["s3.session_token"] = a.Token.Reveal()
	}
	switch f.format {
	case batch.Parquet:
		all["format"] = "parquet"
	default:
		// The bytes themselves and not \x01: whether a property's backslashes are read once, twice or never differs
		// between Doris' two parsers.
		all["format"], all["column_separator"], all["line_delimiter"] = "csv", "\x01", "\x02"
	}
	for name, value := range all {
		all[name] = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value)
	}
	return properties(all)
}

// conceal takes keys out of an error. A syntax error repeats a piece of the statement, which holds them.
func conceal(err error, a objstore.Access) error {
	var server *mysql.MySQLError
	if !errors.As(err, &server) {
		return err
	}
	clean := *server
	clean.Message = a.Redact(clean.Message)
	return &clean
}
