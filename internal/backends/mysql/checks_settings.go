package mysql

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/terapush/terapush/internal/sqlload"
)

const (
	// littleLog and littlePool are sizes that a load of any length runs into.
	littleLog, littlePool = 1 << 30, 1 << 30
	// patience is the engine's smallest deadline for a batch: a limit beyond it ends nothing that would have gone on.
	patience = 2 * time.Minute
)

func ibytes(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// checkSizes compares a batch, which is one statement and one transaction, with what the server takes at once.
func (d *doctor) checkSizes() {
	batch := d.intent.BatchBytes
	if packet := d.number("max_allowed_packet"); d.method.Name == insert && packet > 0 {
		found := fmt.Sprintf("max_allowed_packet %s, and a batch is one INSERT of %s", ibytes(packet), ibytes(batch))
		finding := sqlload.OK(found)
		if batch > d.caps.MaxBytes {
			fix := fmt.Sprintf("--batch-bytes %d, or %s", d.caps.MaxBytes, d.change("max_allowed_packet", batch+packetRoom))
			finding = sqlload.Fail(found, fix)
		}
		d.note("max_allowed_packet", finding)
	}
	// TiDB holds a transaction in memory.
	if quota := d.number("tidb_mem_quota_query"); quota > 0 && batch > quota {
		d.note("transaction size", sqlload.Warn(fmt.Sprintf("tidb_mem_quota_query is %s, and a batch of %s is one transaction,"+
			" held in memory: beyond it the server may end the statement", ibytes(quota), ibytes(batch)),
			fmt.Sprintf("--set tidb_mem_quota_query=%d, or --batch-bytes %d", 6*batch, quota/6)))
	}
}

// checkLogs compares a batch with the binary log, and the run with redo log and buffer pool.
func (d *doctor) checkLogs() {
	batch, cache := d.intent.BatchBytes, d.number("binlog_cache_size")
	if _, set := d.vars["sql_log_bin"]; d.on("log_bin") && (!set || d.on("sql_log_bin")) && batch > cache {
		workers := max(d.intent.Workers, 1)
		d.note("binary log", sqlload.Warn(fmt.Sprintf("rows are written to the binary log, too; binlog_cache_size is %s,"+
			" and a batch of %s goes through a temporary file first", ibytes(cache), ibytes(batch)),
			fmt.Sprintf("%s (of each session: %s for %d workers), or --set sql_log_bin=0 where no replica needs the rows",
				d.change("binlog_cache_size", batch), ibytes(batch*int64(workers)), workers)))
	}
	if d.aurora() { // whose storage has neither log files nor pages to flush
		return
	}
	total := d.intent.TotalBytes
	enough := func(size, little int64) bool { return size == 0 || size >= little || total > 0 && total <= size }
	name, size := "innodb_redo_log_capacity", d.number("innodb_redo_log_capacity") // MySQL 8.0.30 and later
	if size == 0 {
		name, size = "innodb_log_file_size", d.number("innodb_log_file_size")*max(d.number("innodb_log_files_in_group"), 1)
	}
	if !enough(size, littleLog) {
		found, want := fmt.Sprintf("%s holds %s", name, ibytes(size)), int64(2<<30)
		if total > 0 {
			found += fmt.Sprintf(", and this run is %s", ibytes(total))
			want = max(want, min(16<<30, int64(1)<<bits.Len64(uint64(total))))
		}
		fix := d.change(name, want)
		if name == "innodb_log_file_size" { // only MariaDB 10.9 and later take SET GLOBAL
			fix = fmt.Sprintf("%s = %d in the server's configuration, and restart it", name, want)
		}
		d.note("redo log", sqlload.Warn(found+": loads wait for pages to be flushed whenever it is full", fix))
	}
	if size := d.number("innodb_buffer_pool_size"); !enough(size, littlePool) {
		d.note("buffer pool", sqlload.Warn(fmt.Sprintf("innodb_buffer_pool_size %s: changed pages are written out while the load"+
			" waits for room", ibytes(size)), d.change("innodb_buffer_pool_size", 4<<30)+", where the machine has the memory"))
	}
}

// checkDurability finds settings by which a crash takes acknowledged rows away.
func (d *doctor) checkDurability() {
	warn := func(name, safe, risk, fix string) {
		if value, known := d.vars[name]; known && !slices.Contains(strings.Fields(safe), strings.ToUpper(value)) {
			d.note("durability", sqlload.Warn(fmt.Sprintf("%s is %s: %s", name, value, risk), fix))
		}
	}
	flush, after := "innodb_flush_log_at_trx_commit", "a power cut"
	if d.vars[flush] == "0" {
		after = "a crash of the server"
	}
	warn(flush, "1 3", after+" takes away about a second of what was acknowledged, claims and all", // MariaDB's 3 writes twice
		d.change(flush, 1))
	if d.on("log_bin") {
		warn("sync_binlog", "1", "after a power cut replicas may lack, or have, other rows than the server", d.change("sync_binlog", 1))
	}
	if !d.aurora() {
		warn("innodb_doublewrite", "ON 1 DETECT_AND_RECOVER DETECT_ONLY", "a power cut may leave torn pages, unless the file system never does",
			"innodb_doublewrite = ON in the server's configuration")
	}
}

// checkTimeout finds what ends a load. Sessions set their other timeouts themselves, and MySQL's max_execution_time is for
// SELECT.
func (d *doctor) checkTimeout() {
	seconds, _ := strconv.ParseFloat(d.vars["max_statement_time"], 64) // MariaDB
	if after := time.Duration(seconds * float64(time.Second)); after > 0 && after <= patience {
		d.note("timeouts", sqlload.Warn(fmt.Sprintf("max_statement_time is %s for this account, and ends loads that take longer",
			after), "--set max_statement_time=0"))
	}
}
