package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// hasImport checks for the extension of method s3-import.
func checkImport(ctx context.Context, c *pgconn.PgConn) error {
	found, err := rowsOf(ctx, c, "SELECT 1 FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace "+
		"WHERE n.nspname = 'aws_s3' AND p.proname = 'table_import_from_s3' LIMIT 1")
	if err == nil && len(found) == 0 {
		return &loader.Error{
			Op: "connect", Applied: loader.No, Err: errors.New("the database has no extension aws_s3, which only Aurora and RDS for PostgreSQL offer"),
			Hint: "CREATE EXTENSION aws_s3 CASCADE, and attach a role with the feature s3Import to the instance or cluster",
		}
	}
	return failed("look for the extension aws_s3", err)
}

// copyObjects is Redshift's COPY of every object in a folder. A group has a folder of its own and needs no manifest; if
// an object is missing, the count of rows shows it before the commit. MAXERROR 0 and no ACCEPTINVCHARS or
// TRUNCATECOLUMNS keep rows as they were sent. Every group would analyze compression and statistics again.
func (s statements) copyObjects(a objstore.Access, folder string) string {
	return fmt.Sprintf("COPY %s (%s) FROM %s %s FORMAT AS CSV REGION %s DATEFORMAT 'auto' TIMEFORMAT 'auto' MAXERROR 0 COMPUPDATE OFF STATUPDATE OFF",
		s.Table, s.Columns(s.Schema), sqlload.Literal("s3://"+a.Bucket+"/"+folder), s.authorization(a), sqlload.Literal(a.Region))
}

func (s statements) authorization(a objstore.Access) string {
	switch {
	case s.options.s3Keys && a.Token != "":
		return fmt.Sprintf("ACCESS_KEY_ID %s SECRET_ACCESS_KEY %s SESSION_TOKEN %s",
			sqlload.Literal(a.KeyID), sqlload.Literal(a.Secret.Reveal()), sqlload.Literal(a.Token.Reveal()))
	case s.options.s3Keys:
		return fmt.Sprintf("ACCESS_KEY_ID %s SECRET_ACCESS_KEY %s", sqlload.Literal(a.KeyID), sqlload.Literal(a.Secret.Reveal()))
	case s.options.iamRole == defaultRole:
		return "IAM_ROLE default"
	}
	return "IAM_ROLE " + sqlload.Literal(s.options.iamRole)
}

// copyCount reads the rows of the last COPY, whose answer has no count.
const copyCount = "SELECT pg_last_copy_count()"

// importObject calls aws_s3. Its values are parameters, so that no log, list of sessions or error shows the keys.
func (s statements) importObject() string {
	call := "SELECT aws_s3.table_import_from_s3($1, $2, $3, aws_commons.create_s3_uri($4, $5, $6)"
	if s.options.s3Keys {
		call += ", aws_commons.create_aws_credentials($7, $8, $9)"
	}
	return call + ")"
}

// importValues are importObject's parameters.
func (s statements) importValues(a objstore.Access, name string, f batch.Format) []string {
	how := map[batch.Format]string{batch.CSV: "(FORMAT csv)", batch.PGText: "(FORMAT text)"}[f]
	values := []string{s.Table, s.Columns(s.Schema), how, a.Bucket, name, a.Region}
	if s.options.s3Keys {
		values = append(values, a.KeyID, a.Secret.Reveal(), a.Token.Reveal())
	}
	return values
}

// fetch lets the server read a group's objects in the open transaction, and returns its count of rows.
func (s *session) fetch(ctx context.Context, objects *objstore.Run, members []loader.Ref, a objstore.Access) (rows int64, err error) {
	if s.flavour == redshift {
		if _, err := exec(ctx, s.conn, s.copyObjects(a, objects.Folder())); err != nil {
			return 0, redacted(err, a)
		}
		counted, err := rowsOf(ctx, s.conn, copyCount)
		if err != nil {
			return 0, err
		}
		return sqlload.ParseNumber(counted[0][0])
	}
	for _, m := range members {
		n, err := s.importOne(ctx, a, objects.Name(m.ID.Number, s.contract.Format))
		if err != nil {
			return 0, err
		}
		rows += n
	}
	return rows, nil
}

const textType = 25 // pg_type.oid

func (s *session) importOne(ctx context.Context, a objstore.Access, name string) (int64, error) {
	var values [][]byte
	var types []uint32
	for _, v := range s.importValues(a, name, s.contract.Format) {
		values, types = append(values, []byte(v)), append(types, textType)
	}
	answer := s.conn.ExecParams(ctx, s.importObject(), values, types, nil, nil).Read()
	if answer.Err != nil {
		return 0, redacted(cause(s.conn, answer.Err), a)
	}
	text := string(bytes.Join(slices.Concat(answer.Rows...), nil))
	// 'N rows imported into relation "t" from file k of M bytes'
	count, _, found := strings.Cut(text, " rows imported into relation ")
	if !found {
		return 0, fmt.Errorf("import of %s: the server answered %q", name, text)
	}
	return sqlload.ParseNumber(count)
}

// redacted removes pieces of the keys from a server's error: it quotes statements that it cannot parse.
func redacted(err error, a objstore.Access) error {
	server := (*pgconn.PgError)(nil)
	if !errors.As(err, &server) {
		return err
	}
	clean := *server
	for _, text := range [...]*string{&clean.Message, &clean.Detail, &clean.Hint, &clean.Where, &clean.InternalQuery} {
		*text = a.Redact(*text)
	}
	return serverError{&clean}
}
