//go:build godror

package oracle

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"time"

	"github.com/godror/godror"
	"github.com/godror/godror/dsn"

	"github.com/terapush/terapush/pkg/loader"
)

// builtIn is godror, over Oracle's client library.
//
// godror sends a break when a context ends, and gives its deadline to the library (since 18c). Connect ignores
// contexts: see interruptible. Commit and Rollback of its driver.Tx take none, and hold a lock that a break waits for.
func builtIn() client {
	times := bindTimes(func(t time.Time) time.Time { return t }) // whose zero is a NULL
	return client{
		name: "godror " + godror.Version, connector: godrorConnector, code: godrorCode, explain: godrorExplain,
		directPath: true, endsByStatement: true,
		// Else it would execute an array again after ORA-04068, on top of rows that went in before.
		options: []any{godror.NoRetry()},
		times:   times, maybeTimes: times,
	}
}

// godrorConnector makes standalone connections: sessions have no use for the library's pool.
func godrorConnector(t loader.Target, d loader.Deps, host int) (driver.Connector, error) {
	if err := refuseCertificates(t, d, host); err != nil {
		return nil, err
	}
	p := dsn.ConnectionParams{StandaloneConnection: sql.NullBool{Bool: true, Valid: true}}
	p.Username, p.Password, p.ConnectString = t.User, godror.NewPassword(t.Password.Reveal()), godrorDescriptor(t, host)
	p.LibDir = t.Params.Get(paramLibDir)
	p.ConfigDir = t.Params.Get(paramTNSAdmin)
	if p.ConfigDir == "" {
		p.ConfigDir = t.Params.Get(paramWallet)
	}
	// A time.Time is converted to this zone: UTC leaves it unchanged.
	p.Timezone, p.NoTZCheck = time.UTC, true
	return interruptible{godror.NewConnector(p)}, nil
}

// godrorDescriptor is the connect descriptor; without a host, a name in tnsnames.ora.
func godrorDescriptor(t loader.Target, host int) string {
	if len(t.Hosts) == 0 {
		return t.Database
	}
	protocol, security := "TCP", ""
	if encrypted(t.TLS) {
		protocol, security = "TCPS", "(SSL_SERVER_DN_MATCH=YES)"
		if t.TLS != loader.TLSVerify {
			security = "(SSL_SERVER_DN_MATCH=NO)"
		}
		if wallet := t.Params.Get(paramWallet); wallet != "" {
			security += `(MY_WALLET_DIRECTORY="` + wallet + `")`
		}
		security = "(SECURITY=" + security + ")"
	}
	service := "(SERVICE_NAME=" + t.Database + ")"
	if sid := t.Params.Get(paramSID); sid != "" {
		service = "(SID=" + sid + ")"
	}
	name, port := hostPort(t, host)
	seconds := int(loader.ConnectTimeout / time.Second)
	return fmt.Sprintf("(DESCRIPTION=(CONNECT_TIMEOUT=%d)(TRANSPORT_CONNECT_TIMEOUT=%d)"+
		"(ADDRESS=(PROTOCOL=%s)(HOST=%s)(PORT=%s))(CONNECT_DATA=%s)%s)",
		seconds, seconds, protocol, name, port, service, security)
}

func godrorCode(err error) (int, string, bool) {
	e, ok := godror.AsOraErr(err)
	if !ok || e.Code() == 0 {
		return 0, "", false
	}
	text := e.Message()
	if !strings.HasPrefix(text, "ORA-") {
		text = fmt.Sprintf("ORA-%05d: %s", e.Code(), text)
	}
	return e.Code(), text, true
}

func godrorExplain(err error) string {
	switch text := err.Error(); {
	case strings.Contains(text, "DPI-1047"):
		return "install Oracle Instant Client (Basic or Basic Light) and name its folder: LD_LIBRARY_PATH=/folder, or ?" +
			paramLibDir + "=/folder in the target"
	case strings.Contains(text, "DPI-1072"):
		return "the Oracle client library is older than 11.2: install a newer Instant Client"
	}
	return ""
}
