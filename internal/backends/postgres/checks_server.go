package postgres

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// sessionChecks judge server, session and settings by what factChecks have read.
func (d *doctor) sessionChecks() []sqlload.Check {
	checks := []sqlload.Check{{Name: "server", Judge: d.checkServer}}
	if d.flavour != redshift { // it shows no sessions of other users
		checks = append(checks,
			sqlload.Check{Name: "pooler", Judge: d.checkPooler},
			sqlload.Check{Name: "connection limit", Judge: d.checkConnections})
	}
	return checks
}

func (d *doctor) checkServer([]string) loader.Finding {
	found := fmt.Sprintf("%s %s at %s", d.server.Product, d.server.Version, d.endpoint)
	switch {
	case d.facts.standby:
		return sqlload.Fail(found+" is a standby and takes no rows", "name the primary in the target")
	case d.text("transaction_read_only") == "on":
		return sqlload.Fail(found+": transactions of this user are read-only (default_transaction_read_only)",
			"--set default_transaction_read_only=off")
	}
	return sqlload.OK(found)
}

// checkPooler compares the session's two process numbers: a pooler makes up those that it gives to its clients.
func (d *doctor) checkPooler([]string) (f loader.Finding) {
	given := strconv.FormatUint(uint64(d.pid), 10)
	if given == d.facts.pid {
		return f
	}
	return sqlload.Warn(fmt.Sprintf("a connection pooler stands in front of the server (it calls this connection %s, the server %s): "+
		"if it pools transactions, sessions share their settings, and Resolve cannot tell them apart", given, d.facts.pid),
		fmt.Sprintf("name the server itself in the target, or let the pooler pool sessions "+
			"(PgBouncer: pool_mode = session, default_pool_size of at least %d)", d.sessions()+extraSessions))
}

// sessions returns how many sessions load at the same time, on all hosts together. The workers of a staged method
// upload; only its commits need the server.
func (d *doctor) sessions() int {
	if d.Caps().Staged {
		return max(d.intent.Contract.Commits, 1)
	}
	return max(d.intent.Workers, 1)
}

// extraSessions are the connections of a run that load nothing: one holds the table, one asks questions.
const extraSessions = 2

// checkConnections compares free connections with those that the run opens. Loading sessions are spread over the hosts,
// and each has its own max_connections. Too few connections stop no push: refused sessions are retried.
func (d *doctor) checkConnections([]string) loader.Finding {
	hosts, f := len(d.hosts.List), d.facts
	need := (d.sessions()+hosts-1)/hosts + extraSessions
	reserved := d.amount("superuser_reserved_connections") + d.amount("reserved_connections") +
		d.amount("rds.rds_superuser_reserved_connections")
	if f.superuser {
		reserved = 0
	}
	type limit struct {
		name      string
		max, used int
		raise     string
	}
	most := int(d.amount("max_connections"))
	limits := []limit{{
		fmt.Sprintf("max_connections %d, %d reserved", most, reserved), most - int(reserved), f.total,
		d.change("max_connections", strconv.Itoa(int(reserved)+f.total+need), ", and restart the server"),
	}}
	add := func(kind, name string, most, used int) {
		if most >= 0 && !f.superuser {
			limits = append(limits, limit{
				fmt.Sprintf("%s %s has CONNECTION LIMIT %d", kind, name, most), most, used,
				fmt.Sprintf("ALTER %s %s CONNECTION LIMIT %d", strings.ToUpper(kind), sqlload.Qualified("", name), need+used),
			})
		}
	}
	add("role", f.sessionUser, f.roleLimit, f.ofRole)
	add("database", f.database, f.databaseLimit, f.ofDatabase)
	tight := slices.MinFunc(limits, func(a, b limit) int { return cmp.Compare(a.max-a.used, b.max-b.used) })
	free := tight.max - tight.used
	text := fmt.Sprintf("%d free (%s, %d in use), and the run opens %d", max(free, 0), tight.name, tight.used, need)
	if free >= need {
		return sqlload.OK(text)
	}
	fix := tight.raise
	if fewer := (free - extraSessions) * hosts; fewer > 0 && !d.Caps().Staged {
		fix += fmt.Sprintf(", or --workers %d", fewer)
	}
	return sqlload.Warn(text+": refused sessions are retried", fix)
}

