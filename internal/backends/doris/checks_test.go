package doris

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/standin"
	fake "github.com/terapush/terapush/internal/standin/doris"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// check returns what is not all right. It checks that no statement, and no request, changes anything.
func (s *standIn) check(t *testing.T, target loader.Target, i loader.Intent) []loader.Finding {
	t.Helper()
	before := len(s.Requests())
	findings := backendtest.Doctor(t, New(), testDeps(), target, i)
	for _, r := range s.Requests()[before:] {
		require.NotEqual(t, fake.Load, r.Kind)
		if r.Kind == fake.Statement {
			require.Regexp(t, "^(SHOW|SELECT|SET) ", r.SQL)
		}
	}
	return slices.DeleteFunc(findings, func(f loader.Finding) bool { return f.Grade == loader.GradeOK })
}

// intended is a push of 64 GiB in a thousand batches.
func intended() loader.Intent {
	ids := rows.Schema{Columns: []rows.Column{{Name: "id", Type: rows.Int64, Derived: true}}, Number: []rows.Term{{Times: 1}}}
	return loader.Intent{Preparation: loader.Preparation{Schema: ids}, Workers: 16, BatchBytes: 64 << 20, TotalBytes: 64 << 30}
}

func TestCheckServer(t *testing.T) {
	id := []standin.Column{{Name: "id", Type: "BIGINT"}}
	oneSet := func(name string, value int) string {
		return fmt.Sprintf(`ADMIN SET ALL FRONTENDS CONFIG ("%s" = "%d"), and the same in fe.conf`, name, value)
	}
	nothing := func(i *loader.Intent) { *i = loader.Intent{} }
	warn, fail, unknown := backendtest.Warn, backendtest.Fail, backendtest.Unknown
	for name, c := range map[string]struct {
		method   string            // stream-load
		options  map[string]string // of the target; BE0, BE1 stand for the backends' addresses
		backends int
		shows    [2]string // what SHOW says otherwise: a setting or a column, and its value
		refuses  string    // the end of a statement, or redirects
		intent   func(*loader.Intent)
		create   []standin.Column // of a table that is there
		want     loader.Finding
	}{
		"healthy":                     {},
		"healthy, insert":             {method: methodInsert, intent: func(i *loader.Intent) { i.BatchBytes, i.TotalBytes = 1<<20, 1<<30 }},
		"healthy, by --backend-hosts": {options: map[string]string{optBackends: "BE0"}},
		"nothing is intended":         {intent: nothing},
		"a body too large": {shows: [2]string{"streaming_load_max_mb", "50"},
			want: fail("body size", "streaming_load_max_mb = 50, and batches have 64MiB", "--batch-bytes 50MiB, or on every backend: "+
				"curl -X POST 'http://BACKEND:8040/api/update_config?streaming_load_max_mb=65&persist=true'")},
		"a statement too large": {method: methodInsert, intent: func(i *loader.Intent) { i.BatchBytes, i.TotalBytes = 20<<20, 1<<30 },
			want: fail("statement size", "max_allowed_packet leaves 16 MiB for the rows of an INSERT, and batches have 20 MiB",
				"--batch-bytes 16711680, or SET GLOBAL max_allowed_packet = 21037056")},
		"more loads than versions": {shows: [2]string{"max_tablet_version_num", "500"},
			want: warn("tablet versions", "1024 loads are as many versions of each tablet: if compaction does not merge 524",
				"--batch-bytes 263MiB")},
		"more loads than labels": {shows: [2]string{"label_num_threshold", "1000"},
			want: warn("labels", "label_num_threshold = 1000, and the run has 1024 loads", oneSet("label_num_threshold", 2048))},
		"labels that do not last": {shows: [2]string{"streaming_label_keep_max_second", "300"},
			want: warn("labels", "streaming_label_keep_max_second = 300, and a run relies on 43200",
				oneSet("streaming_label_keep_max_second", 43200))},
		"too few transactions": {shows: [2]string{"max_running_txn_num_per_db", "10"},
			want: warn("transactions", "max_running_txn_num_per_db = 10, and the server refuses some loads of 16 workers",
				oneSet("max_running_txn_num_per_db", 32))},
		"a disk that is nearly full": {shows: [2]string{"MaxDiskUsedPct", "90.12 %"},
			want: warn("disks", "90 % full (127.0.0.2), and 100 GiB are free", "make room on 127.0.0.2")},
		"more rows than room": {shows: [2]string{"AvailCapacity", "512.000 MB"},
			want: warn("disks", "512 MiB are free on all of them, for 64 GiB of rows", "push less with --bytes")},
		"more replicas than backends": {options: map[string]string{optReplication: "3"},
			want: fail("buckets and replicas", "d.t: 4 buckets a partition, 3 replicas, 1 backends, too few", "--replication 1")},
		"a table of other columns": {create: append(id, standin.Column{Name: "v", Type: "INT"}),
			want: fail("table", "cannot take the rows of dataset : column v (int(11)) is unknown", "choose another --table")},
		"group commit that makes workers wait": {options: map[string]string{optGroupCommit: "sync"}, create: id,
			want: warn("group commit", "its interval of 10000 ms", "--group-commit-interval-ms 1000, or --group-commit off")},
		"rights that are given elsewhere": {shows: [2]string{"GlobalPrivs", ""},
			want: unknown("privileges", "SELECT_PRIV, CREATE_PRIV on d.t is not granted by Doris, but something else decides",
				"GRANT SELECT_PRIV, CREATE_PRIV ON d.* TO 'root'")},
		"no right to read, nor to insert": {method: methodInsert, shows: [2]string{"GlobalPrivs", ""}, intent: nothing,
			want: fail("privileges", "LOAD_PRIV, SELECT_PRIV, CREATE_PRIV on d.t is not granted",
				"GRANT LOAD_PRIV, SELECT_PRIV, CREATE_PRIV ON d.* TO 'root'")},
		"no right to alter": {options: map[string]string{optGroupInterval: "1000"}, create: id,
			shows: [2]string{"GlobalPrivs", "Load_priv,Select_priv"},
			want:  fail("privileges", "ALTER_PRIV on d.t is not granted", "GRANT ALTER_PRIV ON d.* TO 'root'")},
		"grants that are hidden": {method: methodInsert, refuses: "SHOW GRANTS", intent: nothing,
			want: unknown("privileges", "SHOW GRANTS: Error 1105", "GRANT LOAD_PRIV, SELECT_PRIV, CREATE_PRIV ON d.* TO 'root'")},
		"a closed port of a backend by hand": {options: map[string]string{optBackends: "127.0.0.9:1"},
			want: fail("backend ports", "0 of 1 backends answer; not 127.0.0.9:1", "take 127.0.0.9:1 out of --backend-hosts")},
		"an address that leads nowhere": {backends: 2, options: map[string]string{optBackends: "BE1=127.0.0.9:1"},
			want: warn("backend ports", "1 of 2 backends answer; not 127.0.0.9:1", "open the port, or --redirect-policy public, "+
				"or --backend-hosts 127.0.0.9:1=HOST:PORT")},
		"no right to load": {refuses: string(fake.Redirect),
			want: fail("stream-load route", "no frontend named a backend", "GRANT LOAD_PRIV, SELECT_PRIV, CREATE_PRIV")},
		"the frontend's settings are hidden": {refuses: "SHOW FRONTEND CONFIG",
			want: unknown("frontend settings", "SHOW FRONTEND CONFIG: Error 1105", "GRANT ADMIN_PRIV ON *.*.* TO 'root'")},
		"the backends' settings are hidden": {refuses: "'max_tablet_version_num'",
			want: unknown("backend settings", "SHOW BACKEND CONFIG LIKE 'max_tablet_version_num': Error 1105",
				"GRANT ADMIN_PRIV ON *.*.* TO 'root'; before Doris 3.0: curl http://BACKEND:8040/varz")},
		"the backends are hidden": {refuses: "SHOW BACKENDS",
			want: unknown("backends", "SHOW BACKENDS: Error 1105", "GRANT NODE_PRIV ON *.*.* TO 'root', or ADMIN_PRIV")},
	} {
		t.Run(name, func(t *testing.T) {
			s := startStandIn(t, fake.Options{
				Backends: c.backends, Shows: map[string]string{c.shows[0]: c.shows[1]},
				Script: func(r fake.Request) (f fake.Fault) {
					if c.refuses != "" && (string(r.Kind) == c.refuses || strings.HasSuffix(r.SQL, c.refuses)) {
						f.Fail = "Access denied"
					}
					return f
				},
			})
			options := map[string]string{}
			for k, v := range c.options {
				options[k] = v
				for i, address := range s.Backends {
					options[k] = strings.ReplaceAll(options[k], fmt.Sprint("BE", i), address)
				}
			}
			target := s.table(cmp.Or(c.method, methodStreamLoad), options)
			target.Table = "t"
			if c.create != nil {
				s.CreateTable("t", "", c.create...)
			}
			i := intended()
			if c.intent != nil {
				c.intent(&i)
			}
			backendtest.Only(t, c.want, s.check(t, target, i))
		})
	}
}

