package postgres

import (
	"context"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/terapush/terapush/pkg/loader"
)

const (
	// patience is the engine's smallest deadline for a batch: a limit beyond it ends nothing that would have gone on.
	patience = 2 * time.Minute
	// pace is what no server process takes from one session, in bytes a second; a binary COPY was measured at 600 MB/s.
	pace = 1 << 30
)

// duration is a setting of time; 0 is none.
func (e *examination) duration(name string) time.Duration {
	s := e.settings[name]
	n, _ := strconv.ParseInt(s.value, 10, 64)
	unit := map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "min": time.Minute, "": time.Millisecond}[s.unit]
	return time.Duration(n) * unit
}

// bytes is a setting of size.
func (e *examination) bytes(name string) int64 {
	s := e.settings[name]
	n, _ := strconv.ParseInt(s.value, 10, 64)
	return n * map[string]int64{"B": 1, "kB": 1 << 10, "8kB": 8 << 10, "MB": 1 << 20, "16MB": 16 << 20}[s.unit]
}

// timeouts finds what ends a statement, a transaction or a waiting session, as it holds for the run's own sessions.
// idle_in_transaction_session_timeout is not among them: they set it themselves.
func (e *examination) timeouts() {
	clean := true
	for _, name := range [...]string{"statement_timeout", "transaction_timeout"} {
		after := e.duration(name)
		if after <= 0 || after > patience {
			continue
		}
		clean = false
		found, grade := fmt.Sprintf("%s is %s here, and ends loads that take longer", name, after), loader.GradeWarn
		if size := e.intent.BatchBytes * max(e.intent.Contract.GroupBatches, 1); size > 0 {
			rate := float64(size) / after.Seconds()
			found += fmt.Sprintf(": each session would have to load %s/s, whatever it waits for", ibytes(int64(rate)))
			if rate > pace {
				grade = loader.GradeFail
			}
		}
		e.add("timeouts", grade, found, "--set "+name+"=0")
	}
	if after := e.duration("idle_session_timeout"); after > 0 && after < patience {
		clean = false
		e.warn("timeouts", fmt.Sprintf("idle_session_timeout is %s here: a session that waits longer for its next batch, as under --max-rate, is ended", after),
			"--set idle_session_timeout=0")
	}
	if clean {
		e.ok("timeouts", "nothing ends a statement or a session within two minutes")
	}
	if own := e.number("yb_default_copy_from_rows_per_transaction"); e.flavour == yugabyteDB && own > 0 && e.method == methodCopy &&
		!e.options.nonTransactional && e.options.rowsPerTransaction == 0 {
		e.transactions(int64(own))
	}
}

// transactions compares a batch, which is one transaction, with what YugabyteDB itself would commit at a time.
func (e *examination) transactions(own int64) {
	n := e.intent.Contract.BatchRows
	found := fmt.Sprintf("a batch of %d rows is one distributed transaction; the server's own COPY commits every %d rows", n, own)
	if n > own {
		e.warn("transaction size", found+", since a large one holds memory on every node and is slow to commit",
			fmt.Sprintf("--batch-rows %d, or --%s %d", own, optionRowsPerTransaction, own))
		return
	}
	e.ok("transaction size", found)
}

// wal looks at what writing costs, and whether it lasts.
func (e *examination) wal(ctx context.Context) error {
	if e.flavour != postgreSQL { // whose storage is not PostgreSQL's, whatever the settings are called
		return nil
	}
	e.durability()
	if !e.aurora() && !e.statements(e.of.State).unlogged {
		e.checkpoints()
	}
	if e.facts.standby {
		return nil
	}
	return e.replication(ctx)
}

// aurora keeps no pages of its own to checkpoint or to tear: its storage makes them from the log.
func (e *examination) aurora() bool {
	for name := range e.settings {
		if strings.HasPrefix(name, "apg_") || strings.HasPrefix(name, "aurora") {
			return true
		}
	}
	return false
}

// change is how a setting of the whole server is changed, where the owner of the server may.
func (e *examination) change(name, value string) string {
	return e.changed(name, value, "; SELECT pg_reload_conf()")
}

// changed is how a setting is written down that then takes what follows to be in force.
func (e *examination) changed(name, value, then string) string {
	if _, managed := e.settings["rds.extensions"]; managed {
		return fmt.Sprintf("set %s to %s in the parameter group", name, value)
	}
	if e.settings[name].source == "command line" { // which stands above every file
		return fmt.Sprintf("start the server with %s=%s: it is set on its command line", name, value)
	}
	return fmt.Sprintf("ALTER SYSTEM SET %s = %s%s", name, value, then)
}

func (e *examination) durability() {
	const check = "durability"
	before := len(e.findings)
	value := func(name string) string { return e.settings[name].value }
	switch {
	case e.aurora():
	case value("fsync") == "off":
		e.warn(check, "fsync is off: a power cut or a crash of the machine takes away what was acknowledged, and may leave a broken database",
			e.change("fsync", "on"))
	case value("full_page_writes") == "off":
		e.warn(check, "full_page_writes is off: a power cut may leave torn pages, unless the file system never does", e.change("full_page_writes", "on"))
	}
	if value("synchronous_commit") == "off" {
		e.warn(check, "synchronous_commit is off: a crash takes away batches of its last moments, claims and all, although they were acknowledged",
			"--set synchronous_commit=on, or push again with --resume after a crash")
	}
	if len(e.findings) == before {
		e.ok(check, fmt.Sprintf("what is acknowledged outlives a crash (fsync %s, synchronous_commit %s)", value("fsync"), value("synchronous_commit")))
	}
}

