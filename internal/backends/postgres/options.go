package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// The URL schemes. Those that name a flavour assert it.
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

// defaultRole is the role that a cluster has for COPY when none is named.
const defaultRole = "default"

type options struct {
	unlogged           bool
	rowsPerTransaction int64
	nonTransactional   bool
	iamRole            string // an ARN, or defaultRole
	s3Keys             bool   // the server reads the bucket with our keys
}

// planOf reads method and options of a target and refuses what cannot work on any server, all of it at once.
func planOf(t loader.Target) (method string, o options, err error) {
	m, known := loader.FindMethod(driver{}, t.Method)
	if !known {
		return "", o, fmt.Errorf("method %q does not exist here; there is: %s, %s, %s, %s",
			t.Method, methodCopy, methodInsert, methodS3Copy, methodImport)
	}
	o.iamRole = defaultRole
	var bad []error
	refuse := func(format string, values ...any) { bad = append(bad, fmt.Errorf(format, values...)) }

	for name, text := range t.Options {
		if !slices.ContainsFunc(m.Options, func(o loader.Option) bool { return o.Name == name }) {
			refuse("method %s has no option %q", m.Name, name)
			continue
		}
		var err error
		switch name {
		case optionUnlogged:
			o.unlogged, err = strconv.ParseBool(text)
		case optionNonTransactional:
			o.nonTransactional, err = strconv.ParseBool(text)
		case optionIAMRole:
			o.iamRole = text
		case optionS3Keys:
			o.s3Keys, err = strconv.ParseBool(text)
		case optionRowsPerTransaction:
			o.rowsPerTransaction, err = strconv.ParseInt(text, 10, 64)
			if o.rowsPerTransaction < 0 {
				err = strconv.ErrRange
			}
		}
		if err != nil {
			refuse("option %s: %q is not a valid value", name, text)
		}
	}
	for _, err := range []error{checkScheme(t, m), checkVia(t, m), checkRole(o), checkTable(t)} {
		if err != nil {
			bad = append(bad, err)
		}
	}
	for _, host := range t.Hosts {
		if strings.HasSuffix(host, ":9042") {
			refuse("%s is YugabyteDB's YCQL port, which terapush does not speak; YSQL listens on 5433", host)
		}
	}
	for name, values := range t.Params {
		if reason := refusedParam(name, values); reason != "" {
			refuse("parameter %s of the target: %s", name, reason)
		}
	}
	return m.Name, o, errors.Join(bad...)
}

// longest and longestRedshift are the bytes of a name. PostgreSQL cuts longer ones and goes on (NAMEDATALEN).
const (
	longest         = 63
	longestRedshift = 127
)

func checkTable(t loader.Target) error {
	most := sqlload.Bytes(longest)
	if t.Scheme == schemeRedshift {
		most = sqlload.Bytes(longestRedshift)
	}
	switch {
	case strings.Contains(t.Table, ","):
		return fmt.Errorf("table %q: a run loads one table; start one run per table", t.Table)
	case strings.Count(t.Table, ".") > 1:
		return fmt.Errorf("table %q: write it as table or schema.table", t.Table)
	}
	return sqlload.CheckTable(most, strings.Split(t.Table, ".")...)
}

// refusedParam tells why a parameter of the URL is not taken: those that other programs know and that would be
// ignored without a word.
func refusedParam(name string, values []string) string {
	switch name {
	case "sslcert", "sslkey", "sslrootcert", "sslpassword", "sslcertmode", "sslsni":
		return "certificates are named with the --tls flags"
	case "default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity", "prefer_simple_protocol",
		"binary_parameters":
		return "terapush prepares no statements: a batch is one COPY or one INSERT"
	case "topology_keys":
		return "name the nodes to use as hosts of the target"
	}
	if slices.ContainsFunc(values, func(v string) bool { return strings.EqualFold(v, "ycql") }) {
		return "terapush does not speak YCQL; use YSQL"
	}
	return ""
}

// checkScheme refuses a scheme that asserts a product which the method is not for.
func checkScheme(t loader.Target, m loader.Method) error {
	switch {
	case t.Scheme == schemeRedshift && m.Name != methodS3Copy:
		return errRedshift()
	case t.Scheme == schemeYugabyte && m.Caps.Staged:
		return fmt.Errorf("method %s is not YugabyteDB's, which reads nothing from S3", m.Name)
	}
	return nil
}

// checkVia refuses an object store where none is used, and a staged method without one.
func checkVia(t loader.Target, m loader.Method) error {
	switch {
	case !m.Caps.Staged && t.Via != nil:
		return fmt.Errorf("method %s sends rows to the server itself: leave --via out", m.Name)
	case !m.Caps.Staged:
		return nil
	case t.Via == nil:
		return fmt.Errorf("method %s needs an object store: --via s3://bucket/prefix", m.Name)
	case t.Via.Params.Has("server_endpoint"):
		return fmt.Errorf("method %s: the server reads from Amazon S3 and takes no other endpoint: leave server_endpoint out", m.Name)
	case strings.Contains(t.Via.Database, `\`):
		return fmt.Errorf("prefix %q: Redshift would read the backslash as an escape", t.Via.Database)
	}
	return objstore.Check(*t.Via)
}

func checkRole(o options) error {
	switch {
	case strings.ContainsAny(o.iamRole, `'\ `) || o.iamRole == "":
		return fmt.Errorf("option %s: %q is neither an ARN nor %s", optionIAMRole, o.iamRole, defaultRole)
	case o.s3Keys && o.iamRole != defaultRole:
		return fmt.Errorf("options %s and %s exclude each other", optionIAMRole, optionS3Keys)
	}
	return nil
}
