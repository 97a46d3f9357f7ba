package postgres

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// session lists the checks that need no more than what look has found.
func (d *doctor) session() []sqlload.Check {
	checks := []sqlload.Check{{Name: "server", Judge: d.product}}
	if d.flavour != redshift { // which shows nobody else's sessions, and pools none
		checks = append(checks,
			sqlload.Check{Name: "pooler", Judge: d.pooler},
			sqlload.Check{Name: "connection limit", Judge: d.connections})
	}
	return append(checks,
		sqlload.Check{Name: "timeouts", Judge: d.endsLoads("statement_timeout")},
		sqlload.Check{Name: "timeouts", Judge: d.endsLoads("transaction_timeout")},
		sqlload.Check{Name: "timeouts", Judge: d.endsWaiting},
		sqlload.Check{Name: "timeouts", Judge: func([]string) (f loader.Finding) {
			if d.endsLoads("statement_timeout")(nil) == f && d.endsLoads("transaction_timeout")(nil) == f && d.endsWaiting(nil) == f {
				return sqlload.OK("nothing ends a statement or a session within two minutes")
			}
			return f
		}},
		sqlload.Check{Name: "transaction size", Judge: d.transactions})
}

// value is a setting as the server shows it.
func (d *doctor) value(name string) string { return d.settings[name].value }

// oldest is the first major version with what the statements here are made of (identity columns in the catalog).
const oldest = 10

// extension is the first major version in which sessions that load one table add pages to it side by side (release notes
// of PostgreSQL 16, "Performance": concurrent bulk loading).
const extension = 16

// crowd is how many sessions on one table were worth it before (measured by others, 8 to 16).
const crowd = 16

func (d *doctor) product([]string) (f loader.Finding) {
	found := fmt.Sprintf("%s %s at %s", d.server.Product, d.server.Version, d.at)
	number, _, _ := strings.Cut(d.server.Version, ".")
	major, _ := strconv.Atoi(number) // 0 for a version that is not out yet, "17beta1"
	switch {
	case d.facts.standby:
		return sqlload.Fail(found+" is a standby, which takes no rows", "name the primary in the target")
	case d.settings["transaction_read_only"].value == "on":
		return sqlload.Fail(found+": transactions are read-only for this user (default_transaction_read_only)",
			"--set default_transaction_read_only=off")
	case d.flavour == postgreSQL && major > 0 && major < oldest:
		return sqlload.Fail(fmt.Sprintf("%s is too old: terapush needs PostgreSQL %d", found, oldest), "upgrade the server")
	case d.flavour == postgreSQL && major > 0 && major < extension && d.sessions() > crowd:
		return sqlload.Warn(fmt.Sprintf("%s: before version %d sessions that load one table wait for each other to extend it, so beyond %d of them little is gained; the run has %d",
			found, extension, crowd, d.sessions()), fmt.Sprintf("--workers %d, or upgrade the server", crowd))
	default:
		return sqlload.OK(found)
	}
}

// pooler finds what stands in between: whoever answers in the server's place hands out process numbers of its own. Whether
// it pools sessions or transactions it does not tell.
func (d *doctor) pooler([]string) (f loader.Finding) {
	if given := strconv.FormatUint(uint64(d.conn.PID()), 10); given != d.facts.pid {
		return sqlload.Warn(fmt.Sprintf("a connection pooler stands in front of the server (this connection was given number %s, and the server knows it as %s): "+
			"one that pools transactions hands a session's settings to others, and Resolve cannot tell whose session is whose", given, d.facts.pid),
			"name the server itself in the target, or let the pooler pool sessions (PgBouncer: pool_mode = session, default_pool_size of at least "+
				strconv.Itoa(d.sessions()+besides)+")")
	}
	return f
}

// sessions is how many connections load at the same time, on all hosts together. Of a staged method workers go to the
// store, and commits to the server.
func (d *doctor) sessions() int {
	if d.Caps().Staged {
		return max(d.intent.Contract.Commits, 1)
	}
	return max(d.intent.Workers, 1)
}

// besides are the connections of a run that load nothing: one holds the table, one is for everything else (somewhere).
const besides = 2

