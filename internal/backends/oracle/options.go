package oracle

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// The parameters of an oracle:// URL. Others are refused: a driver would ignore one that it does not know, or obey one
// that is not meant for users.
const (
	paramSID       = "sid"        // instead of a service
	paramSSL       = "ssl"        // TLS (TCPS), as --tls require or verify
	paramSSLVerify = "ssl_verify" // false: as --tls require
	paramWallet    = "wallet"     // the folder of an auto-login wallet (cwallet.sso), for mutual TLS
	paramTNSAdmin  = "tns_admin"  // the folder of tnsnames.ora and sqlnet.ora; godror only
	paramLibDir    = "lib_dir"    // the folder of Oracle's client library; godror only
)

var params = []string{paramSID, paramSSL, paramSSLVerify, paramWallet, paramTNSAdmin, paramLibDir}

// options are those of method direct.
type options struct {
	Partition string `option:"partition" help:"the partition that all rows belong to; it is locked instead of the table"`
}

// planOf returns method and options of a target. The error lists everything that no server would accept.
func planOf(c client, t loader.Target) (method string, o options, err error) {
	m, err := loader.ReadOptions(Driver{client: c}, t, &o)
	errs := []error{err, checkAddress(c, t), targetTable(t.Table), checkSettings(t.Settings)}
	if m.Name == methodDirect && !c.directPath {
		errs = append(errs, fmt.Errorf("method %s does not work with %s: direct path refuses a driver that keeps the good "+
			"rows of a failed array (ORA-38910); use method %s, or a binary of make build-godror", m.Name, c.name, methodArray))
	}
	return m.Name, o, errors.Join(errs...)
}

// addressable matches hosts, services and SIDs. Drivers write them into a connect descriptor, where parentheses have a
// meaning.
var addressable = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._$#-]*$`)

func checkAddress(c client, t loader.Target) error {
	var bad []error
	refuse := func(format string, values ...any) { bad = append(bad, fmt.Errorf(format, values...)) }
	service, sid := t.Database, t.Params.Get(paramSID)
	switch {
	case service == "" && sid == "":
		refuse("the target names no service: write oracle://user@host:%s/service, or ?%s=… for an old SID",
			defaultPort, paramSID)
	case service != "" && sid != "":
		refuse("the target names a service and a SID, which exclude each other")
	case !addressable.MatchString(service + sid):
		refuse("%q cannot be a service or SID", service+sid)
	}
	if t.User == "" {
		refuse("the target names no user: write oracle://user@host:%s/service", defaultPort)
	}
	for i, host := range t.Hosts {
		name, _, err := net.SplitHostPort(t.Address(i, defaultPort))
		if err != nil || !addressable.MatchString(name) && net.ParseIP(name) == nil {
			refuse("%q is not host or host:port", host)
		}
	}
	if len(t.Hosts) == 0 && !t.Params.Has(paramTNSAdmin) {
		refuse("the target names no host: write oracle://user@host:%s/service", defaultPort)
	}
	for name, values := range t.Params {
		if reason := checkParams(c, name, values); reason != "" {
			refuse("parameter %s of the target: %s", name, reason)
		}
	}
	_, err := tlsMode(t)
	return errors.Join(append(bad, err)...)
}

// checkParams returns why a parameter of the URL is refused. The reason never repeats the value, which may be secret.
func checkParams(c client, name string, values []string) string {
	switch {
	case !slices.Contains(params, name):
		return "it is unknown; valid are " + strings.Join(params, ", ")
	case !c.directPath && (name == paramTNSAdmin || name == paramLibDir):
		return "only godror reads it, and this binary has " + c.name + ": see make build-godror"
	case len(values) != 1 || values[0] == "":
		return "it takes one value"
	case strings.ContainsAny(values[0], "\"()\x00"): // folders are written into a connect descriptor
		return "quotation marks and parentheses cannot be part of it"
	}
	return ""
}

// tlsMode is the mode of --tls, else of the URL. A listener's port speaks either TCP or TCPS, so TLS cannot be tried: a
// URL that says nothing is TLSAuto, which is TCP.
func tlsMode(t loader.Target) (loader.TLSMode, error) {
	wallet := t.Params.Get(paramWallet) != ""
	on, wrong := strconv.ParseBool(cmp.Or(t.Params.Get(paramSSL), strconv.FormatBool(wallet)))
	verified, alsoWrong := strconv.ParseBool(cmp.Or(t.Params.Get(paramSSLVerify), "true"))
	switch {
	case wrong != nil || alsoWrong != nil:
		return "", fmt.Errorf("parameters %s and %s of the target are true or false", paramSSL, paramSSLVerify)
	case wallet && (!on || t.TLS == loader.TLSOff):
		return "", fmt.Errorf("parameter %s of the target is for TLS, which is switched off", paramWallet)
	case t.TLS != loader.TLSAuto:
		return t.TLS, nil
	case on && verified:
		return loader.TLSVerify, nil
	case on:
		return loader.TLSRequire, nil
	case t.Params.Has(paramSSL):
		return loader.TLSOff, nil
	}
	return loader.TLSAuto, nil
}

// hostPort splits the address of one of the target's hosts, which checkAddress accepts.
func hostPort(t loader.Target, host int) (name, port string) {
	name, port, _ = net.SplitHostPort(t.Address(host, defaultPort))
	return name, port
}

// encrypted reports whether a connection begins with TLS. A preference is TCP.
func encrypted(mode loader.TLSMode) bool {
	return mode == loader.TLSRequire || mode == loader.TLSVerifyCA || mode == loader.TLSVerify
}

// maxNameBytes is the longest name since 12.2; older servers refuse more than 30 themselves.
const maxNameBytes = 128

func targetTable(table string) error {
	if strings.Count(table, ".") > 1 || strings.ContainsAny(table, `,"@`) {
		return fmt.Errorf("table %q: write table or schema.table, without commas, quotation marks and database links", table)
	}
	return sqlload.CheckTable(sqlload.Bytes(maxNameBytes), strings.Split(table, ".")...)
}
