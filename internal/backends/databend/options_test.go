package databend

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

func TestCheck(t *testing.T) {
	via := &loader.Target{Scheme: "s3", Hosts: []string{"bucket"}}
	for name, c := range map[string]struct {
		change func(*loader.Target)
		says   string
	}{
		"fine":                {func(*loader.Target) {}, ""},
		"another method":      {func(t *loader.Target) { t.Method = "copy" }, `"copy" does not exist`},
		"two tables":          {func(t *loader.Target) { t.Table = "a,b" }, "one table"},
		"three parts":         {func(t *loader.Target) { t.Table = "a.b.c" }, "database.table"},
		"not in ASCII":        {func(t *loader.Target) { t.Table = "tä" }, "ASCII"},
		"no database":         {func(t *loader.Target) { t.Database = "" }, ""},
		"unknown parameter":   {func(t *loader.Target) { t.Params = url.Values{"timeout": {"1"}} }, "--set timeout"},
		"a token":             {func(t *loader.Target) { t.Params = url.Values{"access_token": {"x"}} }, "user and password"},
		"sslmode":             {func(t *loader.Target) { t.Params = url.Values{"sslmode": {"maybe"}} }, "sslmode=maybe"},
		"time zone":           {func(t *loader.Target) { t.Settings = []loader.Setting{{Name: "TimeZone", Value: "x"}} }, "UTC"},
		"a cache":             {func(t *loader.Target) { t.Settings = []loader.Setting{{Name: "enable_query_result_cache", Value: "1"}} }, "counted and read back"},
		"a label":             {func(t *loader.Target) { t.Settings = []loader.Setting{{Name: "deduplicate_label", Value: "x"}} }, "label"},
		"an option too many":  {func(t *loader.Target) { t.Options = map[string]string{optionStage: "x"} }, `no option "stage"`},
		"a stage with quotes": {func(t *loader.Target) { t.Method, t.Options = insert, map[string]string{optionStage: "a'b"} }, "not the name of a stage"},
		"a store for nothing": {func(t *loader.Target) { t.Via = via }, "--via is for stage-load"},
		"two places": {func(t *loader.Target) {
			t.Method, t.Via, t.Options = stageLoad, via, map[string]string{optionStage: "x"}
		}, "two places"},
		"a store":  {func(t *loader.Target) { t.Method, t.Via = stageLoad, via }, ""},
		"no store": {func(t *loader.Target) { t.Method, t.Via = stageLoad, &loader.Target{Scheme: "gs"} }, "s3://"},
	} {
		t.Run(name, func(t *testing.T) {
			target := loader.Target{Scheme: "databend", Hosts: []string{"h"}, Database: "db", Table: "t"}
			c.change(&target)
			caps, err := New().Check(target)
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, loader.DedupKey, caps.Dedup)
		})
	}
}

func TestWhereNodesAre(t *testing.T) {
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
	} {
		target := loader.Target{Hosts: []string{c.host}, TLS: c.tls, Params: url.Values{}}
		if c.sslmode != "" {
			target.Params.Set("sslmode", c.sslmode)
		}
		mode, err := tlsMode(target)
		require.NoError(t, err)
		nodes, err := (&clients{deps: loader.Deps{TLS: netio.Trust{}.TLS}, mode: mode}).nodes(t.Context(), target)
		require.NoError(t, err)
		require.Equal(t, c.want, nodes[0].base)
	}
}

func TestPreferenceForTLS(t *testing.T) {
	f := newFake(t)
	target := f.target(streamingLoad)
	target.TLS = loader.TLSPrefer
	l, err := New().Open(t.Context(), target, testDeps())
	require.NoError(t, err)
	require.Equal(t, f.URL, l.(*opened).hosts[0].base)
}

func TestMarks(t *testing.T) {
	id := batch.ID{Run: "r", Number: 7}
	require.Equal(t, "terapush:r:d%22b.t%20t:7", label(tableName{`d"b`, "t t"}, batchKind, id))
	require.Equal(t, "terapush:r:db.t:group-7", label(tableName{"db", "t"}, groupKind, id))
	require.Regexp(t, "^[0-9a-f]{32}$", queryID(batchKind, id, 1))
	seen := map[string]bool{}
	for _, k := range []kind{batchKind, groupKind} {
		for _, q := range append(queryIDs(k, id, 3), queryIDs(k, batch.ID{Run: "r", Number: 8}, 3)...) {
			require.False(t, seen[q])
			seen[q] = true
		}
	}
	require.Equal(t, queryID(batchKind, id, 1), queryIDs(batchKind, id, 3)[0], "another process makes the same")
}
