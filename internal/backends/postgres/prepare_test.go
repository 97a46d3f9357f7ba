package postgres_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/backends/postgres"
	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

func open(t *testing.T, to loader.Target) loader.Loader {
	t.Helper()
	return backendtest.Open(t, postgres.New(), to, backendtest.Deps())
}

// prepared opens a loader and prepares its table.
func prepared(t *testing.T, to loader.Target, p loader.Preparation) loader.Loader {
	t.Helper()
	l := open(t, to)
	_, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	return l
}

func preparation(t *testing.T, create loader.CreateMode) loader.Preparation {
	return loader.Preparation{
		Run: "run-1", Schema: documents(t).Schema(), Create: create,
		Contract: contract("copy", batch.PGBinary), Begin: &loader.Beginning{Appends: true}, Owner: "a test",
	}
}

func TestOpen(t *testing.T) {
	to := target(t)
	to.Params.Del("sslmode")
	to.Settings = []loader.Setting{{Name: "synchronous_commit", Value: "off"}, {Name: "work_mem", Value: "17MB"}}
	s := open(t, to).Server()
	assert.Equal(t, "PostgreSQL", s.Product)
	assert.NotEmpty(t, s.Version)
	assert.Equal(t, to.Hosts[0], s.Endpoint)
	assert.Equal(t, "off", s.Settings["synchronous_commit"])
	assert.Equal(t, "17MB", s.Settings["work_mem"])
	assert.Contains(t, s.Settings, "fsync")

	for want, change := range map[string]func(*loader.Target){
		`unrecognized configuration parameter "no_such"`: func(to *loader.Target) { to.Settings = []loader.Setting{{Name: "no_such"}} },
		`database "no_such" does not exist`:              func(to *loader.Target) { to.Database = "no_such" },
		"subject alternative name (SAN)":                 func(to *loader.Target) { to.TLS = loader.TLSVerify },
		"server refused TLS connection": func(to *loader.Target) {
			*to = newFake(t, auroraVersion).target("postgres", "copy")
			to.TLS = loader.TLSVerify
		},
	} {
		to := to
		change(&to)
		_, err := postgres.New().Open(t.Context(), to, backendtest.Deps())
		assert.Contains(t, loader.Explain(err), want)
	}
}

// The server's certificate has signed itself, and has a common name only.
func TestAuthorityOnAServer(t *testing.T) {
	to := target(t)
	to.Params.Del("sslmode")
	authority := filepath.Join(t.TempDir(), "server.crt")
	require.NoError(t, os.WriteFile(authority, []byte(sql(t, "SELECT pg_read_file('server.crt')")[0][0]), 0o600))
	foreign := backendtest.NewAuthority(t).File
	for _, c := range []struct {
		params map[string]string
		tls    loader.TLSMode
		flag   string
		want   string // "" if it connects
	}{
		{map[string]string{"sslmode": "verify-ca", "sslrootcert": authority}, "", "", ""},
		{map[string]string{"sslmode": "require", "sslrootcert": authority}, "", "", ""},
		{map[string]string{"sslmode": "verify-full", "sslrootcert": authority}, "", "", "subject alternative name (SAN)"},
		{map[string]string{"sslmode": "require", "sslrootcert": foreign}, "", "", "tls: failed to verify certificate"},
		{nil, loader.TLSVerifyCA, authority, ""},
		{nil, loader.TLSVerifyCA, foreign, "tls: failed to verify certificate"},
		{nil, loader.TLSRequire, foreign, "tls: failed to verify certificate"},
		{nil, loader.TLSAuto, foreign, "tls: failed to verify certificate"},
	} {
		to := to
		to.TLS, to.Params = c.tls, url.Values{}
		for name, value := range c.params {
			to.Params.Set(name, value)
		}
		deps := backendtest.Deps()
		deps.TLS = netio.Trust{CAFile: c.flag}.TLS
		l, err := postgres.New().Open(t.Context(), to, deps)
		if c.want != "" {
			assert.Contains(t, loader.Explain(err), c.want, "%+v", c)
			continue
		}
		if assert.NoError(t, err, "%+v", c) {
			require.NoError(t, l.Close())
		}
	}
}

