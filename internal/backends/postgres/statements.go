package postgres

import (
	"fmt"
	"strings"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// statements writes the SQL about one table, for Explain and for the loader.
type statements struct {
	sqlload.Statements
	method   string
	options  options
	flavour  flavour
	ahead    bool // see takesAhead
	want     loader.Preparation
	unlogged bool
}

// statements returns those about a planned or prepared table.
func (l *opened) statements(s *sqlload.State) statements {
	st := statements{
		Statements: s.Statements, method: l.method, options: l.options, flavour: l.flavour, ahead: l.ahead,
		unlogged: l.options.Unlogged, want: s.Want,
	}
	if s.Relation != nil && s.Want.Create != loader.CreateRecreate {
		st.unlogged = s.Relation.Traits[traitPersistence] == "u"
	}
	return st
}

// claimsTable returns the quoted claim table in a schema. It is unlogged where the target is: after a crash a logged
// claim would call rows applied that are gone.
func claimsTable(schema string, unlogged bool) string {
	if unlogged {
		return sqlload.Qualified(schema, sqlload.UnloggedClaims)
	}
	return sqlload.Qualified(schema, sqlload.ClaimsTable)
}

func create(unlogged bool) string {
	if unlogged {
		return "CREATE UNLOGGED TABLE "
	}
	return "CREATE TABLE "
}

func (s statements) createTable() string {
	if like := s.want.Like; like.Name != "" {
		return create(s.unlogged) + s.Table + " (LIKE " + sqlload.Qualified(like.Schema, like.Name) + " INCLUDING ALL)"
	}
	var columns []string
	for _, c := range s.Schema.Columns {
		columns = append(columns, s.Define(c))
	}
	keys, _ := s.Constraints()
	columns = append(columns, keys...)
	text := create(s.unlogged) + s.Table + " (" + strings.Join(columns, ", ") + ")"
	if s.flavour == redshift {
		// Slices take rows in turn. Groups come in key order, so that a query of a key range skips the other blocks.
		text += " DISTSTYLE EVEN SORTKEY (" + s.KeyColumns(s.Schema) + ")"
	}
	return text
}

func (s statements) markTable() string {
	return fmt.Sprintf("COMMENT ON TABLE %s IS %s", s.Table, sqlload.Literal(s.want.Comment()))
}

// claimAndLoad is claim and load in one message. After the error of a claim that exists the server runs no other
// statement of the message. A claim of a process that may not write inserts nothing: the batch is sent, and rolled
// back.
//
// The claim is prepared, since to plan it costs a batch of one row a quarter of its time. EXECUTE of an INSERT takes
// its snapshot when it has the table's lock, as the INSERT does: one that waited for a fence sees who may write after
// it.
func (s statements) claimAndLoad(r loader.Ref, f batch.Format, l *batch.Layout) string {
	return fmt.Sprintf("%sEXECUTE %s(%d, %d, %d); %s", begin, s.preparedClaim(), r.ID.Number, r.First, r.Rows, s.load(f, l, loader.DedupTx))
}

// load returns the statement that loads a batch, of a user's file with the layout. The body of an INSERT follows it.
func (s statements) load(f batch.Format, l *batch.Layout, d loader.Dedup) string {
	if s.method == methodInsert { // OVERRIDING lets a GENERATED ALWAYS key take the run's numbers, as COPY does
		return fmt.Sprintf("INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE VALUES ", s.Table, s.Columns(s.Schema))
	}
	how := "FORMAT " + map[batch.Format]string{
		batch.PGBinary: "binary", batch.PGText: "text", batch.CSV: `csv, NULL '\N'`,
	}[f]
	switch {
	case s.options.RowsPerTransaction > 0:
		how += fmt.Sprintf(", ROWS_PER_TRANSACTION %d", s.options.RowsPerTransaction)
	case s.flavour == yugabyteDB && d != loader.DedupTx:
		// Outside a transaction YugabyteDB would commit every 20,000 rows.
		how += ", ROWS_PER_TRANSACTION 0"
	}
	columns := s.Columns(s.Schema)
	if l != nil {
		columns, how = s.Names(l.Columns), layout(f, l)
	}
	return fmt.Sprintf("COPY %s (%s) FROM STDIN WITH (%s)", s.Table, columns, how)
}

// layout says how the records of a user's file are written.
func layout(f batch.Format, l *batch.Layout) string {
	how := "FORMAT text"
	if f == batch.CSV {
		how = fmt.Sprintf("FORMAT csv, QUOTE %s, ESCAPE %s", sqlload.Literal(l.Quote), sqlload.Literal(l.Escape))
	}
	return how + fmt.Sprintf(", DELIMITER %s, NULL %s", sqlload.Literal(l.Delimiter), sqlload.Literal(l.Null))
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
