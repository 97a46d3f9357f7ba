package doris

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "%s; -update writes it anew", path)
}

func TestExplain(t *testing.T) {
	merged := map[string]string{optGroupCommit: "async", optGroupInterval: "1000", optGroupBytes: "1048576", optBuckets: "32", optReplication: "1"}
	for name, c := range map[string]struct {
		method  string
		format  batch.Format
		data    dataset.Dataset
		options map[string]string
		create  loader.CreateMode
	}{
		"stream-load":       {streamLoad, batch.DorisCSV, people(t), nil, loader.CreateRecreate},
		"stream-load-group": {streamLoad, batch.NDJSON, documents(t), merged, loader.CreateRecreate},
		"insert":            {insert, batch.Values, documents(t), nil, loader.CreateRecreate},
		"insert-group":      {insert, batch.Values, documents(t), merged, loader.CreateRecreate},
		"s3-load":           {s3Load, batch.DorisCSV, people(t), nil, loader.CreateRecreate},
		"s3-load-parquet":   {s3Load, batch.Parquet, documents(t), nil, loader.CreateRecreate},
		"s3-load-journal":   {s3Load, batch.Parquet, journal(t), nil, loader.CreateRecreate},
		"journal":           {streamLoad, batch.NDJSON, journal(t), nil, loader.CreateRecreate},
		"lineitem":          {s3Load, batch.DorisCSV, named(t, "lineitem"), nil, loader.CreateIfMissing},
		"lineitem-group":    {insert, batch.Values, named(t, "lineitem"), merged, loader.CreateTruncate},
		"httplogs":          {streamLoad, batch.DorisCSV, named(t, "httplogs"), nil, loader.CreateTruncate},
	} {
		t.Run(name, func(t *testing.T) {
			target := loader.Target{
				Scheme: "doris", User: "root", Password: "hunter2", Database: "shop", Table: "documents", Method: c.method, Options: c.options,
				Settings: []loader.Setting{{Name: "exec_mem_limit", Value: "8G"}},
			}
			if c.method == s3Load {
				target.Via = &loader.Target{Scheme: "s3", Hosts: []string{"bucket"}, Database: "pre/fix", Params: map[string][]string{"path_style": {"true"}}}
			}
			contract := contractOf(c.method, c.format, 1000)
			if c.options != nil {
				contract.Delivery, contract.Dedup = loader.AtLeastOnce, loader.DedupNone
			}
			var b strings.Builder
			for _, s := range New().Explain(target, loader.Preparation{Schema: c.data.Schema(), Contract: contract, Create: c.create}) {
				fmt.Fprintf(&b, "-- %s\n%s;\n", s.When, s.Text)
			}
			assert.NotContains(t, b.String(), "hunter2")
			golden(t, "explain-"+name+".sql", b.String())
		})
	}
}

func TestStatements(t *testing.T) {
	s := newStatements(tableName{"my-db", "a`b"}, documents(t).Schema())
	assert.Contains(t, s.createTable(shape{buckets: 3}), "CREATE TABLE IF NOT EXISTS `my-db`.`a``b` (\n  `document_id` BIGINT NOT NULL,\n"+
		"  `payload` VARCHAR(512) NOT NULL\n)\nDUPLICATE KEY(`document_id`)\nCOMMENT 'made by terapush'\nDISTRIBUTED BY HASH(`document_id`) BUCKETS 3")
	assert.Contains(t, s.createTable(shape{unique: true, buckets: 3, replication: 2}), "UNIQUE KEY(`document_id`)")
	assert.Contains(t, s.createTable(shape{buckets: 3, replication: 2, properties: map[string]string{"a": "1"}}), `PROPERTIES ("a" = "1", "replication_num" = "2")`)
	assert.Equal(t, "SELECT COUNT(*) FROM `my-db`.`a``b` WHERE `document_id` BETWEEN 3 AND 5", s.SelectCount(loader.KeyRange{First: 3, Last: 5}))
	assert.Equal(t, "INSERT INTO `my-db`.`a``b` (`document_id`, `payload`) VALUES ", s.insertHead(""))

	// The key comes first in the table, wherever it is in the schema.
	late := rows.Schema{
		Columns: []rows.Column{{Name: "v", Type: rows.Text, MaxBytes: 70000}, {Name: "k", Type: rows.Int64, Derived: true}},
		Number:  []rows.Term{{Column: 1, Times: 1}},
	}
	assert.Contains(t, newStatements(tableName{"d", "t"}, late).createTable(shape{buckets: 1}), "(\n  `k` BIGINT NOT NULL,\n  `v` STRING NOT NULL\n)")
}

