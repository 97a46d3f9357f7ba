package oracle

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	fake "github.com/terapush/terapush/internal/fake/oracle"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// idleBlocker is how soon the stand-in ends a session that holds up others and waits for a client that says nothing:
// MAX_IDLE_BLOCKER_TIME, which a database has to have set where clients vanish.
const idleBlocker = 300 * time.Millisecond

// The suite runs over the stand-in: no Oracle can be had for a test.
func TestConformance(t *testing.T) {
	for label, c := range map[string]struct {
		method string
		data   dataset.Dataset
		native bool
		loose  bool // at least once
	}{
		"single, at least once": {methodSingle, documents(t), false, true},
		"batch":                 {methodBatch, documents(t), false, false},
		"batch, bytes":          {methodBatch, datasetOf(t, "documents", dataset.Bytes), false, false},
		"batch, at least once":  {methodBatch, documents(t), false, true},
		"batch, native":         {methodBatch, datasetOf(t, "people", ""), true, false},
		"array":                 {methodArray, documents(t), false, false},
		"array, bytes":          {methodArray, datasetOf(t, "documents", dataset.Bytes), false, false},
		"array, journal":        {methodArray, datasetOf(t, "journal", ""), false, false},
		"array, people":         {methodArray, datasetOf(t, "people", ""), false, false},
		"array, at least once":  {methodArray, documents(t), false, true},
		"array, native":         {methodArray, datasetOf(t, "journal", ""), true, false},
		"fast":                  {methodFast, datasetOf(t, "journal", ""), false, true},
		"fast, native":          {methodFast, documents(t), true, true},
		"direct":                {methodDirect, datasetOf(t, "journal", ""), true, false},
		"direct, at least once": {methodDirect, documents(t), true, true},

		"single, at least once, lineitem": {methodSingle, datasetOf(t, "lineitem", ""), false, true},
		"single, at least once, httplogs": {methodSingle, datasetOf(t, "httplogs", ""), true, true},
		"single, at least once, pairs":    {methodSingle, datasetOf(t, "pairs", ""), false, true},
		"batch, lineitem":                 {methodBatch, datasetOf(t, "lineitem", ""), true, false},
		"batch, httplogs":                 {methodBatch, datasetOf(t, "httplogs", ""), false, false},
		"batch, pairs":                    {methodBatch, datasetOf(t, "pairs", ""), false, false},
		"array, lineitem":                 {methodArray, datasetOf(t, "lineitem", ""), false, false},
		"array, lineitem, native":         {methodArray, datasetOf(t, "lineitem", ""), true, false},
		"array, httplogs":                 {methodArray, datasetOf(t, "httplogs", ""), false, false},
		"array, httplogs, native":         {methodArray, datasetOf(t, "httplogs", ""), true, false},
		"array, pairs":                    {methodArray, datasetOf(t, "pairs", ""), false, false},
		"fast, lineitem":                  {methodFast, datasetOf(t, "lineitem", ""), false, true},
		"fast, httplogs":                  {methodFast, datasetOf(t, "httplogs", ""), true, true},
		"fast, pairs":                     {methodFast, datasetOf(t, "pairs", ""), false, true},
		"direct, lineitem":                {methodDirect, datasetOf(t, "lineitem", ""), true, false},
		"direct, httplogs":                {methodDirect, datasetOf(t, "httplogs", ""), true, false},
		"direct, pairs":                   {methodDirect, datasetOf(t, "pairs", ""), true, false},
	} {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			s := startStandIn(t, c.native, fake.Options{IdleBlocker: idleBlocker, DrainRows: 500, NumericCharacters: ",."})
			contract := contractOf(c.method, 501) // which cuts orders
			if c.loose {
				contract = atLeastOnce(contract)
			}
			h := s.harness(c.data, contract)
			h.Target = func(*testing.T) loader.Target { return s.table(c.method) }
			loadertest.Run(t, h)
		})
	}
}

func (s *standIn) harness(d dataset.Dataset, c loader.Contract) loadertest.Harness {
	return backendtest.Harness(d, loadertest.Harness{
		Driver: s.backend, Deps: testDeps(), Contract: c, Commit: fake.CommitSent,
	})
}

func TestConformanceOfStagedLoads(t *testing.T) {
	for _, name := range []string{"people", "journal", "documents", "lineitem", "httplogs", "pairs"} {
		for _, loose := range []bool{false, true} {
			if loose && (name == "lineitem" || name == "httplogs" || name == "pairs") {
				continue // differ in nothing that claims have a part in
			}
			t.Run(name+map[bool]string{true: ", at least once"}[loose], func(t *testing.T) {
				t.Parallel()
				s, b := startWithStore(t, fake.Options{IdleBlocker: idleBlocker, NumericCharacters: ",."})
				kind := dataset.Kind("")
				if name == "documents" {
					kind = dataset.Text
				}
				contract := contractOf(methodCloudCopy, 401)
				if loose {
					contract = atLeastOnce(contract)
				}
				h := s.harness(datasetOf(t, name, kind), contract)
				h.Target = func(*testing.T) loader.Target { return s.through(b) }
				loadertest.Run(t, h)
				for _, st := range s.Log() {
					require.NotContains(t, st.Text, secret)
				}
			})
		}
	}
}

// Whoever has an Oracle runs the suite on it: TERAPUSH_TEST_ORACLE='oracle://user:password@host/service'. It is no failure
// in CI that there is none, since none can be installed there.
func TestConformanceOnAServer(t *testing.T) {
	text := os.Getenv("TERAPUSH_TEST_ORACLE")
	if text == "" {
		t.Skip("TERAPUSH_TEST_ORACLE is not set")
	}
	for _, method := range []string{methodSingle, methodBatch, methodArray, methodFast, methodDirect} {
		if _, err := (New().Check(loader.Target{Scheme: "oracle", Hosts: []string{"h"}, User: "u", Database: "s", Method: method})); err != nil {
			continue // not with this driver
		}
		t.Run(method, func(t *testing.T) {
			contract := contractOf(method, 500)
			if method == methodSingle {
				contract = atLeastOnce(contract)
			}
			s := standIn{backend: New().(backend)}
			h := s.harness(datasetOf(t, "journal", ""), contract)
			h.Commit = "" // nothing in the driver's own protocol says commit in words
			h.Target = func(t *testing.T) loader.Target {
				target, err := loader.ParseTarget(text)
				require.NoError(t, err)
				target.Method, target.Table = method, "t_"+strings.ToLower(rand.Text()[:12])
				t.Cleanup(func() { dropOnServer(t, target) })
				return target
			}
			loadertest.Run(t, h)
		})
	}
}

// dropOnServer removes what a test has made on a real server.
func dropOnServer(t *testing.T, target loader.Target) {
	ctx := context.WithoutCancel(t.Context()) // which has ended when a test is cleaned up
	l, err := New().Open(ctx, target, testDeps())
	if err != nil {
		t.Logf("%s stays: %v", target.Table, err)
		return
	}
	defer l.Close()
	err = l.(*opened).withLink(ctx, func(k *link) error {
		_, err := k.exec(ctx, "DROP TABLE "+dialect().Identifier(target.Table)+" PURGE")
		return err
	})
	if err != nil {
		t.Logf("%s stays: %v", target.Table, err)
	}
}
