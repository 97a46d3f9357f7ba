package mysql

import (
	"regexp"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/pkg/loader"
)

func TestFlavour(t *testing.T) {
	for _, c := range []struct {
		vars    map[string]string
		flavour flavour
		version string
	}{
		{map[string]string{"version": "9.7.4-2", "version_comment": "(Debian)"}, mySQL, "9.7.4-2"},
		{map[string]string{"version": "8.0.36", "version_comment": "Percona Server (GPL)"}, mySQL, "8.0.36"},
		{map[string]string{"version": "8.0.28", "aurora_version": "3.07.1"}, mySQL, "8.0.28"},
		{map[string]string{"version": "10.11.19-MariaDB-0+deb12u1"}, mariaDB, "10.11.19-MariaDB-0+deb12u1"},
		{map[string]string{"version": "11.4.5", "version_comment": "mariadb.org binary distribution"}, mariaDB, "11.4.5"},
		{map[string]string{"version": "8.0.11-TiDB-v7.5.0", "version_comment": "TiDB Server"}, tiDB, "v7.5.0"},
		{map[string]string{"version": "5.7.32", "memsql_version": "8.7.1"}, singleStore, "8.7.1"},
		{map[string]string{"version": "5.7.25-OceanBase-v4.3.5.1"}, oceanBase, "v4.3.5.1"},
		{map[string]string{"version": "5.7.25-OceanBase_CE-v4.2.1.0"}, oceanBase, "CE-v4.2.1.0"},
		{map[string]string{"version": "5.7.25-OceanBase seekdb-v1.4.0.0"}, oceanBase, "seekdb-v1.4.0.0"},
		{map[string]string{}, mySQL, ""},
	} {
		s := identify(c.vars)
		assert.Equal(t, c.flavour, s.flavour, c.vars)
		assert.Equal(t, c.version, s.version, c.vars)
	}
}

func TestSchemeAssertsFlavour(t *testing.T) {
	mine := identify(map[string]string{"version": "10.11.19-MariaDB"})
	for _, scheme := range []string{"mysql", "mariadb"} {
		assert.NoError(t, mine.check(scheme, methodLoadData))
	}
	assert.Equal(t, "probe: the target says tidb://, but the server is MariaDB 10.11.19-MariaDB"+
		" (use mysql://, which takes every server of the family, or point the URL at the right one)", loader.Explain(mine.check("tidb", methodLoadData)))
	assert.Equal(t, "probe: method pipeline is SingleStore's, and the server is MariaDB 10.11.19-MariaDB"+
		" (take --method load-data)", loader.Explain(mine.check("mysql", methodPipeline)))
}

func TestBefore(t *testing.T) {
	for _, c := range []struct {
		version string
		want    bool
	}{
		{"v7.5.0", true}, {"v7.6.0", false}, {"v6.9.9", true}, {"v8.0.0", false}, {"7.10.1", false},
		{"v7.6.0-alpha", false}, {"nightly", true},
	} {
		assert.Equal(t, c.want, server{version: c.version}.before(7, 6), c.version)
	}
}

func TestCaps(t *testing.T) {
	for _, c := range []struct {
		method, version, packet string
		dedup                   loader.Dedup
		atomic                  bool
		most                    int64
	}{
		{methodInsert, "", "67108864", loader.DedupTx, true, 64<<20 - packetRoom},
		{methodInsert, "", "2048", loader.DedupTx, true, 1024},
		{methodLoadData, "", "67108864", loader.DedupTx, true, 0},
		{methodLoadData, "5.7.25-TiDB-v6.5.0", "", loader.DedupNone, false, 80 << 20},
		{methodLoadData, "8.0.11-TiDB-v7.5.0", "", loader.DedupNone, true, 80 << 20},
		{methodLoadData, "8.0.11-TiDB-v8.5.1", "", loader.DedupTx, true, 80 << 20},
		{methodLoadData, "5.7.25-OceanBase-v4.3.5.1", "", loader.DedupNone, false, 0},
		{methodInsert, "5.7.25-OceanBase-v4.3.5.1", "16777216", loader.DedupTx, true, 16<<20 - packetRoom},
		{methodInsert, "8.0.11-TiDB-v7.5.0", "67108864", loader.DedupTx, true, 64<<20 - packetRoom},
	} {
		m, _ := loader.FindMethod(New(), c.method)
		got := identify(map[string]string{"version": c.version, "max_allowed_packet": c.packet}).caps(m)
		assert.Equal(t, []any{c.dedup, c.atomic, c.most}, []any{got.Dedup, got.Atomic, got.MaxBytes}, "%+v", c)
		if got.Dedup == loader.DedupNone {
			assert.Contains(t, got.Reason, " commits LOAD DATA by itself")
			assert.Contains(t, got.Reason, "--method insert")
		}
	}
}

