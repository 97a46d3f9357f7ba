package postgres

import (
	"fmt"
	"strings"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// A loading session gives up a lock after lockWait: long enough for an earlier attempt at the same batch to end, and
// shorter than the engine's smallest deadline of two minutes, so that the server's words arrive. idleInTransaction and
// the keep-alives end the transaction of a client that has vanished; without them its claim would stand for as long as
// the kernel keeps the connection, two hours and more.
const (
	lockWait          = "90s"
	idleInTransaction = "2min"
	keepAlive         = "SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 6"
)

// statements writes the SQL about one table. It is pure; Explain and the loader share it.
type statements struct {
	sqlload.Statements
	method     string
	options    options
	flavour    flavour
	unlogged   bool
	primaryKey bool
}

// plannedStatements are those before the server was asked. table is schema.name, or a name alone.
func plannedStatements(table string, s rows.Schema, f flavour, unlogged bool) sqlload.Statements {
	d := f.dialect()
	return sqlload.Statements{Dialect: d, Schema: s, Table: d.Identifier(table), Claims: claimsTable(schemaOf(table), unlogged)}
}

// schemaOf is the schema that a table's name begins with, or "".
func schemaOf(table string) string {
	if schema, _, qualified := strings.Cut(table, "."); qualified {
		return schema
	}
	return ""
}

// claimsTable is the claim table in a schema, quoted. It shares the target's durability: a claim that outlived its
// rows would call them applied.
func claimsTable(schema string, unlogged bool) string {
	name := sqlload.ClaimsTable
	if unlogged {
		name = sqlload.UnloggedClaims
	}
	return qualified(schema, name)
}

// qualified quotes schema and name, which may themselves contain dots; schema may be empty.
func qualified(schema, name string) string {
	quote := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	if schema == "" {
		return quote(name)
	}
	return quote(schema) + "." + quote(name)
}

func create(unlogged bool) string {
	if unlogged {
		return "CREATE UNLOGGED TABLE "
	}
	return "CREATE TABLE "
}

// primary is the target's key. In YugabyteDB its first column is hashed over the tablets, since rows that come in key
// order would all go to one of them otherwise.
func (s statements) primary() string {
	columns := s.KeyColumns(s.Schema)
	if s.flavour == yugabyteDB {
		first := s.Identifier(s.Schema.Key().Name)
		columns = first + " HASH" + strings.TrimPrefix(columns, first)
	}
	return "PRIMARY KEY (" + columns + ")"
}

// createTable makes the target.
func (s statements) createTable() string {
	var columns []string
	for _, c := range s.Schema.Columns {
		columns = append(columns, fmt.Sprintf("%s %s NOT NULL", s.Identifier(c.Name), s.Type(c)))
	}
	if s.primaryKey || s.flavour == yugabyteDB {
		columns = append(columns, s.primary())
	}
	text := create(s.unlogged) + s.Table + " (" + strings.Join(columns, ", ") + ")"
	if s.flavour == redshift {
		// Rows go around the slices in turn; groups come in key order, so that a look at a key range passes over the rest.
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
	key := "run, batch"
	if s.flavour == yugabyteDB {
		key = "(run, batch) HASH"
	}
	return create(s.unlogged) + "IF NOT EXISTS " + s.Claims +
		" (run text NOT NULL, batch bigint NOT NULL, first_key bigint NOT NULL, row_count bigint NOT NULL, PRIMARY KEY (" + key + "))"
}

// selectClaimsTable reads about the claim table: whether this user may use it, how durable it is, and whether a key on
// exactly (run, batch) keeps it unique. indoption has an entry for each column of the key, and none for INCLUDE's.
func (s statements) selectClaimsTable() string {
	if s.flavour == redshift {
		return s.selectRedshiftClaims()
	}
	return "SELECT has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'DELETE'), " +
		"CASE c.relpersistence WHEN 'p' THEN 'logged' WHEN 'u' THEN 'unlogged' ELSE 'temporary' END, " +
		"EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND i.indimmediate AND i.indisvalid " +
		"AND i.indpred IS NULL AND i.indnatts = 2 AND array_length(i.indoption, 1) = 2 AND (SELECT count(*) FROM pg_attribute a " +
		"WHERE a.attrelid = c.oid AND a.attnum = ANY (i.indkey) AND a.attname IN ('run', 'batch')) = 2) " +
		"FROM pg_class c WHERE c.oid = to_regclass(" + sqlload.Literal(s.Claims) + ")"
}

// durability is how selectClaimsTable calls it.
func durability(unlogged bool) string {
	if unlogged {
		return "unlogged"
	}
	return "logged"
}

// claim begins the transaction and claims in one message. READ COMMITTED, so that a claim which another session has
// just committed is seen instead of failing the statement, whatever the server's default is.
func claim(s sqlload.Statements, r loader.Ref) string {
	return "BEGIN ISOLATION LEVEL READ COMMITTED; " + s.InsertClaim(r) + " ON CONFLICT DO NOTHING"
}

// send is the statement that takes a batch's rows. Behind an INSERT stands the body.
func (s statements) send(f batch.Format, d loader.Dedup) string {
	if s.method == methodInsert { // a key that is GENERATED ALWAYS AS IDENTITY takes the run's numbers, as COPY does unasked
		return fmt.Sprintf("INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE VALUES ", s.Table, s.Columns(s.Schema))
	}
	how := "FORMAT " + map[batch.Format]string{batch.PGBinary: "binary", batch.PGText: "text", batch.CSV: "csv"}[f]
	switch {
	case s.options.rowsPerTransaction > 0:
		how += fmt.Sprintf(", ROWS_PER_TRANSACTION %d", s.options.rowsPerTransaction)
	case s.flavour == yugabyteDB && d != loader.DedupTx:
		// Outside a transaction YugabyteDB would commit every 20,000 rows.
		how += ", ROWS_PER_TRANSACTION 0"
	}
	return fmt.Sprintf("COPY %s (%s) FROM STDIN WITH (%s)", s.Table, s.Columns(s.Schema), how)
}

// sessionSetup is what every connection says first: what the statements here rest on, and then --set, which wins.
func (f flavour) sessionSetup(t loader.Target) string {
	if f == redshift {
		return redshiftSetup(t)
	}
	// Literals rest on standard_conforming_strings, and names that the server shows on quote_all_identifiers.
	setup := fmt.Sprintf("SET lock_timeout = '%s'; SET idle_in_transaction_session_timeout = '%s'; %s; "+
		"SET standard_conforming_strings = on; SET quote_all_identifiers = off", lockWait, idleInTransaction, keepAlive)
	if set := sessionSettings(t.Settings); set != "" {
		setup += "; " + set
	}
	return setup
}

// nonTransactional is said by loading sessions alone, for the method's option.
const nonTransactional = "SET yb_disable_transactional_writes = on"

// sessionSettings sets the variables of --set.
func sessionSettings(settings []loader.Setting) string {
	var all []string
	for _, s := range settings {
		all = append(all, fmt.Sprintf("SET %s = %s", qualified("", s.Name), sqlload.Literal(s.Value)))
	}
	return strings.Join(all, "; ")
}

// sessionName is the application_name of a run's sessions. The server cuts it at 63 bytes, so it is cut here.
func sessionName(run string) string {
	name := adminName + "/" + run
	return name[:min(len(name), 63)]
}

func nameSession(run string) string {
	return "SET application_name = " + sqlload.Literal(sessionName(run))
}
