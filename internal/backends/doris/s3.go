package doris

import (
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
type staged struct{ *database }

// Commit loads the objects of a group by one statement, which is one transaction under the group's label.
func (db staged) Commit(ctx context.Context, g loader.Group) (loader.Ack, error) {
	s, err := db.prepared()
	if err != nil {
		return loader.Ack{}, err
	}
	if missing, err := db.missing(ctx, s, g); missing != "" || err != nil {
		return db.withoutObject(ctx, s, g, missing, err)
	}
	label := db.name.label(g.Ref, true)
	return db.once(ctx, s, g.Ref, label, func() (loader.Ack, error) { return db.read(ctx, s, label, g) })
}

// missing names the first object of the group that is not there with all its rows. Doris loads what it finds of a list,
// and calls it success.
func (db staged) missing(ctx context.Context, s statements, g loader.Group) (string, error) {
	run := db.store.Run(g.ID.Run)
	for _, m := range g.Members {
		there, err := run.Holds(ctx, m, s.format)
		if err != nil || !there {
			return run.Name(m.ID.Number, s.format), err
		}
	}
	return "", nil
}

// withoutObject answers for a group that cannot be loaded: unless it was, and its objects are discarded already.
func (db staged) withoutObject(ctx context.Context, s statements, g loader.Group, name string, cause error) (loader.Ack, error) {
	if cause != nil {
		return loader.Ack{}, &loader.Error{Op: "look for " + name, Applied: loader.No, Err: cause}
	}
	found, err := db.outcome(ctx, s, g.Ref)
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

// read makes Doris read the objects of the group once.
func (db staged) read(ctx context.Context, s statements, label string, g loader.Group) (loader.Ack, error) {
	access, err := db.store.Access(ctx) // anew for every attempt: keys of a role expire
	if err != nil {
		return loader.Ack{}, err
	}
	conn, err := db.loading(ctx)
	if err != nil {
		return loader.Ack{}, failed("connect", err)
	}
	defer func() { _ = conn.Close() }()
	n, err := affected(conn.conn.ExecContext(ctx, s.loadObjects(label, db.source(access, s.format, g))))
	if err != nil {
		return loader.Ack{}, failed("commit", conceal(err, access))
	}
	// Some objects that are not there are no error to Doris. None at all may be one or not, depending on the release
	// (apache/doris#25280).
	if n != g.Rows {
		return loader.Ack{}, &loader.Error{Op: "commit", Applied: loader.Unknown,
			Err:  &loader.RowsError{Sent: g.Rows, Acknowledged: n},
			Hint: "can Doris reach the object store, as ?server_endpoint= names it?"}
	}
	return loader.Ack{Rows: n}, nil
}

// loading is a connection for one statement, on the next frontend, with the setup of loading sessions.
func (db staged) loading(ctx context.Context) (*insertSession, error) {
	first := int((db.turn.Add(1) - 1) % uint64(len(db.frontends)))
	session, err := db.insertSession(ctx, statements{}, loader.Contract{}, first)
	if err != nil {
		return nil, err
	}
	return session.(*insertSession), nil
}

// Discard removes the objects of a group that is in the table.
func (db staged) Discard(ctx context.Context, g loader.Group) error {
	s, err := db.prepared()
	if err != nil {
		return err
	}
	return db.store.Run(g.ID.Run).Delete(ctx, g.Members, s.format)
}

// Objects lists what lies in the store of a run.
func (db staged) Objects(ctx context.Context, run string, f func(name string, number, bytes int64) error) error {
	return db.store.Run(run).Objects(ctx, f)
}

// source is where a statement reads from.
type source struct {
	uri    string
	access objstore.Access
	format batch.Format
}

// source names every object of the group: a pattern could match what somebody else puts there, or half of a group.
func (db staged) source(access objstore.Access, f batch.Format, g loader.Group) source {
	run := db.store.Run(g.ID.Run)
	names := make([]string, len(g.Members))
	for i, m := range g.Members {
		names[i] = run.Name(m.ID.Number, f)
	}
	return source{uri: "s3://" + access.Bucket + "/" + alternatives(run.Folder(), names), access: access, format: f}
}

// alternatives writes names in one folder as folder{a,b,…}. Releases from 4.1 on ask for each by HEAD (apache/doris#60414); earlier
// ones list what begins like the first wildcard's left side, here the run's folder, and pick. One name is written as it is.
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

// checkPrefix refuses what Doris would read as a pattern, and what would end the literal.
func checkPrefix(path string) error {
	if i := strings.IndexAny(path, "*?[]{}\\\"'`\n"); i >= 0 {
		return fmt.Errorf("--via: Doris reads %q in a path as part of a pattern or of a literal: choose a prefix without", path[i])
	}
	return nil
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
		"uri": f.uri, "s3.endpoint": a.Endpoint, "s3.region": firstOf(a.Region, "us-east-1"),
		"s3.access_key": a.KeyID, "s3.secret_key": a.Secret.Reveal(),
		"use_path_style": fmt.Sprint(a.PathStyle),
	}
	if a.Endpoint == "" {
		all["s3.endpoint"] = "https://s3." + firstOf(a.Region, "us-east-1") + ".amazonaws.com"
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
