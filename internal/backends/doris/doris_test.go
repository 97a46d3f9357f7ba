package doris

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// The options.
const (
	optGroupCommit    = "group-commit"
	optGroupInterval  = "group-commit-interval-ms"
	optGroupBytes     = "group-commit-data-bytes"
	optPrepared       = "prepared"
	optBuckets        = "buckets"
	optReplication    = "replication"
	optRedirectPolicy = "redirect-policy"
	optBackends       = "backend-hosts"
)

func testDeps() loader.Deps {
	log := slog.New(slog.NewTextHandler(guard{}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return loader.Deps{Dial: new(netio.Dialer).DialContext, TLS: netio.Trust{}.TLS, Log: log}
}

// guard is a log that must not get the password.
type guard struct{}

func (guard) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("hunter2")) {
		panic("a secret is logged: " + string(line))
	}
	return len(line), nil
}

// documents are the rows of most tests: text, since Doris has no type for bytes.
func documents(t testing.TB) dataset.Dataset {
	return backendtest.Dataset(t, "documents", dataset.Options{Seed: 1, PayloadBytes: 512, PayloadKind: dataset.Text})
}

func named(t testing.TB, name string) dataset.Dataset {
	return backendtest.Dataset(t, name, dataset.Options{Seed: 1})
}

// Specs with keys that no built-in dataset has, and NULLs.
const (
	visits = `
version: 1
columns:
  id:   {type: uuid, uuid: v4}
  page: {type: text(20), text: {length: 0..20}, nulls: 30%}
  took: {type: double, uniform: {min: 0, max: 100, step: 0.0625}, nulls: 10%}
`
	tenants = `
version: 1
key: [tenant, n]
columns:
  tenant: {type: int, sequence: {start: 1, every: 100}}
  n:      {type: smallint, sequence: {start: 1, cycle: 100}}
  paid:   {type: boolean, values: [true, false], nulls: 20%}
  total:  {type: "decimal(30,4)", uniform: {min: 0, max: 1000}, nulls: 5%}
  day:    {type: date, uniform: {min: 2026-01-01, max: 2026-12-31}, nulls: 50%}
`
)

// own are the rows of a spec.
func own(t testing.TB, text string) dataset.Dataset {
	s, err := dataset.ParseSpec("own.yaml", []byte(text), nil)
	require.NoError(t, err)
	d, err := s.Compile(1)
	require.NoError(t, err)
	return d
}

// Rows of datasets.
var batchOf = backendtest.Batch

// contractOf is what a session is opened with.
func contractOf(method string, f batch.Format, batchRows int64) loader.Contract {
	c := loader.Contract{Method: method, Format: f, Delivery: loader.ExactlyOnce, Dedup: loader.DedupKey, BatchRows: batchRows}
	if method == methodS3Load {
		c.GroupBatches, c.Commits = 4, 2
	}
	return c
}

// silent is a loader with a schema that has asked no server.
func silent(t testing.TB, target loader.Target, d dataset.Dataset) *opened {
	t.Helper()
	db, err := unconnected(target, testDeps())
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	_, err = db.Prepare(t.Context(), loader.Preparation{Run: "r", Schema: d.Schema(), Silent: true})
	require.NoError(t, err)
	return db
}

func load(ctx context.Context, s loader.Session, b *batch.Batch) (loader.Ack, error) {
	b.Hold()
	defer b.Release()
	return s.Load(ctx, b)
}

func TestGroupCommitIsAtLeastOnce(t *testing.T) {
	for _, method := range []string{methodStreamLoad, methodInsert} {
		target := loader.Target{Scheme: "doris", Hosts: []string{"h"}, Database: "db", Table: "t", Method: method}
		caps, err := New().Check(target)
		require.NoError(t, err)
		assert.Equal(t, []any{loader.ExactlyOnce, labelLife}, []any{caps.Delivery(), caps.Window})
		target.Options = map[string]string{optGroupCommit: "async"}
		caps, err = New().Check(target)
		require.NoError(t, err)
		assert.Equal(t, loader.AtLeastOnce, caps.Delivery())
		assert.NotEmpty(t, caps.Reason)
	}
}