// connections compares what is free with what the run opens: its sessions, and those besides.
// Loading sessions go round the hosts, each of which has its own max_connections. Too few stop no push: those that get none
// try again, and the others load meanwhile.
func (d *doctor) connections([]string) (f loader.Finding) {
	hosts := len(d.hosts)
	need := (d.sessions()+hosts-1)/hosts + besides
	most, others := d.number("max_connections"), d.facts.open-1
	reserved := d.number("superuser_reserved_connections") + d.number("reserved_connections") + d.number("rds.rds_superuser_reserved_connections")
	if d.facts.super {
		reserved = 0
	}
	limits := []limit{{
		free: most - reserved - others,
		says: fmt.Sprintf("max_connections %d, %d reserved, %d in use", most, reserved, others),
		fix:  d.changed("max_connections", strconv.Itoa(reserved+others+need), ", and restart the server"),
	}}
	if n := d.facts.roleLimit; n >= 0 && !d.facts.super {
		limits = append(limits, limit{
			free: n - d.facts.ofRole + 1, says: fmt.Sprintf("role %s has CONNECTION LIMIT %d, %d in use", d.facts.session, n, d.facts.ofRole-1),
			fix: fmt.Sprintf("ALTER ROLE %s CONNECTION LIMIT %d", qualified("", d.facts.session), need+d.facts.ofRole-1),
		})
	}
	if n := d.facts.baseLimit; n >= 0 && !d.facts.super {
		limits = append(limits, limit{
			free: n - d.facts.ofBase + 1, says: fmt.Sprintf("database %s has CONNECTION LIMIT %d, %d in use", d.facts.database, n, d.facts.ofBase-1),
			fix: fmt.Sprintf("ALTER DATABASE %s CONNECTION LIMIT %d", qualified("", d.facts.database), need+d.facts.ofBase-1),
		})
	}
	tight := limits[0]
	for _, l := range limits {
		if l.free < tight.free {
			tight = l
		}
	}
	text := fmt.Sprintf("%d free (%s), and the run opens %d", max(tight.free, 0), tight.says, need)
	if tight.free >= need {
		return sqlload.OK(text)
	}
	fix := tight.fix
	if fewer := (tight.free - besides) * hosts; fewer > 0 && !d.Caps().Staged {
		fix += fmt.Sprintf(", or --workers %d", fewer)
	}
	return sqlload.Warn(text+": the others wait, and try again", fix)
}

// limit is a bound on connections.
type limit struct {
	free      int
	says, fix string
}

const (
	// patience is the engine's smallest deadline for a batch: a limit beyond it ends nothing that would have gone on.
	patience = 2 * time.Minute
	// pace is what no server process takes from one session, in bytes a second; a binary COPY was measured at 600 MB/s.
	pace = 1 << 30
)

// duration is a setting of time; 0 is none.
func (d *doctor) duration(name string) time.Duration {
	s := d.settings[name]
	n, _ := strconv.ParseInt(s.value, 10, 64)
	unit := map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "min": time.Minute, "": time.Millisecond}[s.unit]
	return time.Duration(n) * unit
}

// bytes is a setting of size.
func (d *doctor) bytes(name string) int64 {
	s := d.settings[name]
	n, _ := strconv.ParseInt(s.value, 10, 64)
	return n * map[string]int64{"B": 1, "kB": 1 << 10, "8kB": 8 << 10, "MB": 1 << 20, "16MB": 16 << 20}[s.unit]
}

// endsLoads finds a setting that ends loads, as it holds for the run's own sessions.
// idle_in_transaction_session_timeout is not among them: they set it themselves.
func (d *doctor) endsLoads(name string) func([]string) loader.Finding {
	return func([]string) (f loader.Finding) {
		after := d.duration(name)
		if after <= 0 || after > patience {
			return f
		}
		f = sqlload.Warn(fmt.Sprintf("%s is %s here, and ends loads that take longer", name, after), "--set "+name+"=0")
		if size := d.intent.BatchBytes * max(d.intent.Contract.GroupBatches, 1); size > 0 {
			rate := float64(size) / after.Seconds()
			f.Found += fmt.Sprintf(": each session would have to load %s/s, whatever it waits for", ibytes(int64(rate)))
			if rate > pace {
				f.Grade = loader.GradeFail
			}
		}
		return f
	}
}

// endsWaiting finds a setting that ends sessions which wait.
func (d *doctor) endsWaiting([]string) (f loader.Finding) {
	if after := d.duration("idle_session_timeout"); after > 0 && after < patience {
		return sqlload.Warn(fmt.Sprintf("idle_session_timeout is %s here: a session that waits longer for its next batch, as under --max-rate, is ended", after),
			"--set idle_session_timeout=0")
	}
	return f
}