// tables is the target for the tests that all servers with transactions share.
func tables(t *testing.T, to loader.Target) backendtest.Tables {
	return backendtest.Tables{
		Driver: postgres.New(), Deps: backendtest.Deps(), Target: to, Preparation: preparation(t, loader.CreateIfMissing), Name: to.Table,
		Exec:  func(statement string) { sql(t, statement) },
		Count: func() int64 { return count(t, to.Table) },
	}
}

func TestTables(t *testing.T) {
	t.Run("life", func(t *testing.T) {
		to := target(t)
		to.Params.Set("options", "-c quote_all_identifiers=on") // types would not be recognised
		tables(t, to).Life(t)
	})
	t.Run("arithmetic", func(t *testing.T) { tables(t, target(t)).Arithmetic(t) })
	t.Run("next free", func(t *testing.T) { tables(t, target(t)).NextFree(t, map[string]string{"": "9223372036854775807"}) })
	t.Run("microseconds", func(t *testing.T) { tables(t, target(t)).Microseconds(t) })
	t.Run("dates", func(t *testing.T) {
		to := target(t)
		to.Settings = []loader.Setting{{Name: "TimeZone", Value: "Europe/Berlin"}, {Name: "DateStyle", Value: "German"}}
		s := tables(t, to)
		s.Preparation.Contract = contract("copy", batch.PGText)
		s.Dates(t, `\\x%x`, "ALTER t TYPE timestamp(3)", "ALTER t TYPE timestamptz", "ALTER d TYPE timestamp")
	})
	t.Run("types", func(t *testing.T) {
		to := target(t)
		to.Settings = []loader.Setting{
			{Name: "TimeZone", Value: "Europe/Berlin"}, {Name: "DateStyle", Value: "German"}, {Name: "extra_float_digits", Value: "-5"},
		}
		s := tables(t, to)
		for _, f := range []batch.Format{batch.PGBinary, batch.PGText, batch.CSV} {
			s.Preparation.Contract = contract("copy", f)
			lacks := []rows.Type{rows.Float32s}
			if f == batch.CSV {
				lacks = append(lacks, rows.Bytes)
			}
			s.Types(t, lacks)
		}
		to.Method = "insert"
		s = tables(t, to)
		s.Preparation.Contract = contract("insert", batch.PGValues)
		s.Types(t, []rows.Type{rows.Float32s})
	})
	t.Run("settings of the role", func(t *testing.T) {
		to, _, role := ordinary(t)
		for _, setting := range []string{
			"row_security = off", "standard_conforming_strings = off", "extra_float_digits = -15", "bytea_output = escape",
			"IntervalStyle = sql_standard", "DateStyle = 'SQL, DMY'", "client_min_messages = debug1", "array_nulls = off",
			"default_transaction_isolation = serializable", "default_transaction_deferrable = on", "search_path = ''",
			"enable_seqscan = off", "enable_indexscan = off", "enable_hashagg = off", "plan_cache_mode = force_generic_plan",
			"statement_timeout = 50", "lock_timeout = 1", "idle_in_transaction_session_timeout = 1", "transform_null_equals = on",
		} {
			sql(t, "ALTER ROLE "+role+" SET "+setting)
		}
		tables(t, to).Arithmetic(t)
	})
}

