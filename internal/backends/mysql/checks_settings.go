package mysql

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

const (
	// littleLog and littlePool are sizes that a load of any length runs into.
	littleLog, littlePool = 1 << 30, 1 << 30
	// patience is the engine's smallest deadline for a batch: a limit beyond it ends nothing that would have gone on.
	patience = 2 * time.Minute
	// pace is what no server takes from one session, in bytes a second: LOAD DATA was measured at 220 MB/s.
	pace = 1 << 30
	// tidbLimit is TiDB's default of txn-total-size-limit.
	tidbLimit = 100 << 20
)

func ibytes(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// settings lists the checks of what bounds a statement or a transaction, of what writing costs, and whether it lasts.
func (d *doctor) settings() []sqlload.Check {
	checks := []sqlload.Check{{Name: "max_allowed_packet", Judge: d.packet}}
	if d.vars["group_replication_group_name"] != "" {
		checks = append(checks, d.replicated("group_replication_transaction_size_limit"))
	}
	if d.on("wsrep_on") {
		checks = append(checks, d.replicated("wsrep_max_ws_size"))
	}
	if f := d.server.flavour; f == mySQL || f == mariaDB { // the others have none of it
		checks = append(checks, sqlload.Check{Name: "binary log", Judge: d.binaryLog})
		if !d.aurora() { // whose storage has neither log files nor pages to flush
			checks = append(checks, sqlload.Check{Name: "redo log", Judge: d.redoLog},
				sqlload.Check{Name: "buffer pool", Judge: d.bufferPool})
		}
		checks = append(checks, sqlload.Check{Name: "durability", Judge: d.flushed},
			sqlload.Check{Name: "durability", Judge: d.synced}, sqlload.Check{Name: "durability", Judge: d.torn})
	}
	checks = append(checks, sqlload.Check{Name: "timeouts", Judge: d.timeouts})
	switch {
	case d.server.flavour == tiDB:
		checks = append(checks, sqlload.Check{
			Name: "transaction size", Ask: "SHOW CONFIG WHERE type = 'tidb' AND name = 'performance.txn-total-size-limit'",
			Judge: d.tidbTransaction,
		})
	case d.method.Name == pipeline:
		query := "SELECT num_partitions FROM information_schema.distributed_databases" +
			" WHERE database_name = " + literal(d.target.Database)
		checks = append(checks, sqlload.Check{Name: "partitions", Ask: query, Judge: d.partitions})
	}
	return checks
}

func (d *doctor) packet([]string) (none loader.Finding) {
	packet, batch := d.number("max_allowed_packet"), d.intent.BatchBytes
	if d.method.Name != insert || packet <= 0 {
		return none
	}
	switch found := fmt.Sprintf("max_allowed_packet %s, and a batch is one INSERT of %s", ibytes(packet), ibytes(batch)); {
	case batch > d.caps.MaxBytes:
		return sqlload.Fail(found, fmt.Sprintf("--batch-bytes %d, or %s",
			d.caps.MaxBytes, d.change("max_allowed_packet", batch+packetRoom)))
	case packet < d.method.Caps.DefaultBatchBytes+packetRoom:
		return sqlload.Warn(found+": small ones cost more round trips", d.change("max_allowed_packet", 64<<20))
	default:
		return sqlload.OK(found)
	}
}

// replicated compares a batch with what a server takes that replicates a transaction as a whole, before it is committed.
func (d *doctor) replicated(limit string) sqlload.Check {
	return sqlload.Check{Name: "transaction size", Judge: func([]string) (none loader.Finding) {
		most, batch := d.number(limit), d.intent.BatchBytes
		found := fmt.Sprintf("%s %s, and a batch of %s is one transaction", limit, ibytes(most), ibytes(batch))
		switch {
		case most <= 0:
			return none
		case batch <= most:
			return sqlload.OK(found)
		}
		return sqlload.Warn(found+" of about that size, which the server refuses beyond it",
			fmt.Sprintf("--batch-bytes %d, or %s", most/2, d.change(limit, 2*batch)))
	}}
}

// binaryLog compares a batch, which is one transaction, with what the server keeps of it until the commit.
func (d *doctor) binaryLog([]string) (none loader.Finding) {
	batch, workers := d.intent.BatchBytes, max(d.intent.Workers, 1)
	cache, most := d.number("binlog_cache_size"), d.number("max_binlog_cache_size")
	_, set := d.vars["sql_log_bin"]
	switch {
	case !d.on("log_bin") || set && !d.on("sql_log_bin"):
		return none
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

func (d *doctor) redoLog([]string) (none loader.Finding) {
	name, size := "innodb_redo_log_capacity", d.number("innodb_redo_log_capacity") // MySQL 8.0.30 and later
	if size == 0 {
		name, size = "innodb_log_file_size", d.number("innodb_log_file_size")*max(d.number("innodb_log_files_in_group"), 1)
	}
	if size == 0 {
		return none
	}
	found, total, want := fmt.Sprintf("%s holds %s", name, ibytes(size)), d.intent.TotalBytes, int64(2<<30)
	if total > 0 {
		found += fmt.Sprintf(", and this run is %s", ibytes(total))
		want = max(want, min(16<<30, int64(1)<<bits.Len64(uint64(total))))
	}
	if size >= littleLog || total > 0 && total <= size {
		return sqlload.OK(found)
	}
	fix := d.change(name, want)
	if name == "innodb_log_file_size" && (d.server.flavour == mySQL || d.server.before(10, 9)) { // MariaDB can since
		fix = fmt.Sprintf("%s = %d in the server's configuration, and restart it", name, want)
	}
	return sqlload.Warn(found+": loads wait for pages to be flushed whenever it is full", fix)
}

func (d *doctor) bufferPool([]string) (none loader.Finding) {
	size, total := d.number("innodb_buffer_pool_size"), d.intent.TotalBytes
	found := fmt.Sprintf("innodb_buffer_pool_size %s", ibytes(size))
	switch {
	case size == 0:
		return none
	case size >= littlePool || total > 0 && total <= size:
		return sqlload.OK(found)
	}
	return sqlload.Warn(found+": changed pages are written out while the load waits for room",
		d.change("innodb_buffer_pool_size", 4<<30)+", where the machine has the memory")
}

func (d *doctor) flushed([]string) (none loader.Finding) {
	const name = "innodb_flush_log_at_trx_commit"
	after := "a power cut"
	switch value := d.vars[name]; value {
	case "":
		return none
	case "1", "3": // MariaDB's 3 writes through twice
		return sqlload.OK(fmt.Sprintf("what is acknowledged outlives a crash (%s %s)", name, value))
	case "0":
		after = "a crash of the server"
	}
	return sqlload.Warn(fmt.Sprintf("%s is %s: %s takes away about a second of what was acknowledged, claims and all",
		name, d.vars[name], after), d.change(name, 1))
}

func (d *doctor) synced([]string) (none loader.Finding) {
	sync := d.vars["sync_binlog"]
	if sync == "1" || !d.on("log_bin") {
		return none
	}
	return sqlload.Warn("sync_binlog is "+sync+": after a power cut replicas may lack, or have, other rows than the server",
		d.change("sync_binlog", 1))
}

func (d *doctor) torn([]string) (none loader.Finding) {
	if !strings.EqualFold(d.vars["innodb_doublewrite"], "OFF") || d.aurora() {
		return none
	}
	return sqlload.Warn("innodb_doublewrite is OFF: a power cut may leave torn pages, unless the file system never does",
		"innodb_doublewrite = ON in the server's configuration")
}

// timeouts finds what ends a statement. Sessions set their other timeouts themselves, and MySQL's max_execution_time is
// for SELECT.
func (d *doctor) timeouts([]string) (none loader.Finding) {
	value, known := d.vars["max_statement_time"] // MariaDB, seconds
	seconds, _ := strconv.ParseFloat(value, 64)
	after := time.Duration(seconds * float64(time.Second))
	if !known {
		return none
	}
	if after <= 0 || after > patience {
		return sqlload.OK("nothing ends a statement within two minutes")
	}
	const fix = "--set max_statement_time=0"
	found := fmt.Sprintf("max_statement_time is %s for this account, and ends loads that take longer", after)
	rate := float64(d.intent.BatchBytes) / seconds
	if rate > 0 {
		found += fmt.Sprintf(": each session would have to load %s/s, whatever it waits for", ibytes(int64(rate)))
	}
	if rate > pace {
		return sqlload.Fail(found, fix)
	}
	return sqlload.Warn(found, fix)
}

// tidbTransaction compares a batch with the two bounds of a transaction (TiDB manual, "TiDB Configuration File" and
// "System Variables"). From 6.5 on the limit in its default is not in force, and the memory quota is. Keys and encoding come
// to a batch's own bytes, hence the fifth that is left free; numbers are shorter there than as text, so nothing here is
// certain enough to stop a push.
func (d *doctor) tidbTransaction(config []string) loader.Finding {
	batch, quota := d.intent.BatchBytes, d.number("tidb_mem_quota_query")
	if quota > 0 && batch > quota {
		return sqlload.Warn(fmt.Sprintf("tidb_mem_quota_query is %s, and a batch of %s is one transaction, held in memory:"+
			" beyond it the server may end the statement", ibytes(quota), ibytes(batch)),
			fmt.Sprintf("--set tidb_mem_quota_query=%d, or --batch-bytes %d", 6*batch, quota/6))
	}
	var limit int64
	if len(config) > 0 { // type, instance, name, value
		limit, _ = strconv.ParseInt(config[3], 10, 64)
	}
	if limit == 0 || limit == tidbLimit && !d.server.before(6, 5) {
		return sqlload.OK(fmt.Sprintf("a batch of %s is one transaction; tidb_mem_quota_query allows %s",
			ibytes(batch), ibytes(quota)))
	}
	found := fmt.Sprintf("txn-total-size-limit is %s, and a batch of %s is one transaction", ibytes(limit), ibytes(batch))
	fix := fmt.Sprintf("--batch-bytes %d, or performance.txn-total-size-limit = %d in the configuration of every tidb-server",
		limit/5*4, 2*batch)
	switch {
	case batch > limit:
		return sqlload.Warn(found+" of about that size, which the server refuses beyond it", fix)
	case batch > limit/5*4:
		return sqlload.Warn(found+": keys and encoding may take it beyond", fix)
	}
	return sqlload.OK(found)
}

// partitions compares a commit group with the partitions that read it, each an object at a time.
func (d *doctor) partitions(row []string) loader.Finding {
	if len(row) == 0 {
		return loader.Finding{Grade: loader.GradeUnknown, Found: "the server does not list the database"}
	}
	n, _ := strconv.ParseInt(row[0], 10, 64)
	batches := d.intent.Contract.GroupBatches
	text := fmt.Sprintf("database %s has %d partitions, and a commit group has %d objects", d.target.Database, n, batches)
	if batches < n {
		return sqlload.Warn(text+": the other partitions have nothing to read", fmt.Sprintf("--commit-batches %d", 4*n))
	}
	return sqlload.OK(text)
}
