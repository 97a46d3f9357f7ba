package doris

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/standin"
	fake "github.com/terapush/terapush/internal/standin/doris"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

func TestOpen(t *testing.T) {
	s := startStandIn(t, fake.Options{})
	target := s.table(insert, nil)
	target.Settings = []loader.Setting{{Name: "exec_mem_limit", Value: "1073741824"}}
	l, err := New().Open(t.Context(), target, testDeps())
	require.NoError(t, err)
	defer l.Close()
	server := l.Server()
	assert.Equal(t, "Apache Doris", server.Product)
	assert.Contains(t, server.Version, "3.1.2")
	assert.Equal(t, s.SQL, server.Endpoint)
	assert.Equal(t, "1073741824", server.Settings["exec_mem_limit"])
	assert.Equal(t, "off_mode", server.Settings["group_commit"])

	target.Password = "wrong"
	_, err = New().Open(t.Context(), target, testDeps())
	assert.Equal(t, loader.ClassPermission, New().Classify(err).Class, "%v", err)
	target.Hosts = []string{closedPort(t)}
	_, err = New().Open(t.Context(), target, testDeps())
	require.ErrorContains(t, err, "9030")
	assert.Equal(t, loader.Verdict{Class: loader.ClassConnection, Applied: loader.No, Retry: true, SessionDead: true}, New().Classify(err))
	target.Hosts, target.Password = []string{closedPort(t), s.SQL}, s.target.Password
	l, err = New().Open(t.Context(), target, testDeps())
	require.NoError(t, err, "the second frontend serves as well")
	assert.NoError(t, l.Close())
}

func TestOtherServersAreRefused(t *testing.T) {
	require.NoError(t, recognize("Doris version doris-3.1.2"))
	require.ErrorContains(t, recognize("MySQL Community Server"), "it is not Doris")
	require.ErrorContains(t, recognize("StarRocks"), "mysql://")
}

func capsOf(method string) loader.Caps {
	m, _ := loader.FindMethod(New(), method)
	return m.Caps
}

func TestLimitPacket(t *testing.T) {
	db := &opened{method: loader.Method{Name: insert}, caps: capsOf(insert)}
	db.limitPacket("524288")
	assert.Equal(t, int64(524288-packetRoom), db.caps.MaxBytes)
	assert.Equal(t, db.caps.MaxBytes, db.caps.DefaultBatchBytes)
	db.limitPacket("none")
	assert.Equal(t, int64(524288-packetRoom), db.caps.MaxBytes)
	db = &opened{method: loader.Method{Name: streamLoad}, caps: capsOf(streamLoad)}
	db.limitPacket("524288")
	assert.EqualValues(t, maxStreamBytes, db.caps.MaxBytes)
}

// ofDocuments are the columns of documents.
var ofDocuments = []standin.Column{{Name: "document_id", Type: "BIGINT"}, {Name: "payload", Type: "VARCHAR(512)"}}

func TestPrepare(t *testing.T) {
	s := startStandIn(t, fake.Options{Backends: 2})
	d := people(t)
	target := s.table(streamLoad, nil)
	l, err := New().Open(t.Context(), target, testDeps())
	require.NoError(t, err)
	defer l.Close()
	_, err = l.Session(t.Context(), loader.Contract{})
	require.ErrorContains(t, err, "was not prepared")
	p := loader.Preparation{Run: "r", Schema: d.Schema(), Contract: contractOf(streamLoad, batch.DorisCSV, 10), Create: loader.CreateNever}
	_, err = l.Prepare(t.Context(), p)
	require.ErrorContains(t, err, "--create if-missing makes it")

	p.Create = loader.CreateIfMissing
	made, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	assert.True(t, made.Created)
	assert.False(t, made.HasRows)
	assert.Equal(t, "d."+target.Table, made.Name)
	assert.NotEmpty(t, made.Identity)
	there, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	assert.False(t, there.Created)
	assert.Equal(t, made.Identity, there.Identity)

	acked, _, err := attempts(t.Context(), l, p.Contract, batchOf(t, d, batch.DorisCSV, batch.ID{Run: "r"}, 0, 10))
	require.NoError(t, err)
	require.True(t, acked)
	full, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	assert.True(t, full.HasRows)
	assert.Equal(t, made.Identity, full.Identity, "a load does not make another table of it")

	p.Create = loader.CreateRecreate
	anew, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	assert.True(t, anew.Created)
	assert.False(t, anew.HasRows)
	assert.NotEqual(t, made.Identity, anew.Identity)

	acked, _, err = attempts(t.Context(), l, p.Contract, batchOf(t, d, batch.DorisCSV, batch.ID{Run: "r", Number: 1}, 10, 10))
	require.NoError(t, err)
	require.True(t, acked)
	p.Create = loader.CreateTruncate
	emptied, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	assert.False(t, emptied.Created)
	assert.False(t, emptied.HasRows)
	assert.NotEqual(t, anew.Identity, emptied.Identity, "a run's identity is that behind the TRUNCATE")
	p.Create = loader.CreateNever
	still, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	assert.Equal(t, emptied.Identity, still.Identity)

	p.Silent = true
	before := len(s.Requests())
	_, err = l.Prepare(t.Context(), p)
	require.NoError(t, err)
	assert.Len(t, s.Requests(), before)
}

