package mysql

import (
	"regexp"
	"slices"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/pkg/loader"
)

// fault is what an error number of the server means for a load.
type fault struct {
	numbers []uint16
	class   loader.Class
	retry   bool
	dead    bool // the session is of no use any more
	unknown bool // the server itself may not know whether the statement took effect
	hint    string
}

func (f fault) verdict() loader.Verdict {
	v := loader.Verdict{Class: f.class, Applied: loader.No, Retry: f.retry, SessionDead: f.dead}
	if f.unknown {
		v.Applied = loader.Unknown
	}
	return v
}

// wrapsAnother are the numbers that only say that the operating system or an engine has failed, with its own number in
// the text: cannot make or write a file, cannot make a database or a table, the engine's error.
var wrapsAnother = []uint16{1, 3, 1004, 1005, 1006, 1030}

// noSpace finds ENOSPC in such a text. The words around the number change with server, version and language, and those
// of the system stand behind it or not: Got error 28 "No space left on device" from storage engine InnoDB (MariaDB),
// Got error 28 - 'No space left on device' from storage engine, (errno: 28 - No space …), (OS errno 28 - No space …) and
// (Errcode: 28).
var noSpace = regexp.MustCompile(`(?i)(?:error|errno|errcode):? 28\b|no space left on device`)

// faultOf finds the meaning of an answer by its number. One that is not listed has failed for a reason that trying
// again does not change.
func faultOf(e *mysql.MySQLError) fault {
	number := e.Number
	if slices.Contains(wrapsAnother, number) && noSpace.MatchString(e.Message) {
		number = diskFull
	}
	all := faults()
	if i := slices.IndexFunc(all, func(f fault) bool { return slices.Contains(f.numbers, number) }); i >= 0 {
		return all[i]
	}
	return fault{class: loader.ClassOther}
}

// faults lists the numbers (MySQL manual, "Server Error Message Reference"; MariaDB, from 1900; TiDB, "Error Codes and
// Troubleshooting", from 8000).
func faults() []fault {
	return []fault{
		{numbers: []uint16{1205, 1213, 3572}, class: loader.ClassLock, retry: true},
		{numbers: []uint16{8002, 8022, 8028, 9007}, class: loader.ClassLock, retry: true}, // TiDB: write conflict, schema change
		{
			numbers: []uint16{1040, 1203, 1226}, class: loader.ClassThrottled, retry: true,
			hint: "lower --workers, or raise max_connections or max_user_connections on the server",
		},
		{numbers: []uint16{9003, 9004}, class: loader.ClassThrottled, retry: true}, // TiDB: storage is busy
		{
			numbers: []uint16{1290, 1792, 1836}, class: loader.ClassShutdown, retry: true, dead: true,
			hint: "the server is read-only: after a failover a new connection reaches the writer, a replica has to be replaced in the URL",
		},
		{numbers: []uint16{1053, 1077, 1079, 3032}, class: loader.ClassShutdown, retry: true, dead: true, unknown: true},
		{numbers: []uint16{2006, 2013, 8501, 9001, 9002, 9005}, class: loader.ClassConnection, retry: true, dead: true, unknown: true},
		// Killed, timed out, cut off: the server has rolled back.
		{numbers: []uint16{1158, 1159, 1160, 1161, 1184, 1317, 1927, 3169, 4031}, class: loader.ClassConnection, retry: true, dead: true},
		{numbers: []uint16{1969}, class: loader.ClassTimeout, hint: "the server's max_statement_time ended it: --set max_statement_time=0"},
		{numbers: []uint16{3024}, class: loader.ClassTimeout, hint: "the server's max_execution_time ended it: --set max_execution_time=0"},
		{numbers: []uint16{1148, 3948}, class: loader.ClassPermission, hint: localInfileHint},
		{
			numbers: []uint16{1153, 1301}, class: loader.ClassTooLarge, dead: true,
			hint: "lower --batch-bytes, or raise max_allowed_packet on the server",
		},
		{
			numbers: []uint16{1197, 3100}, class: loader.ClassTooLarge,
			hint: "lower --batch-bytes: a batch is one transaction, and max_binlog_cache_size or group replication bounds it",
		},
		{
			numbers: []uint16{8004, 8025}, class: loader.ClassTooLarge,
			hint: "lower --batch-bytes, or raise TiDB's txn-total-size-limit or txn-entry-size-limit",
		},
		{
			numbers: []uint16{diskFull, 1026, 1114}, class: loader.ClassDiskFull,
			hint: "make room on the server, then go on with --resume",
		},
		{
			numbers: []uint16{1045, 1698, 1130, 1862, 1820, 3118, 4151}, class: loader.ClassPermission,
			hint: "check user, password and the host the account is for; special characters need no escaping in TERAPUSH_PASSWORD",
		},
		{numbers: append([]uint16{1370}, accessDenied...), class: loader.ClassPermission, hint: "ask for the GRANT that the server names"},
		{numbers: []uint16{1049, 1046}, class: loader.ClassMissing, hint: "create the database, or correct its name in the URL"},
		{numbers: []uint16{noSuchTable, 1051}, class: loader.ClassMissing, hint: "let --create if-missing make it, or correct --table"},
		{numbers: []uint16{1054, 1109}, class: loader.ClassMissing, hint: "the table has other columns; name another with --table"},
		{numbers: []uint16{1193, 1238}, class: loader.ClassMissing, hint: "the server has no such session variable; correct --set"},
		{numbers: []uint16{1231, 1232, 1229}, class: loader.ClassData, hint: "correct the value in --set"},
		{numbers: []uint16{duplicateKey, 1586, 1169, 1048, 1216, 1217, 1451, 1452, 3819, 4025}, class: loader.ClassConstraint},
		{numbers: []uint16{1264, 1265, 1292, 1364, 1366, 1406, 1411, 3988}, class: loader.ClassData},
		{numbers: []uint16{3750}, class: loader.ClassConstraint, hint: "the server wants a primary key on every table: add --primary-key"},
	}
}