func TestPrepareChecksTheTable(t *testing.T) {
	const (
		fitting = "CREATE TABLE %s (document_id bigint, payload bytea"
		noKey   = "the table's is not (document_id)"
	)
	for ddl, want := range map[string]string{ // %s is the table; no want: it fits
		"CREATE TABLE %s (payload bytea, document_id bigint)":                                                 "",
		fitting + ", at timestamptz DEFAULT now(), n int)":                                                    "",
		fitting + ", l int GENERATED ALWAYS AS (length(payload)) STORED, i int GENERATED ALWAYS AS IDENTITY)": "",
		fitting + ") PARTITION BY RANGE (document_id)":                                                        "",
		"CREATE TABLE %s (document_id integer, payload varchar(20))": "column document_id is integer, want bigint; " +
			"column payload is character varying(20), want bytea",
		fitting + ", n int NOT NULL)":                                                      "column n (integer) is unknown to the dataset and has no default",
		"CREATE DOMAIN %s_d AS int NOT NULL; " + fitting + ", n %s_d)":                     "_d) is unknown to the dataset and has no default",
		"CREATE DOMAIN %s_d AS int NOT NULL DEFAULT 1; " + fitting + ", n %s_d)":           "",
		"CREATE TABLE %s (document_id bigint GENERATED ALWAYS AS IDENTITY, payload bytea)": "",
		"CREATE TABLE %s (document_id bigint, payload bytea GENERATED ALWAYS AS ('x') STORED)": "column payload is generated: it holds what the server computes, " +
			"and no row's value (choose another --table, or a --dataset that fits it: terapush inspect writes one, or --like that table)",
		// With --primary-key.
		fitting + ", n int)":                                                   noKey,
		fitting + ", PRIMARY KEY (document_id, payload))":                      noKey,
		fitting + ", PRIMARY KEY (document_id)); CREATE INDEX ON %s (payload)": "",
		"DROP SCHEMA IF EXISTS no_such":                                        `schema "no_such" does not exist`,
	} {
		t.Run(ddl, func(t *testing.T) {
			to := target(t)
			sql(t, strings.ReplaceAll(ddl, "%s", to.Table))
			if strings.Contains(ddl, "no_such") {
				to.Table = "no_such.documents"
			}
			p := preparation(t, loader.CreateIfMissing)
			p.PrimaryKey = want == noKey || strings.Contains(ddl, "PRIMARY KEY")
			_, err := open(t, to).Prepare(t.Context(), p)
			if want == "" {
				assert.NoError(t, err)
			} else {
				assert.Contains(t, loader.Explain(err), want)
			}
		})
	}
}

// Lengths too short for the longest text, which would fail in the middle of the run.
func TestPrepareChecksLengths(t *testing.T) {
	s := tables(t, target(t))
	s.Preparation.Schema = sourceOf(t, "people").Schema()
	_, _, err := s.Prepare(t, nil)
	require.NoError(t, err)
	longest := 0
	for _, c := range s.Preparation.Schema.Columns {
		if c.Name == "bank" {
			longest = c.MaxBytes
		}
	}
	for change, want := range map[string]string{
		fmt.Sprintf("varchar(%d)", longest):   "",
		"varchar":                             "",
		fmt.Sprintf("varchar(%d)", longest-1): fmt.Sprintf("column bank is character varying(%d), want text", longest-1),
		fmt.Sprintf("char(%d)", longest):      fmt.Sprintf("column bank is character(%d), want text", longest),
	} {
		sql(t, "ALTER TABLE "+s.Name+" ALTER bank TYPE "+change)
		_, _, err := s.Prepare(t, nil)
		if want == "" {
			assert.NoError(t, err, change)
			continue
		}
		assert.ErrorContains(t, err, want)
	}
}

// COPY needs the privilege on its own columns only.
func TestColumnPrivileges(t *testing.T) {
	to := target(t)
	schema, _, _ := strings.Cut(to.Table, ".")
	sql(t, "CREATE TABLE "+to.Table+" (document_id bigint, payload bytea, secret int)")
	role := "r_" + schema
	sql(t, fmt.Sprintf("CREATE ROLE %[1]s LOGIN PASSWORD 'x'; GRANT ALL ON SCHEMA %[2]s TO %[1]s; "+
		"GRANT INSERT (document_id, payload), SELECT (document_id, payload) ON %[3]s TO %[1]s", role, schema, to.Table))
	t.Cleanup(func() { sql(t, "DROP OWNED BY "+role+"; DROP ROLE "+role) })
	to.User, to.Password = role, "x"
	p := preparation(t, loader.CreateIfMissing)
	l := prepared(t, to, p)
	_, err := backendtest.Session(t, l, p.Contract).Load(t.Context(), documentsOf(t, 0, 0, 10))
	require.NoError(t, err)
	backendtest.Only(t, loader.Finding{}, complaints(t, to, intent(t)))

	sql(t, "REVOKE SELECT (payload) ON "+to.Table+" FROM "+role)
	backendtest.Only(t, fail("privileges", "may insert into", "GRANT SELECT ON"), complaints(t, to, intent(t)))
	sql(t, "REVOKE INSERT (payload) ON "+to.Table+" FROM "+role)
	_, err = open(t, to).Prepare(t.Context(), p)
	assert.ErrorContains(t, err, "this user may not insert")
}

