package mysql

import (
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
	// tidbLimit is TiDB's default of txn-total-size-limit.
	tidbLimit = 100 << 20
)

func ibytes(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// ofSettings compares a batch with what bounds a statement or a transaction, and looks at what writing costs, and whether
// it lasts.
func (k *checker) ofSettings() []check {
	checks := []check{
		{name: "max_allowed_packet", judge: k.packet},
		{name: "transaction size", judge: k.replicated},
	}
	if f := k.server.flavour; f == mySQL || f == mariaDB { // the others have none of it
		checks = append(checks, check{name: "binary log", judge: k.binaryLog})
		if !k.aurora() { // whose storage has neither log files nor pages to flush
			checks = append(checks, check{name: "redo log", judge: k.redoLog}, check{name: "buffer pool", judge: k.bufferPool})
		}
		checks = append(checks, check{name: "durability", judge: k.durability})
	}
	checks = append(checks, check{name: "timeouts", judge: k.timeouts})
	switch {
	case k.server.flavour == tiDB:
		checks = append(checks, check{
			name: "transaction size", query: "SHOW CONFIG WHERE type = 'tidb' AND name = 'performance.txn-total-size-limit'", judge: k.tidbTransaction,
			fix: "GRANT CONFIG ON *.* TO " + k.account + " shows txn-total-size-limit",
		})
	case k.method.Name == pipeline:
		checks = append(checks, check{
			name:  "partitions",
			query: "SELECT num_partitions FROM information_schema.distributed_databases WHERE database_name = " + literal(k.target.Database),
			judge: k.partitions,
		})
	}
	return checks
}

func (k *checker) packet([][]string) []loader.Finding {
	packet, batch := k.number("max_allowed_packet"), k.intent.BatchBytes
	if k.method.Name != insert || packet <= 0 {
		return nil
	}
	switch found := fmt.Sprintf("max_allowed_packet %s, and a batch is one INSERT of %s", ibytes(packet), ibytes(batch)); {
	case batch > k.caps.MaxBytes:
		return fail(found, fmt.Sprintf("--batch-bytes %d, or %s", k.caps.MaxBytes, k.change("max_allowed_packet", batch+packetRoom)))
	case packet < k.method.Caps.DefaultBatchBytes+packetRoom:
		return warn(found+": small ones cost more round trips", k.change("max_allowed_packet", 64<<20))
	default:
		return ok(found)
	}
}

// replicated is about servers that replicate a transaction as a whole, before it is committed.
func (k *checker) replicated([][]string) (all []loader.Finding) {
	for _, limit := range []struct {
		active bool
		name   string
	}{
		{k.vars["group_replication_group_name"] != "", "group_replication_transaction_size_limit"},
		{k.on("wsrep_on"), "wsrep_max_ws_size"},
	} {
		name, most, batch := limit.name, k.number(limit.name), k.intent.BatchBytes
		if !limit.active || most <= 0 {
			continue
		}
		found := fmt.Sprintf("%s %s, and a batch of %s is one transaction", name, ibytes(most), ibytes(batch))
		if batch <= most {
			all = append(all, ok(found)...)
			continue
		}
		all = append(all, warn(found+" of about that size, which the server refuses beyond it",
			fmt.Sprintf("--batch-bytes %d, or %s", most/2, k.change(name, 2*batch)))...)
	}
	return all
}

// binaryLog compares a batch, which is one transaction, with what the server keeps of it until the commit.
func (k *checker) binaryLog([][]string) []loader.Finding {
	batch, workers := k.intent.BatchBytes, max(k.intent.Workers, 1)
	cache, most := k.number("binlog_cache_size"), k.number("max_binlog_cache_size")
	_, set := k.vars["sql_log_bin"]
	switch {
	case !k.on("log_bin") || set && !k.on("sql_log_bin"):
		return nil
	case most > 0 && batch > most:
		return warn(fmt.Sprintf("max_binlog_cache_size is %s, and a batch of %s is about as much in the log, which the server refuses beyond it",
			ibytes(most), ibytes(batch)),
			fmt.Sprintf("%s, or --batch-bytes %d", k.change("max_binlog_cache_size", 4*batch), most/2))
	case batch > cache:
		return warn(fmt.Sprintf("rows are written to the binary log, too; binlog_cache_size is %s, and a batch of %s goes through a temporary file first",
			ibytes(cache), ibytes(batch)),
			fmt.Sprintf("%s (of each session: %s for %d workers), or --set sql_log_bin=0 where no replica needs the rows",
				k.change("binlog_cache_size", batch), ibytes(batch*int64(workers)), workers))
	}
	return ok(fmt.Sprintf("binlog_cache_size %s holds a batch of %s", ibytes(cache), ibytes(batch)))
}

func (k *checker) redoLog([][]string) []loader.Finding {
	name, size := "innodb_redo_log_capacity", k.number("innodb_redo_log_capacity") // MySQL 8.0.30 and later
	if size == 0 {
		name, size = "innodb_log_file_size", k.number("innodb_log_file_size")*max(k.number("innodb_log_files_in_group"), 1)
	}
	if size == 0 {
		return nil
	}
	found, total, want := fmt.Sprintf("%s holds %s", name, ibytes(size)), k.intent.TotalBytes, int64(2<<30)
	if total > 0 {
		found += fmt.Sprintf(", and this run is %s", ibytes(total))
		want = max(want, min(16<<30, int64(1)<<bits.Len64(uint64(total))))
	}
	if size >= littleLog || total > 0 && total <= size {
		return ok(found)
	}
	fix := k.change(name, want)
	if name == "innodb_log_file_size" && (k.server.flavour == mySQL || k.server.before(10, 9)) { // MariaDB can since
		fix = fmt.Sprintf("%s = %d in the server's configuration, and restart it", name, want)
	}
	return warn(found+": loads wait for pages to be flushed whenever it is full", fix)
}

func (k *checker) bufferPool([][]string) []loader.Finding {
	size, total := k.number("innodb_buffer_pool_size"), k.intent.TotalBytes
	found := fmt.Sprintf("innodb_buffer_pool_size %s", ibytes(size))
	switch {
	case size == 0:
		return nil
	case size >= littlePool || total > 0 && total <= size:
		return ok(found)
	}
	return warn(found+": changed pages are written out while the load waits for room",
		k.change("innodb_buffer_pool_size", 4<<30)+", where the machine has the memory")
}

func (k *checker) durability([][]string) (all []loader.Finding) {
	value, known := k.vars["innodb_flush_log_at_trx_commit"]
	if !known {
		return nil
	}
	if value != "1" && value != "3" { // MariaDB's 3 writes through twice
		means := "a power cut takes away about a second of what was acknowledged"
		if value == "0" {
			means = "a crash of the server takes away about a second of what was acknowledged"
		}
		all = append(all, warn(fmt.Sprintf("innodb_flush_log_at_trx_commit is %s: %s, claims and all", value, means),
			k.change("innodb_flush_log_at_trx_commit", 1))...)
	}
	if sync := k.vars["sync_binlog"]; sync != "1" && k.on("log_bin") {
		all = append(all, warn(fmt.Sprintf("sync_binlog is %s: after a power cut replicas may lack, or have, other rows than the server", sync),
			k.change("sync_binlog", 1))...)
	}
	if strings.EqualFold(k.vars["innodb_doublewrite"], "OFF") && !k.aurora() {
		all = append(all, warn("innodb_doublewrite is OFF: a power cut may leave torn pages, unless the file system never does",
			"innodb_doublewrite = ON in the server's configuration")...)
	}
	if all == nil {
		return ok(fmt.Sprintf("what is acknowledged outlives a crash (innodb_flush_log_at_trx_commit %s)", value))
	}
	return all
}

// timeouts finds what ends a statement. Sessions set their other timeouts themselves, and MySQL's max_execution_time is
// for SELECT.
func (k *checker) timeouts([][]string) []loader.Finding {
	value, known := k.vars["max_statement_time"] // MariaDB, seconds
	seconds, _ := strconv.ParseFloat(value, 64)
	after := time.Duration(seconds * float64(time.Second))
	if !known {
		return nil
	}
	if after <= 0 || after > patience {
		return ok("nothing ends a statement within two minutes")
	}
	found, fix := fmt.Sprintf("max_statement_time is %s for this account, and ends loads that take longer", after), "--set max_statement_time=0"
	rate := float64(k.intent.BatchBytes) / seconds
	if rate > 0 {
		found += fmt.Sprintf(": each session would have to load %s/s, whatever it waits for", ibytes(int64(rate)))
	}
	if rate > pace {
		return fail(found, fix)
	}
	return warn(found, fix)
}

// tidbTransaction compares a batch with the two bounds of a transaction (TiDB manual, "TiDB Configuration File" and
// "System Variables"). From 6.5 on the limit in its default is not in force, and the memory quota is. Keys and encoding come
// to a batch's own bytes, hence the fifth that is left free; numbers are shorter there than as text, so nothing here is
// certain enough to stop a push.
func (k *checker) tidbTransaction(config [][]string) []loader.Finding {
	batch, quota := k.intent.BatchBytes, k.number("tidb_mem_quota_query")
	if quota > 0 && batch > quota {
		return warn(fmt.Sprintf("tidb_mem_quota_query is %s, and a batch of %s is one transaction, held in memory: beyond it the server may end the statement",
			ibytes(quota), ibytes(batch)),
			fmt.Sprintf("--set tidb_mem_quota_query=%d, or --batch-bytes %d", 6*batch, quota/6))
	}
	var limit int64
	if len(config) > 0 { // type, instance, name, value
		limit, _ = strconv.ParseInt(config[0][3], 10, 64)
	}
	if limit == 0 || limit == tidbLimit && !k.server.before(6, 5) {
		return ok(fmt.Sprintf("a batch of %s is one transaction; tidb_mem_quota_query allows %s", ibytes(batch), ibytes(quota)))
	}
	found := fmt.Sprintf("txn-total-size-limit is %s, and a batch of %s is one transaction", ibytes(limit), ibytes(batch))
	fix := fmt.Sprintf("--batch-bytes %d, or performance.txn-total-size-limit = %d in the configuration of every tidb-server", limit/5*4, 2*batch)
	switch {
	case batch > limit:
		return warn(found+" of about that size, which the server refuses beyond it", fix)
	case batch > limit/5*4:
		return warn(found+": keys and encoding may take it beyond", fix)
	}
	return ok(found)
}

// partitions compares a commit group with the partitions that read it, each an object at a time.
func (k *checker) partitions(found [][]string) []loader.Finding {
	if len(found) == 0 {
		return unsure("the server does not say", "")
	}
	n, _ := strconv.ParseInt(found[0][0], 10, 64)
	batches := k.intent.Contract.GroupBatches
	text := fmt.Sprintf("database %s has %d partitions, and a commit group has %d objects", k.target.Database, n, batches)
	if batches < n {
		return warn(text+": the other partitions have nothing to read", fmt.Sprintf("--commit-batches %d", 4*n))
	}
	return ok(text)
}
