package doris

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/standin"
	fake "github.com/terapush/terapush/internal/standin/doris"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

func TestOpen(t *testing.T) {
	s := startStandIn(t, fake.Options{})
	target := s.table(methodInsert, nil)
	target.Settings = []loader.Setting{{Name: "exec_mem_limit", Value: "1073741824"}}
	server := backendtest.Open(t, New(), target, testDeps()).Server()
	assert.Equal(t, "Apache Doris", server.Product)
	assert.Contains(t, server.Version, "3.1.2")
	assert.Equal(t, s.SQL, server.Endpoint)
	assert.Equal(t, "1073741824", server.Settings["exec_mem_limit"])
	assert.Equal(t, "off_mode", server.Settings["group_commit"])

	target.Password = "wrong"
	_, err := New().Open(t.Context(), target, testDeps())
	assert.Equal(t, loader.ClassPermission, New().Classify(err).Class, "%v", err)
	target.Hosts, target.Password = []string{closedPort(t), s.SQL}, s.target.Password
	backendtest.Open(t, New(), target, testDeps()) // the second frontend serves as well
}

// What --set says holds on every connection of a run: those that load, the one that looks at the table and the proof's.
func TestSettingsReachEveryConnection(t *testing.T) {
	s := startStandIn(t, fake.Options{})
	target := s.table(methodInsert, nil)
	target.Settings = []loader.Setting{{Name: "enable_nereids_planner", Value: "false"}}
	var connections atomic.Int64
	deps := testDeps()
	dial := deps.Dial
	deps.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		connections.Add(1)
		return dial(ctx, network, address)
	}
	l := backendtest.Open(t, New(), target, deps)
	_, err := l.Prepare(t.Context(), loader.Preparation{Run: "r", Schema: documents(t).Schema(), Create: loader.CreateIfMissing})
	require.NoError(t, err)
	backendtest.Session(t, l, contractOf(methodInsert, batch.Values, 5))
	assert.GreaterOrEqual(t, connections.Load(), int64(2), "one loads, another one does not")
	set := 0
	for _, r := range s.Requests() {
		if r.SQL == "SET enable_nereids_planner = false" {
			set++
		}
	}
	assert.EqualValues(t, connections.Load(), set)
}

func TestOtherServersAreRefused(t *testing.T) {
	require.NoError(t, recognize("Doris version doris-3.1.2"))
	require.ErrorContains(t, recognize("MySQL Community Server"), "it is not Doris")
	require.Contains(t, loader.Explain(recognize("StarRocks")), "mysql://")
}

// ofDocuments are the columns of documents.
var ofDocuments = []standin.Column{{Name: "document_id", Type: "BIGINT"}, {Name: "payload", Type: "VARCHAR(512)"}}

// What is read of a table that somebody else made. What Prepare makes of it is package sqlload's to show.
func TestPrepareReadsTheCatalog(t *testing.T) {
	s := startStandIn(t, fake.Options{})
	s.CreateTable("fits", "", ofDocuments...)
	s.CreateTable("other", "", standin.Column{Name: "id", Type: "INT"})
	s.Append("fits", standin.Row{Number: 1})
	prepare := func(table string, create loader.CreateMode) (loader.Table, error) {
		target := s.table(methodStreamLoad, nil)
		target.Table = table
		p := loader.Preparation{Run: "r", Schema: documents(t).Schema(), Create: create}
		return backendtest.Open(t, New(), target, testDeps()).Prepare(t.Context(), p)
	}
	found, err := prepare("fits", loader.CreateIfMissing)
	require.NoError(t, err)
	assert.Equal(t, loader.Table{Name: "d.fits", Identity: found.Identity, HasRows: true}, found)
	_, err = prepare("fits", loader.CreateTruncate)
	require.ErrorContains(t, err, "was not made by terapush")
	_, err = prepare("other", loader.CreateIfMissing)
	require.ErrorContains(t, err, "column document_id (BIGINT) is missing")
	require.ErrorContains(t, err, "column id (int(11)) is unknown")
}

