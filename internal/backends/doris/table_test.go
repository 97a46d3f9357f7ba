package doris

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
)

func TestExplain(t *testing.T) {
	merged := map[string]string{optGroupCommit: "async", optGroupInterval: "1000", optGroupBytes: "1048576", optBuckets: "32", optReplication: "1"}
	bound := map[string]string{optGroupCommit: "async", optGroupInterval: "1000", optPrepared: "true"}
	for name, c := range map[string]struct {
		method  string
		format  batch.Format
		data    dataset.Dataset
		options map[string]string
		create  loader.CreateMode
	}{
		"stream-load":       {methodStreamLoad, batch.DorisCSV, named(t, "people"), nil, loader.CreateRecreate},
		"stream-load-group": {methodStreamLoad, batch.NDJSON, documents(t), merged, loader.CreateRecreate},
		"insert":            {methodInsert, batch.Values, documents(t), nil, loader.CreateRecreate},
		"insert-group":      {methodInsert, batch.Values, documents(t), merged, loader.CreateRecreate},
		"insert-prepared":   {methodInsert, batch.ColumnArrays, documents(t), bound, loader.CreateIfMissing},
		"s3-load-parquet":   {methodS3Load, batch.Parquet, documents(t), nil, loader.CreateRecreate},
		"journal":           {methodStreamLoad, batch.NDJSON, named(t, "journal"), nil, loader.CreateRecreate},
		"lineitem":          {methodS3Load, batch.DorisCSV, named(t, "lineitem"), nil, loader.CreateIfMissing},
		"httplogs":          {methodStreamLoad, batch.DorisCSV, named(t, "httplogs"), nil, loader.CreateTruncate},
	} {
		t.Run(name, func(t *testing.T) {
			target := loader.Target{
				Scheme: "doris", User: "root", Password: "hunter2", Database: "shop", Table: "documents", Method: c.method, Options: c.options,
				Settings: []loader.Setting{{Name: "exec_mem_limit", Value: "8G"}},
			}
			if c.method == methodS3Load {
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
			golden.Equal(t, "explain-"+name+".sql", b.String())
		})
	}
}

func TestCreateTable(t *testing.T) {
	s := newStatements(tableName{"my-db", "a`b"}, documents(t).Schema())
	assert.Contains(t, s.createTable(shape{unique: true, buckets: 3, replication: 2, properties: map[string]string{"a": "1"}}),
		"CREATE TABLE IF NOT EXISTS `my-db`.`a``b` (\n  `document_id` BIGINT NOT NULL,\n  `payload` VARCHAR(512) NOT NULL\n)\n"+
			"UNIQUE KEY(`document_id`)\nCOMMENT 'made by terapush'\nDISTRIBUTED BY HASH(`document_id`) BUCKETS 3\n"+
			`PROPERTIES ("a" = "1", "replication_num" = "2")`)

	// The key comes first in the table, wherever it is in the schema.
	late := rows.Schema{
		Columns: []rows.Column{{Name: "v", Type: rows.Text, MaxBytes: 70000}, {Name: "k", Type: rows.Int64, Derived: true}},
		Number:  []rows.Term{{Column: 1, Times: 1}},
	}
	assert.Contains(t, newStatements(tableName{"d", "t"}, late).createTable(shape{buckets: 1}), "(\n  `k` BIGINT NOT NULL,\n  `v` STRING NOT NULL\n)")

	// It is every column that a row's number is read from, or --primary-key would merge the lines of an order.
	s = newStatements(tableName{"d", "l"}, named(t, "lineitem").Schema())
	assert.Contains(t, s.createTable(shape{unique: true, buckets: 2}), "UNIQUE KEY(`l_orderkey`, `l_linenumber`)")
}

func TestColumnsOfADefinition(t *testing.T) {
	const definition = "CREATE TABLE `t` (\n  `id` bigint NOT NULL AUTO_INCREMENT(1),\n  `a` int AS ((`id` + 1)) NULL,\n" +
		"  `b` varchar(9) NOT NULL DEFAULT \"x AS (\" COMMENT 'AS ('\n) ENGINE=OLAP"
	for column, want := range map[string][2]bool{"id": {false, true}, "a": {true, true}, "b": {}, "i": {}, "d": {}} {
		got := [2]bool{declares(definition, column, `AS \(`), declares(definition, column, `AS \(|AUTO_INCREMENT\(`)}
		assert.Equal(t, want, got, column)
	}
}

func TestShapeFollowsTheBackends(t *testing.T) {
	for alive, want := range map[int64]shape{
		-1: {buckets: 16}, 0: {buckets: 16}, 1: {buckets: 4, replication: 1}, 2: {buckets: 8, replication: 2}, 9: {buckets: 36, replication: 3},
	} {
		assert.Equal(t, want, shape{}.fill(alive), "%d alive", alive)
	}
	assert.Equal(t, shape{buckets: 7, replication: 2}, shape{buckets: 7, replication: 2}.fill(5))
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
		{price, []string{"decimalv3(15, 2)", "decimal(15,2)", "decimalv3(16, 2)"},
			[]string{"decimalv3(14, 2)", "decimalv3(15, 3)", "decimal(15)", "decimal", "double", "bigint"}},
		{rows.Column{Type: rows.Bool}, []string{"tinyint(1)", "boolean"}, []string{"tinyint(4)", "int(11)"}},
		{rows.Column{Type: rows.Int16, Most: 127}, []string{"tinyint(4)", "smallint(6)", "int(11)"}, nil},
		{rows.Column{Type: rows.Int16, Most: 128}, []string{"smallint(6)"}, []string{"tinyint(4)"}},
		{rows.Column{Type: rows.Uint64}, []string{"largeint"}, []string{"bigint(20)"}},
		{rows.Column{Type: rows.UUID}, []string{"varchar(36)", "char(36)", "string"}, []string{"varchar(35)"}},
	} {
		for _, kind := range c.takes {
			assert.True(t, types.Take(sqlload.ParseType(kind), c.want, false), kind)
		}
		for _, kind := range c.others {
			assert.False(t, types.Take(sqlload.ParseType(kind), c.want, false), kind)
		}
	}
}

func TestVersion(t *testing.T) {
	assert.Equal(t, "3.1.2-rc01-5f4a5a", version("Doris version doris-3.1.2-rc01-5f4a5a"))
	assert.Equal(t, "Apache Doris", version("Apache Doris"))
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
