package doris

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// Ports of a frontend.
const (
	queryPort = "9030" // the MySQL protocol
	httpPort  = "8030"
	httpsPort = "8050"
)

// tableName is a table with its database, as the server writes them, unquoted.
type tableName struct{ schema, table string }

// targetTable reads the target's table: table or database.table.
func targetTable(t loader.Target) (tableName, error) {
	name := tableName{schema: t.Database, table: t.Table}
	if schema, table, found := strings.Cut(t.Table, "."); found {
		name = tableName{schema: schema, table: table}
	}
	if name.schema == "" {
		return name, errors.New("the target names no database: write it into the URL, as in doris://user@host/database")
	}
	if name.table == "" || strings.ContainsAny(name.table, ".,") {
		return name, fmt.Errorf("table %q: write it as table or as database.table", t.Table)
	}
	return name, sqlload.CheckTable(sqlload.Length{}, name.schema, name.table)
}

// String is the name as Table.Name shows it and Preparation.MayDrop gives it.
func (n tableName) String() string { return n.schema + "." + n.table }

func (n tableName) quoted() string { return quote(n.schema) + "." + quote(n.table) }

// quote quotes one identifier.
func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// literal quotes a string. Doris knows no NO_BACKSLASH_ESCAPES that is on by default, and the sessions do not set it.
func literal(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

// frontend is one FE of the target: how to reach its MySQL protocol and its HTTP server.
type frontend struct {
	address string // host:port of the MySQL protocol
	config  *mysql.Config
	loading *mysql.Config // for sessions of insert, by any frontend that the host's name stands for: labels are the cluster's
	http    url.URL       // scheme and host
}

// frontends makes the configuration of every host. MySQL's is built field by field and never written as a DSN, so that
// no string exists that holds the password among other things.
func frontends(t loader.Target, d loader.Deps) ([]frontend, error) {
	var all []frontend
	for i := range max(len(t.Hosts), 1) {
		address := t.Address(i, queryPort)
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("host %q of the target: %w", t.Hosts[i], err)
		}
		c := mysql.NewConfig()
		c.Net, c.Addr = "tcp", address
		c.User, c.Passwd, c.DBName = t.User, t.Password.Reveal(), t.Database
		c.DialFunc = d.Dial
		c.Logger = driverLog{d.Log}
		// Text only: Doris refuses to prepare most statements, and the driver would prepare whatever has arguments.
		c.InterpolateParams = true
		c.MaxAllowedPacket = 1 << 30
		config, plain, err := d.TLS(t.TLS, host)
		if err != nil {
			return nil, fmt.Errorf("TLS for %s: %w", address, err)
		}
		c.TLS, c.AllowFallbackToPlaintext = config, plain
		loading := c.Clone()
		loading.DialFunc = d.DialAny()
		all = append(all, frontend{address: address, config: c, loading: loading, http: httpURL(t, host, config != nil && !plain)})
	}
	return all, nil
}

// httpURL is a frontend's HTTP server. Where TLS is only a preference it is asked in the clear: one that wants TLS
// redirects, and one that has none could not say so otherwise.
func httpURL(t loader.Target, host string, encrypted bool) url.URL {
	scheme, port := "http", httpPort
	if encrypted {
		scheme, port = "https", httpsPort
	}
	if given := t.Params.Get("http_port"); given != "" {
		port = given
	}
	return url.URL{Scheme: scheme, Host: net.JoinHostPort(host, port)}
}

// httpTLS is the configuration for every https host: the server's name is filled in by the transport, since backends
// have names that nobody knows before the redirect.
func httpTLS(t loader.Target, d loader.Deps) (*tls.Config, error) {
	host, _, err := net.SplitHostPort(t.Address(0, queryPort))
	if err != nil {
		return nil, err
	}
	config, _, err := d.TLS(t.TLS, host)
	if err != nil || config == nil {
		return nil, err
	}
	config = config.Clone()
	if config.ServerName == host {
		config.ServerName = ""
	}
	return config, nil
}

// checkParams refuses what it does not know: a parameter that is silently ignored is a setting that somebody trusts.
func checkParams(t loader.Target) error {
	known := []string{"http_port"}
	for name := range t.Params {
		if !slices.Contains(known, name) {
			return fmt.Errorf("parameter %q of the target is not known; there are: %s; session variables go into --set %s=…",
				name, strings.Join(known, ", "), name)
		}
	}
	if port := t.Params.Get("http_port"); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("http_port=%s is no port", port)
		}
	}
	return nil
}

// checkSettings refuses what would break the promises of a session, and what is no variable's name.
func checkSettings(t loader.Target) error {
	name := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	for _, s := range t.Settings {
		switch {
		case t.Method == streamLoad:
			return fmt.Errorf("--set %s: a stream load has no session to set it in; it is for methods %s and %s", s.Name, insert, s3Load)
		case !name.MatchString(s.Name):
			return fmt.Errorf("--set %s: not the name of a session variable", s.Name)
		case strings.EqualFold(s.Name, "group_commit"):
			return fmt.Errorf("--set group_commit is refused: take --%s, which knows what it does to the guarantee", optGroupCommit)
		case strings.EqualFold(s.Name, "sql_mode") && strings.Contains(strings.ToUpper(s.Value), "NO_BACKSLASH_ESCAPES"):
			return fmt.Errorf("--set sql_mode with NO_BACKSLASH_ESCAPES is refused: the rows are escaped with backslashes")
		}
	}
	return nil
}

// settingValue writes a value as the server wants it: numbers bare, anything else as a string.
func settingValue(value string) string {
	if regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`).MatchString(value) {
		return value
	}
	return literal(value)
}

// driverLog takes what the driver would print to stderr. It repeats errors that are returned as well.
type driverLog struct{ log *slog.Logger }

func (l driverLog) Print(v ...any) { l.log.Debug("mysql driver", "message", fmt.Sprint(v...)) }