// A decimal has to have the very scale and enough digits, and a key of two columns both of them.
func TestPrepareChecksDecimalsAndKeys(t *testing.T) {
	const noKey = "the table's is not (l_orderkey, l_linenumber)"
	s := tables(t, target(t))
	s.Preparation.Schema, s.Preparation.PrimaryKey = sourceOf(t, "lineitem").Schema(), true
	for change, want := range map[string]string{
		"ALTER l_tax TYPE numeric(15,3)":                                        "l_tax is numeric(15,3)",
		"ALTER l_tax TYPE numeric(14,2)":                                        "l_tax is numeric(14,2)",
		"DROP CONSTRAINT documents_pkey, ADD PRIMARY KEY (l_orderkey)":          noKey,
		"DROP CONSTRAINT documents_pkey, ADD UNIQUE (l_orderkey, l_linenumber)": noKey,
	} {
		sql(t, "DROP TABLE IF EXISTS "+s.Name)
		for range 2 { // the table that is made fits
			_, _, err := s.Prepare(t, nil)
			require.NoError(t, err)
		}
		sql(t, "ALTER TABLE "+s.Name+" "+change)
		_, _, err := s.Prepare(t, nil)
		assert.ErrorContains(t, err, want)
	}
}

// The table decides where its claims are, not the option: a claim in a logged table would outlive the rows.
func TestUnlogged(t *testing.T) {
	to := target(t)
	with := to
	with.Options = options("unlogged", "true")
	sql(t, "CREATE TABLE "+to.Table+" (document_id bigint, payload bytea)")
	l := open(t, with)
	_, err := l.Prepare(t.Context(), preparation(t, loader.CreateNever))
	assert.ErrorContains(t, err, "it is logged, but option unlogged was given")
	assert.NotContains(t, l.Server().Settings, "unlogged")
	logged := prepared(t, to, preparation(t, loader.CreateNever))
	assert.NotContains(t, logged.Server().Settings, "unlogged")

	schema, _, _ := strings.Cut(to.Table, ".")
	sql(t, "DROP TABLE "+to.Table+", "+claimsOf(to))
	_, err = l.Prepare(t.Context(), preparation(t, loader.CreateIfMissing))
	require.NoError(t, err)
	assert.Equal(t, [][]string{{"documents", "u"}, {"terapush_claims_unlogged", "u"}, {"terapush_runs", "p"}}, sql(t,
		"SELECT relname, relpersistence FROM pg_class WHERE relkind = 'r' AND relnamespace = '"+schema+"'::regnamespace ORDER BY 1"))

	p := preparation(t, loader.CreateNever)
	p.Resume = true
	l = prepared(t, to, p) // without the option
	assert.Equal(t, "true", l.Server().Settings["unlogged"], "the name by which results know it")
	_, err = backendtest.Session(t, l, p.Contract).Load(t.Context(), documentsOf(t, 0, 0, 10))
	require.NoError(t, err)
	assert.Equal(t, [][]string{{"0"}}, sql(t, "SELECT batch FROM "+claimsOf(to)+"_unlogged WHERE batch >= 0"))
	forgotten, _, err := l.(loader.Claims).Forget(t.Context(), "run-1")
	require.NoError(t, err)
	assert.EqualValues(t, 1, forgotten)
}

// At least once into a table that is there nothing but the load is said. Its schema is what search_path says.
func TestSilent(t *testing.T) {
	to := target(t)
	schema, _, _ := strings.Cut(to.Table, ".")
	sql(t, "CREATE TABLE "+to.Table+" (document_id bigint, payload bytea)")
	bare := to
	bare.Table, bare.Settings = "documents", []loader.Setting{{Name: "search_path", Value: schema}}
	p := preparation(t, loader.CreateNever)
	p.Silent, p.Contract.Delivery, p.Contract.Dedup = true, loader.AtLeastOnce, loader.DedupNone
	l := prepared(t, bare, p)
	assert.NotContains(t, l.Server().Settings, "unlogged")
	s := backendtest.Session(t, l, p.Contract)
	for range 2 {
		ack, err := s.Load(t.Context(), documentsOf(t, 0, 0, 10))
		require.NoError(t, err)
		assert.Equal(t, loader.Ack{Rows: 10}, ack)
	}
	assert.EqualValues(t, 20, count(t, to.Table), "twice, as promised")
	assert.Equal(t, [][]string{{""}}, sql(t, "SELECT to_regclass('"+claimsOf(to)+"')"))
}