// The properties of a table that is there are changed by the load, and by nothing that only looks at it: once, each by a
// statement of its own, if they differ, and with the user told.
func TestPropertiesOfATableThatIsThere(t *testing.T) {
	const bytesSet, intervalSet = `("group_commit_data_bytes" = "1048576")`, `("group_commit_interval_ms" = "5000")`
	for name, c := range map[string]struct {
		interval string
		silent   bool
		want     []string
	}{
		"both":   {"5000", false, []string{bytesSet, intervalSet}},
		"one":    {"1000", false, []string{bytesSet}}, // the table has the interval
		"silent": {"5000", true, []string{bytesSet, intervalSet}},
	} {
		t.Run(name, func(t *testing.T) {
			s := startStandIn(t, fake.Options{})
			target := s.table(methodInsert, map[string]string{optGroupInterval: c.interval, optGroupBytes: "1048576"})
			s.CreateTable(target.Table, `"group_commit_interval_ms" = "1000"`, ofDocuments...)
			var logged bytes.Buffer
			deps := testDeps()
			deps.Log = slog.New(slog.NewTextHandler(&logged, nil))
			l := backendtest.Open(t, New(), target, deps)
			contract := contractOf(methodInsert, batch.Values, 10)
			p := loader.Preparation{Run: "r", Schema: documents(t).Schema(), Contract: contract, Create: loader.CreateNever, Silent: c.silent}
			_, err := l.Prepare(t.Context(), p)
			require.NoError(t, err)
			assert.Empty(t, altered(s))
			for range 2 {
				backendtest.Session(t, l, contract)
			}
			assert.Equal(t, c.want, altered(s))
			assert.Equal(t, len(c.want), strings.Count(logged.String(), "its property is changed"))
			assert.Equal(t, time.Duration(sqlload.Integer(c.interval))*time.Millisecond, l.(*opened).interval())
		})
	}
}

// altered are the properties that ALTER statements have set.
func altered(s *standIn) (all []string) {
	for _, r := range s.Requests() {
		if strings.HasPrefix(r.SQL, "ALTER ") {
			_, set, _ := strings.Cut(r.SQL, " SET ")
			all = append(all, set)
		}
	}
	return all
}

// Whoever may not alter the table learns how, before any row is sent.
func TestAlterRefused(t *testing.T) {
	s := startStandIn(t, fake.Options{Script: func(r fake.Request) (f fake.Fault) {
		if strings.HasPrefix(r.SQL, "ALTER ") {
			f.Fail = "Access denied; you need (at least one of) the (ALTER) privilege(s) for this operation"
		}
		return f
	}})
	target := s.table(methodStreamLoad, map[string]string{optGroupInterval: "1000"})
	s.CreateTable(target.Table, "", ofDocuments...)
	db := s.open(t, target, documents(t), contractOf(methodStreamLoad, batch.DorisCSV, 10))
	_, err := db.Session(t.Context(), contractOf(methodStreamLoad, batch.DorisCSV, 10))
	require.ErrorContains(t, err, "ALTER")
	var refused *loader.Error
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, "GRANT ALTER_PRIV ON d.* TO 'root'; without --group-commit-interval-ms the table keeps its own", refused.Hint)
	assert.Equal(t, loader.Refused(loader.ClassPermission), New().Classify(err))
}

// Partitions that come with rows or days are no identity: it would change under the run's own loads.
func TestIdentity(t *testing.T) {
	s := startStandIn(t, fake.Options{})
	prepared := func(target loader.Target, create loader.CreateMode) (loader.Table, map[string]string) {
		l := backendtest.Open(t, New(), target, testDeps())
		table, err := l.Prepare(t.Context(), loader.Preparation{Run: "r", Schema: documents(t).Schema(), Create: create})
		require.NoError(t, err)
		return table, l.Server().Settings
	}
	target := s.table(methodStreamLoad, nil)
	table, settings := prepared(target, loader.CreateIfMissing)
	assert.Regexp(t, `^partitions \d+$`, table.Identity)
	assert.Equal(t, "tag.location.default: 1", settings["replication_allocation"])
	filled, _ := prepared(target, loader.CreateIfMissing)
	assert.Equal(t, table.Identity, filled.Identity)
	for _, replace := range []loader.CreateMode{loader.CreateTruncate, loader.CreateRecreate} {
		anew, _ := prepared(target, replace)
		assert.NotEqual(t, filled.Identity, anew.Identity)
		filled = anew
	}

	target = s.table(methodStreamLoad, nil)
	s.CreateTable(target.Table, `"dynamic_partition.enable" = "true"`, ofDocuments...)
	table, _ = prepared(target, loader.CreateIfMissing)
	assert.Regexp(t, "^created 20", table.Identity)

	for definition, want := range map[string]bool{
		"AUTO PARTITION BY RANGE (date_trunc(`d`, 'day'))\n()": true,
		"auto partition by list (`d`)":                         true,
		`"dynamic_partition.enable" = "true"`:                  true,
		`"dynamic_partition.enable" = "false"`:                 false,
		"PARTITION BY RANGE(`d`)":                              false,
	} {
		assert.Equal(t, want, ownPartitions(definition), definition)
	}
}

func TestProperties(t *testing.T) {
	definition := "PROPERTIES (\n\"dynamic_partition.replication_num\" = \"2\",\n\"replication_allocation\" = \"tag.location.default: 3\"\n)"
	assert.Equal(t, "tag.location.default: 3", property(definition, "replication_allocation"))
	assert.Empty(t, property(definition, "replication_num"))
}