func TestCheckRefuses(t *testing.T) {
	good := func() loader.Target {
		return loader.Target{Scheme: "doris", Hosts: []string{"h"}, Database: "db", Table: "t", Method: methodStreamLoad, Params: map[string][]string{}}
	}
	for want, change := range map[string]func(*loader.Target){
		`method "bulk" does not exist`:                      func(t *loader.Target) { t.Method = "bulk" },
		"the target names no database":                      func(t *loader.Target) { t.Database = "" },
		`table "a.b.c"`:                                     func(t *loader.Target) { t.Table = "a.b.c" },
		`parameter "socket" of the target is not known`:     func(t *loader.Target) { t.Params.Set("socket", "/x") },
		"parameter tls=x of the target is not known":        func(t *loader.Target) { t.Params.Set("tls", "x") },
		"http_port=x is not a port":                         func(t *loader.Target) { t.Params.Set("http_port", "x") },
		"--group-commit on: want one of off, sync, async":   func(t *loader.Target) { t.Options = map[string]string{optGroupCommit: "on"} },
		`--buckets: "-1" is not a valid int`:                func(t *loader.Target) { t.Options = map[string]string{optBuckets: "-1"} },
		"--redirect-policy far: want one of direct, public": func(t *loader.Target) { t.Options = map[string]string{optRedirectPolicy: "far"} },
		"--backend-hosts h: want addresses as host:port":    func(t *loader.Target) { t.Options = map[string]string{optBackends: "h"} },
		"--backend-hosts h: want addresses as host:port ":   func(t *loader.Target) { t.Options = map[string]string{optBackends: "a:1=h"} },
		"--backend-hosts : want addresses as host:port":     func(t *loader.Target) { t.Options = map[string]string{optBackends: "a:1="} },
		"--set x: a stream load has no session":             func(t *loader.Target) { t.Settings = []loader.Setting{{Name: "x", Value: "1"}} },
		"--prepared: Doris prepares no INSERT with a label": func(t *loader.Target) {
			t.Method, t.Options = methodInsert, map[string]string{optPrepared: "true"}
		},
		"--set group_commit is refused": func(t *loader.Target) {
			t.Method, t.Settings = methodInsert, []loader.Setting{{Name: "Group_Commit", Value: "x"}}
		},
		"all that is sent and read is UTF-8": func(t *loader.Target) {
			t.Method, t.Settings = methodInsert, []loader.Setting{{Name: "collation_connection", Value: "x"}}
		},
		"not the name of a session variable": func(t *loader.Target) {
			t.Method, t.Settings = methodInsert, []loader.Setting{{Name: "a b", Value: "x"}}
		},
		"NO_BACKSLASH_ESCAPES is refused": func(t *loader.Target) {
			t.Method, t.Settings = methodInsert, []loader.Setting{{Name: "sql_mode", Value: "no_backslash_escapes"}}
		},
		"needs an object store": func(t *loader.Target) { t.Method = methodS3Load },
	} {
		target := good()
		change(&target)
		_, err := New().Check(target)
		require.Error(t, err, want)
		assert.Contains(t, err.Error()+" ", want)
	}
	for _, char := range []byte("*?[]{}\\\"'`\n") {
		via := loader.Target{Scheme: "s3", Hosts: []string{"bucket"}, Database: "a-b/c.d,e" + string(char)}
		target := good()
		target.Method, target.Via = methodS3Load, &via
		_, err := New().Check(target)
		assert.ErrorContains(t, err, fmt.Sprintf("Doris reads %q as part of a pattern", char))
	}
	target := good()
	target.Params.Set("http_port", "1")
	target.Options = map[string]string{optBackends: "a:1=b:2, c:3=d:4, e:5", optRedirectPolicy: "public"}
	_, err := New().Check(target)
	assert.NoError(t, err)
}

func TestLabels(t *testing.T) {
	a, b := tableName{"db", "t"}, tableName{"db", "u"}
	ref := loader.Ref{ID: batch.ID{Run: "20261120-1-abc", Number: 7}}
	assert.Regexp(t, `^terapush_20261120-1-abc_[0-9a-f]{8}_7$`, a.label(ref, false))
	assert.Regexp(t, `^terapush_20261120-1-abc_[0-9a-f]{8}_g7$`, a.label(ref, true))
	assert.NotEqual(t, a.label(ref, false), b.label(ref, false))
	long := loader.Ref{ID: batch.ID{Run: string(make([]byte, 64)), Number: 1<<63 - 1}}
	assert.LessOrEqual(t, len(a.label(long, true)), 128)
}

// A frontend that speaks TLS is asked over https, one for which TLS is a preference is not, and nobody is by --tls off.
func TestFrontendURLs(t *testing.T) {
	for name, c := range map[string]struct {
		host string
		mode loader.TLSMode
		port string
		want string
	}{
		"loopback":  {"127.0.0.1:1", loader.TLSAuto, "", "http://127.0.0.1:8030"},
		"elsewhere": {"fe1", loader.TLSAuto, "", "https://fe1:8050"},
		"off":       {"fe1:9030", loader.TLSOff, "", "http://fe1:8030"},
		"port":      {"fe1", loader.TLSOff, "18030", "http://fe1:18030"},
		"ipv6":      {"[::1]:9030", loader.TLSOff, "", "http://[::1]:8030"},
		"prefer":    {"fe1", loader.TLSPrefer, "", "http://fe1:8030"},
	} {
		target := loader.Target{Hosts: []string{c.host}, TLS: c.mode, Params: map[string][]string{}}
		if c.port != "" {
			target.Params.Set("http_port", c.port)
		}
		all, _, err := endpoints(target, testDeps())
		require.NoError(t, err, name)
		assert.Equal(t, c.want, all[0].http.String(), name)
	}

	// An authority is checked on this machine, too, by both protocols.
	deps := testDeps()
	deps.TLS = netio.Trust{CAFile: backendtest.NewAuthority(t).File}.TLS
	all, secure, err := endpoints(loader.Target{Hosts: []string{"127.0.0.1"}}, deps)
	require.NoError(t, err)
	assert.Equal(t, "https://127.0.0.1:8050", all[0].http.String())
	assert.False(t, secure.InsecureSkipVerify || all[0].config.TLS.InsecureSkipVerify || all[0].config.AllowFallbackToPlaintext)
}