// tera is a user without privileges, whose password has every character that something might want quoted.
func tera(t *testing.T, to loader.Target) loader.Target {
	t.Helper()
	password := os.Getenv("TERAPUSH_TEST_PASSWORD")
	if password == "" {
		t.Skip("TERAPUSH_TEST_PASSWORD is not set")
	}
	to.User, to.Password = "tera", loader.Secret(password)
	return to
}

// The advice for a missing privilege is a statement: whoever runs it takes the run one step further.
func TestGrantsAreStatements(t *testing.T) {
	to := tera(t, target(t))
	schema, _, _ := strings.Cut(to.Table, ".")
	sql(t, "GRANT USAGE ON SCHEMA "+schema+" TO tera")
	p := preparation(t, loader.CreateIfMissing)
	follow := func(advice string) {
		t.Helper()
		_, err := open(t, to).Prepare(t.Context(), p)
		assert.Equal(t, loader.No, postgres.New().Classify(err).Applied)
		told := (*loader.Error)(nil)
		require.ErrorAs(t, err, &told)
		require.Contains(t, told.Hint, advice)
		grant, _, _ := strings.Cut(told.Hint, ", or ")
		sql(t, grant)
	}
	follow("GRANT CREATE ON SCHEMA")
	prepared(t, to, p)
	for _, table := range []string{to.Table, claimsOf(to)} {
		sql(t, fmt.Sprintf(`ALTER TABLE %s OWNER TO CURRENT_USER; REVOKE ALL ON %[1]s FROM tera`, table))
	}
	follow("GRANT SELECT, INSERT ON")
	follow("or do without exactly once: --delivery at-least-once")
	p.Create = loader.CreateTruncate
	follow("GRANT TRUNCATE ON")
	prepared(t, to, p)

	to.Password = "wrong: hush"
	_, err := postgres.New().Open(t.Context(), to, backendtest.Deps())
	assert.ErrorContains(t, err, `password authentication failed for user "tera"`)
	assert.Contains(t, loader.Explain(err), "TERAPUSH_PASSWORD")
	assert.NotContains(t, fmt.Sprintf("%v %+v", err, err), "hush")
	assert.Equal(t, loader.ClassPermission, postgres.New().Classify(err).Class)
}

// An owner may drop without being allowed to make: both are one transaction, so that the old table stays.
func TestRecreateKeepsTheTable(t *testing.T) {
	to := tera(t, target(t))
	schema, _, _ := strings.Cut(to.Table, ".")
	sql(t, "GRANT USAGE, CREATE ON SCHEMA "+schema+" TO tera")
	prepared(t, to, preparation(t, loader.CreateIfMissing))
	sql(t, "INSERT INTO "+to.Table+" VALUES (1, 'x'); REVOKE CREATE ON SCHEMA "+schema+" FROM tera")
	for _, begin := range []*loader.Beginning{{Appends: true}, nil} { // with the run's row locked, and without one
		p := preparation(t, loader.CreateRecreate)
		p.Begin = begin
		_, err := open(t, to).Prepare(t.Context(), p)
		assert.ErrorContains(t, err, "create the table")
		assert.ErrorContains(t, err, "permission denied for schema "+schema)
		assert.Contains(t, loader.Explain(err), "GRANT CREATE ON SCHEMA")
		assert.EqualValues(t, 1, count(t, to.Table))
	}
}

