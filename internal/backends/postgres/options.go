package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// The URL schemes. Those of a flavour assert it.
const (
	schemePostgres   = "postgres"
	schemePostgreSQL = "postgresql"
	schemeYugabyte   = "yugabyte"
	schemeRedshift   = "redshift"
)

// The options of the methods.
const (
	optionUnlogged           = "unlogged"
	optionRowsPerTransaction = "rows-per-transaction"
	optionNonTransactional   = "disable-transactional-writes"
	optionIAMRole            = "iam-role"
	optionS3Keys             = "s3-keys"
)

// defaultRole is the cluster's own default role.
const defaultRole = "default"

type options struct {
	unlogged           bool
	rowsPerTransaction int64
	nonTransactional   bool
	iamRole            string // an ARN, or defaultRole
	s3Keys             bool   // the server reads the bucket with our keys
}

// planOf reads method and options of a target. It returns all that cannot work on any server as one error; the types of
// the options are checked already.
func planOf(t loader.Target) (method string, o options, err error) {
	m, known := loader.FindMethod(driver{}, t.Method)
	if !known {
		return "", o, fmt.Errorf("method %q does not exist", t.Method)
	}
	enabled := func(name string) bool { on, _ := strconv.ParseBool(t.Options[name]); return on }
	o = options{
		unlogged: enabled(optionUnlogged), nonTransactional: enabled(optionNonTransactional), s3Keys: enabled(optionS3Keys),
		iamRole: cmp.Or(t.Options[optionIAMRole], defaultRole),
	}
	o.rowsPerTransaction, _ = strconv.ParseInt(t.Options[optionRowsPerTransaction], 10, 64)
	var unusable error
	switch {
	case t.Scheme == schemeRedshift && m.Name != methodS3Copy:
		unusable = errRedshift()
	case o.s3Keys && o.iamRole != defaultRole:
		unusable = fmt.Errorf("options %s and %s exclude each other", optionIAMRole, optionS3Keys)
	}
	return m.Name, o, errors.Join(unusable, checkVia(t, m), checkTable(t), ofTarget(t).check(), sqlload.CheckSettings(t.Settings))
}

// checkTable refuses longer names than the server keeps: PostgreSQL truncates them (NAMEDATALEN), so that two names may
// mean one table.
func checkTable(t loader.Target) error {
	most := 63
	if t.Scheme == schemeRedshift {
		most = 127
	}
	if strings.Count(t.Table, ".") > 1 {
		return fmt.Errorf("table %q: write it as table or schema.table", t.Table)
	}
	return sqlload.CheckTable(sqlload.Bytes(most), strings.Split(t.Table, ".")...)
}

// checkVia refuses a staged method without an object store, and a store that the server cannot read.
func checkVia(t loader.Target, m loader.Method) error {
	switch {
	case !m.Caps.Staged:
		return nil
	case t.Via == nil:
		return fmt.Errorf("method %s needs an object store: --staging s3://bucket/prefix", m.Name)
	case t.Via.Params.Has("server_endpoint"):
		return fmt.Errorf("method %s: the server reads from Amazon S3 and takes no other endpoint: leave server_endpoint out", m.Name)
	case strings.Contains(t.Via.Database, `\`):
		return fmt.Errorf("prefix %q: Redshift would read the backslash as an escape", t.Via.Database)
	}
	return objstore.Check(*t.Via)
}