// transactions compares a batch, which is one transaction, with what YugabyteDB itself would commit at a time.
func (d *doctor) transactions([]string) (f loader.Finding) {
	own, n := int64(d.number("yb_default_copy_from_rows_per_transaction")), d.intent.Contract.BatchRows
	if d.flavour != yugabyteDB || own <= 0 || d.method != methodCopy || d.options.nonTransactional || d.options.rowsPerTransaction > 0 {
		return f
	}
	found := fmt.Sprintf("a batch of %d rows is one distributed transaction; the server's own COPY commits every %d rows", n, own)
	if n > own {
		return sqlload.Warn(found+", since a large one holds memory on every node and is slow to commit",
			fmt.Sprintf("--batch-rows %d, or --%s %d", own, optionRowsPerTransaction, own))
	}
	return sqlload.OK(found)
}

// log lists the checks of what writing costs, and whether it lasts.
func (d *doctor) log() []sqlload.Check {
	if d.flavour != postgreSQL { // whose storage is not PostgreSQL's, whatever the settings are called
		return nil
	}
	checks := []sqlload.Check{
		{Name: "durability", Judge: d.writes},
		{Name: "durability", Judge: d.commits},
	}
	if !d.aurora() && !d.statements(d.of.State).unlogged {
		checks = append(checks, sqlload.Check{Name: "checkpoints", Judge: d.checkpoints})
	}
	if d.facts.standby {
		return checks
	}
	return append(checks,
		sqlload.Check{Name: "replication", Ask: selectReplication, Judge: d.standbys},
		sqlload.Check{Name: "replication", Ask: selectReplication, Judge: d.slots},
		sqlload.Check{Name: "replication", Ask: selectReplication, Judge: d.archiver})
}

// aurora keeps no pages of its own to checkpoint or to tear: its storage makes them from the log.
func (d *doctor) aurora() bool {
	for name := range d.settings {
		if strings.HasPrefix(name, "apg_") || strings.HasPrefix(name, "aurora") {
			return true
		}
	}
	return false
}

// change is how a setting of the whole server is changed, where the owner of the server may.
func (d *doctor) change(name, value string) string {
	return d.changed(name, value, "; SELECT pg_reload_conf()")
}

// changed is how a setting is written down that then takes what follows to be in force.
func (d *doctor) changed(name, value, then string) string {
	if _, managed := d.settings["rds.extensions"]; managed {
		return fmt.Sprintf("set %s to %s in the parameter group", name, value)
	}
	if d.settings[name].source == "command line" { // which stands above every file
		return fmt.Sprintf("start the server with %s=%s: it is set on its command line", name, value)
	}
	return fmt.Sprintf("ALTER SYSTEM SET %s = %s%s", name, value, then)
}

func (d *doctor) writes([]string) (f loader.Finding) {
	switch {
	case d.aurora():
	case d.value("fsync") == "off":
		return sqlload.Warn("fsync is off: a power cut or a crash of the machine takes away what was acknowledged, and may leave a broken database",
			d.change("fsync", "on"))
	case d.value("full_page_writes") == "off":
		return sqlload.Warn("full_page_writes is off: a power cut may leave torn pages, unless the file system never does",
			d.change("full_page_writes", "on"))
	}
	return f
}

func (d *doctor) commits([]string) (f loader.Finding) {
	switch {
	case d.value("synchronous_commit") == "off":
		return sqlload.Warn("synchronous_commit is off: a crash takes away batches of its last moments, claims and all, although they were acknowledged",
			"--set synchronous_commit=on, or push again with --resume after a crash")
	case d.writes(nil).Grade == "":
		return sqlload.OK(fmt.Sprintf("what is acknowledged outlives a crash (fsync %s, synchronous_commit %s)", d.value("fsync"), d.value("synchronous_commit")))
	}
	return f
}

