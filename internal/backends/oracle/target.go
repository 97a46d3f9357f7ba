package oracle

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// The options of the methods.
const (
	optionPartition  = "partition"
	optionCredential = "credential"
)

// The parameters of an oracle:// URL. All others are refused: a driver that does not know one would take it without a
// word, or pass over it.
const (
	paramSID       = "sid"        // instead of a service
	paramSSL       = "ssl"        // TLS (TCPS), as --tls require or verify
	paramSSLVerify = "ssl_verify" // false: as --tls require
	paramWallet    = "wallet"     // the folder of an auto-login wallet (cwallet.sso), for mutual TLS
	paramTNSAdmin  = "tns_admin"  // the folder of tnsnames.ora and sqlnet.ora; godror only
	paramLibDir    = "lib_dir"    // where Oracle's client library lies; godror only
)

func params() []string {
	return []string{paramSID, paramSSL, paramSSLVerify, paramWallet, paramTNSAdmin, paramLibDir}
}

// defaultPort is the listener's.
const defaultPort = "1521"

type options struct {
	partition  string // as the user wrote it
	credential string
}

// Check reads method, options and address.
func (b backend) Check(t loader.Target) (loader.Caps, error) {
	method, _, err := planOf(b.client, t)
	return capsOf(method), err
}

// planOf reads method and options of a target and refuses what cannot work on any server, all of it at once.
func planOf(c client, t loader.Target) (method string, o options, err error) {
	m, known := loader.FindMethod(backend{client: c}, t.Method)
	if !known {
		return "", o, fmt.Errorf("method %q does not exist here; there is: %s, %s, %s, %s, %s, %s",
			t.Method, methodArray, methodSingle, methodBatch, methodFast, methodDirect, methodCloudCopy)
	}
	var bad []error
	refuse := func(format string, values ...any) { bad = append(bad, fmt.Errorf(format, values...)) }

	o = options{partition: t.Options[optionPartition], credential: t.Options[optionCredential]}
	if m.Name == methodDirect && !c.directPath {
		refuse("method %s is not for %s, which asks the server to keep the good rows of an array that fails, and for direct "+
			"path the server refuses that (ORA-38910): use method %s, or a binary of make build-godror", m.Name, c.name, methodArray)
	}
	for _, err := range []error{checkAddress(c, t), checkVia(t, m), checkTable(t.Table), checkSettings(t.Settings)} {
		if err != nil {
			bad = append(bad, err)
		}
	}
	return m.Name, o, errors.Join(bad...)
}

// addressable are the characters of hosts, services and SIDs. Drivers write them into a connect descriptor, where a
// parenthesis would begin something else.
var addressable = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._$#-]*$`)

func checkAddress(c client, t loader.Target) error {
	var bad []error
	refuse := func(format string, values ...any) { bad = append(bad, fmt.Errorf(format, values...)) }
	service, sid := t.Database, t.Params.Get(paramSID)
	switch {
	case service == "" && sid == "":
		refuse("the target names no service: write oracle://user@host:%s/service, or ?%s=… for an old SID", defaultPort, paramSID)
	case service != "" && sid != "":
		refuse("the target names a service and a SID, which exclude each other")
	}
	for _, name := range []string{service, sid} {
		if name != "" && !addressable.MatchString(name) {
			refuse("%q cannot be a service or SID", name)
		}
	}
	if t.User == "" {
		refuse("the target names no user: write oracle://user@host:%s/service", defaultPort)
	}
	for i, host := range t.Hosts {
		if name, _, err := net.SplitHostPort(t.Address(i, defaultPort)); err != nil || !addressable.MatchString(name) && net.ParseIP(name) == nil {
			refuse("%q is not host or host:port", host)
		}
	}
	if len(t.Hosts) == 0 && !t.Params.Has(paramTNSAdmin) {
		refuse("the target names no host: write oracle://user@host:%s/service", defaultPort)
	}
	for name, values := range t.Params {
		if reason := refusedParam(c, name, values); reason != "" {
			refuse("parameter %s of the target: %s", name, reason)
		}
	}
	if _, err := tlsMode(t); err != nil {
		bad = append(bad, err)
	}
	return errors.Join(bad...)
}

