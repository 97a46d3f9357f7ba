package mysql

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
	// littleLog and littlePool are sizes that a load of any length runs into.
	littleLog, littlePool = 1 << 30, 1 << 30
	// patience is the engine's smallest deadline for a batch: a limit beyond it ends nothing that would have gone on.
	patience = 2 * time.Minute
	// pace is what no server takes from one session, in bytes a second: LOAD DATA was measured at 220 MB/s.
	pace = 1 << 30
)

func ibytes(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// size compares a batch with what bounds a statement or a transaction.
func (e *examination) size(context.Context) error {
	batch := e.intent.BatchBytes
	if packet := e.number("max_allowed_packet"); e.method.Name == insert && packet > 0 {
		switch found := fmt.Sprintf("max_allowed_packet %s, and a batch is one INSERT of %s", ibytes(packet), ibytes(batch)); {
		case batch > e.caps.MaxBytes:
			e.fail("max_allowed_packet", found, fmt.Sprintf("--batch-bytes %d, or %s", e.caps.MaxBytes, e.change("max_allowed_packet", strconv.FormatInt(batch+packetRoom, 10))))
		case packet < e.method.Caps.DefaultBatchBytes+packetRoom:
			e.warn("max_allowed_packet", found+": small ones cost more round trips", e.change("max_allowed_packet", strconv.Itoa(64<<20)))
		default:
			e.ok("max_allowed_packet", found)
		}
	}
	for _, limit := range []struct{ active, variable string }{
		{e.vars["group_replication_group_name"], "group_replication_transaction_size_limit"},
		{map[bool]string{true: "ON"}[e.on("wsrep_on")], "wsrep_max_ws_size"},
	} {
		if most := e.number(limit.variable); limit.active != "" && most > 0 {
			found := fmt.Sprintf("%s %s, and a batch of %s is one transaction", limit.variable, ibytes(most), ibytes(batch))
			if batch > most {
				e.warn("transaction size", found+" of about that size, which the server refuses beyond it", fmt.Sprintf("--batch-bytes %d, or %s", most/2, e.change(limit.variable, strconv.FormatInt(2*batch, 10))))
			} else {
				e.ok("transaction size", found)
			}
		}
	}
	return nil
}

// writing looks at what writing costs, and whether it lasts. TiDB and SingleStore have none of it.
func (e *examination) writing(context.Context) error {
	if e.server.flavour == tiDB || e.server.flavour == singleStore {
		return nil
	}
	e.binaryLog()
	if !e.aurora() { // whose storage has neither log files nor pages to flush
		e.redoLog()
		e.bufferPool()
	}
	e.durability()
	return nil
}

// binaryLog compares a batch, which is one transaction, with what the server keeps of it until the commit.
func (e *examination) binaryLog() {
	const check = "binary log"
	batch := e.intent.BatchBytes
	cache, most := e.number("binlog_cache_size"), e.number("max_binlog_cache_size")
	_, set := e.vars["sql_log_bin"]
	if !e.on("log_bin") || set && !e.on("sql_log_bin") {
		return
	}
	switch {
	case most > 0 && batch > most:
		e.warn(check, fmt.Sprintf("max_binlog_cache_size is %s, and a batch of %s is about as much in the log, which the server refuses beyond it", ibytes(most), ibytes(batch)),
			fmt.Sprintf("%s, or --batch-bytes %d", e.change("max_binlog_cache_size", strconv.FormatInt(4*batch, 10)), most/2))
	case batch > cache:
		e.warn(check, fmt.Sprintf("rows are written to the binary log, too; binlog_cache_size is %s, and a batch of %s goes through a temporary file first", ibytes(cache), ibytes(batch)),
			fmt.Sprintf("%s (of each session: %s for %d workers), or --set sql_log_bin=0 where no replica needs the rows",
				e.change("binlog_cache_size", strconv.FormatInt(batch, 10)), ibytes(batch*int64(max(e.intent.Workers, 1))), max(e.intent.Workers, 1)))
	default:
		e.ok(check, fmt.Sprintf("binlog_cache_size %s holds a batch of %s", ibytes(cache), ibytes(batch)))
	}
}

func (e *examination) redoLog() {
	const check = "redo log"
	name, size := "innodb_redo_log_capacity", e.number("innodb_redo_log_capacity") // MySQL 8.0.30 and later
	if size == 0 {
		name, size = "innodb_log_file_size", e.number("innodb_log_file_size")*max(e.number("innodb_log_files_in_group"), 1)
	}
	if size == 0 {
		return
	}
	found, total := fmt.Sprintf("%s holds %s", name, ibytes(size)), e.intent.TotalBytes
	if total > 0 {
		found += fmt.Sprintf(", and this run is %s", ibytes(total))
	}
	if size >= littleLog || total > 0 && total <= size {
		e.ok(check, found)
		return
	}
	want := int64(2 << 30)
	if total > 0 {
		want = max(want, min(16<<30, int64(1)<<bits.Len64(uint64(total))))
	}
	fix := e.change(name, strconv.FormatInt(want, 10))
	if name == "innodb_log_file_size" && (e.server.flavour == mySQL || e.server.before(10, 9)) { // MariaDB can since
		fix = fmt.Sprintf("%s = %d in the server's configuration, and restart it", name, want)
	}
	e.warn(check, found+": loads wait for pages to be flushed whenever it is full", fix)
}

func (e *examination) bufferPool() {
	const check = "buffer pool"
	size, total := e.number("innodb_buffer_pool_size"), e.intent.TotalBytes
	if size == 0 {
		return
	}
	found := fmt.Sprintf("innodb_buffer_pool_size %s", ibytes(size))
	if size >= littlePool || total > 0 && total <= size {
		e.ok(check, found)
		return
	}
	e.warn(check, found+": changed pages are written out while the load waits for room", e.change("innodb_buffer_pool_size", strconv.Itoa(4<<30))+", where the machine has the memory")
}

func (e *examination) durability() {
	const check = "durability"
	before := len(e.findings)
	value, known := e.vars["innodb_flush_log_at_trx_commit"]
	if !known {
		return
	}
	if value != "1" && value != "3" { // MariaDB's 3 writes through twice
		means := "a power cut takes away about a second of what was acknowledged"
		if value == "0" {
			means = "a crash of the server takes away about a second of what was acknowledged"
		}
		e.warn(check, fmt.Sprintf("innodb_flush_log_at_trx_commit is %s: %s, claims and all", value, means), e.change("innodb_flush_log_at_trx_commit", "1"))
	}
	if e.vars["sync_binlog"] != "1" && e.on("log_bin") {
		e.warn(check, fmt.Sprintf("sync_binlog is %s: after a power cut replicas may lack, or have, other rows than the server", e.vars["sync_binlog"]), e.change("sync_binlog", "1"))
	}
	if value, known := e.vars["innodb_doublewrite"]; known && !e.aurora() && strings.EqualFold(value, "OFF") {
		e.warn(check, "innodb_doublewrite is OFF: a power cut may leave torn pages, unless the file system never does", "innodb_doublewrite = ON in the server's configuration")
	}
	if len(e.findings) == before {
		e.ok(check, fmt.Sprintf("what is acknowledged outlives a crash (innodb_flush_log_at_trx_commit %s)", value))
	}
}

// timeouts finds what ends a statement. Sessions set their other timeouts themselves, and MySQL's max_execution_time is
// for SELECT.
func (e *examination) timeouts(context.Context) error {
	const check = "timeouts"
	value, known := e.vars["max_statement_time"] // MariaDB, seconds
	if !known {
		return nil
	}
	seconds, _ := strconv.ParseFloat(value, 64)
	after := time.Duration(seconds * float64(time.Second))
	if after <= 0 || after > patience {
		e.ok(check, "nothing ends a statement within two minutes")
		return nil
	}
	found, grade := fmt.Sprintf("max_statement_time is %s for this account, and ends loads that take longer", after), loader.GradeWarn
	if e.intent.BatchBytes > 0 {
		rate := float64(e.intent.BatchBytes) / seconds
		found += fmt.Sprintf(": each session would have to load %s/s, whatever it waits for", ibytes(int64(rate)))
		if rate > pace {
			grade = loader.GradeFail
		}
	}
	e.add(check, grade, found, "--set max_statement_time=0")
	return nil
}