// The key is every column that a row's number is read from, or --primary-key would merge the lines of an order; its columns
// are the table's first, and what a load brings is named.
func TestKeyOfSeveralColumns(t *testing.T) {
	s := newStatements(tableName{"d", "l"}, named(t, "lineitem").Schema())
	made := s.createTable(shape{unique: true, buckets: 2})
	assert.Contains(t, made, "(\n  `l_orderkey` BIGINT NOT NULL,\n  `l_linenumber` BIGINT NOT NULL,\n  `l_partkey` BIGINT NOT NULL,\n  `l_suppkey` BIGINT NOT NULL,\n"+
		"  `l_quantity` DECIMAL(15, 2) NOT NULL,")
	assert.Contains(t, made, "UNIQUE KEY(`l_orderkey`, `l_linenumber`)\nCOMMENT 'made by terapush'\nDISTRIBUTED BY HASH(`l_orderkey`) BUCKETS 2")
	assert.Contains(t, s.insertHead(""), "(`l_orderkey`, `l_partkey`, `l_suppkey`, `l_linenumber`,")
	assert.Equal(t, "SELECT COUNT(*) FROM `d`.`l` WHERE `l_orderkey` BETWEEN 2 AND 3 AND (`l_orderkey` - 1) * 4 + (`l_linenumber` - 1) BETWEEN 5 AND 8",
		s.SelectCount(loader.KeyRange{First: 5, Last: 8}))

	s = newStatements(tableName{"d", "h"}, named(t, "httplogs").Schema())
	assert.Contains(t, s.createTable(shape{buckets: 2}), "(\n  `ts` DATETIME(6) NOT NULL,")
	assert.Contains(t, s.createTable(shape{buckets: 2}), "DUPLICATE KEY(`ts`)\nCOMMENT 'made by terapush'\nDISTRIBUTED BY HASH(`ts`) BUCKETS 2")
	assert.Equal(t, "SELECT COUNT(*) FROM `d`.`h` WHERE `ts` BETWEEN '2026-01-01 00:00:00.000005' AND '2026-01-01 00:00:01.000000'",
		s.SelectCount(loader.KeyRange{First: 5, Last: 1_000_000}))
}

func TestShapeFollowsTheBackends(t *testing.T) {
	for alive, want := range map[int64]shape{
		-1: {buckets: 16}, 0: {buckets: 16}, 1: {buckets: 4, replication: 1}, 2: {buckets: 8, replication: 2}, 9: {buckets: 36, replication: 3},
	} {
		assert.Equal(t, want, shape{}.fill(alive), "%d alive", alive)
	}
	assert.Equal(t, shape{buckets: 7, replication: 2}, shape{buckets: 7, replication: 2}.fill(5))
}

func TestRawBytesAreRefused(t *testing.T) {
	d, err := dataset.New("documents", dataset.Options{})
	require.NoError(t, err)
	require.ErrorContains(t, refuseBytes(d.Schema()), "--payload-kind text")
	require.NoError(t, refuseBytes(people(t).Schema()))
}

