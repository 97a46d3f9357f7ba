package mysql

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// flavour is one of the servers that speak MySQL's protocol, by the product's name.
type flavour string

const (
	mySQL       flavour = "MySQL"
	mariaDB     flavour = "MariaDB"
	tiDB        flavour = "TiDB"
	singleStore flavour = "SingleStore"
	oceanBase   flavour = "OceanBase"
)

// ofScheme returns the flavour that a URL's scheme asserts; that of mysql:// is MySQL, and it takes all of them.
func ofScheme(scheme string) flavour {
	return map[string]flavour{
		"mysql": mySQL, "mariadb": mariaDB, "tidb": tiDB, "oceanbase": oceanBase, "singlestore": singleStore,
	}[scheme]
}

// joins reports whether a session tries to send claim and load in one message. TiDB and SingleStore know no GET
// DIAGNOSTICS.
func (f flavour) joins() bool { return map[flavour]bool{mySQL: true, mariaDB: true}[f] }

// locksTables reports whether LOCK TABLES waits for transactions. TiDB, unless it is configured otherwise, and
// OceanBase take the statement and let others write on.
func (f flavour) locksTables() bool { return map[flavour]bool{mySQL: true, mariaDB: true}[f] }

// server is what SHOW VARIABLES says.
type server struct {
	flavour flavour
	version string // the product's own version, as the server writes it
	vars    map[string]string
}

// check refuses a server that cannot be what scheme and method ask for.
func (s server) check(scheme, method string) error {
	e := &loader.Error{Op: "probe", Applied: loader.No}
	switch {
	case scheme != "mysql" && ofScheme(scheme) != s.flavour:
		e.Err = fmt.Errorf("the target says %s://, but the server is %s %s", scheme, s.flavour, s.version)
		e.Hint = "use mysql://, which takes every server of the family, or point the URL at the right one"
	case method == methodPipeline && s.flavour != singleStore:
		e.Err = fmt.Errorf("method %s is SingleStore's, and the server is %s %s", methodPipeline, s.flavour, s.version)
		e.Hint = "take --method " + methodLoadData
	default:
		return nil
	}
	return e
}

// caps restricts what the method can do to what it can do on this server.
func (s server) caps(m loader.Method) loader.Caps {
	c := m.Caps
	c.Lacks = s.flavour.types().Lacks()
	// Nobody has asked SingleStore whether its LOAD DATA looks for a NULL before it reads escapes, as MySQL's does.
	c.NoTextNulls = s.flavour == singleStore && m.Name != methodInsert
	if m.Name == methodInsert {
		if packet, err := strconv.ParseInt(s.vars["max_allowed_packet"], 10, 64); err == nil {
			c.MaxBytes = max(packet-packetRoom, packet/2)
		}
		return c
	}
	if s.flavour == oceanBase {
		// Of a LOAD DATA that timed out 374,600 of 400,000 rows stayed (seekdb 1.4.0). The probe would find the commit,
		// but not that it is one of a part.
		c.Dedup, c.Atomic = loader.DedupNone, false
		c.Reason = "OceanBase commits LOAD DATA by itself, and in parts; it does not so with --method insert"
	}
	if s.flavour != tiDB {
		return c
	}
	// TiDB holds a transaction in memory and refuses it with error 8004 beyond txn-total-size-limit, 100 MB by default.
	c.MaxBytes = 80 << 20
	// Before 7.6 LOAD DATA commits by itself (TiDB manual, "LOAD DATA", Transactions), and before 7.0 perhaps several
	// times (tidb_dml_batch_size). The probe would find out, but only after rows were sent.
	if s.before(7, 6) {
		c.Dedup = loader.DedupNone
		c.Reason = "TiDB " + s.version + " commits LOAD DATA by itself; 7.6 and later do not, nor does --method insert"
	}
	c.Atomic = !s.before(7, 0)
	return c
}

// before compares the version's first two numbers. An unreadable version counts as 0.0: to promise less is safe.
func (s server) before(major, minor int) bool {
	var a, b int
	_, _ = fmt.Sscanf(strings.TrimPrefix(s.version, "v"), "%d.%d", &a, &b)
	return a < major || a == major && b < minor
}

// infileOff reports whether LOAD DATA LOCAL is switched off. TiDB and SingleStore show the variable for compatibility
// only.
func (s server) infileOff() bool {
	return s.vars["local_infile"] == "OFF" && (s.flavour == mySQL || s.flavour == mariaDB)
}

const localInfileHint = "run SET GLOBAL local_infile = 1 as an administrator, or set local_infile to 1 in the parameter" +
	" group of RDS or Aurora, or take --method insert"

// settings are the variables of the report: those that decide durability and speed.
func (s server) settings() map[string]string {
	found := make(map[string]string)
	for _, name := range []string{
		"innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin", "innodb_doublewrite", "innodb_buffer_pool_size",
		"innodb_log_file_size", "innodb_redo_log_capacity", "innodb_flush_method", "innodb_autoinc_lock_mode",
		"sql_mode", "unique_checks", "foreign_key_checks", "max_allowed_packet", "transaction_isolation", "tx_isolation",
		"version_comment", "aurora_version", "tidb_txn_mode", "default_table_type",
	} {
		if value, ok := s.vars[name]; ok {
			found[name] = value
		}
	}
	return found
}