// refusedParam tells why a parameter of the URL is not taken. Reasons never repeat values, which may be secrets.
func refusedParam(c client, name string, values []string) string {
	switch name {
	case paramTNSAdmin, paramLibDir:
		if !c.directPath {
			return "only godror reads it, and this binary has " + c.name + ": see make build-godror"
		}
	}
	switch {
	case !slices.Contains(params(), name):
		return "there is none of this name; there is: " + strings.Join(params(), ", ")
	case len(values) != 1 || values[0] == "":
		return "it wants one value"
	case strings.ContainsAny(values[0], "\"()\x00"): // folders end up in a connect descriptor, too
		return "quotation marks and parentheses cannot be part of it"
	}
	return ""
}

// tlsMode is what the flag says, else the URL. A wallet is for TLS. Oracle's listener speaks either TCP or TCPS on a
// port, never both, so what nobody asks for cannot be tried: without a word in the URL it is TLSAuto.
func tlsMode(t loader.Target) (loader.TLSMode, error) {
	truth := func(name string, otherwise bool) (bool, error) {
		text := t.Params.Get(name)
		if text == "" {
			return otherwise, nil
		}
		value, err := strconv.ParseBool(text)
		if err != nil {
			return false, fmt.Errorf("parameter %s of the target is neither true nor false", name)
		}
		return value, nil
	}
	wallet := t.Params.Get(paramWallet) != ""
	on, err := truth(paramSSL, wallet)
	if err != nil {
		return "", err
	}
	verify, err := truth(paramSSLVerify, true)
	switch {
	case err != nil:
		return "", err
	case wallet && (!on || t.TLS == loader.TLSOff):
		return "", fmt.Errorf("parameter %s of the target is for TLS, which is switched off", paramWallet)
	case t.TLS != loader.TLSAuto:
		return t.TLS, nil
	case on && verify:
		return loader.TLSVerify, nil
	case on:
		return loader.TLSRequire, nil
	case t.Params.Has(paramSSL):
		return loader.TLSOff, nil
	}
	return loader.TLSAuto, nil
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
	case strings.ContainsAny(t.Via.Database, "*?"):
		return fmt.Errorf("prefix %q: DBMS_CLOUD would read * and ? as wildcards", t.Via.Database)
	}
	endpoint := t.Via.Params.Get("server_endpoint")
	if endpoint == "" {
		endpoint = t.Via.Params.Get("endpoint")
	}
	if strings.HasPrefix(endpoint, "http:") {
		return fmt.Errorf("method %s: DBMS_CLOUD reads over https alone: add server_endpoint=https://… to --via", m.Name)
	}
	return objstore.Check(*t.Via)
}

// longest is the bytes of a name since 12.2; servers before that refuse more than 30 themselves.
const longest = 128

func checkTable(table string) error {
	if strings.Count(table, ".") > 1 || strings.ContainsAny(table, `,"@`) {
		return fmt.Errorf("table %q: write it as table or schema.table, without commas, quotation marks and database links", table)
	}
	return sqlload.CheckTable(sqlload.Bytes(longest), strings.Split(table, ".")...)
}

// parameter is what ALTER SESSION takes for a name, and bare what it takes as a value without quotes.
var (
	parameter = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$#]*$`)
	bare      = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_$#]*|-?[0-9]+(\.[0-9]+)?[KMGkmg]?)$`)
)

func checkSettings(settings []loader.Setting) error {
	for _, s := range settings {
		if !parameter.MatchString(s.Name) {
			return fmt.Errorf("--set %s: ALTER SESSION has no such parameter", s.Name)
		}
		if strings.EqualFold(s.Name, "isolation_level") {
			return fmt.Errorf("--set %s: a session has to see what was committed while it waited for a lock, so it is READ COMMITTED", s.Name)
		}
	}
	return nil
}

// alterSession sets the variables of --set, one statement each: Oracle runs no two in one call.
func alterSession(settings []loader.Setting) []string {
	var all []string
	for _, s := range settings {
		value := s.Value
		if !bare.MatchString(value) {
			value = sqlload.Literal(value)
		}
		all = append(all, fmt.Sprintf("ALTER SESSION SET %s = %s", s.Name, value))
	}
	return all
}
