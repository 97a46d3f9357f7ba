package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/sqlload"
)

// copyObjects is Redshift's COPY of every object in a folder. A group has a folder of its own and needs no manifest; if
// an object is missing, the count of rows shows it before the commit. MAXERROR 0 and no ACCEPTINVCHARS or
// TRUNCATECOLUMNS keep rows as they were sent. Every group would analyze compression and statistics again.
func (s statements) copyObjects(a objstore.Access, folder string) string {
	return fmt.Sprintf("COPY %s (%s) FROM %s %s FORMAT AS CSV REGION %s DATEFORMAT 'auto' TIMEFORMAT 'auto' MAXERROR 0 COMPUPDATE OFF STATUPDATE OFF",
		s.Table, s.Columns(s.Schema), sqlload.Literal("s3://"+a.Bucket+"/"+folder), s.authorization(a), sqlload.Literal(a.Region))
}

func (s statements) authorization(a objstore.Access) string {
	switch {
	case s.options.S3Keys && a.Token != "":
		return fmt.Sprintf("ACCESS_KEY_ID %s SECRET_ACCESS_KEY %s SESSION_TOKEN %s",
			sqlload.Literal(a.KeyID), sqlload.Literal(a.Secret.Reveal()), sqlload.Literal(a.Token.Reveal()))
	case s.options.S3Keys:
		return fmt.Sprintf("ACCESS_KEY_ID %s SECRET_ACCESS_KEY %s", sqlload.Literal(a.KeyID), sqlload.Literal(a.Secret.Reveal()))
	case s.options.IAMRole == defaultRole:
		return "IAM_ROLE default"
	}
	return "IAM_ROLE " + sqlload.Literal(s.options.IAMRole)
}

// copyCount reads the rows of the last COPY, whose answer has no count.
const copyCount = "SELECT pg_last_copy_count()"

// copyGroup lets the server copy the objects of a folder in the open transaction, and returns its count of rows.
func (s *session) copyGroup(ctx context.Context, folder string, a objstore.Access) (rows int64, err error) {
	if _, err := s.conn.Exec(ctx, s.copyObjects(a, folder)); err != nil {
		return 0, redacted(err, a)
	}

	counted, err := sqlload.Rows(ctx, s.conn, copyCount)
	if err != nil {
		return 0, err
	}
	return sqlload.ParseNumber(counted[0][0])
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
