package postgres

import (
	"fmt"

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
// In -1 1:00 the hour is negative under sql_standard alone.
const recordSettings = "SET DateStyle = 'ISO, YMD'; SET TimeZone = 'UTC'; " +
	"SET IntervalStyle = postgres; SET array_nulls = on"

// nonTransactional sets up loading sessions, for the option.
const nonTransactional = "SET yb_disable_transactional_writes = on"

// checkSettings refuses settings that change what is sent.
var checkSettings = sqlload.CheckSettings

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