// Without a backend nothing can be loaded, which several checks see.
func TestCheckWithoutABackend(t *testing.T) {
	s := startStandIn(t, fake.Options{Shows: map[string]string{"Alive": "false", "ErrMsg": "connection refused"}})
	require.Contains(t, s.check(t, s.table(methodStreamLoad, nil), intended()), backendtest.Fail("backends",
		"0 of 1 take loads; not 127.0.0.2 (alive: false, connection refused)", "read be.out and be.INFO there, then SHOW BACKENDS"))
}

func TestCheckThroughAStore(t *testing.T) {
	s, via, _ := startWithStore(t)
	target := s.table(methodS3Load, nil)
	target.Via = via
	found := s.check(t, target, intended())
	require.Len(t, found, 1)
	require.Contains(t, found[0].Found, "Apache Doris reads the objects from http://127.0.0.1:")
}

func TestCheckOfAClusterThatIsGone(t *testing.T) {
	s := startStandIn(t, fake.Options{})
	l := backendtest.Open(t, New(), s.table(methodStreamLoad, nil), testDeps())
	s.Close()
	_, err := l.(loader.Checker).CheckServer(t.Context(), intended())
	var gone *net.OpError
	require.ErrorAs(t, err, &gone)
}

func TestCloud(t *testing.T) {
	in := func(tag string) bool {
		return (&doctor{answers: map[string][]map[string]string{showBackends: {{"Tag": tag}}}}).cloud()
	}
	require.True(t, in(`{"compute_group_status" : "NORMAL", "compute_group_name" : "vcg", "location" : "default"}`))
	require.False(t, in(`{"location" : "default"}`))
}

func TestGranted(t *testing.T) {
	on := tableName{"d", "t"}
	for name, c := range map[string]struct {
		row  map[string]string
		want bool
	}{
		"administrator":        {map[string]string{"GlobalPrivs": "Node_priv,Admin_priv"}, true},
		"administrator of old": {map[string]string{"GlobalPrivs": "Admin_priv  (false)"}, true},
		"catalogue":            {map[string]string{"CatalogPrivs": "internal: Load_priv"}, true},
		"database":             {map[string]string{"DatabasePrivs": "internal.mysql: Select_priv; internal.d: Select_priv,Load_priv"}, true},
		"database of old":      {map[string]string{"DatabasePrivs": "d: Load_priv  (false)"}, true},
		"table":                {map[string]string{"TablePrivs": "internal.d.t: Load_priv"}, true},
		"another database":     {map[string]string{"DatabasePrivs": "internal.e: Load_priv"}, false},
		"another right":        {map[string]string{"DatabasePrivs": "internal.d: Select_priv"}, false},
		"nothing":              {map[string]string{}, false},
	} {
		require.Equal(t, c.want, granted([]map[string]string{c.row}, "LOAD_PRIV", on), name)
	}
}