func TestLocalInfileOff(t *testing.T) {
	off := map[string]string{"version": "9.7.4", "local_infile": "OFF"}
	s := &fakeServer{vars: off}
	target := s.start(t, "mysql")
	prepare := func() error {
		l := backendtest.Open(t, New(), target, backendtest.Deps())
		_, err := l.Prepare(t.Context(), loader.Preparation{Silent: true})
		return err
	}
	assert.Equal(t, "probe: local_infile is OFF on this MySQL, so it refuses LOAD DATA LOCAL ("+localInfileHint+")", loader.Explain(prepare()))

	target.Method = methodInsert // needs no such thing
	require.NoError(t, prepare())

	assert.False(t, identify(map[string]string{"memsql_version": "8.7.1", "local_infile": "OFF"}).infileOff())
}

// chosen are epochs and times.
var chosen = regexp.MustCompile(`\d+-[a-z2-7]{10}|\b\d{10}\b`)

// SingleStore cannot be installed for tests: a golden file has the statements that a run sends it. TiDB, of which there is
// no cluster, has one, too.
func TestFlavoursWithoutServer(t *testing.T) {
	for _, c := range []struct {
		scheme string
		vars   map[string]string
	}{
		{"tidb", map[string]string{"version": "8.0.11-TiDB-v8.5.1", "max_allowed_packet": "67108864"}},
		{"singlestore", map[string]string{"version": "5.7.32", "memsql_version": "8.7.1", "max_allowed_packet": "104857600"}},
	} {
		t.Run(c.scheme, func(t *testing.T) {
			s := &fakeServer{vars: c.vars}
			s.answer = func(query string) *fakeAnswer {
				switch made := s.count("CREATE TABLE IF NOT EXISTS `db`.`documents`") > 0; {
				case made && strings.Contains(query, "table_type") && strings.Contains(query, "documents"):
					return rowsOf([]string{"BASE TABLE", "made by terapush", "InnoDB", "YES", "2026-01-01"})
				case strings.Contains(query, "tidb_table_id"):
					return rowsOf([]string{"77"})
				case strings.Contains(query, "column_type"):
					return documentsColumns()
				}
				return nil
			}
			d, contract := documents(t, 10), contractOf(methodLoadData, 3)
			db := prepared(t, s.start(t, c.scheme), backendtest.Deps(), preparation(d, contract))
			session := db.testSession(t, contract)
			session.reader = "reader"
			mysql.RegisterReaderHandler(session.reader, session.handOut)
			ack, err := session.Load(t.Context(), batchOf(t, d, contract.Format, id(0), 0, 3))
			require.NoError(t, err)
			assert.EqualValues(t, 3, ack.Rows)
			backendtest.Resolves(t, db, loader.Ref{ID: id(1), First: 3, Rows: 3}, loader.No)
			golden.Equal(t, "session-"+c.scheme+".sql", chosen.ReplaceAllString(lines(s.statements()), "CHOSEN"))
		})
	}
}

func TestHostsInTurn(t *testing.T) {
	vars := map[string]string{"version": "5.7.32", "memsql_version": "8.7.1"}
	master, child := &fakeServer{vars: vars}, &fakeServer{vars: vars}
	target := master.start(t, "singlestore")
	target.Hosts = append(target.Hosts, child.start(t, "singlestore").Hosts...)
	p := silent(t, contractOf(methodLoadData, 1))
	db := prepared(t, target, backendtest.Deps(), p)
	before := len(master.statements())
	for range 4 {
		db.testSession(t, p.Contract)
	}
	assert.Len(t, master.statements()[before:], len(child.statements()), "sessions are spread evenly")
	_, err := db.control.ExecContext(t.Context(), newStatements(db.name, singleStore, p.Schema).createTable())
	require.NoError(t, err)
	assert.NotContains(t, lines(child.statements()), "CREATE TABLE", "DDL goes to the first host")
}
