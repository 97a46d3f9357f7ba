package oracle

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/loader"
)

// The two drivers as far as the control side knows them.
func goClient() client     { return client{name: "go-ora v2.9.0"} }
func nativeClient() client { return client{name: "godror v0.51.4", directPath: true} }

func target(t *testing.T, url string, change func(*loader.Target)) loader.Target {
	t.Helper()
	parsed, err := loader.ParseTarget(url)
	require.NoError(t, err)
	if change != nil {
		change(&parsed)
	}
	return parsed
}

const plainURL = "oracle://u:secret@h/service"

func TestCheck(t *testing.T) {
	quoted := []loader.Setting{{Name: "commit_wait", Value: "x'y"}}
	for name, c := range map[string]struct {
		url    string
		change func(*loader.Target)
		client client
		caps   string // the method whose caps it has
	}{
		"the default":        {plainURL, nil, goClient(), methodArray},
		"several hosts":      {"oracle://u@h1,h2:1522/a.b-c_d.example.com", nil, goClient(), methodArray},
		"an address":         {"oracle://u@[::1]:1521/s", nil, goClient(), methodArray},
		"a SID":              {"oracle://u@h:1521/?sid=ORCL", nil, goClient(), methodArray},
		"TLS":                {plainURL + "?ssl=true&ssl_verify=false", nil, goClient(), methodArray},
		"a wallet":           {plainURL + "?wallet=/w", func(t *loader.Target) { t.TLS = loader.TLSVerify }, goClient(), methodArray},
		"a name in tnsnames": {"oracle://u@/alias?tns_admin=/w&lib_dir=/l", nil, nativeClient(), methodArray},
		"direct":             {plainURL, func(t *loader.Target) { t.Method = methodDirect }, nativeClient(), methodDirect},
		"schema and table":   {plainURL, func(t *loader.Target) { t.Table = "s.t" }, goClient(), methodArray},
		"settings":           {plainURL, func(t *loader.Target) { t.Settings = quoted }, goClient(), methodArray},
	} {
		t.Run(name, func(t *testing.T) {
			caps, err := Driver{client: c.client}.Check(target(t, c.url, c.change))
			require.NoError(t, err)
			assert.Equal(t, capsOf(c.caps), caps)
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	method := func(name string, o map[string]string) func(*loader.Target) {
		return func(t *loader.Target) { t.Method, t.Options = name, o }
	}
	partition := map[string]string{"partition": "p"}
	table := func(name string) func(*loader.Target) { return func(t *loader.Target) { t.Table = name } }
	set := func(name string) func(*loader.Target) {
		return func(t *loader.Target) { t.Settings = []loader.Setting{{Name: name, Value: "1"}} }
	}
	for name, c := range map[string]struct {
		url    string
		change func(*loader.Target)
		says   []string
	}{
		"another method":             {plainURL, method("copy", nil), []string{`method "copy" does not exist`, methodDirect}},
		"direct with go-ora":         {plainURL, method(methodDirect, nil), []string{"ORA-38910", "make build-godror", "go-ora v2.9.0"}},
		"an option of direct":        {plainURL, method(methodArray, partition), []string{"--partition is not an option"}},
		"no service":                 {"oracle://u@h:1521", nil, []string{"names no service", "?sid="}},
		"service and SID":            {plainURL + "?sid=ORCL", nil, []string{"exclude each other"}},
		"a descriptor":               {"oracle://u@h/s)(SERVER=DEDICATED", nil, []string{"cannot be a service or SID"}},
		"no user":                    {"oracle://h/s", nil, []string{"names no user"}},
		"no host":                    {"oracle://u@/s", nil, []string{"names no host"}},
		"a strange host":             {"oracle://u@h(x/s", nil, []string{`"h(x" is not host or host:port`}},
		"go-ora's own words":         {plainURL + "?TRACE+FILE=/tmp/t", nil, []string{"parameter TRACE FILE", "it is unknown", "wallet"}},
		"a password in params":       {plainURL + "?wallet_password=pssst", nil, []string{"it is unknown"}},
		"godror's folder":            {plainURL + "?tns_admin=/w", nil, []string{"only godror reads it", "go-ora v2.9.0"}},
		"two values":                 {plainURL + "?ssl=true&ssl=false", nil, []string{"takes one value"}},
		"half true":                  {plainURL + "?ssl=maybe", nil, []string{"ssl_verify of the target are true or false"}},
		"a wallet in quotes":         {plainURL + `?wallet=%22`, nil, []string{"parameter wallet", "quotation marks"}},
		"a wallet without TLS":       {plainURL + "?wallet=/w&ssl=false", nil, []string{"is for TLS"}},
		"three names":                {plainURL, table("a.b.c"), []string{"table or schema.table"}},
		"an event":                   {plainURL, set("events '10046'"), []string{"ALTER SESSION has no such parameter"}},
		"serializable":               {plainURL, set("Isolation_Level"), []string{"READ COMMITTED"}},
		"a descriptor in the wallet": {plainURL + "?wallet=/w)(x", nil, []string{"parameter wallet", "parentheses"}},
		"all of it at once":          {"oracle://h?sid=", table("a,b"), []string{"names no user", "names no service", "without commas", "sid of the target: it takes one value"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Driver{client: goClient()}.Check(target(t, c.url, c.change))
			require.Error(t, err)
			for _, says := range c.says {
				assert.ErrorContains(t, err, says)
			}
			assert.NotContains(t, err.Error(), "secret")
			assert.NotContains(t, err.Error(), "pssst")
		})
	}
}

func TestTLSMode(t *testing.T) {
	for query, want := range map[string]loader.TLSMode{
		"": loader.TLSAuto, "?ssl=true": loader.TLSVerify, "?ssl=0": loader.TLSOff, "?wallet=/w": loader.TLSVerify,
	} {
		mode, err := tlsMode(target(t, plainURL+query, func(t *loader.Target) { t.TLS = "" }))
		require.NoError(t, err)
		assert.Equal(t, want, mode, query)
	}
	mode, err := tlsMode(target(t, plainURL+"?ssl=false", func(t *loader.Target) { t.TLS = loader.TLSRequire }))
	require.NoError(t, err)
	assert.Equal(t, loader.TLSRequire, mode, "the flag wins")
}

// Over TCP nobody could check what the flags name, so they mean TLS; with TLS off they are refused.
func TestCertificatesMeanTLS(t *testing.T) {
	authority := backendtest.NewAuthority(t).File
	for _, c := range []struct {
		mode  loader.TLSMode
		trust netio.Trust
		want  loader.TLSMode
	}{
		{loader.TLSAuto, netio.Trust{}, loader.TLSAuto},
		{loader.TLSPrefer, netio.Trust{}, loader.TLSPrefer},
		{loader.TLSAuto, netio.Trust{CAFile: authority}, loader.TLSVerify},
		{loader.TLSPrefer, netio.Trust{CAFile: authority}, loader.TLSVerify},
		{loader.TLSAuto, netio.Trust{ServerName: "db.example"}, loader.TLSVerify},
		{loader.TLSVerifyCA, netio.Trust{CAFile: authority}, loader.TLSVerifyCA},
	} {
		mode, err := modeWith(loader.Target{Hosts: []string{"h"}, TLS: c.mode}, loader.Deps{TLS: c.trust.TLS})
		require.NoError(t, err)
		assert.Equal(t, c.want, mode, "%+v", c)
	}
	_, err := modeWith(loader.Target{Hosts: []string{"h"}, TLS: loader.TLSOff}, loader.Deps{TLS: netio.Trust{CAFile: authority}.TLS})
	assert.ErrorContains(t, err, "TLS is off")
}
