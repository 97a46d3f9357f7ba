package mysql

import (
	"errors"
	"regexp"
	"slices"
	"strconv"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
)

// Classify implements loader.Driver.
func (Driver) Classify(err error) loader.Verdict { return loader.Judge(err, faultOf) }

func hint(err error) string { return loader.Hint(err, faultOf) }

// failed adds the operation and a hint to an error.
func failed(op string, err error) error { return loader.Describe(op, err, faultOf) }

// faultOf reads a server's errors by their numbers. One that is not listed is not retried.
func faultOf(err error) (loader.Fault, bool) {
	if f, ok := objstore.FaultOf(err); ok {
		return f, true
	}
	server := (*mysql.MySQLError)(nil)
	switch {
	case errors.As(err, &server):
		number := server.Number
		if slices.Contains(wrapsAnother, number) && noSpace.MatchString(server.Message) {
			number = diskFull
		}
		f, listed := faults.Code(strconv.Itoa(int(number)))
		switch {
		case !listed:
			f.Verdict = loader.Refused(classOf(server.SQLState))
		case number == optionPrevents && !readOnly.MatchString(server.Message):
			f = loader.Fault{Verdict: loader.Refused(loader.ClassPermission),
				Hint: "the server was started with the option that it names, which forbids the statement"}
		}
		return f, true
	case loader.Ended(err):
		return loader.Fault{}, false
	case errors.As(err, new(*pipelineError)):
		// The server's messages are for people and do not say whether a retry helps, so it is made.
		return loader.Fault{Verdict: loader.Verdict{Class: loader.ClassOther, Retry: true}}, true
	}
	return mysqlconn.FaultOf(err)
}

// classOf reads the SQLSTATE of an error that is not listed: LOAD DATA has one of its own for each type of column, as
// 3140 for a text that is no JSON.
func classOf(state [5]byte) loader.Class {
	switch string(state[:2]) {
	case "22":
		return loader.ClassData
	case "23":
		return loader.ClassConstraint
	}
	return loader.ClassOther
}

// wrapsAnother are the numbers of failures of the operating system or an engine, whose own number is in the text:
// cannot make or write a file, cannot make a database or a table, the engine's error.
var wrapsAnother = []uint16{1, 3, 1004, 1005, 1006, 1030}

// noSpace finds ENOSPC in such a text. The words around the number change with server, version and language: Got error
// 28 "No space left on device" from storage engine InnoDB, (errno: 28 - No space …), (OS errno 28 - No space …),
// (Errcode: 28).
var noSpace = regexp.MustCompile(`(?i)(?:error|errno|errcode):? 28\b|no space left on device`)

// readOnly finds the option in such a text: --read-only, --super-read-only, --innodb-read-only, read_only in some
// flavours. Other options have the same number: --skip-grant-tables, --secure-file-priv, a provider's
// LOCK_WRITE_GROWTH.
var readOnly = regexp.MustCompile(`(?i)read[-_ ]only`)

// Numbers that the code compares with.
const (
	diskFull       = 1021
	noSuchTable    = 1146
	optionPrevents = 1290
)

// accessDenied are the numbers of a missing privilege on a database, table or column, and of a missing global one.
var accessDenied = []uint16{1044, 1142, 1143, 1227}

// notThere are the numbers of an unknown column and of an unknown table: also of information_schema, which has other
// views on every server of the family.
var notThere = []uint16{1054, 1109, noSuchTable}

var is = mysqlconn.Is

// refused is a row of faults: nothing is applied, and another attempt would not help.
func refused(codes string, class loader.Class, hint string) loader.Fault {
	return loader.Fault{Codes: codes, Verdict: loader.Refused(class), Hint: hint}
}

// faults is the table of numbers (MySQL manual, "Server Error Message Reference"; MariaDB, from 1900; TiDB, "Error
// Codes and Troubleshooting", from 8000).
var faults = loader.Faults{
	{Codes: "1205 1213 3572", Verdict: loader.Again(loader.ClassLock)},
	{Codes: "8002 8022 8028 9007", Verdict: loader.Again(loader.ClassLock)}, // TiDB: write conflict, schema change
	{Codes: "1040 1203 1226", Verdict: loader.Again(loader.ClassThrottled),
		Hint: "lower --workers, or raise max_connections or max_user_connections on the server"},
	{Codes: "9003 9004", Verdict: loader.Again(loader.ClassThrottled)}, // TiDB: storage is busy
	{Codes: "1792", Verdict: loader.Reconnect(loader.ClassShutdown),
		Hint: "transactions are read-only here: --set transaction_read_only=0, or --set tx_read_only=0 before MariaDB 11"},
	{Codes: "1290 1836", Verdict: loader.Reconnect(loader.ClassShutdown),
		Hint: "the server is read-only: after a failover a new connection reaches the writer, a replica has to " +
			"be replaced in the URL"},
	{Codes: "1053 1077 1079", Verdict: loader.Lost(loader.ClassShutdown)},
	{Codes: "3032", Verdict: loader.Lost(loader.ClassShutdown),
		Hint: "an administrator has closed the server to others: SET GLOBAL offline_mode = OFF"},
	{Codes: "2006 2013 8501 9001 9002 9005", Verdict: loader.Lost(loader.ClassConnection)},
	// Killed, timed out, cut off: the server has rolled back.
	{Codes: "1158 1159 1160 1161 1184 1317 1927 3169 4031", Verdict: loader.Reconnect(loader.ClassConnection)},
	refused("1969", loader.ClassTimeout, "the server's max_statement_time ended it: --set max_statement_time=0"),
	refused("3024", loader.ClassTimeout, "the server's max_execution_time ended it: --set max_execution_time=0"),
	refused("1148 3948", loader.ClassPermission, localInfileHint),
	{Codes: "1153 1301",
		Verdict: loader.Verdict{Class: loader.ClassTooLarge, Applied: loader.No, SessionDead: true},
		Hint:    "lower --batch-bytes, or raise max_allowed_packet on the server"},
	refused("1197 3100", loader.ClassTooLarge,
		"a batch is one transaction, and max_binlog_cache_size or group replication bounds it: raise that on the server, "+
			"or start a new run with smaller --batch-bytes, since a resume keeps those of its run"),
	refused("8004", loader.ClassTooLarge, "lower --batch-bytes, or raise TiDB's txn-total-size-limit"),
	refused("8025", loader.ClassData, "a row is longer than TiDB's txn-entry-size-limit"),
	refused("1021 1026 1114", loader.ClassDiskFull, "make room on the server, then resume"),
	refused("1045 1698 1130 1862 1820 3118 4151", loader.ClassPermission,
		"check user, password and the host the account is for; special characters need no escaping in TERAPUSH_PASSWORD; "+
			"an account, or MariaDB as a whole, may want TLS (--tls require) or a client's certificate (--tls-cert)"),
	refused("3159", loader.ClassPermission, "the server takes no connection without TLS: --tls verify, or --tls require, "+
		"which encrypts without verifying the server"),
	refused("1044 1142 1143 1227 1370", loader.ClassPermission, "ask for the GRANT that the server names"),
	refused("1049 1046", loader.ClassMissing, "create the database, or correct its name in the URL"),
	refused("1146 1051", loader.ClassMissing, "was it dropped while the run was going? otherwise correct --table"),
	refused("1054 1109", loader.ClassMissing, "the table has other columns; name another with --table"),
	refused("1193 1238", loader.ClassMissing, "the server has no such session variable; correct --set"),
	refused("1231 1232 1229", loader.ClassData, "correct the value in --set"),
	refused("1062 1586 1169 1048 1216 1217 1451 1452 3819 4025", loader.ClassConstraint, ""),
	refused("1264 1265 1292 1300 1364 1366 1406 1411 1690 3988 6136", loader.ClassData, ""),
	// MySQL's sql_require_primary_key and MariaDB's innodb_force_primary_key; 3098 is group replication's, at the first
	// row.
	refused("3750 1173 3098", loader.ClassConstraint, "the server wants a primary key on every table: add --primary-key"),
	refused("8216", loader.ClassConstraint,
		"--set allow_auto_random_explicit_insert=1 lets an AUTO_RANDOM column take the run's keys"),
	refused("1644", loader.ClassConstraint, "a trigger of the table refuses the rows"),
}
