package postgres

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// The URL schemes. Those of a flavour assert it.
const (
	schemePostgres   = "postgres"
	schemePostgreSQL = "postgresql"
	schemeYugabyte   = "yugabyte"
	schemeRedshift   = "redshift"
)

// defaultRole is the cluster's own default role.
const defaultRole = "default"

// tableOptions are of copy and insert.
type tableOptions struct {
	Unlogged bool `option:"unlogged" help:"make the table UNLOGGED: no WAL, no replication, empty after a crash of the server"`
}

// copyOptions are of copy.
type copyOptions struct {
	RowsPerTransaction int64 `option:"rows-per-transaction" help:"YugabyteDB: commit after this many rows inside a COPY, at least once (0: a batch is one transaction)"`
	NonTransactional   bool  `option:"disable-transactional-writes" help:"YugabyteDB: write without transactions, which is fastest, but only at least once"`
}

// bucketOptions are of s3-copy.
type bucketOptions struct {
	IAMRole string `option:"iam-role" default:"default" help:"Redshift: ARN of the role that reads the bucket, or default, the cluster's own"`
	S3Keys  bool   `option:"s3-keys" help:"Redshift: let the server read the bucket with this client's own keys instead of a role"`
}

// options are of all methods. A line of one is as long as its help.
type options struct {
	tableOptions
	copyOptions
	bucketOptions
}

// planOf reads method and options of a target. It returns all that cannot work on any server as one error.
func planOf(t loader.Target) (method string, o options, err error) {
	m, unread := loader.ReadOptions(Driver{}, t, &o)
	var unusable error
	switch {
	case t.Scheme == schemeRedshift && m.Name != methodS3Copy:
		unusable = errRedshift()
	case o.S3Keys && o.IAMRole != defaultRole:
		unusable = errors.New("options iam-role and s3-keys exclude each other")
	}
	return m.Name, o, errors.Join(unread, unusable, checkVia(t, m), targetTable(t), ofTarget(t).checkParams(),
		checkSettings(t.Settings))
}

// targetTable refuses longer names than the server keeps: PostgreSQL truncates them (NAMEDATALEN), so that two names
// may mean one table.
func targetTable(t loader.Target) error {
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

// checkParams refuses, by name, what libpq would do and terapush cannot, since a user may rely on it.
func (s parameters) checkParams() error {
	var all []error
	refuse := func(name, why string) { all = append(all, fmt.Errorf("parameter %s=%s: %s", name, s[name], why)) }
	if s["gssencmode"] == "require" {
		refuse("gssencmode", "GSSAPI encryption is not spoken here; TLS is")
	}
	if on := s["replication"]; on != "" && !slices.Contains([]string{"false", "off", "no", "0"}, on) {
		refuse("replication", "such a connection cannot load rows")
	}
	if s["ssl"] != "" {
		refuse("ssl", "write sslmode=disable, prefer, require, verify-ca or verify-full")
	}
	for _, name := range []string{"sslcrl", "sslcrldir"} {
		if s[name] != "" {
			refuse(name, "lists of revoked certificates are not read")
		}
	}
	if s["sslsni"] == "0" {
		refuse("sslsni", "the host's name is always sent with TLS")
	}
	for _, name := range []string{"ssl_min_protocol_version", "ssl_max_protocol_version"} {
		if _, known := tlsVersions[strings.ToLower(s[name])]; !known {
			refuse(name, "it is TLSv1.2 or TLSv1.3")
		}
	}
	if most := tlsVersions[strings.ToLower(s["ssl_max_protocol_version"])]; most > 0 && most < tls.VersionTLS12 {
		refuse("ssl_max_protocol_version", "nothing older than TLSv1.2 is spoken here")
	}
	for name := range s {
		if strings.HasPrefix(name, "scram_") || strings.HasPrefix(name, "oauth_") {
			all = append(all, fmt.Errorf("parameter %s: log in with a password or a certificate", name))
		}
	}
	_, err := s.mode()
	return errors.Join(append(all, err)...)
}
