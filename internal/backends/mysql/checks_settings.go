package mysql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/sqlload"
)

// checkSizes compares a batch, which is one statement and one transaction, with the server's limits.
func (d *doctor) checkSizes() {
	batch := d.intent.BatchBytes
	if d.method.Name == methodInsert && batch > d.caps.MaxBytes {
		packet := d.number("max_allowed_packet")
		d.note("max_allowed_packet", sqlload.Fail(
			fmt.Sprintf("max_allowed_packet %s, and a batch is one INSERT of %s", units.Size(packet), units.Size(batch)),
			fmt.Sprintf("--batch-bytes %d, or %s", d.caps.MaxBytes, d.change("max_allowed_packet", batch+packetRoom))))
	}
	if quota := d.number("tidb_mem_quota_query"); quota > 0 && batch > quota {
		d.warn("transaction size", fmt.Sprintf("--set tidb_mem_quota_query=%d, or --batch-bytes %d", 6*batch, quota/6),
			"tidb_mem_quota_query is %s, and a batch of %s is one transaction in memory: TiDB may end the statement",
			units.Size(quota), units.Size(batch))
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
				fmt.Sprintf("%s is %s, and a batch of %s is one transaction", name, units.Size(most), units.Size(batch)),
				fmt.Sprintf("--batch-bytes %d, or %s", most/2, d.change(name, 2*batch))))
		}
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
