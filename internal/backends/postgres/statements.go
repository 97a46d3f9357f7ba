package postgres

import (
	"fmt"
	"strings"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// A loading session waits lockWait for a lock: long enough for an earlier attempt at the same batch to end, and shorter
// than the engine's smallest deadline of two minutes, so that the server's error arrives. idleInTransaction and the
// keep-alives end the transaction of a client that has vanished; otherwise its claim would stand as long as the kernel
// keeps the connection, two hours and more.
const (
	lockWait          = "90s"
	idleInTransaction = "2min"
	keepAlive         = "SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 6"
)

// statements writes the SQL about one table, for Explain and for the loader.
type statements struct {
	sqlload.Statements
	method     string
	options    options
	flavour    flavour
	ahead      bool             // see takesAhead
	like       loader.TableName // see loader.Preparation
	unlogged   bool
	primaryKey bool
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

// primary returns the target's key. YugabyteDB hashes the first column: rows in key order would all go to one tablet.
func (s statements) primary() string {
	columns := s.KeyColumns(s.Schema)
	if s.flavour == yugabyteDB {
		first := s.Column(s.Schema.Key().Name)
		columns = first + " HASH" + strings.TrimPrefix(columns, first)
	}
	return "PRIMARY KEY (" + columns + ")"
}

func (s statements) createTable() string {
	if s.like.Name != "" {
		return create(s.unlogged) + s.Table + " (LIKE " + sqlload.Qualified(s.like.Schema, s.like.Name) + " INCLUDING ALL)"
	}
	var columns []string
	for _, c := range s.Schema.Columns {
		columns = append(columns, s.Define(c))
	}
	if s.primaryKey || s.flavour == yugabyteDB {
		columns = append(columns, s.primary())
	}
	text := create(s.unlogged) + s.Table + " (" + strings.Join(columns, ", ") + ")"
	if s.flavour == redshift {
		// Slices take rows in turn. Groups come in key order, so that a query of a key range skips the other blocks.
		text += " DISTSTYLE EVEN SORTKEY (" + s.KeyColumns(s.Schema) + ")"
	}
	return text
}

func (s statements) markTable() string {
	return fmt.Sprintf("COMMENT ON TABLE %s IS %s", s.Table, sqlload.Literal(loader.MadeBy))
}

func (s statements) createClaims() string {
	if s.flavour == redshift {
		return s.createRedshiftClaims()
	}
	columns := sqlload.ClaimColumns("text", "bigint", "timestamp with time zone NOT NULL DEFAULT now()")
	if s.flavour == yugabyteDB {
		columns[len(columns)-1] = "PRIMARY KEY ((run, batch) HASH)"
	}
	return create(s.unlogged) + "IF NOT EXISTS " + s.Claims + " (" + strings.Join(columns, ", ") + ")"
}

func (s statements) createRuns() string {
	text := "text"
	if s.flavour == redshift {
		text = "varchar(255)"
	}
	columns := sqlload.RunColumns(text, text, "bigint")
	return "CREATE TABLE IF NOT EXISTS " + s.Runs() + " (" + strings.Join(columns, ", ") + ")"
}

// selectClaimsTable reads whether this user may use the claim table, how durable it is, and whether it has a unique key
// on exactly (run, batch). indoption has an entry for each column of the key, and none for those of INCLUDE.
func (s statements) selectClaimsTable() string {
	if s.flavour == redshift {
		return s.selectRedshiftClaims()
	}
	return "SELECT " + mayClaim + ", CASE c.relpersistence WHEN 'p' THEN 'logged' WHEN 'u' THEN 'unlogged' ELSE 'temporary' END, " +
		"EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND i.indimmediate AND i.indisvalid " +
		"AND i.indpred IS NULL AND i.indnatts = 2 AND array_length(i.indoption, 1) = 2 AND (SELECT count(*) FROM pg_attribute a " +
		"WHERE a.attrelid = c.oid AND a.attnum = ANY (i.indkey) AND a.attname IN ('run', 'batch')) = 2) " +
		"FROM pg_class c WHERE c.oid = to_regclass(" + sqlload.Literal(s.Claims) + ")"
}

// mayClaim is the condition that this user may use the claim table c.
const mayClaim = "has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT') " +
	"AND has_table_privilege(c.oid, 'DELETE')"

// durability is a column of selectClaimsTable.
func durability(unlogged bool) string {
	if unlogged {
		return "unlogged"
	}
	return "logged"
}

// begin begins a transaction that sees a claim which another session has just committed, where higher levels would
// fail.
const begin = "BEGIN ISOLATION LEVEL READ COMMITTED; "

// claim begins a transaction and claims, in one message. A claim that exists is an error.
func claim(s sqlload.Statements, r loader.Ref) string { return begin + s.InsertClaim(r) }

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

// preparedClaim is a name that no other process prepares: behind a pooler that pools transactions it may be missing,
// but is never the claim of another run.
func (s statements) preparedClaim() string { return s.Identifier("terapush " + s.Row.Epoch) }

// prepareClaim prepares a session for claimAndLoad. The session may be a pooler's, and have been another client's.
func (s statements) prepareClaim() string {
	return fmt.Sprintf("DEALLOCATE ALL; PREPARE %s (bigint, bigint, bigint) AS %s", s.preparedClaim(), s.InsertAnyClaim("$1", "$2", "$3"))
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

// sessionSetup returns the first statements of every connection: the settings that the statements here need, and then
// those of --set, which override them. The startup message asks for UTF-8, too; a trigger on login comes after that.
func (f flavour) sessionSetup(t loader.Target) string {
	// Literals need standard_conforming_strings; quote_all_identifiers changes names that the server returns.
	setup := fmt.Sprintf("; SET lock_timeout = '%s'; SET idle_in_transaction_session_timeout = '%s'; %s; "+
		"SET standard_conforming_strings = on; SET quote_all_identifiers = off; "+
		"SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('transaction_timeout', 'idle_session_timeout')", // not all versions have them
		lockWait, idleInTransaction, keepAlive)
	if f == redshift {
		// Other timeouts and keep-alives are not a session's to set there. The group marks the run's statements in the
		// system views, and can select a queue.
		setup = "; SET query_group TO 'terapush'"
	}
	return endless + "; SET client_encoding = 'UTF8'" + setup + sessionSettings(t.Settings)
}

// endless lifts the timeout of the server, the database or the role, as pg_dump and pg_restore do: a COPY and the scan
// of a proof take the time that they take, and the engine has its own deadline for a batch.
const endless = "SET statement_timeout = 0"

// recordSettings decide what the records of users' files mean, in place of the server's, the database's and the role's.
// Those of --set come after them. Dates are ISO's, and one like 02/03/2026, which people read in two ways, is refused.
const recordSettings = "SET DateStyle = 'ISO, YMD'; SET TimeZone = 'UTC'"

// nonTransactional sets up loading sessions, for the option.
const nonTransactional = "SET yb_disable_transactional_writes = on"

// sessionSettings sets the variables of --set, after other statements.
func sessionSettings(settings []loader.Setting) (all string) {
	for _, s := range settings {
		all += fmt.Sprintf("; SET %s = %s", sqlload.Qualified("", s.Name), sqlload.Literal(s.Value))
	}
	return all
}

// sessionName is the application_name of a run's sessions, and of one shard's if there are others: these are at work,
// and Resolve ends all sessions of the name.
func sessionName(run, shard string) string {
	if shard != "" {
		run += " " + shard
	}
	return truncate(adminName + "/" + run)
}

// truncate cuts a name where the server would.
func truncate(name string) string { return name[:min(len(name), 63)] }

func nameSession(run, shard string) string {
	return "SET application_name = " + sqlload.Literal(sessionName(run, shard))
}