func TestPrepareChecksTheClaims(t *testing.T) {
	const columns = "TABLE %[1]s (run text, batch bigint, first_key bigint, row_count bigint"
	for name, c := range map[string]struct {
		ddl  string // %[1]s is the claim table
		want string // "" = accepted
	}{
		"primary key":   {"CREATE " + columns + ", PRIMARY KEY (run, batch))", ""},
		"unique":        {"CREATE " + columns + "); CREATE UNIQUE INDEX ON %[1]s (batch, run)", ""},
		"no key":        {"CREATE " + columns + ")", "no unique key on exactly (run, batch)"},
		"not unique":    {"CREATE " + columns + "); CREATE INDEX ON %[1]s (run, batch)", "no unique key"},
		"less":          {"CREATE " + columns + ", UNIQUE (run))", "no unique key"},
		"less, include": {"CREATE " + columns + "); CREATE UNIQUE INDEX ON %[1]s (run) INCLUDE (batch)", "no unique key"},
		"more":          {"CREATE " + columns + ", UNIQUE (run, batch, first_key))", "no unique key"},
		"some rows":     {"CREATE " + columns + "); CREATE UNIQUE INDEX ON %[1]s (run, batch) WHERE batch > 0", "no unique key"},
		"at commit":     {"CREATE " + columns + ", UNIQUE (run, batch) DEFERRABLE)", "no unique key"},
		"unlogged":      {"CREATE UNLOGGED " + columns + ", PRIMARY KEY (run, batch))", `terapush_claims" is unlogged and the table`},
	} {
		t.Run(name, func(t *testing.T) {
			to := target(t)
			sql(t, strings.ReplaceAll(c.ddl, "%[1]s", claimsOf(to)))
			_, err := open(t, to).Prepare(t.Context(), preparation(t, loader.CreateIfMissing))
			if c.want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, c.want)
			}
		})
	}
}

func TestUnixSocket(t *testing.T) {
	to := target(t)
	folders := strings.Split(sql(t, "SHOW unix_socket_directories")[0][0], ", ")
	if folders[0] == "" {
		t.Skip("the server has no Unix socket")
	}
	_, port, _ := strings.Cut(to.Hosts[0], ":")
	to.Hosts = nil
	to.Params.Set("host", folders[0])
	to.Params.Set("port", port)
	to.Params.Del("sslmode")
	assert.Equal(t, folders[0]+"/.s.PGSQL."+port, open(t, to).Server().Endpoint)
}

// Before a run is appended to a large table without an index, no statement reads it.
func TestAppendReadsNothing(t *testing.T) {
	to := target(t)
	p := preparation(t, loader.CreateIfMissing)
	prepared(t, to, p)
	sql(t, "ALTER TABLE "+to.Table+" SET (fillfactor = 10); "+ // a row a block, 270 MB
		"INSERT INTO "+to.Table+" SELECT n, decode(repeat('ab', 900), 'hex') FROM generate_series(1, 33000) n")
	l := open(t, to)
	table, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	assert.True(t, table.LongScan)
	b := backendtest.Batch(t, documents(t), batch.PGBinary, batch.ID{Run: "run-1"}, 50_000, 1)
	proof, err := loader.FeaturesOf(l).Prober.Probe(t.Context(), p.Contract, b)
	require.NoError(t, err)
	assert.Equal(t, loader.Proof{Transactional: true}, proof)
	assert.Zero(t, count(t, claimsOf(to)))
	require.NoError(t, l.Close())
	read := func() []string {
		return sql(t, "SELECT seq_scan > 0, seq_tup_read FROM pg_stat_user_tables WHERE relid = '"+to.Table+"'::regclass")[0]
	}
	require.Eventually(t, func() bool { return read()[0] == "t" }, 10*time.Second, 20*time.Millisecond, "the server counts when sessions end")
	assert.Equal(t, "1", read()[1], "one row, to know that there are some")

	sql(t, "CREATE INDEX ON "+to.Table+" (document_id)")
	table, err = open(t, to).Prepare(t.Context(), p)
	require.NoError(t, err)
	assert.False(t, table.LongScan)
}

