package doris

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
	"github.com/terapush/terapush/pkg/rows"
)

// staged is the loader of s3-load: sessions store objects, and Commit makes Doris read them.
type staged struct {
	inner
	*objstore.Staging
}

// inner is opened, deeper than Staging.
type inner struct{ *opened }

func openStaged(ctx context.Context, l *opened, d loader.Deps) (loader.Loader, error) {
	staging, err := objstore.OpenStaging(ctx, l, l.target, d)
	if err != nil {
		return nil, err
	}
	return &staged{inner{l}, staging}, nil
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
		// Doris loads those objects of a list that it finds, and calls it success.
		if there, err := run.Holds(ctx, m, format); err != nil || !there {
			return l.withoutObject(ctx, g, names[i], err)
		}
	}
	label := l.name.label(g.Ref, true)
	return l.once(ctx, g.Ref, label, func() (loader.Ack, error) {
		access, err := l.Store.Access(ctx) // for every attempt: keys of a role expire
		if err != nil {
			return loader.Ack{}, err
		}
		// Every object is named: a pattern could match other objects, or half of a group.
		from := source{uri: "s3://" + access.Bucket + "/" + alternatives(run.Folder(), names), access: access, format: format}
		return l.insertSelect(ctx, g, statements{s.Statements}.loadObjects(label, from), access)
	})
}

// withoutObject returns the outcome of a group that lacks an object: it may be applied, and its objects deleted
// already.
func (l *staged) withoutObject(ctx context.Context, g loader.Group, name string, cause error) (loader.Ack, error) {
	if cause != nil {
		return loader.Ack{}, &loader.Error{Op: "look for " + name, Applied: loader.No, Err: cause}
	}
	found, err := l.Resolve(ctx, g.Ref)
	if err == nil && found.Applied == loader.Yes {
		return loader.Ack{Rows: g.Rows, AlreadyApplied: true}, nil
	}
	cause = fmt.Errorf("object %s of %s is missing or incomplete", name, g.ID)
	if found.Reason != "" {
		err = errors.New(found.Reason)
	}
	if err != nil {
		cause = and(cause, err)
	}
	return loader.Ack{}, &loader.Error{Op: "commit", Applied: found.Applied, Err: cause}
}

// insertSelect makes Doris read the objects of the group, over a connection of its own.
func (l *staged) insertSelect(ctx context.Context, g loader.Group, statement string, a objstore.Access) (loader.Ack, error) {
	session, err := l.openInsert(ctx, statements{}, false)
	if err != nil {
		return loader.Ack{}, err
	}
	defer func() { _ = session.Close() }()
	n, err := session.conn.Exec(ctx, statement)
	if err != nil {
		return loader.Ack{}, failed("commit", mysqlconn.Redacted(err, a.Redact))
	}
	// Missing objects are not an error to Doris. If all are missing, that depends on the release (apache/doris#25280).
	if n != g.Rows {
		return loader.Ack{}, &loader.Error{
			Op: "commit", Applied: loader.Unknown, Err: &loader.RowsError{Sent: g.Rows, Acknowledged: n},
			Hint: "can Doris reach the object store, as ?server_endpoint= names it?",
		}
	}
	return loader.Ack{Rows: n}, nil
}

// source is what a statement reads.
type source struct {
	uri    string
	access objstore.Access
	format batch.Format
}

// alternatives writes names in one folder as folder{a,b,…}, and a single name as it is. Releases from 4.1 on ask for
// each by HEAD (apache/doris#60414); earlier ones list the run's folder, which is what precedes the first wildcard.
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

// loadObjects returns the statement that loads a group. Columns of CSV are c1, c2, … of type STRING, those of Parquet
// have the file's types: each is cast to the table's.
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

// castType is a column's type without VARCHAR's length: a cast would cut a value that is too long, where the table
// refuses it.
func castType(c rows.Column) string {
	if c.Type == rows.Text {
		return "STRING"
	}
	return dialect().SQL(c)
}

// properties returns those of the table function.
func (f source) properties() string {
	a, region := f.access, cmp.Or(f.access.Region, "us-east-1")
	all := map[string]string{
		"uri": f.uri, "s3.endpoint": cmp.Or(a.Endpoint, "https://s3."+region+".amazonaws.com"), "s3.region": region,
		"s3.access_key": a.KeyID, "s3.secret_key": a.Secret.Reveal(), "use_path_style": fmt.Sprint(a.PathStyle),
	}
	if a.Token != "" {
		all["s3.session_token"] = a.Token.Reveal()
	}
	all["format"] = "parquet"
	if f.format != batch.Parquet {
		// The bytes themselves, not \x01: Doris' two parsers differ in how often they read a property's backslashes.
		all["format"], all["column_separator"], all["line_delimiter"] = "csv", "\x01", "\x02"
	}
	for name, value := range all {
		all[name] = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value)
	}
	return properties(all)
}