func TestOtherPeoplesTables(t *testing.T) {
	s := startStandIn(t, fake.Options{})
	target := s.table(streamLoad, nil)
	s.CreateTable(target.Table, "", standin.Column{Name: "id", Type: "INT"})
	l, err := New().Open(t.Context(), target, testDeps())
	require.NoError(t, err)
	defer l.Close()
	p := loader.Preparation{Run: "r", Schema: documents(t).Schema(), Create: loader.CreateRecreate}
	_, err = l.Prepare(t.Context(), p)
	require.ErrorContains(t, err, "was not made by terapush")
	p.Create = loader.CreateIfMissing
	_, err = l.Prepare(t.Context(), p)
	require.ErrorContains(t, err, "column document_id (BIGINT) is missing")
	require.ErrorContains(t, err, "column id (int) is unknown")
	p.Create = loader.CreateTruncate
	s.Append(target.Table, standin.Row{Number: 1})
	p.MayDrop = target.Table
	_, err = l.Prepare(t.Context(), p)
	require.ErrorContains(t, err, "column document_id (BIGINT) is missing")
	assert.EqualValues(t, 1, s.Rows(target.Table), "a table that cannot take the rows keeps its own")
	p.Create = loader.CreateRecreate
	_, err = l.Prepare(t.Context(), p)
	require.NoError(t, err)
}

// Somebody else's table is emptied when it is named.
func TestOtherPeoplesTablesAreNotEmptied(t *testing.T) {
	s := startStandIn(t, fake.Options{})
	target := s.table(streamLoad, nil)
	s.CreateTable(target.Table, "", ofDocuments...)
	s.Append(target.Table, standin.Row{Number: 1})
	l, err := New().Open(t.Context(), target, testDeps())
	require.NoError(t, err)
	defer l.Close()
	p := loader.Preparation{Run: "r", Schema: documents(t).Schema(), Contract: contractOf(streamLoad, batch.DorisCSV, 10), Create: loader.CreateTruncate}
	_, err = l.Prepare(t.Context(), p)
	require.ErrorContains(t, err, "was not made by terapush")
	require.ErrorContains(t, err, "so it is not emptied")
	assert.EqualValues(t, 1, s.Rows(target.Table))
	p.MayDrop = "d." + target.Table
	got, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	assert.False(t, got.Created)
	assert.Zero(t, s.Rows(target.Table))
}

// A table that is there keeps its properties; whoever asks for others is told.
func TestPropertiesOfATableThatIsThere(t *testing.T) {
	s := startStandIn(t, fake.Options{})
	d := documents(t)
	c := contractOf(streamLoad, batch.DorisCSV, 10)
	target := s.table(streamLoad, map[string]string{optGroupCommit: "sync", optGroupInterval: "1000"})
	db := s.open(t, target, d, c)
	assert.Equal(t, time.Second, db.interval())

	var logged bytes.Buffer
	deps := testDeps()
	deps.Log = slog.New(slog.NewTextHandler(&logged, nil))
	target.Options = map[string]string{optGroupCommit: "sync", optGroupInterval: "5000"}
	l, err := New().Open(t.Context(), target, deps)
	require.NoError(t, err)
	defer l.Close()
	_, err = l.Prepare(t.Context(), loader.Preparation{Run: "r", Schema: d.Schema(), Contract: c, Create: loader.CreateIfMissing})
	require.NoError(t, err)
	assert.Contains(t, logged.String(), "group_commit_interval_ms")
	assert.Contains(t, logged.String(), "1000")
}

// Partitions that come with rows or days are no identity: it would change under the run's own loads.
func TestIdentity(t *testing.T) {
	s := startStandIn(t, fake.Options{})
	prepared := func(target loader.Target) (loader.Table, map[string]string) {
		l, err := New().Open(t.Context(), target, testDeps())
		require.NoError(t, err)
		defer l.Close()
		table, err := l.Prepare(t.Context(), loader.Preparation{Run: "r", Schema: documents(t).Schema(), Create: loader.CreateIfMissing})
		require.NoError(t, err)
		return table, l.Server().Settings
	}
	table, settings := prepared(s.table(streamLoad, nil))
	assert.Regexp(t, `^partitions \d+$`, table.Identity)
	assert.Equal(t, "tag.location.default: 1", settings["replication_allocation"])

	target := s.table(streamLoad, nil)
	s.CreateTable(target.Table, `"dynamic_partition.enable" = "true"`, ofDocuments...)
	table, _ = prepared(target)
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
