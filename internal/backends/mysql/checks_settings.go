package mysql

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/terapush/terapush/internal/sqlload"
)

// smallLog and smallPool are sizes that a large load runs into.
const smallLog, smallPool = 1 << 30, 1 << 30

func ibytes(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// checkSizes compares a batch, which is one statement and one transaction, with the server's limits.
func (d *doctor) checkSizes() {
	batch := d.intent.BatchBytes
	if d.method.Name == insert && batch > d.caps.MaxBytes {
		packet := d.number("max_allowed_packet")
		d.note("max_allowed_packet", sqlload.Fail(
			fmt.Sprintf("max_allowed_packet %s, and a batch is one INSERT of %s", ibytes(packet), ibytes(batch)),
			fmt.Sprintf("--batch-bytes %d, or %s", d.caps.MaxBytes, d.change("max_allowed_packet", batch+packetRoom))))
	}
	if quota := d.number("tidb_mem_quota_query"); quota > 0 && batch > quota {
		d.warn("transaction size", fmt.Sprintf("--set tidb_mem_quota_query=%d, or --batch-bytes %d", 6*batch, quota/6),
			"tidb_mem_quota_query is %s, and a batch of %s is one transaction in memory: TiDB may end the statement",
			ibytes(quota), ibytes(batch))
	}
}

// checkTransaction compares a batch with what bounds a transaction. Only the commit, or the last rows, would fail.
func (d *doctor) checkTransaction() {
	batch := d.intent.BatchBytes
	_, set := d.vars["sql_log_bin"]
	for name, holds := range map[string]bool{
		"max_binlog_cache_size":                    d.on("log_bin") && (!set || d.on("sql_log_bin")),
		"group_replication_transaction_size_limit": d.vars["group_replication_group_name"] != "",
		"wsrep_max_ws_size":                        d.on("wsrep_on"),
	} {
		if most := d.number(name); holds && most > 0 && batch > most {
			d.note("transaction size", sqlload.Fail(
				fmt.Sprintf("%s is %s, and a batch of %s is one transaction", name, ibytes(most), ibytes(batch)),
				fmt.Sprintf("--batch-bytes %d, or %s", most/2, d.change(name, 2*batch))))
		}
	}
}

// checkLogs compares a batch with the binary log, and the run with redo log and buffer pool.
func (d *doctor) checkLogs() {
	batch, cache := d.intent.BatchBytes, d.number("binlog_cache_size")
	if _, set := d.vars["sql_log_bin"]; d.on("log_bin") && (!set || d.on("sql_log_bin")) && batch > cache {
		workers := max(d.intent.Workers, 1)
		fix := fmt.Sprintf("%s (of each session: %s for %d workers), or --set sql_log_bin=0 where no replica needs the rows",
			d.change("binlog_cache_size", batch), ibytes(batch*int64(workers)), workers)
		d.warn("binary log", fix, "binlog_cache_size is %s, and a batch of %s goes through a temporary file first",
			ibytes(cache), ibytes(batch))
	}
	if d.aurora() { // whose storage has neither log files nor pages to flush
		return
	}
	total := d.intent.TotalBytes
	isSmall := func(size, limit int64) bool { return 0 < size && size < limit && (total <= 0 || total > size) }
	name, size := "innodb_redo_log_capacity", d.number("innodb_redo_log_capacity") // MySQL 8.0.30 and later
	if size == 0 {
		name, size = "innodb_log_file_size", d.number("innodb_log_file_size")*max(d.number("innodb_log_files_in_group"), 1)
	}
	if isSmall(size, smallLog) {
		want := max(2<<30, min(16<<30, int64(1)<<bits.Len64(uint64(max(total, 0)))))
		fix := d.change(name, want)
		if name == "innodb_log_file_size" { // only MariaDB 10.9 and later take SET GLOBAL
			fix = fmt.Sprintf("%s = %d in the server's configuration, and restart it", name, want)
		}
		d.warn("redo log", fix, "%s holds %s: whenever it is full, loads wait until pages are flushed", name, ibytes(size))
	}
	if size := d.number("innodb_buffer_pool_size"); isSmall(size, smallPool) {
		d.warn("buffer pool", d.change("innodb_buffer_pool_size", 4<<30)+", where the machine has the memory",
			"innodb_buffer_pool_size is %s: whenever it is full, loads wait until pages are written", ibytes(size))
	}
}

// checkDurability finds settings with which a crash loses acknowledged rows.
func (d *doctor) checkDurability() {
	warn := func(name, safe, risk, fix string) {
		if value, known := d.vars[name]; known && !slices.Contains(strings.Fields(safe), strings.ToUpper(value)) {
			d.warn("durability", fix, "%s is %s: %s", name, value, risk)
		}
	}
	flush, crash := "innodb_flush_log_at_trx_commit", "a power cut"
	if d.vars[flush] == "0" {
		crash = "a crash of the server"
	}
	// MariaDB's 3 flushes more often than 1.
	warn(flush, "1 3", crash+" loses about a second of acknowledged rows, with their claims", d.change(flush, 1))
	if d.on("log_bin") {
		warn("sync_binlog", "1", "after a power cut replicas may have other rows", d.change("sync_binlog", 1))
	}
	if !d.aurora() {
		warn("innodb_doublewrite", "ON 1 DETECT_AND_RECOVER DETECT_ONLY", "a power cut may leave torn pages",
			"innodb_doublewrite = ON in the server's configuration")
	}
}
