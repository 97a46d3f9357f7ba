package databend

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

func TestCheck(t *testing.T) {
	via := &loader.Target{Scheme: "s3", Hosts: []string{"bucket"}}
	set := func(name string) []loader.Setting { return []loader.Setting{{Name: name, Value: "x"}} }
	stage := func(name string) map[string]string { return map[string]string{"stage": name} }
	for _, c := range []struct {
		target loader.Target // in database db, into table t
		says   string        // "" for a target that is taken
	}{
		{loader.Target{}, ""},
		{loader.Target{Method: "copy"}, `"copy" does not exist`},
		{loader.Target{Table: "a,b"}, "one table"},
		{loader.Target{Table: "a.b.c"}, "database.table"},
		{loader.Target{Table: "tä"}, "ASCII"},
		{loader.Target{Params: url.Values{"timeout": {"1"}}}, "--set timeout"},
		{loader.Target{Params: url.Values{"access_token": {"x"}}}, "user and password"},
		{loader.Target{Params: url.Values{"sslmode": {"maybe"}}}, "sslmode=maybe"},
		{loader.Target{Settings: set("TimeZone")}, "UTC"},
		{loader.Target{Settings: set("enable_query_result_cache")}, "counted and read back"},
		{loader.Target{Settings: set("deduplicate_label")}, "label"},
		{loader.Target{Options: stage("x")}, "--stage is not an option of method streaming-load"},
		{loader.Target{Method: methodInsert, Options: stage("a'b")}, "not the name of a stage"},
		{loader.Target{Via: via}, "--staging is for stage-load"},
		{loader.Target{Method: methodStageLoad, Via: via, Options: stage("x")}, "two places"},
		{loader.Target{Method: methodStageLoad, Via: via}, ""},
		{loader.Target{Method: methodStageLoad, Via: &loader.Target{Scheme: "gs"}}, "s3://"},
	} {
		c.target.Scheme, c.target.Hosts, c.target.Database = "databend", []string{"h"}, "db"
		if c.target.Table == "" {
			c.target.Table = "t"
		}
		caps, err := New().Check(c.target)
		if c.says != "" {
			require.ErrorContains(t, err, c.says)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, loader.DedupKey, caps.Dedup)
	}
}

func TestWhereNodesAre(t *testing.T) {
	f := newFake(t)
	plain := f.target("").Hosts[0]
	for _, c := range []struct {
		host, sslmode string
		tls           loader.TLSMode
		want          string
	}{
		{"127.0.0.1", "", "", "http://127.0.0.1:8000"},
		{"localhost:8123", "", "", "http://localhost:8123"},
		{"db.example", "", "", "https://db.example:443"},
		{"db.example", "disable", "", "http://db.example:8000"},
		{"127.0.0.1", "require", "", "https://127.0.0.1:443"},
		{"db.example:9", "disable", loader.TLSVerify, "https://db.example:9"},
		{plain, "", loader.TLSPrefer, "http://" + plain}, // it is asked
	} {
		target := loader.Target{Hosts: []string{c.host}, TLS: c.tls, Params: url.Values{}}
		if c.sslmode != "" {
			target.Params.Set("sslmode", c.sslmode)
		}
		mode, err := tlsMode(target)
		require.NoError(t, err)
		nodes, err := (&clients{deps: backendtest.Deps(), mode: mode}).endpoints(t.Context(), target)
		require.NoError(t, err)
		require.Equal(t, c.want, nodes[0].base)
	}

	// An authority is checked on this machine, too.
	deps := backendtest.Deps()
	deps.TLS = netio.Trust{CAFile: backendtest.NewAuthority(t).File}.TLS
	nodes, err := (&clients{deps: deps}).endpoints(t.Context(), loader.Target{Hosts: []string{"127.0.0.1"}})
	require.NoError(t, err)
	require.Equal(t, "https://127.0.0.1:443", nodes[0].base)
}

func TestLabels(t *testing.T) {
	id := batch.ID{Run: "r", Number: 7}
	name := label(tableName{`d"b`, "t t"}, batchKind, id)
	require.Equal(t, "terapush:r:d%22b.t%20t:7", name)
	require.Equal(t, "terapush:r:db.t:group-7", label(tableName{"db", "t"}, groupKind, id))
	spent := newLabels()
	spent.spend(name, name)
	spent.spend(name, name) // by another worker, which had the same one
	require.Equal(t, name+":again-1", spent.current(name))

	seen := map[string]bool{}
	for _, k := range []kind{batchKind, groupKind, removalKind(1)} {
		for _, q := range append(queryIDs(k, id, 3), queryIDs(k, batch.ID{Run: "r", Number: 8}, 3)...) {
			require.False(t, seen[q])
			require.Regexp(t, "^[0-9a-f]{32}$", q)
			seen[q] = true
		}
	}
	require.Equal(t, queryID(batchKind, id, 1), queryIDs(batchKind, id, 3)[0], "another process makes the same")
}
