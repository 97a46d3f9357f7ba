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
	"github.com/terapush/terapush/pkg/loader"
)

const (
	// littleLog and littlePool are sizes that a load of any length runs into.
	littleLog, littlePool = 1 << 30, 1 << 30
	// patience is the engine's smallest deadline for a batch: a limit beyond it ends nothing that would have gone on.
	patience = 2 * time.Minute
	// tidbLimit is TiDB's default of txn-total-size-limit.
	tidbLimit = 100 << 20
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
	// Group replication and Galera send a transaction as a whole, before it is committed.
	replicated := map[string]bool{
		"group_replication_transaction_size_limit": d.vars["group_replication_group_name"] != "",
		"wsrep_max_ws_size":                        d.on("wsrep_on"),
	}
	for limit, inUse := range replicated {
		if most := d.number(limit); inUse && most > 0 && batch > most {
			d.note("transaction size", sqlload.Warn(fmt.Sprintf("%s %s, and a batch of %s is one transaction of about that size,"+
				" which the server refuses beyond it", limit, ibytes(most), ibytes(batch)),
				fmt.Sprintf("--batch-bytes %d, or %s", most/2, d.change(limit, 2*batch))))
		}
	}
}

// checkLogs compares a batch with the binary log, and the run with redo log and buffer pool.
func (d *doctor) checkLogs() {
	if _, set := d.vars["sql_log_bin"]; d.on("log_bin") && (!set || d.on("sql_log_bin")) {
		d.note("binary log", d.binaryLog())
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

// binaryLog compares a batch with what the server keeps of a transaction until its commit.
func (d *doctor) binaryLog() loader.Finding {
	batch, workers := d.intent.BatchBytes, max(d.intent.Workers, 1)
	cache, most := d.number("binlog_cache_size"), d.number("max_binlog_cache_size")
	switch {
	case most > 0 && batch > most:
		return sqlload.Warn(fmt.Sprintf("max_binlog_cache_size is %s, and a batch of %s is about as much in the log,"+
			" which the server refuses beyond it", ibytes(most), ibytes(batch)),
			fmt.Sprintf("%s, or --batch-bytes %d", d.change("max_binlog_cache_size", 4*batch), most/2))
	case batch > cache:
		return sqlload.Warn(fmt.Sprintf("rows are written to the binary log, too; binlog_cache_size is %s,"+
			" and a batch of %s goes through a temporary file first", ibytes(cache), ibytes(batch)),
			fmt.Sprintf("%s (of each session: %s for %d workers), or --set sql_log_bin=0 where no replica needs the rows",
				d.change("binlog_cache_size", batch), ibytes(batch*int64(workers)), workers))
	}
	return sqlload.OK(fmt.Sprintf("binlog_cache_size %s holds a batch of %s", ibytes(cache), ibytes(batch)))
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

// sizeChecks are questions about TiDB's and SingleStore's sizes.
func (d *doctor) sizeChecks() []sqlload.Check {
	switch {
	case d.server.flavour == tiDB:
		return []sqlload.Check{{
			Name: "transaction size", Ask: "SHOW CONFIG WHERE type = 'tidb' AND name = 'performance.txn-total-size-limit'",
			Judge: d.tidbTransaction,
		}}
	case d.method.Name == pipeline:
		query := "SELECT num_partitions FROM information_schema.distributed_databases" +
			" WHERE database_name = " + literal(d.target.Database)
		return []sqlload.Check{{Name: "partitions", Ask: query, Judge: d.partitions}}
	}
	return nil
}

// tidbTransaction compares a batch with the two bounds of a transaction (TiDB manual, "TiDB Configuration File" and
// "System Variables"). From 6.5 on the memory quota replaces a limit that was left at its default. Keys and encoding add
// to a batch's bytes, hence the fifth that is left free; numbers are shorter there than as text, so nothing here is certain
// enough to stop a push.
func (d *doctor) tidbTransaction(config []string) loader.Finding {
	batch, quota := d.intent.BatchBytes, d.number("tidb_mem_quota_query")
	if quota > 0 && batch > quota {
		return sqlload.Warn(fmt.Sprintf("tidb_mem_quota_query is %s, and a batch of %s is one transaction, held in memory:"+
			" beyond it the server may end the statement", ibytes(quota), ibytes(batch)),
			fmt.Sprintf("--set tidb_mem_quota_query=%d, or --batch-bytes %d", 6*batch, quota/6))
	}
	var limit int64
	if len(config) > 3 { // type, instance, name, value
		limit, _ = strconv.ParseInt(config[3], 10, 64)
	}
	found := fmt.Sprintf("txn-total-size-limit is %s, and a batch of %s is one transaction", ibytes(limit), ibytes(batch))
	if inForce := limit > 0 && (limit != tidbLimit || d.server.before(6, 5)); !inForce || batch <= limit/5*4 {
		return sqlload.OK(found)
	}
	return sqlload.Warn(found+": keys and encoding may take it beyond, where the server refuses it",
		fmt.Sprintf("--batch-bytes %d, or performance.txn-total-size-limit = %d in the configuration of every tidb-server",
			limit/5*4, 2*batch))
}

// partitions compares a commit group with the partitions that read it, each an object at a time.
func (d *doctor) partitions(row []string) (none loader.Finding) {
	if len(row) == 0 {
		return none
	}
	n, _ := strconv.ParseInt(row[0], 10, 64)
	batches := d.intent.Contract.GroupBatches
	found := fmt.Sprintf("database %s has %d partitions, and a commit group has %d objects", d.target.Database, n, batches)
	if batches < n {
		return sqlload.Warn(found+": the other partitions have nothing to read", fmt.Sprintf("--commit-batches %d", 4*n))
	}
	return sqlload.OK(found)
}
