package oracle

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	fake "github.com/terapush/terapush/internal/standin/oracle"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// idleBlocker is how soon the stand-in ends a session that blocks others and waits for a client that says nothing:
// MAX_IDLE_BLOCKER_TIME, which a database has to have set where clients vanish.
const idleBlocker = 300 * time.Millisecond

func (d Driver) harness(rows dataset.Dataset, c loader.Contract, target func(*testing.T) loader.Target) loadertest.Harness {
	return backendtest.Harness(rows, loadertest.Harness{
		Driver: d, Deps: backendtest.Deps(), Contract: c, Commit: fake.CommitSent, Target: target,
	})
}

// Every method, by both kinds of driver, with every kind of column and key.
func TestConformance(t *testing.T) {
	for label, c := range map[string]struct {
		method, dataset string
		native, loose   bool
	}{
		"single":                {methodSingle, "lineitem", false, false},
		"single, native":        {methodSingle, "httplogs", true, false},
		"batch":                 {methodBatch, "documents", false, false},
		"batch, at least once":  {methodBatch, "pairs", false, true},
		"batch, native":         {methodBatch, "people", true, false},
		"array":                 {methodArray, "journal", false, false},
		"array, bytes":          {methodArray, "documents", false, false},
		"array, pairs":          {methodArray, "pairs", false, false},
		"array, at least once":  {methodArray, "httplogs", false, true},
		"array, native":         {methodArray, "lineitem", true, false},
		"fast":                  {methodFast, "journal", false, true},
		"fast, native":          {methodFast, "lineitem", true, true},
		"direct":                {methodDirect, "httplogs", true, false},
		"direct, at least once": {methodDirect, "people", true, true},
	} {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			s := startStandIn(t, fake.Options{Native: c.native, IdleBlocker: idleBlocker, DrainRows: 500})
			contract := contractOf(c.method, 501) // not a whole number of orders
			if c.method == methodSingle || c.method == methodBatch {
				contract = contractOf(c.method, 51) // each row is a round trip, and a busy machine has 30 s for a batch
			}
			if c.loose {
				contract = atLeastOnce(contract)
			}
			kind := dataset.Kind("")
			if c.dataset == "documents" && c.method == methodBatch {
				kind = dataset.Text
			}
			loadertest.Run(t, s.backend.harness(datasetOf(t, c.dataset, kind), contract, func(*testing.T) loader.Target {
				return s.table(c.method)
			}))
		})
	}
}

// Values of every type that the server has, and NULLs, come back as they were sent, by both kinds of driver.
func TestTypes(t *testing.T) {
	for _, method := range []string{methodSingle, methodBatch, methodArray, methodDirect} {
		for _, native := range []bool{false, true} {
			if method == methodDirect && !native {
				continue
			}
			t.Run(fmt.Sprint(method, ", native ", native), func(t *testing.T) {
				s := startStandIn(t, fake.Options{Native: native})
				s.Know(backendtest.EveryType(types.Lacks()...))
				everyType(t, s.backend, s.table(method), func(statement string) {
					if name, is := strings.CutPrefix(statement, "DROP TABLE IF EXISTS "); !is || s.Has(name) {
						require.NoError(t, s.Run(strings.Replace(statement, "IF EXISTS ", "", 1)))
					}
				})
			})
		}
	}
}

func everyType(t *testing.T, d Driver, target loader.Target, exec func(statement string)) {
	backendtest.Tables{
		Driver: d, Deps: backendtest.Deps(), Target: target, Name: name(target), EmptyIsNull: true, Exec: exec,
		Preparation: loader.Preparation{
			Run: "types", Contract: contractOf(target.Method, 130), Create: loader.CreateIfMissing, PrimaryKey: true,
			Begin: &loader.Beginning{Appends: true}, Owner: "it's me@here, process 1",
		},
	}.Types(t, types.Lacks())
}

// Who has an Oracle runs the suite on it: TERAPUSH_TEST_ORACLE=oracle://user:password@host/service of a schema that may
// create tables. Unlike for every other server its absence is no failure in CI, because none can be installed there.
func TestConformanceOnAServer(t *testing.T) {
	text := os.Getenv("TERAPUSH_TEST_ORACLE")
	if text == "" {
		t.Skip("TERAPUSH_TEST_ORACLE is not set")
	}
	for _, method := range []string{methodSingle, methodBatch, methodArray, methodFast, methodDirect} {
		for _, name := range []string{"journal", "people", "documents", "lineitem"} {
			t.Run(method+", "+name, func(t *testing.T) {
				target, err := loader.ParseTarget(text)
				require.NoError(t, err)
				target.Method = method
				if _, err := New().Check(target); err != nil {
					require.ErrorContains(t, err, "make build-godror")
					t.Skip("not with this driver")
				}
				contract := contractOf(method, 500)
				h := New().(Driver).harness(datasetOf(t, name, ""), contract, func(t *testing.T) loader.Target {
					target.Table = "t_" + strings.ToLower(rand.Text()[:12])
					t.Cleanup(func() { dropOnServer(t, target) })
					return target
				})
				h.Commit = "" // nothing in the driver's own protocol says commit in words
				loadertest.Run(t, h)
			})
		}
	}
}

// Every type, as TestTypes.
func TestTypesOnAServer(t *testing.T) {
	text := os.Getenv("TERAPUSH_TEST_ORACLE")
	if text == "" {
		t.Skip("TERAPUSH_TEST_ORACLE is not set")
	}
	target, err := loader.ParseTarget(text)
	require.NoError(t, err)
	target.Method, target.Table = methodArray, "t_"+strings.ToLower(rand.Text()[:12])
	everyType(t, New().(Driver), target, func(statement string) {
		if strings.HasPrefix(statement, "DROP") {
			dropOnServer(t, target)
		}
	})
}

// dropOnServer removes what a test has made on a real server.
func dropOnServer(t *testing.T, target loader.Target) {
	ctx := context.WithoutCancel(t.Context()) // which has ended when a test is cleaned up
	l, err := New().Open(ctx, target, backendtest.Deps())
	if err == nil {
		defer l.Close()
		err = l.(*opened).withConn(ctx, func(k *conn) error {
			_, err := k.exec(ctx, "DROP TABLE "+dialect().Identifier(target.Table)+" PURGE")
			return err
		})
	}
	if err != nil {
		t.Logf("%s stays: %v", target.Table, err)
	}
}
