package postgres_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/postgres"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

func open(t *testing.T, to loader.Target) loader.Loader {
	t.Helper()
	l, err := postgres.New().Open(t.Context(), to, deps())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func preparation(t *testing.T, create loader.CreateMode) loader.Preparation {
	return loader.Preparation{
		Run: "run-1", Schema: documents(t, batch.PGBinary, dataset.Bytes).schema(), Create: create,
		Contract: contract("copy", batch.PGBinary),
	}
}

func TestOpen(t *testing.T) {
	to := target(t)
	to.Settings = []loader.Setting{{Name: "synchronous_commit", Value: "off"}, {Name: "work_mem", Value: "17MB"}}
	s := open(t, to).Server()
	assert.Equal(t, "PostgreSQL", s.Product)
	assert.NotEmpty(t, s.Version)
	assert.Equal(t, to.Hosts[0], s.Endpoint)
	assert.Equal(t, "off", s.Settings["synchronous_commit"])
	assert.Equal(t, "17MB", s.Settings["work_mem"])
	assert.Contains(t, s.Settings, "fsync")

	for change, want := range map[string]struct {
		apply func(to *loader.Target)
		err   string
	}{
		"flavour":  {func(to *loader.Target) { to.Scheme = "yugabyte" }, "not YugabyteDB (write the target as postgres://…)"},
		"pieces":   {func(to *loader.Target) { to.Options = options("rows-per-transaction", "5") }, "for YugabyteDB"},
		"no tx":    {func(to *loader.Target) { to.Options = options("disable-transactional-writes", "1") }, "for YugabyteDB"},
		"setting":  {func(to *loader.Target) { to.Settings[0].Name = "no_such" }, `unrecognized configuration parameter "no_such"`},
		"database": {func(to *loader.Target) { to.Database = "no_such" }, `database "no_such" does not exist`},
	} {
		t.Run(change, func(t *testing.T) {
			to := to
			to.Settings = append([]loader.Setting(nil), to.Settings...)
			want.apply(&to)
			_, err := postgres.New().Open(t.Context(), to, deps())
			assert.ErrorContains(t, err, want.err)
		})
	}
}

func TestPrepareMakesTheTable(t *testing.T) {
	to := target(t)
	l := open(t, to)
	_, err := l.Prepare(t.Context(), preparation(t, loader.CreateNever))
	assert.ErrorContains(t, err, "does not exist (--create if-missing makes it)")

	made, err := l.Prepare(t.Context(), preparation(t, loader.CreateIfMissing))
	require.NoError(t, err)
	assert.True(t, made.Created)
	assert.False(t, made.HasRows)
	assert.Equal(t, to.Table, made.Name)

	again, err := l.Prepare(t.Context(), preparation(t, loader.CreateIfMissing))
	require.NoError(t, err)
	assert.False(t, again.Created)
	assert.Equal(t, made.Identity, again.Identity)

	sql(t, "INSERT INTO "+to.Table+" VALUES (1, 'x')")
	full, err := l.Prepare(t.Context(), preparation(t, loader.CreateNever))
	require.NoError(t, err)
	assert.True(t, full.HasRows)

	sql(t, "TRUNCATE "+to.Table)
	emptied, err := l.Prepare(t.Context(), preparation(t, loader.CreateNever))
	require.NoError(t, err)
	assert.NotEqual(t, made.Identity, emptied.Identity, "emptied behind the run's back")

	sql(t, "INSERT INTO "+to.Table+" VALUES (1, 'x')")
	anew, err := l.Prepare(t.Context(), preparation(t, loader.CreateRecreate))
	require.NoError(t, err)
	assert.True(t, anew.Created)
	assert.False(t, anew.HasRows)
	assert.NotEqual(t, emptied.Identity, anew.Identity)
}

func TestPrepareDropsOnlyItsOwn(t *testing.T) {
	to := target(t)
	sql(t, "CREATE TABLE "+to.Table+" (precious text)")
	l := open(t, to)
	p := preparation(t, loader.CreateRecreate)
	_, err := l.Prepare(t.Context(), p)
	assert.ErrorContains(t, err, "so it is not dropped")
	p.MayDrop = "documents" // not the whole name
	_, err = l.Prepare(t.Context(), p)
	assert.ErrorContains(t, err, "was not made by terapush")
	p.MayDrop = to.Table
	_, err = l.Prepare(t.Context(), p)
	require.NoError(t, err)
}

func TestPrepareChecksTheTable(t *testing.T) {
	const fitting = "document_id bigint, payload bytea"
	for name, c := range map[string]struct {
		ddl  string // %s is the table
		want string // "" = accepted
		more func(p *loader.Preparation)
	}{
		"fits":              {"CREATE TABLE %s (" + fitting + ")", "", nil},
		"other order":       {"CREATE TABLE %s (payload bytea, document_id bigint)", "", nil},
		"more, optional":    {"CREATE TABLE %s (" + fitting + ", at timestamptz DEFAULT now(), n int)", "", nil},
		"generated":         {"CREATE TABLE %s (" + fitting + ", l int GENERATED ALWAYS AS (length(payload)) STORED, i int GENERATED ALWAYS AS IDENTITY)", "", nil},
		"partitioned":       {"CREATE TABLE %s (" + fitting + ") PARTITION BY RANGE (document_id)", "", nil},
		"missing column":    {"CREATE TABLE %s (document_id bigint)", "column payload (bytea) is missing", nil},
		"other type":        {"CREATE TABLE %s (document_id integer, payload varchar(20))", "column document_id is integer, want bigint; column payload is character varying(20), want bytea", nil},
		"more, needed":      {"CREATE TABLE %s (" + fitting + ", n int NOT NULL)", "column n (integer) is unknown to the dataset and has no default", nil},
		"view":              {"CREATE VIEW %s AS SELECT 1::bigint AS document_id, ''::bytea AS payload", "a view", nil},
		"no key":            {"CREATE TABLE %s (" + fitting + ")", "the table's is not (document_id)", func(p *loader.Preparation) { p.PrimaryKey = true }},
		"another key":       {"CREATE TABLE %s (" + fitting + ", PRIMARY KEY (document_id, payload))", "the table's is not (document_id)", func(p *loader.Preparation) { p.PrimaryKey = true }},
		"key and an index":  {"CREATE TABLE %[1]s (" + fitting + ", PRIMARY KEY (document_id)); CREATE INDEX ON %[1]s (payload)", "", func(p *loader.Preparation) { p.PrimaryKey = true }},
		"no schema to make": {"DROP SCHEMA IF EXISTS %s", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			to := target(t)
			if name == "no schema to make" {
				to.Table, c.want = "no_such.documents", `schema "no_such" does not exist`
			} else {
				sql(t, strings.NewReplacer("%s", to.Table, "%[1]s", to.Table).Replace(c.ddl))
			}
			p := preparation(t, loader.CreateIfMissing)
			if c.more != nil {
				c.more(&p)
			}
			_, err := open(t, to).Prepare(t.Context(), p)
			if c.want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, c.want)
			}
		})
	}
}