// logChecks judge whether the write-ahead log lasts, and whether there is room for it. Only PostgreSQL's own storage
// has one.
func (d *doctor) logChecks() []sqlload.Check {
	if d.flavour != postgreSQL {
		return nil
	}
	checks := []sqlload.Check{{Name: "durability", Judge: d.checkPages}, {Name: "durability", Judge: d.checkCommits}}
	if !d.facts.standby {
		checks = append(checks, sqlload.Check{Name: "replication", Ask: selectReplication, Judge: d.checkReplication})
	}
	return checks
}

// change returns how to change a setting of the server, and then what to do for it to take effect.
func (d *doctor) change(name, value, then string) string {
	if _, managed := d.settings["rds.extensions"]; managed {
		return fmt.Sprintf("set %s to %s in the parameter group", name, value)
	}
	if d.settings[name].source == "command line" { // it overrides every file
		return fmt.Sprintf("start the server with %s=%s: it is set on its command line", name, value)
	}
	return fmt.Sprintf("ALTER SYSTEM SET %s = %s%s", name, value, then)
}

const reload = "; SELECT pg_reload_conf()"

// checkPages passes over Aurora, whose storage makes its pages from the log.
func (d *doctor) checkPages([]string) (f loader.Finding) {
	switch {
	case d.aurora:
	case d.text("fsync") == "off":
		return sqlload.Warn("fsync is off: a crash of the machine loses acknowledged rows and may leave a broken database",
			d.change("fsync", "on", reload))
	case d.text("full_page_writes") == "off":
		return sqlload.Warn("full_page_writes is off: a power failure may leave torn pages, unless the file system prevents them",
			d.change("full_page_writes", "on", reload))
	}
	return f
}

func (d *doctor) checkCommits([]string) loader.Finding {
	commit := d.text("synchronous_commit")
	if commit == "off" {
		return sqlload.Warn("synchronous_commit is off: a crash loses the batches of its last moments with their claims, "+
			"although they were acknowledged", "--set synchronous_commit=on, or push again with --resume after a crash")
	}
	return sqlload.OK(fmt.Sprintf("synchronous_commit %s: a batch is acknowledged when it is in the log", commit))
}

// selectReplication reads who delays commits, and what keeps the log from being removed until the disk is full.
const selectReplication = "SELECT " +
	"(SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')), " +
	"(SELECT count(*) FROM pg_stat_replication WHERE sync_state IS NULL), " +
	"(SELECT string_agg(slot_name, ', ' ORDER BY slot_name) FROM pg_replication_slots " +
	"WHERE NOT active AND restart_lsn IS NOT NULL), " +
	"(SELECT max(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)) FROM pg_replication_slots WHERE NOT active), " +
	"(SELECT last_failed_time > COALESCE(last_archived_time, '-infinity') FROM pg_stat_archiver)"

// checkReplication returns the worst finding. The state of a standby is NULL for users without pg_monitor.
func (d *doctor) checkReplication(row []string) loader.Finding {
	synchronous, hidden, slots, failing := row[0] != "0", row[1] != "0", row[2], row[4] == "t"
	names, commit := d.text("synchronous_standby_names"), d.text("synchronous_commit")
	waits := fmt.Sprintf("every commit waits for standbys (synchronous_standby_names %s)", names)
	waiting := names != "" && commit != "off" && commit != "local"
	switch {
	case waiting && !synchronous && !hidden:
		return sqlload.Fail(waits+", and none is connected: a load would never end",
			"start the standby, or --set synchronous_commit=local")
	case failing && d.text("archive_mode") != "off":
		return sqlload.Warn("archiving of the log fails, so the server keeps all of it until the disk is full",
			"repair archive_command: SELECT * FROM pg_stat_archiver names the file, the server's log the reason")
	case slots != "":
		kept, _ := strconv.ParseInt(row[3], 10, 64)
		bound := "without a limit"
		if most := d.amount("max_slot_wal_keep_size"); most > 0 {
			bound = "up to " + units.Size(most)
		}
		return sqlload.Warn(fmt.Sprintf("no client reads from slot %s, for which the server keeps its log: %s so far, %s",
			slots, units.Size(kept), bound),
			fmt.Sprintf("SELECT pg_drop_replication_slot(%s) if it is unused", sqlload.Literal(strings.Split(slots, ", ")[0])))
	case waiting && !synchronous:
		return loader.Finding{Grade: loader.GradeUnknown, Found: waits + ", and this user may not see whether one is connected",
			Fix: "GRANT pg_monitor TO " + d.user()}
	case waiting:
		return sqlload.OK(waits)
	}
	return sqlload.OK("no commit waits for a standby, and neither slots nor failing archiving keep the log")
}
