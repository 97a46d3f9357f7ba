package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"github.com/terapush/terapush/pkg/loader"
)

// cluster is about what only TiDB or SingleStore has.
func (e *examination) cluster(ctx context.Context) error {
	switch {
	case e.server.flavour == tiDB:
		return errors.Join(e.tidbTransaction(ctx), e.tidbRegions(ctx))
	case e.method.Name == pipeline:
		return e.partitions(ctx)
	}
	return nil
}

// tidbLimit is TiDB's default of txn-total-size-limit.
const tidbLimit = 100 << 20

// tidbTransaction compares a batch with the two bounds of a transaction (TiDB manual, "TiDB Configuration File" and
// "System Variables"). From 6.5 on the limit in its default is not in force, and the memory quota is. Keys and encoding come
// to a batch's own bytes, hence the fifth that is left free; numbers are shorter there than as text, so nothing here is
// certain enough to stop a push.
func (e *examination) tidbTransaction(ctx context.Context) error {
	const check = "transaction size"
	batch := e.intent.BatchBytes
	quota := e.number("tidb_mem_quota_query")
	if quota > 0 && batch > quota {
		e.warn(check, fmt.Sprintf("tidb_mem_quota_query is %s, and a batch of %s is one transaction, held in memory: beyond it the server may end the statement", ibytes(quota), ibytes(batch)),
			fmt.Sprintf("--set tidb_mem_quota_query=%d, or --batch-bytes %d", 6*batch, quota/6))
		return nil
	}
	var kind, instance, name, value string
	err := e.control.QueryRowContext(ctx, "SHOW CONFIG WHERE type = 'tidb' AND name = 'performance.txn-total-size-limit'").Scan(&kind, &instance, &name, &value)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		e.unknown(check, err, "GRANT CONFIG ON *.* TO "+e.account+" shows txn-total-size-limit")
		return err
	}
	limit, _ := strconv.ParseInt(value, 10, 64)
	if limit == 0 || limit == tidbLimit && !e.server.before(6, 5) {
		e.ok(check, fmt.Sprintf("a batch of %s is one transaction; tidb_mem_quota_query allows %s", ibytes(batch), ibytes(quota)))
		return nil
	}
	found := fmt.Sprintf("txn-total-size-limit is %s, and a batch of %s is one transaction", ibytes(limit), ibytes(batch))
	fix := fmt.Sprintf("--batch-bytes %d, or performance.txn-total-size-limit = %d in the configuration of every tidb-server", limit/5*4, 2*batch)
	switch {
	case batch > limit:
		e.warn(check, found+" of about that size, which the server refuses beyond it", fix)
	case batch > limit/5*4:
		e.warn(check, found+": keys and encoding may take it beyond", fix)
	default:
		e.ok(check, found)
	}
	return nil
}

// tidbRegions finds tables whose rows, coming in order, all go to one region and so to one server (TiDB manual,
// "Troubleshoot Hotspot Issues").
func (e *examination) tidbRegions(ctx context.Context) error {
	const check = "hot region"
	if e.found == nil || e.making() {
		return nil
	}
	var sharding string
	err := e.control.QueryRowContext(ctx, "SELECT COALESCE(tidb_row_id_sharding_info, '') FROM information_schema.tables WHERE table_schema = ? AND table_name = ?",
		e.name().schema, e.name().table).Scan(&sharding)
	switch {
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		e.unknown(check, err, "")
		return err
	case sharding == "NOT_SHARDED":
		e.warn(check, e.name().String()+" numbers its rows in order (NOT_SHARDED): all sessions write to one region at a time", fmt.Sprintf("ALTER TABLE %s SHARD_ROW_ID_BITS = 4", e.Table))
	case sharding == "NOT_SHARDED(PK_IS_HANDLE)":
		e.warn(check, e.name().String()+" is stored in the order of its key (PK_IS_HANDLE), and rows come in that order: all sessions write to few regions",
			"make the table with PRIMARY KEY … NONCLUSTERED and SHARD_ROW_ID_BITS = 4")
	case sharding != "":
		e.ok(check, fmt.Sprintf("%s spreads its rows (%s)", e.name(), sharding))
	}
	return nil
}

// partitions compares a commit group with the partitions that read it, each an object at a time.
func (e *examination) partitions(ctx context.Context) error {
	const check = "partitions"
	var n int64
	err := e.control.QueryRowContext(ctx, "SELECT num_partitions FROM information_schema.distributed_databases WHERE database_name = ?", e.target.Database).Scan(&n)
	if err != nil {
		e.unknown(check, err, "")
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	}
	batches := e.intent.Contract.GroupBatches
	found := fmt.Sprintf("database %s has %d partitions, and a commit group has %d objects", e.target.Database, n, batches)
	if batches < n {
		e.add(check, loader.GradeWarn, found+": the other partitions have nothing to read", fmt.Sprintf("--commit-batches %d", 4*n))
		return nil
	}
	e.ok(check, found)
	return nil
}