func TestColumnsOfATable(t *testing.T) {
	id, text, day := rows.Column{Type: rows.Int64}, rows.Column{Type: rows.Text, MaxBytes: 100}, rows.Column{Type: rows.Date}
	moment, price := rows.Column{Type: rows.Timestamp}, rows.Column{Type: rows.Decimal, Digits: 15, Scale: 2}
	for _, c := range []struct {
		want   rows.Column
		takes  []string
		others []string
	}{
		{id, []string{"bigint", "largeint"}, []string{"int", "string"}},
		{text, []string{"varchar(100)", "varchar(65533)", "varchar(-1)", "string", "text"}, []string{"varchar(99)", "char(100)"}},
		{day, []string{"date", "datev2"}, []string{"datetime"}},
		{moment, []string{"datetime(6)", "datetimev2(6)"}, []string{"datetime", "datetime(3)", "date"}},
		{price, []string{"decimalv3(15, 2)", "decimal(15,2)"},
			[]string{"decimalv3(16, 2)", "decimalv3(15, 3)", "decimal(15)", "decimal", "double", "bigint"}},
	} {
		for _, kind := range c.takes {
			assert.True(t, takes(kind, c.want), kind)
		}
		for _, kind := range c.others {
			assert.False(t, takes(kind, c.want), kind)
		}
	}
}

func TestVersion(t *testing.T) {
	assert.Equal(t, "3.1.2-rc01-5f4a5a", version("Doris version doris-3.1.2-rc01-5f4a5a"))
	assert.Equal(t, "Apache Doris", version("Apache Doris"))
}

func TestObjectsAreNamedOneByOne(t *testing.T) {
	assert.Equal(t, "p/r/{1.x,2.x}", alternatives("p/r/", []string{"p/r/1.x", "p/r/2.x"}))
	assert.Equal(t, "p/r/1.x", alternatives("p/r/", []string{"p/r/1.x"}))
	via := func(prefix string) loader.Target {
		return loader.Target{Method: s3Load, Via: &loader.Target{Scheme: "s3", Hosts: []string{"bucket"}, Database: prefix}}
	}
	assert.NoError(t, checkVia(via("a-b/c.d,e")))
	for _, bad := range []string{"a*", "a?", "{a}", "[a]", `a\`, `a"`, "a'"} {
		assert.ErrorContains(t, checkVia(via(bad)), "part of a pattern", bad)
	}
}

func TestSourceProperties(t *testing.T) {
	own := source{uri: "s3://b/x", format: batch.Parquet, access: objstore.Access{Region: "eu-central-1", KeyID: "id", Secret: `se"c\ret`, Token: "to"}}.properties()
	assert.Equal(t, `"format" = "parquet", "s3.access_key" = "id", "s3.endpoint" = "https://s3.eu-central-1.amazonaws.com", "s3.region" = "eu-central-1", `+
		`"s3.secret_key" = "se\"c\\ret", "s3.session_token" = "to", "uri" = "s3://b/x", "use_path_style" = "false"`, own)
	other := source{format: batch.DorisCSV, access: objstore.Access{Endpoint: "http://minio:9000", PathStyle: true}}.properties()
	assert.Contains(t, other, `"s3.endpoint" = "http://minio:9000"`)
	assert.Contains(t, other, `"s3.region" = "us-east-1"`)
	assert.Contains(t, other, "\"column_separator\" = \"\x01\"")
	assert.NotContains(t, other, "token")
}

// A syntax error repeats a piece of the statement.
func TestKeysStayOutOfErrors(t *testing.T) {
	err := conceal(&mysql.MySQLError{Number: 1105, Message: `errCode = 2, near '"s3.secret_key" = "hunter2", "s3.session_token" = "tok3n"'`},
		objstore.Access{Secret: "hunter2", Token: "tok3n"})
	assert.NotContains(t, err.Error(), "hunter2")
	assert.NotContains(t, err.Error(), "tok3n")
	assert.Contains(t, err.Error(), "errCode = 2")

	// The piece may begin or end in the middle of a key.
	err = conceal(&mysql.MySQLError{Number: 1105, Message: `errCode = 2, near 'UtnFEMI/K7"' at line 1`}, objstore.Access{Secret: "wJalrXUtnFEMI/K7"})
	assert.Contains(t, err.Error(), `near '***"' at line 1`)
}
