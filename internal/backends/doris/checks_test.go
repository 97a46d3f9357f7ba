package doris

import (
	"net"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/standin"
	fake "github.com/terapush/terapush/internal/standin/doris"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// troubles are the findings that are not all right, by check.
func troubles(findings []loader.Finding) map[string]loader.Finding {
	all := map[string]loader.Finding{}
	for _, f := range findings {
		if f.Grade != loader.GradeOK {
			all[f.Check] = f
		}
	}
	return all
}

func examine(t *testing.T, target loader.Target, i loader.Intent) []loader.Finding {
	t.Helper()
	l, err := New().Open(t.Context(), target, testDeps())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	findings, err := l.(loader.Checker).CheckServer(t.Context(), i)
	require.NoError(t, err)
	for _, f := range findings {
		t.Logf("%-7s %-18s %s", f.Grade, f.Check, f.Found)
	}
	return findings
}

// intended is a push of 64 GiB in a thousand batches.
func intended() loader.Intent {
	ids := rows.Schema{Columns: []rows.Column{{Name: "id", Type: rows.Int64, Derived: true}}, Number: []rows.Term{{Times: 1}}}
	return loader.Intent{Preparation: loader.Preparation{Schema: ids}, Workers: 16, BatchBytes: 64 << 20, TotalBytes: 64 << 30}
}

func TestExamineNamesWhatIsWrong(t *testing.T) {
	id := []standin.Column{{Name: "id", Type: "BIGINT"}}
	config := func(name, value string) fake.Options { return fake.Options{Shows: map[string]string{name: value}} }
	backend := func(column, value string) fake.Options {
		return fake.Options{Shows: map[string]string{column: value}}
	}
	for name, c := range map[string]struct {
		method  string
		options map[string]string // of the target; BE stands for the backend's address
		cluster fake.Options
		intent  func(*loader.Intent)
		create  []standin.Column // of a table that is there
		want    loader.Finding
	}{
		"healthy":             {},
		"healthy, insert":     {method: insert, intent: func(i *loader.Intent) { i.BatchBytes, i.TotalBytes = 1<<20, 1<<30 }},
		"healthy, by --be":    {options: map[string]string{optBackends: "BE"}},
		"nothing is intended": {intent: func(i *loader.Intent) { *i = loader.Intent{} }},
		"a body too large": {
			cluster: config("streaming_load_max_mb", "50"),
			want: loader.Finding{Check: "body size", Grade: loader.GradeFail, Found: "streaming_load_max_mb = 50, and batches have 64MiB, so every load is refused",
				Fix: "--batch-bytes 50MiB, or on every backend: curl -X POST 'http://BACKEND:8040/api/update_config?streaming_load_max_mb=65&persist=true'"},
		},
		"a statement too large": {
			method: insert,
			intent: func(i *loader.Intent) { i.BatchBytes, i.TotalBytes = 20<<20, 1<<30 },
			want: loader.Finding{Check: "statement size", Grade: loader.GradeFail, Found: "max_allowed_packet leaves 16 MiB for the rows of an INSERT, and batches have 20 MiB",
				Fix: "--batch-bytes 16711680, or SET GLOBAL max_allowed_packet = 21037056"},
		},
		"more loads than versions": {
			cluster: config("max_tablet_version_num", "500"),
			want: loader.Finding{Check: "tablet versions", Grade: loader.GradeWarn,
				Found: "max_tablet_version_num = 500, and 1024 loads are as many versions of each tablet: if compaction does not merge 524 of them during the run, loads are refused (-235)",
				Fix:   "--batch-bytes 263MiB"},
		},
		"more loads than labels": {
			cluster: config("label_num_threshold", "1000"),
			want: loader.Finding{Check: "labels", Grade: loader.GradeWarn,
				Found: "label_num_threshold = 1000, and the run has 1024 loads: a batch that is resolved too late is not recognized",
				Fix:   `ADMIN SET ALL FRONTENDS CONFIG ("label_num_threshold" = "2048"), and the same in fe.conf`},
		},
		"labels that do not last": {
			cluster: config("streaming_label_keep_max_second", "300"),
			want: loader.Finding{Check: "labels", Grade: loader.GradeWarn,
				Found: "streaming_label_keep_max_second = 300, and a run relies on 43200: one resumed too late may load batches twice",
				Fix:   `ADMIN SET ALL FRONTENDS CONFIG ("streaming_label_keep_max_second" = "43200"), and the same in fe.conf`},
		},
		"too few transactions": {
			cluster: config("max_running_txn_num_per_db", "10"),
			want: loader.Finding{Check: "transactions", Grade: loader.GradeWarn,
				Found: "max_running_txn_num_per_db = 10, and the server refuses some loads of 16 workers, which are sent again",
				Fix:   `ADMIN SET ALL FRONTENDS CONFIG ("max_running_txn_num_per_db" = "32"), and the same in fe.conf`},
		},
		"a disk that is nearly full": {
			cluster: backend("MaxDiskUsedPct", "90.12 %"),
			want: loader.Finding{Check: "disks", Grade: loader.GradeWarn, Found: "the fullest is 90 % full (127.0.0.2), and 100 GiB are free on all of them",
				Fix: "make room on 127.0.0.2: loads are refused from 95 % on"},
		},
		"a full disk": {
			cluster: backend("MaxDiskUsedPct", "96.50 %"),
			want: loader.Finding{Check: "disks", Grade: loader.GradeWarn, Found: "the fullest is 96 % full (127.0.0.2), and 100 GiB are free on all of them",
				Fix: "make room on 127.0.0.2: loads are refused from 95 % on"},
		},
		"more rows than room": {
			cluster: backend("AvailCapacity", "512.000 MB"),
			want: loader.Finding{Check: "disks", Grade: loader.GradeWarn,
				Found: "the fullest is 0 % full (127.0.0.2), and 512 MiB are free on all of them, for 64 GiB of rows, times the replicas, before compression",
				Fix:   "add backends or disks, or push less with --bytes"},
		},
		"more replicas than backends": {
			options: map[string]string{optReplication: "3"},
			want: loader.Finding{Check: "buckets and replicas", Grade: loader.GradeFail, Found: ": 4 buckets a partition, 3 replicas, 1 backends, too few to make the table or to load it",
				Fix: "--replication 1"},
		},
		"fewer buckets than backends": {
			cluster: fake.Options{Backends: 3}, create: id,
			want: loader.Finding{Check: "buckets and replicas", Grade: loader.GradeWarn, Found: ": 1 buckets a partition, 1 replicas, 3 backends: some backends take no rows",
				Fix: "recreate it with --buckets 12"},
		},
		"a table of other columns": {
			create: append(id, standin.Column{Name: "v", Type: "INT"}),
			want: loader.Finding{Check: "table", Grade: loader.GradeFail, Found: "column v (int) is unknown to the dataset and has no default",
				Fix: "choose another --table, or use --create recreate"},
		},
		"group commit that makes workers wait": {
			options: map[string]string{optGroupCommit: "sync"}, create: id,
			want: loader.Finding{Check: "group commit", Grade: loader.GradeWarn,
				Found: "its interval of 10000 ms",
				Fix:   `ALTER TABLE … SET ("group_commit_interval_ms" = "1000"), or --group-commit off with batches of 10 MB and more`},
		},
		"no right to make the table": {
			cluster: fake.Options{Shows: map[string]string{"GlobalPrivs": "", "DatabasePrivs": "internal.d: Select_priv,Load_priv"}},
			want:    loader.Finding{Check: "privileges", Grade: loader.GradeFail, Found: "CREATE_PRIV on d.", Fix: "GRANT CREATE_PRIV ON d.* TO 'root'"},
		},
		"rights that are given elsewhere": {
			cluster: fake.Options{Shows: map[string]string{"GlobalPrivs": ""}},
			want: loader.Finding{Check: "privileges", Grade: loader.GradeUnknown, Found: "is not granted by Doris, but something else decides",
				Fix: "GRANT SELECT_PRIV, CREATE_PRIV ON d.* TO 'root'"},
		},
		"grants that are hidden": {
			method: insert, intent: func(i *loader.Intent) { *i = loader.Intent{} },
			cluster: refusing("SHOW GRANTS", "Access denied"),
			want: loader.Finding{Check: "privileges", Grade: loader.GradeUnknown, Found: "SHOW GRANTS: ",
				Fix: "GRANT LOAD_PRIV, SELECT_PRIV, CREATE_PRIV ON d.* TO 'root'"},
		},
		"no right to read, nor to insert": {
			method:  insert,
			cluster: fake.Options{Shows: map[string]string{"GlobalPrivs": "", "TablePrivs": "internal.d.other: Select_priv,Load_priv,Create_priv"}},
			intent:  func(i *loader.Intent) { *i = loader.Intent{} },
			want: loader.Finding{Check: "privileges", Grade: loader.GradeFail, Found: "LOAD_PRIV, SELECT_PRIV, CREATE_PRIV on d.",
				Fix: "GRANT LOAD_PRIV, SELECT_PRIV, CREATE_PRIV ON d.* TO 'root'"},
		},
		"a closed port of a backend by hand": {
			options: map[string]string{optBackends: "127.0.0.9:1"},
			want: loader.Finding{Check: "backend ports", Grade: loader.GradeFail, Found: "the HTTP ports of 0 of 1 backends answer; not 127.0.0.9:1: loads sent there fail and are sent again",
				Fix: "take 127.0.0.9:1 out of --be, or open the port"},
		},
		"an address that leads nowhere": {
			options: map[string]string{optBackends: "BE=127.0.0.9:1"},
			want: loader.Finding{Check: "backend ports", Grade: loader.GradeFail, Found: "the HTTP ports of 0 of 1 backends answer; not 127.0.0.9:1: ",
				Fix: "open the port, or --redirect-policy public, or --be 127.0.0.9:1=HOST:PORT with the address that is reachable from here"},
		},
		"no right to load": {
			cluster: refusing("redirect", "Access denied"),
			want:    loader.Finding{Check: "stream-load route", Grade: loader.GradeFail, Found: "no frontend named a backend: ", Fix: "*"},
		},
		"the frontend's settings are hidden": {
			cluster: refusing("SHOW FRONTEND CONFIG", "Access denied; you need (at least one of) the (ADMIN) privilege(s) for this operation"),
			want:    loader.Finding{Check: "frontend settings", Grade: loader.GradeUnknown, Found: "(ADMIN) privilege(s)", Fix: "GRANT ADMIN_PRIV ON *.*.* TO 'root'"},
		},
		"the backends' settings are hidden": {
			cluster: refusing("SHOW BACKEND CONFIG", "Access denied"),
			want: loader.Finding{Check: "backend settings", Grade: loader.GradeUnknown, Found: "Access denied",
				Fix: "GRANT ADMIN_PRIV ON *.*.* TO 'root'; before Doris 3.0: curl http://BACKEND:8040/varz"},
		},
		"the backends are hidden": {
			cluster: refusing("SHOW BACKENDS", "Access denied"),
			want:    loader.Finding{Check: "backends", Grade: loader.GradeUnknown, Found: "SHOW BACKENDS: ", Fix: "GRANT NODE_PRIV ON *.*.* TO 'root', or ADMIN_PRIV"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startStandIn(t, c.cluster)
			if c.method == "" {
				c.method = streamLoad
			}
			options := map[string]string{}
			for k, v := range c.options {
				options[k] = strings.ReplaceAll(v, "BE", s.Backends[0])
			}
			target := s.table(c.method, options)
			if c.create != nil {
				s.CreateTable(target.Table, "", c.create...)
			}
			i := intended()
			if c.intent != nil {
				c.intent(&i)
			}
			found := troubles(examine(t, target, i))
			if c.want.Check == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			f := found[c.want.Check]
			require.Equal(t, c.want.Grade, f.Grade)
			require.Contains(t, f.Found, c.want.Found)
			if c.want.Fix != "*" {
				require.Equal(t, c.want.Fix, f.Fix)
			}
		})
	}
}

// refusing is a cluster that refuses what begins so: a statement, or redirects.
func refusing(what, words string) fake.Options {
	return fake.Options{Script: func(r fake.Request) fake.Fault {
		if string(r.Kind) == what || r.Kind == fake.Statement && strings.HasSuffix(r.SQL, what) || strings.HasPrefix(r.SQL, what) {
			return fake.Fault{Fail: words}
		}
		return fake.Fault{}
	}}
}

// Without a backend nothing can be loaded, which several checks see.
func TestExamineWithoutABackend(t *testing.T) {
	s := startStandIn(t, fake.Options{Shows: map[string]string{"Alive": "false", "ErrMsg": "connection refused"}})
	found := troubles(examine(t, s.table(streamLoad, nil), intended()))
	require.Equal(t, loader.Finding{Check: "backends", Grade: loader.GradeFail,
		Found: "0 of 1 take loads; not 127.0.0.2 (alive: false, connection refused)",
		Fix:   "read be.out and be.INFO there, then SHOW BACKENDS"}, found["backends"])
}

// A backend behind the frontend's own is one more to reach: the classic failure is named with its address.
func TestExamineSomeBackendsUnreachable(t *testing.T) {
	s := startStandIn(t, fake.Options{Backends: 2})
	unreachable := s.Backends[1]
	target := s.table(streamLoad, map[string]string{optBackends: unreachable + "=127.0.0.9:1"})
	found := troubles(examine(t, target, intended()))
	require.Equal(t, loader.Finding{Check: "backend ports", Grade: loader.GradeWarn,
		Found: "the HTTP ports of 1 of 2 backends answer; not 127.0.0.9:1: loads sent there fail and are sent again",
		Fix:   "open the port, or --redirect-policy public, or --be 127.0.0.9:1=HOST:PORT with the address that is reachable from here"}, found["backend ports"])
	require.Len(t, found, 1)
}

func TestExamineThroughAStore(t *testing.T) {
	s, via, store := startWithStore(t)
	target := s.table(s3Load, nil)
	target.Via = via
	findings := examine(t, target, intended())
	found := troubles(findings)
	require.Len(t, found, 1)
	require.Contains(t, found["store from the server"].Found, "Doris reads the objects from http://127.0.0.1:")
	require.NoError(t, store.SetVersioningConfiguration("bucket", gofakes3.VersioningConfiguration{Status: gofakes3.VersioningEnabled}))
	found = troubles(examine(t, target, intended()))
	require.Len(t, found, 2)
	require.Contains(t, found["versioning"].Found, "removed when Doris has loaded them")
}

// CheckServer asks: no statement of it, and no request, changes anything.
func TestExamineChangesNothing(t *testing.T) {
	s := startStandIn(t, fake.Options{})
	before := len(s.Requests())
	examine(t, s.table(streamLoad, nil), intended())
	for _, r := range s.Requests()[before:] {
		require.NotEqual(t, fake.Load, r.Kind)
		if r.Kind == fake.Statement {
			require.Regexp(t, "^(SHOW|SELECT|SET) ", r.SQL)
		}
	}
}

func TestExamineOfAClusterThatIsGone(t *testing.T) {
	s := startStandIn(t, fake.Options{})
	l, err := New().Open(t.Context(), s.table(streamLoad, nil), testDeps())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	s.Close()
	_, err = l.(loader.Checker).CheckServer(t.Context(), intended())
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