// checkpoints estimates how many the run's log brings about. The server begins one when the log since the last has grown
// to max_wal_size / (1 + checkpoint_completion_target) (xlog.c, CalculateCheckpointSegments; since version 11).
func (d *doctor) checkpoints([]string) (f loader.Finding) {
	const (
		few    = 4       // checkpoints by size that a run has no cause to notice
		enough = 4 << 30 // bytes of max_wal_size, for a run of unknown length
		most   = 64 << 30
	)
	size, every := d.bytes("max_wal_size"), d.duration("checkpoint_timeout")
	target, _ := strconv.ParseFloat(d.settings["checkpoint_completion_target"].value, 64)
	interval := int64(float64(size) / (1 + target))
	if size == 0 {
		return f
	}
	found := fmt.Sprintf("max_wal_size %s: a checkpoint about every %s of log", ibytes(size), ibytes(interval))
	total := d.intent.TotalBytes
	if total > 0 {
		found += fmt.Sprintf(", and this run is %s", ibytes(total))
		if n := total / interval; n > 0 {
			found += fmt.Sprintf(": %d of them", n)
		}
	}
	switch {
	case size < most && (total == 0 && size < enough || total > few*interval):
		want := enough
		if total > 0 {
			want = max(enough, min(most, 1<<bits.Len64(uint64(total))))
		}
		return sqlload.Warn(found+"; each writes out all that was changed, and loads wait for it",
			d.change("max_wal_size", fmt.Sprintf("'%dGB'", want>>30))+"; the disk must have room for it")
	case every > 0 && every < 5*time.Minute:
		return sqlload.Warn(fmt.Sprintf("checkpoint_timeout is %s: a checkpoint that often however little was loaded", every), d.change("checkpoint_timeout", "'15min'"))
	default:
		return sqlload.OK(found)
	}
}

// selectReplication reads who keeps commits waiting, and what keeps the log from being removed until the disk is full.
const selectReplication = "SELECT " +
	"(SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')), " +
	"(SELECT count(*) FROM pg_stat_replication WHERE sync_state IS NULL), " +
	"(SELECT string_agg(slot_name, ', ' ORDER BY slot_name) FROM pg_replication_slots WHERE NOT active AND restart_lsn IS NOT NULL), " +
	"(SELECT max(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)) FROM pg_replication_slots WHERE NOT active), " +
	"(SELECT last_failed_time > COALESCE(last_archived_time, '-infinity') FROM pg_stat_archiver)"

// standbys judges commits that wait for others. A standby's state is hidden from users without pg_monitor.
func (d *doctor) standbys(row []string) (f loader.Finding) {
	names, commit := d.value("synchronous_standby_names"), d.value("synchronous_commit")
	if names == "" || commit == "off" || commit == "local" {
		return f
	}
	waits := fmt.Sprintf("every commit waits for standbys (synchronous_standby_names %s)", names)
	switch synchronous, hidden := row[0], row[1]; {
	case synchronous != "0":
		return sqlload.Warn(waits+": large batches make that rare",
			"--set synchronous_commit=local loads without waiting, and leaves the standbys behind")
	case hidden != "0":
		return loader.Finding{Grade: loader.GradeUnknown, Found: waits + ", and whether one is there is hidden from this user",
			Fix: "GRANT pg_monitor TO " + d.user()}
	}
	return sqlload.Fail(waits+", and none is connected: a load would never end", "start the standby, or --set synchronous_commit=local")
}

func (d *doctor) slots(row []string) (f loader.Finding) {
	slots := row[2]
	if slots == "" {
		return f
	}
	kept, _ := strconv.ParseInt(row[3], 10, 64)
	bound := "without a bound"
	if most := d.bytes("max_slot_wal_keep_size"); most > 0 {
		bound = "up to " + ibytes(most)
	}
	return sqlload.Warn(fmt.Sprintf("nobody reads from slot %s, for which the server keeps its log, %s by now and %s; this run adds to it%s",
		slots, ibytes(kept), bound, d.addition()),
		fmt.Sprintf("SELECT pg_drop_replication_slot(%s) if nobody needs it", sqlload.Literal(strings.Split(slots, ", ")[0])))
}

func (d *doctor) archiver(row []string) (f loader.Finding) {
	switch {
	case row[4] == "t" && d.value("archive_mode") != "off":
		return sqlload.Warn("archiving of the log fails, so all of it is kept until the disk is full; this run adds to it"+d.addition(),
			"repair archive_command: SELECT * FROM pg_stat_archiver names the file, the server's log the reason")
	case d.standbys(row).Grade == "" && d.slots(row).Grade == "":
		return sqlload.OK("no commit waits for a standby, and no slot and no failing archiver keeps the log")
	}
	return f
}

func (d *doctor) addition() string {
	if d.intent.TotalBytes == 0 {
		return ""
	}
	return " " + ibytes(d.intent.TotalBytes) + " and more"
}

func ibytes(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }
