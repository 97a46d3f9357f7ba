package mysqlconn

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/loader"
)

// Params is what the parameters of a URL say about TLS, in the words of any client of MySQL: providers hand out URLs
// for JDBC, Go, Node, Prisma and MySQL's own.
type Params struct {
	Mode  loader.TLSMode // TLSAuto if they say nothing
	Trust netio.Trust
	Other []string // names that say nothing about TLS, and that other clients do not have either
}

// ReadParams reads parameters, and refuses by name those that cannot be honoured.
func ReadParams(params url.Values) (p Params, err error) {
	var by string // what said so
	for _, name := range slices.Sorted(maps.Keys(params)) {
		value := params[name][len(params[name])-1]
		mode, err := p.read(name, value)
		switch {
		case err != nil:
			return p, err
		case mode == loader.TLSAuto:
		case p.Mode == loader.TLSAuto:
			p.Mode, by = mode, name
		case contradict(mode, p.Mode):
			return p, fmt.Errorf("parameters %s=%s and %s=%s of the target contradict each other",
				by, params.Get(by), name, value)
		case rank(mode) > rank(p.Mode): // the most careful one holds
			p.Mode, by = mode, name
		}
	}
	if p.Mode == loader.TLSOff && p.Trust.CAFile != "" {
		return p, errors.New("the target names a certificate authority, and switches TLS off")
	}
	return p, nil
}

// contradict reports whether one mode switches TLS off and the other one needs it.
func contradict(a, b loader.TLSMode) bool {
	weaker, stronger := min(rank(a), rank(b)), max(rank(a), rank(b))
	return weaker == rank(loader.TLSOff) && stronger > rank(loader.TLSPrefer)
}

// rank orders the modes.
func rank(m loader.TLSMode) int {
	return slices.Index([]loader.TLSMode{
		loader.TLSOff, loader.TLSPrefer, loader.TLSRequire, loader.TLSVerifyCA, loader.TLSVerify,
	}, m)
}

// bare is a name or value as all clients spell it alike: ssl-mode, ssl_mode and sslMode are one.
func bare(text string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(text))
}

// read reads one parameter.
func (p *Params) read(name, value string) (loader.TLSMode, error) {
	switch bare(name) {
	case "sslca", "sslrootcert":
		p.Trust.CAFile = value
		return "", nil
	case "sslcert":
		p.Trust.CertFile = value
		return "", nil
	case "sslkey":
		p.Trust.KeyFile = value
		return "", nil
	case "tlsversion", "enabledtlsprotocols":
		if !strings.Contains(strings.ToLower(value), "tlsv1.2") {
			return "", fmt.Errorf("parameter %s=%s of the target: TLSv1.2 and TLSv1.3 are spoken here", name, value)
		}
		return "", nil
	}
	if reason, is := notHonoured[bare(name)]; is {
		return "", fmt.Errorf("parameter %s of the target cannot be honoured: %s", name, reason)
	}
	modes, known := modeParams[bare(name)]
	switch {
	case known:
	case strings.Contains(ignoredParams, " "+bare(name)+" "):
		return "", nil
	default:
		p.Other = append(p.Other, name)
		return "", nil
	}
	mode, valid := modes[strings.Join(strings.Fields(bare(value)), "")]
	if !valid {
		valid := slices.DeleteFunc(slices.Sorted(maps.Keys(modes)), func(v string) bool { return strings.Contains(v, "{") })
		return "", fmt.Errorf("parameter %s=%s of the target is not known; there are: %s",
			name, value, strings.Join(valid, ", "))
	}
	return mode, nil
}

// modeParams are the parameters that choose a mode, with their values. One that is weaker than what others say loses
// against them, and "" says nothing.
var modeParams = map[string]map[string]loader.TLSMode{
	"sslmode": { // MySQL's clients and Connector/J, and libpq's and MariaDB's words for the same
		"disabled": loader.TLSOff, "disable": loader.TLSOff, "preferred": loader.TLSPrefer, "prefer": loader.TLSPrefer,
		"required": loader.TLSRequire, "require": loader.TLSRequire, "trust": loader.TLSRequire,
		"verifyca": loader.TLSVerifyCA, "verifyidentity": loader.TLSVerify, "verifyfull": loader.TLSVerify,
	},
	"tls": { // the Go driver
		"false": loader.TLSOff, "0": loader.TLSOff, "preferred": loader.TLSPrefer, "skipverify": loader.TLSRequire,
		"true": loader.TLSVerify, "1": loader.TLSVerify,
	},
	"ssl": { // Node's drivers, which verify
		"true": loader.TLSVerify, "1": loader.TLSVerify, "false": loader.TLSOff, "0": loader.TLSOff,
		`{"rejectunauthorized":true}`: loader.TLSVerify, `{"rejectunauthorized":false}`: loader.TLSRequire,
		"{}": loader.TLSVerify,
	},
	"sslaccept": {"strict": loader.TLSVerify, "acceptinvalidcerts": loader.TLSRequire}, // Prisma
	// Connector/J before 8.0.13: without verifyServerCertificate it does not verify.
	"usessl":                  {"true": loader.TLSRequire, "false": loader.TLSOff},
	"requiressl":              {"true": loader.TLSRequire, "false": loader.TLSAuto},
	"verifyservercertificate": {"true": loader.TLSVerifyCA, "false": loader.TLSRequire},
	// MariaDB's.
	"sslverifyservercert": {
		"true": loader.TLSVerify, "1": loader.TLSVerify, "false": loader.TLSRequire, "0": loader.TLSRequire,
	},
	"trustservercertificate": {"true": loader.TLSRequire, "false": loader.TLSAuto},
	// Without TLS the driver asks the server for its key, and believes what comes.
	"allowpublickeyretrieval": {"true": loader.TLSAuto, "false": loader.TLSRequire},
}

// notHonoured are what some clients protect a connection with, and the reasons why it does not work here.
var notHonoured = map[string]string{
	"sslcapath": "name a file with authorities by --tls-ca", "serversslcert": "name a file with authorities by --tls-ca",
	"trustcertificatekeystoreurl": "name a file in PEM by --tls-ca", "truststore": "name a file in PEM by --tls-ca",
	"clientcertificatekeystoreurl": "name files in PEM by --tls-cert and --tls-key",
	"keystore":                     "name files in PEM by --tls-cert and --tls-key",
	"sslidentity":                  "name files in PEM by --tls-cert and --tls-key",
	"sslcrl":                       "lists of revoked certificates are not read",
	"sslcrlpath":                   "lists of revoked certificates are not read",
	"sslfp":                        "fingerprints are not compared", "sslfplist": "fingerprints are not compared",
}

// ignoredParams are names that nobody misses: of character sets and time zones, which every session sets as the rows
// need them; of pools, caches, limits of time and the shape of results, which other clients have.
const ignoredParams = " charset characterset characterencoding charactersetresults encoding useunicode collation " +
	"connectioncollation servertimezone connectiontimezone forceconnectiontimezonetosession uselegacydatetimecode loc " +
	"parsetime zerodatetimebehavior serverversion sslcipher tlsciphersuites " +
	"autoreconnect reconnect failoverreadonly maxreconnects tcpkeepalive keepalive connecttimeout sockettimeout timeout " +
	"readtimeout writetimeout connectionlimit pooltimeout pool poolsize minpoolsize maxpoolsize pooling maxidletime " +
	"connectionattributes checkconnliveness rejectreadonly " +
	"allowmultiqueries multistatements allowloadlocalinfile allowlocalinfile allowallfiles localinfile " +
	"rewritebatchedstatements usebulkstmts cacheprepstmts prepstmtcachesize prepstmtcachesqllimit useserverprepstmts " +
	"cacheserverconfiguration cacheresultsetmetadata uselocalsessionstate elidesetautocommits maintaintimestats " +
	"interpolateparams clientfoundrows useaffectedrows columnswithalias maxallowedpacket allownativepasswords " +
	"nullcatalogmeanscurrent tinyint1isbit usecursorfetch defaultfetchsize useinformationschema supportbignumbers " +
	"bignumberstrings datestrings "

// Unknown refuses the other parameters but those of the back-end: they must not be ignored silently. Session variables
// are in lower case.
func (p Params) Unknown(own ...string) error {
	for _, name := range p.Other {
		if slices.Contains(own, name) {
			continue
		}
		hint := ""
		if name == strings.ToLower(name) && !strings.Contains(name, "-") {
			hint = fmt.Sprintf("; a session variable goes into --set %s=…", name)
		}
		return fmt.Errorf("parameter %q of the target is not known; there are: %s%s", name,
			strings.Join(append(slices.Clone(own), "tls", "ssl-mode", "ssl-ca", "ssl-cert", "ssl-key"), ", "), hint)
	}
	return nil
}