func TestPrepareUnlogged(t *testing.T) {
	to := target(t)
	to.Options = options("unlogged", "true")
	sql(t, "CREATE TABLE "+to.Table+" (document_id bigint, payload bytea)")
	l := open(t, to)
	_, err := l.Prepare(t.Context(), preparation(t, loader.CreateNever))
	assert.ErrorContains(t, err, "it is logged, but option unlogged was given")

	sql(t, "DROP TABLE "+to.Table)
	_, err = l.Prepare(t.Context(), preparation(t, loader.CreateIfMissing))
	require.NoError(t, err)
	schema, _, _ := strings.Cut(to.Table, ".")
	assert.Equal(t, [][]string{{"documents", "u"}, {"terapush_claims_unlogged", "u"}}, sql(t,
		"SELECT relname, relpersistence FROM pg_class WHERE relkind = 'r' AND relnamespace = '"+schema+"'::regnamespace ORDER BY 1"))

	// The table decides, not the option: a claim in a logged table would outlive the rows.
	to.Options = nil
	l = open(t, to)
	_, err = l.Prepare(t.Context(), preparation(t, loader.CreateNever))
	require.NoError(t, err)
	s := session(t, l, contract("copy", batch.PGBinary))
	b := documents(t, batch.PGBinary, dataset.Bytes).batch(t, batch.ID{Run: "run-1"}, 0, 10)
	b.Hold()
	_, err = s.Load(t.Context(), b)
	require.NoError(t, err)
	assert.Equal(t, [][]string{{"0"}}, sql(t, "SELECT batch FROM "+schema+".terapush_claims_unlogged WHERE batch >= 0"))
}

