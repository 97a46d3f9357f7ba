package doris

import (
	"context"
	"crypto/rand"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	fake "github.com/terapush/terapush/internal/standin/doris"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
	"github.com/terapush/terapush/pkg/rows"
)

// The suite runs over the stand-in: no Doris can be had for a test.
func TestConformance(t *testing.T) {
	merged := map[string]string{optGroupCommit: "sync", optGroupInterval: "20"}
	bound := map[string]string{optGroupCommit: "sync", optGroupInterval: "20", optPrepared: "true"}
	for name, c := range map[string]struct {
		method  string
		format  batch.Format
		data    dataset.Dataset
		options map[string]string
		commit  string
	}{
		"stream-load, csv":      {methodStreamLoad, batch.DorisCSV, documents(t), nil, "label: terapush_"},
		"stream-load, gzip":     {methodStreamLoad, batch.DorisCSVGzip, documents(t), nil, "label: terapush_"},
		"stream-load, grouped":  {methodStreamLoad, batch.DorisCSV, documents(t), merged, ""},
		"stream-load, lineitem": {methodStreamLoad, batch.NDJSON, named(t, "lineitem"), nil, "label: terapush_"},
		"stream-load, httplogs": {methodStreamLoad, batch.Parquet, named(t, "httplogs"), nil, "label: terapush_"},
		"insert":                {methodInsert, batch.Values, documents(t), nil, "INSERT INTO `d`.`t_"},
		"insert, lineitem":      {methodInsert, batch.Values, named(t, "lineitem"), nil, "INSERT INTO `d`.`t_"},
		"insert, httplogs":      {methodInsert, batch.Values, named(t, "httplogs"), nil, "INSERT INTO `d`.`t_"},
		"insert, grouped items": {methodInsert, batch.Values, named(t, "lineitem"), merged, ""},
		"prepared, people":      {methodInsert, batch.ColumnArrays, named(t, "people"), bound, ""},
		"prepared, lineitem":    {methodInsert, batch.ColumnArrays, named(t, "lineitem"), bound, ""},
		"stream-load, uuids":    {methodStreamLoad, batch.DorisCSV, own(t, visits), nil, "label: terapush_"},
		"insert, tenants":       {methodInsert, batch.Values, own(t, tenants), nil, "INSERT INTO `d`.`t_"},
		"prepared, tenants":     {methodInsert, batch.ColumnArrays, own(t, tenants), bound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of the time is spent waiting
			s := startStandIn(t, fake.Options{Backends: 2})
			s.Know(c.data.Schema())
			contract := contractOf(c.method, c.format, 1000)
			if c.options != nil {
				contract.Delivery, contract.Dedup = loader.AtLeastOnce, loader.DedupNone
			}
			loadertest.Run(t, harness(c.data, contract, c.commit, func(*testing.T) loader.Target { return s.table(c.method, c.options) }))
		})
	}
}

// refused are the types that a format does not carry to Doris, though both have them.
func refused(caps loader.Caps, f batch.Format) (types []rows.Type) {
	for _, r := range caps.Refuses {
		if r.Format == f {
			types = append(types, r.Type)
		}
	}
	return types
}

// Every type that Doris has, through each method and format.
func TestTypes(t *testing.T) {
	for _, w := range []struct {
		method string
		format batch.Format
	}{
		{methodStreamLoad, batch.DorisCSV}, {methodStreamLoad, batch.DorisCSVGzip}, {methodStreamLoad, batch.NDJSON},
		{methodStreamLoad, batch.Parquet}, {methodInsert, batch.Values}, {methodInsert, batch.ColumnArrays},
		{methodS3Load, batch.DorisCSV}, {methodS3Load, batch.Parquet},
	} {
		t.Run(w.method+", "+string(w.format), func(t *testing.T) {
			s, via, _ := startWithStore(t)
			target, contract := s.table(w.method, nil), contractOf(w.method, w.format, 1000)
			if w.method == methodS3Load {
				target.Via = via
			}
			if w.format == batch.ColumnArrays {
				target.Options = map[string]string{optGroupCommit: "sync", optGroupInterval: "20", optPrepared: "true"}
				contract.Delivery, contract.Dedup = loader.AtLeastOnce, loader.DedupNone
			}
			caps, err := New().Check(target)
			require.NoError(t, err)
			lacks := backendtest.Lacks(w.format, slices.Concat(caps.Lacks, refused(caps, w.format)))
			s.Know(backendtest.EveryType(lacks...))
			backendtest.Tables{
				Driver: New(), Deps: testDeps(), Target: target, Name: target.Table,
				Preparation: loader.Preparation{Run: "r", Contract: contract, Create: loader.CreateIfMissing},
				Exec:        func(string) {}, // the table is new, and goes with the cluster
			}.Types(t, lacks)
		})
	}
}

func harness(d dataset.Dataset, c loader.Contract, commit string, target func(t *testing.T) loader.Target) loadertest.Harness {
	return backendtest.Harness(d, loadertest.Harness{
		Driver: New(), Deps: testDeps(), Contract: c, Commit: commit, Target: target,
	})
}

// Whoever has a Doris runs the suite on it: TERAPUSH_TEST_DORIS='doris://root@fe:9030/db?http_port=8030'. It is no
// failure in CI that there is none, since none can be installed there.
func TestConformanceOnAServer(t *testing.T) {
	text := os.Getenv("TERAPUSH_TEST_DORIS")
	if text == "" {
		t.Skip("TERAPUSH_TEST_DORIS is not set")
	}
	for method, format := range map[string]batch.Format{methodStreamLoad: batch.DorisCSV, methodInsert: batch.Values} {
		t.Run(method, func(t *testing.T) {
			commit := map[string]string{methodStreamLoad: "label: terapush_", methodInsert: "WITH LABEL"}[method]
			loadertest.Run(t, harness(named(t, "people"), contractOf(method, format, 1000), commit, func(t *testing.T) loader.Target {
				target, err := loader.ParseTarget(text)
				require.NoError(t, err)
				target.Method, target.Table, target.TLS = method, "t_"+strings.ToLower(rand.Text()), loader.TLSOff
				t.Cleanup(func() {
					db := silent(t, target, named(t, "people"))
					_, _ = db.control.ExecContext(context.Background(), "DROP TABLE IF EXISTS "+db.name.quoted())
				})
				return target
			}))
		})
	}
}

func TestConformanceOfStagedLoads(t *testing.T) {
	s, via, _ := startWithStore(t)
	d := named(t, "people")
	contract := contractOf(methodS3Load, batch.DorisCSV, 500)
	loadertest.Run(t, harness(d, contract, "INSERT INTO `d`.`t_", func(*testing.T) loader.Target {
		target := s.table(methodS3Load, nil)
		target.Via = via
		return target
	}))
	for _, r := range s.Requests() {
		if r.Label != "" {
			assert.Contains(t, r.SQL, "hunter2secret", "the statement needs the key, and nothing else may hold it")
		}
	}
}