// checkpoints estimates how many the run's log brings about. The server begins one when the log since the last has grown
// to max_wal_size / (1 + checkpoint_completion_target) (xlog.c, CalculateCheckpointSegments; since version 11).
func (e *examination) checkpoints() {
	const (
		few    = 4       // checkpoints by size that a run has no cause to notice
		enough = 4 << 30 // bytes of max_wal_size, for a run of unknown length
		most   = 64 << 30
	)
	size, every := e.bytes("max_wal_size"), e.duration("checkpoint_timeout")
	target, _ := strconv.ParseFloat(e.settings["checkpoint_completion_target"].value, 64)
	interval := int64(float64(size) / (1 + target))
	if size == 0 {
		return
	}
	found := fmt.Sprintf("max_wal_size %s: a checkpoint about every %s of log", ibytes(size), ibytes(interval))
	total := e.intent.TotalBytes
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
		e.warn("checkpoints", found+"; each writes out all that was changed, and loads wait for it",
			e.change("max_wal_size", fmt.Sprintf("'%dGB'", want>>30))+"; the disk must have room for it")
	case every > 0 && every < 5*time.Minute:
		e.warn("checkpoints", fmt.Sprintf("checkpoint_timeout is %s: a checkpoint that often however little was loaded", every), e.change("checkpoint_timeout", "'15min'"))
	default:
		e.ok("checkpoints", found)
	}
}

// replication finds who keeps commits waiting, and what keeps the log from being removed until the disk is full. The
// answers are those of pg_stat_replication, pg_replication_slots and pg_stat_archiver.
func (e *examination) replication(ctx context.Context) error {
	const check = "replication"
	found, err := rowsOf(ctx, e.conn, "SELECT "+
		"(SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')), "+
		"(SELECT count(*) FROM pg_stat_replication WHERE sync_state IS NULL), "+
		"(SELECT string_agg(slot_name, ', ' ORDER BY slot_name) FROM pg_replication_slots WHERE NOT active AND restart_lsn IS NOT NULL), "+
		"(SELECT max(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)) FROM pg_replication_slots WHERE NOT active), "+
		"(SELECT last_failed_time > COALESCE(last_archived_time, '-infinity') FROM pg_stat_archiver)")
	if err != nil {
		e.unknown(check, err)
		return err
	}
	row, before := found[0], len(e.findings)
	names, commit := e.settings["synchronous_standby_names"].value, e.settings["synchronous_commit"].value
	if names != "" && commit != "off" && commit != "local" {
		e.standbys(check, names, row[0], row[1])
	}
	if slots := row[2]; slots != "" {
		kept, _ := strconv.ParseInt(row[3], 10, 64)
		bound := "without a bound"
		if most := e.bytes("max_slot_wal_keep_size"); most > 0 {
			bound = "up to " + ibytes(most)
		}
		e.warn(check, fmt.Sprintf("nobody reads from slot %s, for which the server keeps its log, %s by now and %s; this run adds to it%s",
			slots, ibytes(kept), bound, e.addition()),
			fmt.Sprintf("SELECT pg_drop_replication_slot(%s) if nobody needs it", literal(strings.Split(slots, ", ")[0])))
	}
	if row[4] == "t" && e.settings["archive_mode"].value != "off" {
		e.warn(check, "archiving of the log fails, so all of it is kept until the disk is full; this run adds to it"+e.addition(),
			"repair archive_command: SELECT * FROM pg_stat_archiver names the file, the server's log the reason")
	}
	if len(e.findings) == before {
		e.ok(check, "no commit waits for a standby, and no slot and no failing archiver keeps the log")
	}
	return nil
}

func (e *examination) addition() string {
	if e.intent.TotalBytes == 0 {
		return ""
	}
	return " " + ibytes(e.intent.TotalBytes) + " and more"
}

// standbys is the finding about commits that wait for others. A standby's state is hidden from users without pg_monitor.
func (e *examination) standbys(check, names, synchronous, hidden string) {
	switch {
	case synchronous != "0":
		e.warn(check, fmt.Sprintf("every commit waits for standbys (synchronous_standby_names %s): large batches make that rare", names),
			"--set synchronous_commit=local loads without waiting, and leaves the standbys behind")
	case hidden != "0":
		e.add(check, loader.GradeUnknown, fmt.Sprintf("every commit waits for standbys (synchronous_standby_names %s), and whether one is there is hidden from this user", names),
			"GRANT pg_monitor TO "+e.user())
	default:
		e.fail(check, fmt.Sprintf("every commit waits for standbys (synchronous_standby_names %s), and none is connected: a load would never end", names),
			"start the standby, or --set synchronous_commit=local")
	}
}

func ibytes(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }
