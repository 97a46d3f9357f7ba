package config

import (
	"fmt"
	"strings"
)

// removed are the flags that there are no more, and values of flags, with what to use instead.
var removed = map[string]string{
	"--be":         "it is called --backend-hosts",
	"--credential": "it was for method cloud-copy, which is gone too; --method array needs none",
	"--format csv": "--format json has the same figures",
	"--method cloud-copy": "use array, which sends rows over the wire; or put the objects into a bucket (terapush push " +
		"s3://bucket/prefix --format csv) and copy them yourself with DBMS_CLOUD.COPY_DATA",
	"--method s3-import": "use copy, which sends rows over the wire; or put the objects into a bucket (terapush push " +
		"s3://bucket/prefix --format csv) and import them yourself with aws_s3.table_import_from_s3",
	"--near":     "it is called --tolerance",
	"--password": "a sink accepts every password, and a push reads --password-file or TERAPUSH_PASSWORD",
	"--prices":   "the report has what a bill goes by: result.wire_bytes, result.attempts, phases",
	"--redact":   "all formats but text leave names out unless --full is given",
	"--via":      "it is called --staging",
	"--yes-drop": "it is called --allow-drop",
}

// never are the flags that users of other tools look for, and there will not be, with the way to do it.
var never = map[string]string{
	"--disable-foreign-keys": "terapush changes no table: terapush doctor names the foreign keys, and the statements that drop them; " +
		"--set foreign_key_checks=0 skips them in MySQL's family",
	"--disable-triggers": "terapush changes no table: terapush doctor names the triggers, and the statements that disable them",
	"--drop-indexes":     "terapush changes no table: terapush doctor names the indexes, and the statements that drop them",
	"--freeze": "COPY FREEZE takes a table that was made or emptied in the transaction of the load, and a run has many of them: " +
		"VACUUM (FREEZE) the table afterwards",
	"--on-conflict": upsert,
	"--upsert":      upsert,
}

const upsert = "rows are inserted: load them into a table of their own, and move them by INSERT … ON CONFLICT, " +
	"INSERT … ON DUPLICATE KEY UPDATE or MERGE"

// Removed returns the error for a flag that there is no more, as in --prices, or never will be, or for a value of a flag, as in
// --format csv; nil for all others. A flag may be written as in a variable or a plan, with underscores.
func Removed(given string) error {
	given = strings.ReplaceAll(given, "_", "-")
	if how, is := never[given]; is {
		return fmt.Errorf("%s is not there: %s", given, how)
	}
	instead, was := removed[given]
	if !was {
		return nil
	}
	return fmt.Errorf("%s was removed: %s", given, instead)
}