// A large table is counted by ranges of blocks, and a small run in an indexed one by ranges of keys; neither scans the
// rest.
func TestSplit(t *testing.T) {
	to := target(t)
	l := prepared(t, to, preparation(t, loader.CreateIfMissing))
	counter := loader.FeaturesOf(l).Counter
	fill := func(first int) {
		sql(t, fmt.Sprintf("INSERT INTO %s SELECT n, decode(repeat('ab', 1000), 'hex') FROM generate_series(%d, %d) n", to.Table, first, first+19_999))
	}
	assert.Equal(t, []string{""}, backendtest.Parts(t, counter, loader.KeyRange{Last: -1}, 8), "too small to split")
	fill(0)
	parts := backendtest.Parts(t, counter, loader.KeyRange{First: 100, Last: 19_999}, 8)
	assert.Len(t, parts, 2, "of 1024 blocks and more")
	plan := sql(t, "EXPLAIN SELECT FROM "+to.Table+" WHERE "+parts[0])
	assert.Contains(t, plan[0][0], "Tid Range Scan")
	fill(20_000)
	assert.Len(t, backendtest.Parts(t, counter, loader.KeyRange{First: 20_000, Last: 20_099}, 8), 5, "blocks: there is no index")

	sql(t, "ALTER TABLE "+to.Table+" ADD PRIMARY KEY (document_id)")
	sql(t, "ANALYZE "+to.Table)
	parts = backendtest.Parts(t, counter, loader.KeyRange{First: 20_000, Last: 20_099}, 4)
	assert.Equal(t, `"document_id" BETWEEN 20000 AND 20024`, parts[0])
	assert.Contains(t, fmt.Sprint(sql(t, "EXPLAIN SELECT FROM "+to.Table+" WHERE "+parts[0])), "Index")
}

// A sample of a large table without an index is read by its blocks, and never scans it.
func TestSample(t *testing.T) {
	to := target(t)
	p := preparation(t, loader.CreateIfMissing)
	prepared(t, to, p)
	sql(t, "ALTER TABLE "+to.Table+" SET (autovacuum_enabled = false); "+
		"INSERT INTO "+to.Table+" SELECT n, decode(repeat('ab', 1000), 'hex') FROM generate_series(1, 3500) n") // 500 blocks
	numbers := func(n int) (found []int64) {
		l := prepared(t, to, p)
		require.NoError(t, loader.FeaturesOf(l).Sampler.Sample(t.Context(), n, func(number int64, values []any) error {
			found = append(found, number)
			assert.Len(t, values[1], 1000)
			return nil
		}))
		return found
	}
	found := numbers(100)
	assert.Len(t, found, 100)
	assert.Less(t, slices.Min(found), int64(8))
	assert.Greater(t, slices.Max(found), int64(3450), "from all over the table")
	assert.Empty(t, numbers(200), "a scan reads hardly more")
	plan := sql(t, "EXPLAIN SELECT FROM "+to.Table+` WHERE ctid = ANY ('{"(0,1)","(9,1)"}'::tid[])`)
	assert.Contains(t, plan[0][0], "Tid Scan")
	sql(t, "CREATE INDEX ON "+to.Table+" (document_id)")
	assert.Empty(t, numbers(100), "the index finds rows by their numbers")
}

// What is read through a table of others that inherit from it is not its own: neither counted nor removed.
func TestHeirs(t *testing.T) {
	to := target(t)
	sql(t, "CREATE TABLE "+to.Table+" (document_id bigint, payload bytea); CREATE TABLE "+to.Table+"_heir () INHERITS ("+to.Table+"); "+
		"INSERT INTO "+to.Table+"_heir VALUES (5, 'x'); COMMENT ON TABLE "+to.Table+" IS 'made by terapush'")
	p := preparation(t, loader.CreateNever)
	l := open(t, to)
	table, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	assert.False(t, table.HasRows)
	_, err = backendtest.Session(t, l, p.Contract).Load(t.Context(), documentsOf(t, 0, 0, 10))
	require.NoError(t, err)

	found := loader.FeaturesOf(l)
	counted, fetched := int64(0), 0
	g := loader.Grouping{KeyRange: loader.KeyRange{Last: 9}, Size: 10}
	require.NoError(t, found.Counter.Count(t.Context(), g, func(b loader.Bucket) error { counted += b.Rows; return nil }))
	assert.EqualValues(t, 10, counted)
	require.NoError(t, found.Fetcher.Fetch(t.Context(), []int64{5}, func(int64, []any) error { fetched++; return nil }))
	assert.Equal(t, 1, fetched)

	p.Create, p.Run = loader.CreateTruncate, "run-2"
	_, err = open(t, to).Prepare(t.Context(), p)
	assert.NoError(t, err)
	assert.Equal(t, [][]string{{"5"}}, sql(t, "SELECT document_id FROM "+to.Table))
}