// At least once into a table that is there: nothing but the load is said.
func TestPrepareSaysNothing(t *testing.T) {
	to := target(t)
	sql(t, "CREATE TABLE "+to.Table+" (document_id bigint, payload bytea)")
	p := preparation(t, loader.CreateNever)
	p.Silent = true
	p.Contract.Delivery, p.Contract.Dedup = loader.AtLeastOnce, loader.DedupNone
	l := open(t, to)
	_, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	s := session(t, l, p.Contract)
	src := documents(t, batch.PGBinary, dataset.Bytes)
	for range 2 {
		b := src.batch(t, batch.ID{Run: "run-1"}, 0, 10)
		b.Hold()
		ack, err := s.Load(t.Context(), b)
		require.NoError(t, err)
		assert.Equal(t, loader.Ack{Rows: 10}, ack)
	}
	assert.Equal(t, [][]string{{"20"}}, sql(t, "SELECT count(*) FROM "+to.Table), "twice, as promised")
	assert.Equal(t, [][]string{{""}}, sql(t, "SELECT to_regclass('"+strings.Replace(to.Table, "documents", "terapush_claims", 1)+"')"))
}

// Without a look at the catalog a table's schema is what search_path says, for whoever asks.
func TestSearchPath(t *testing.T) {
	to := target(t)
	schema, _, _ := strings.Cut(to.Table, ".")
	sql(t, "CREATE TABLE "+to.Table+" (document_id bigint, payload bytea)")
	to.Table, to.Settings = "documents", []loader.Setting{{Name: "search_path", Value: schema}}
	l := open(t, to)
	p := preparation(t, loader.CreateNever)
	p.Silent, p.Contract.Delivery, p.Contract.Dedup = true, loader.AtLeastOnce, loader.DedupNone
	_, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	b := documents(t, batch.PGBinary, dataset.Bytes).batch(t, batch.ID{Run: "run-1"}, 0, 10)
	b.Hold()
	_, err = session(t, l, p.Contract).Load(t.Context(), b)
	require.NoError(t, err)
	n, err := l.(loader.Counter).Distinct(t.Context(), loader.KeyRange{Last: 9})
	require.NoError(t, err)
	assert.EqualValues(t, 10, n)
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

func TestPrivileges(t *testing.T) {
	to := tera(t, target(t))
	schema, _, _ := strings.Cut(to.Table, ".")
	p := preparation(t, loader.CreateIfMissing)
	refused := func(want string) {
		t.Helper()
		_, err := open(t, to).Prepare(t.Context(), p)
		assert.ErrorContains(t, err, want)
		assert.Equal(t, loader.No, postgres.New().Classify(err).Applied)
	}
	sql(t, "GRANT USAGE ON SCHEMA "+schema+" TO tera")
	refused("GRANT CREATE ON SCHEMA")
	sql(t, "CREATE TABLE "+to.Table+" (document_id bigint, payload bytea)")
	refused("GRANT SELECT, INSERT ON")
	sql(t, "GRANT SELECT, INSERT ON "+to.Table+" TO tera")
	refused("--delivery at-least-once")
	sql(t, "CREATE TABLE "+schema+".terapush_claims (run text, batch bigint, first_key bigint, row_count bigint, PRIMARY KEY (run, batch))")
	refused("GRANT SELECT, INSERT, DELETE ON")
	sql(t, "GRANT SELECT, INSERT, DELETE ON "+schema+".terapush_claims TO tera")
	_, err := open(t, to).Prepare(t.Context(), p)
	assert.NoError(t, err)

	to.Password = "wrong: hush"
	_, err = postgres.New().Open(t.Context(), to, deps())
	assert.ErrorContains(t, err, `password authentication failed for user "tera"`)
	assert.ErrorContains(t, err, "TERAPUSH_PASSWORD")
	assert.NotContains(t, err.Error(), "hush")
	assert.Equal(t, loader.ClassPermission, postgres.New().Classify(err).Class)
}

// What is missing around a table is no reason to lose it.
func TestRecreateKeepsTheTable(t *testing.T) {
	to := tera(t, target(t))
	schema, _, _ := strings.Cut(to.Table, ".")
	sql(t, "GRANT USAGE, CREATE ON SCHEMA "+schema+" TO tera; "+
		"CREATE TABLE "+to.Table+" (document_id bigint, payload bytea); INSERT INTO "+to.Table+" VALUES (1, 'x'); "+
		"COMMENT ON TABLE "+to.Table+" IS 'made by terapush'; ALTER TABLE "+to.Table+" OWNER TO tera; "+
		"CREATE TABLE "+schema+".terapush_claims (run text, batch bigint, first_key bigint, row_count bigint, PRIMARY KEY (run, batch))")
	l := open(t, to)
	_, err := l.Prepare(t.Context(), preparation(t, loader.CreateRecreate))
	assert.ErrorContains(t, err, "GRANT SELECT, INSERT, DELETE ON")
	assert.Equal(t, [][]string{{"1"}}, sql(t, "SELECT count(*) FROM "+to.Table))

	// An owner may drop without being allowed to make.
	sql(t, "GRANT SELECT, INSERT, DELETE ON "+schema+".terapush_claims TO tera; REVOKE CREATE ON SCHEMA "+schema+" FROM tera")
	_, err = l.Prepare(t.Context(), preparation(t, loader.CreateRecreate))
	assert.ErrorContains(t, err, "GRANT CREATE ON SCHEMA")
	assert.Equal(t, [][]string{{"1"}}, sql(t, "SELECT count(*) FROM "+to.Table))

	// A refused DROP takes no privilege to create.
	sql(t, "GRANT CREATE ON SCHEMA "+schema+" TO tera; ALTER TABLE "+to.Table+" OWNER TO CURRENT_USER; GRANT SELECT, INSERT ON "+to.Table+" TO tera")
	_, err = l.Prepare(t.Context(), preparation(t, loader.CreateRecreate))
	assert.ErrorContains(t, err, "drop the table")
	assert.ErrorContains(t, err, "(drop it yourself or choose another --table)")

	sql(t, "ALTER TABLE "+to.Table+" OWNER TO tera")
	anew, err := l.Prepare(t.Context(), preparation(t, loader.CreateRecreate))
	require.NoError(t, err)
	assert.True(t, anew.Created)
}

func TestResumeNeedsTheClaims(t *testing.T) {
	to := target(t)
	l := open(t, to)
	p := preparation(t, loader.CreateIfMissing)
	_, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	p.Resume = true
	_, err = l.Prepare(t.Context(), p)
	require.NoError(t, err)

	claims := strings.Replace(to.Table, "documents", "terapush_claims", 1)
	sql(t, "DROP TABLE "+claims)
	_, err = l.Prepare(t.Context(), p)
	assert.ErrorContains(t, err, `terapush_claims" is gone, so it is unknown which batches are applied`)
	assert.Equal(t, [][]string{{""}}, sql(t, "SELECT to_regclass('"+claims+"')"), "never made anew")

	p.Contract.Delivery, p.Contract.Dedup = loader.AtLeastOnce, loader.DedupNone
	_, err = l.Prepare(t.Context(), p)
	assert.NoError(t, err, "nobody needs them")
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
			sql(t, strings.ReplaceAll(c.ddl, "%[1]s", strings.Replace(to.Table, "documents", "terapush_claims", 1)))
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

// The test server has no TLS: on loopback that is fine unless somebody wants it.
func TestTLS(t *testing.T) {
	to := target(t)
	to.Params.Del("sslmode")
	open(t, to)
	to.Params.Set("sslmode", "verify-full")
	_, err := postgres.New().Open(t.Context(), to, deps())
	assert.ErrorContains(t, err, "server refused TLS connection")
	to.TLS = loader.TLSOff // the flag wins
	open(t, to)
}

// A crash empties an unlogged table, whether or not an option made it one: the report says so.
func TestPersistenceIsReported(t *testing.T) {
	for create, want := range map[string]string{"": "logged", "CREATE TABLE": "logged", "CREATE UNLOGGED TABLE": "unlogged"} {
		to := target(t)
		if create != "" {
			sql(t, create+" "+to.Table+" (document_id bigint, payload bytea)")
		}
		l := open(t, to)
		assert.NotContains(t, l.Server().Settings, "table_persistence", "nobody has looked")
		_, err := l.Prepare(t.Context(), preparation(t, loader.CreateIfMissing))
		require.NoError(t, err)
		assert.Equal(t, want, l.Server().Settings["table_persistence"], create)
	}
	l := open(t, target(t))
	p := preparation(t, loader.CreateNever)
	p.Silent = true
	_, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	assert.NotContains(t, l.Server().Settings, "table_persistence")
}

// The advice for a missing privilege is a statement: whoever says it has the run go one step further.
func TestGrantsAreStatements(t *testing.T) {
	to := target(t)
	schema, _, _ := strings.Cut(to.Table, ".")
	user := schema + "-user"
	sql(t, fmt.Sprintf(`CREATE ROLE "%s" LOGIN PASSWORD 'p'; GRANT USAGE ON SCHEMA %s TO "%[1]s"`, user, schema))
	t.Cleanup(func() { sql(t, fmt.Sprintf(`DROP OWNED BY "%s" CASCADE; DROP ROLE "%[1]s"`, user)) })
	to.User, to.Password = user, "p"
	l := open(t, to)
	advised := func(p loader.Preparation) {
		t.Helper()
		_, err := l.Prepare(t.Context(), p)
		told := (*loader.Error)(nil)
		require.ErrorAs(t, err, &told)
		grant, _, _ := strings.Cut(told.Hint, ", or ")
		require.True(t, strings.HasPrefix(grant, "GRANT "), told.Hint)
		sql(t, grant)
	}
	p := preparation(t, loader.CreateIfMissing)
	advised(p) // to create in the schema
	_, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	for _, table := range []string{to.Table, schema + ".terapush_claims"} {
		sql(t, fmt.Sprintf(`ALTER TABLE %s OWNER TO CURRENT_USER; REVOKE ALL ON %[1]s FROM "%s"`, table, user))
	}
	advised(p) // to insert
	advised(p) // to claim
	p.Create = loader.CreateTruncate
	advised(p) // to truncate
	_, err = l.Prepare(t.Context(), p)
	require.NoError(t, err)
}

// Nobody drops or fills a table that another run fills, unless both add to it; whoever goes on with a run takes its place.
func TestHold(t *testing.T) {
	to := target(t)
	prepare := func(run string, hold loader.Hold, change func(*loader.Preparation)) (loader.Loader, error) {
		t.Helper()
		l := open(t, to)
		t.Cleanup(func() { _ = l.Close() })
		p := preparation(t, loader.CreateIfMissing)
		p.Run, p.Hold = run, hold
		if change != nil {
			change(&p)
		}
		_, err := l.Prepare(t.Context(), p)
		return l, err
	}
	recreate := func(p *loader.Preparation) { p.Create = loader.CreateRecreate }
	resume := func(p *loader.Preparation) { p.Create, p.Resume = loader.CreateNever, true }
	busy := func(err error, run string) {
		t.Helper()
		assert.ErrorContains(t, err, "is being filled by run "+run)
		assert.ErrorContains(t, err, "if its client is gone: SELECT pg_terminate_backend(")
	}
	alone, err := prepare("r-1", loader.HoldAlone, nil)
	require.NoError(t, err)
	sql(t, "INSERT INTO "+to.Table+" VALUES (1, 'x')")
	for _, how := range []loader.Hold{loader.HoldAlone, loader.HoldShared} {
		_, err = prepare("r-2", how, nil)
		busy(err, "r-1")
	}
	_, err = prepare("r-2", loader.HoldAlone, recreate)
	busy(err, "r-1")
	assert.Equal(t, [][]string{{"1"}}, sql(t, "SELECT count(*) FROM "+to.Table), "and it is not dropped")
	_, err = prepare("r-2", loader.HoldNone, nil)
	require.NoError(t, err)

	resumed, err := prepare("r-1", loader.HoldAlone, resume)
	require.NoError(t, err, "an earlier process of the run is in nobody's way")
	_, err = prepare("r-2", loader.HoldAlone, nil)
	busy(err, "r-1")
	require.NoError(t, alone.Close())
	require.NoError(t, resumed.Close())

	one, err := prepare("r-3", loader.HoldShared, nil)
	require.NoError(t, err)
	two, err := prepare("r-4", loader.HoldShared, nil)
	require.NoError(t, err)
	require.NoError(t, one.Close())
	_, err = prepare("r-5", loader.HoldAlone, recreate)
	busy(err, "r-4")
	require.NoError(t, two.Close())
	_, err = prepare("r-5", loader.HoldAlone, recreate)
	require.NoError(t, err)
}

// A run into an unlogged table is resumed without the option that makes one: the claims are those beside it.
func TestResumeIntoAnUnloggedTable(t *testing.T) {
	to := target(t)
	sql(t, "CREATE UNLOGGED TABLE "+to.Table+" (document_id bigint NOT NULL, payload bytea NOT NULL)")
	p := preparation(t, loader.CreateIfMissing)
	_, err := open(t, to).Prepare(t.Context(), p)
	require.NoError(t, err)
	p.Create, p.Resume = loader.CreateNever, true
	_, err = open(t, to).Prepare(t.Context(), p)
	require.NoError(t, err)
}
