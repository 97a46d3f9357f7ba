package oracle

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	fake "github.com/terapush/terapush/internal/fake/oracle"
	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// say runs statements on a connection of the test's own.
func (s *standIn) say(t *testing.T, statements ...string) {
	t.Helper()
	l := &opened{target: s.table(methodArray), deps: testDeps(), client: s.backend.client}
	require.NoError(t, l.withLink(t.Context(), func(k *link) error {
		for _, text := range statements {
			if _, err := k.exec(t.Context(), text); err != nil {
				return err
			}
		}
		return nil
	}))
}

// settled is what Prepare has settled.
func settled(t *testing.T, l *opened) *sqlload.State {
	t.Helper()
	s, err := l.State()
	require.NoError(t, err)
	return s
}

// prepare opens the target and prepares the journal in it.
func (s *standIn) prepare(t *testing.T, target loader.Target, change func(*loader.Preparation)) (*opened, loader.Table, error) {
	t.Helper()
	l, err := s.backend.Open(t.Context(), target, testDeps())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	p := loader.Preparation{
		Run: "r", Schema: datasetOf(t, "journal", "").Schema(), Contract: contractOf(target.Method, 100), Create: loader.CreateIfMissing,
	}
	if change != nil {
		change(&p)
	}
	table, err := l.Prepare(t.Context(), p)
	return l.(*opened), table, err
}

// sent lists the SQL that the server has seen since n, without the questions to its dictionary.
func (s *standIn) sent(n int) (all []string) {
	for _, st := range s.Log()[n:] {
		switch {
		case st.Kind == fake.Commit, st.Kind == fake.Rollback:
			all = append(all, st.Kind)
		case st.Kind == fake.SQL && !asksTheDictionary(st.Text):
			all = append(all, st.Text)
		}
	}
	return all
}

func asksTheDictionary(text string) bool {
	for _, view := range []string{" all_", " product_component_version ", " nls_database_parameters ", " v$parameter ", "'CLOUD_SERVICE'", "'SESSION_USER'"} {
		if strings.Contains(text, view) {
			return true
		}
	}
	return false
}

func TestPrepareMakesWhatIsMissing(t *testing.T) {
	s := startStandIn(t, false, fake.Options{})
	target := s.table(methodArray)
	_, table, err := s.prepare(t, target, nil)
	require.NoError(t, err)
	assert.Equal(t, "TERA."+name(target), table.Name)
	assert.True(t, table.Created)
	assert.NotEmpty(t, table.Identity)

	// The second time it is there, and the same.
	n := len(s.Log())
	_, again, err := s.prepare(t, target, nil)
	require.NoError(t, err)
	assert.Equal(t, loader.Table{Name: table.Name, Identity: table.Identity}, again)
	for _, text := range s.sent(n) {
		assert.NotContains(t, text, "CREATE")
	}

	// With rows in it, and another identity once it was emptied.
	s.say(t, "INSERT INTO "+qualified("", name(target))+" (ID, TS) VALUES ('00000000000000000001', TO_TIMESTAMP('2026-01-01', 'YYYY-MM-DD'))")
	_, filled, err := s.prepare(t, target, nil)
	require.NoError(t, err)
	assert.True(t, filled.HasRows)
	s.say(t, "TRUNCATE TABLE "+qualified("", name(target)))
	_, emptied, err := s.prepare(t, target, nil)
	require.NoError(t, err)
	assert.NotEqual(t, table.Identity, emptied.Identity)
	assert.False(t, emptied.HasRows)
}

func TestPrepareRecreates(t *testing.T) {
	s := startStandIn(t, false, fake.Options{})
	target := s.table(methodArray)
	recreate := func(p *loader.Preparation) { p.Create = loader.CreateRecreate }
	_, table, err := s.prepare(t, target, nil)
	require.NoError(t, err)
	_, again, err := s.prepare(t, target, recreate)
	require.NoError(t, err)
	assert.True(t, again.Created)
	assert.NotEqual(t, table.Identity, again.Identity)

	// Somebody else's table stays, unless it is named.
	s.say(t, "COMMENT ON TABLE "+qualified("", name(target))+" IS 'mine'")
	_, _, err = s.prepare(t, target, recreate)
	require.ErrorContains(t, err, "was not made by terapush")
	for _, allowed := range []string{target.Table, "tera." + target.Table} {
		_, _, err = s.prepare(t, target, func(p *loader.Preparation) { p.Create, p.MayDrop = loader.CreateRecreate, allowed })
		require.NoError(t, err)
		s.say(t, "COMMENT ON TABLE "+qualified("", name(target))+" IS 'mine'")
	}

	// What is missing for the claims is found while the old table still stands.
	s.say(t, "DROP TABLE TERAPUSH_CLAIMS", "COMMENT ON TABLE "+qualified("", name(target))+" IS '"+loader.MadeBy+"'")
	s.SetScript(fake.At(claimsDDL, 1, fake.Fault{Fail: &fake.Error{Code: 1031, Text: "insufficient privileges"}}))
	before := len(s.Log())
	_, _, err = s.prepare(t, target, recreate)
	require.ErrorContains(t, err, "ORA-01031")
	for _, text := range s.sent(before) {
		assert.NotContains(t, text, "DROP")
	}
}

func TestPrepareRefuses(t *testing.T) {
	const columns = "ID VARCHAR2(40), RUN_ID VARCHAR2(40), SCENARIO VARCHAR2(20), TS TIMESTAMP(6), PAYLOAD VARCHAR2(4000)"
	never := func(p *loader.Preparation) { p.Create = loader.CreateNever }
	for label, c := range map[string]struct {
		method string
		with   map[string]string // options
		table  string            // DDL before, with T for its name
		change func(*loader.Preparation)
		says   []string
	}{
		"a missing table":       {methodArray, nil, "", never, []string{"does not exist", "--create if-missing"}},
		"columns":               {methodArray, nil, "CREATE TABLE T (ID NUMBER(10), X DATE NOT NULL)", nil, []string{"column id is NUMBER(10,0), want VARCHAR2(40 BYTE)", "column payload (VARCHAR2(4000 BYTE)) is missing", "column X (DATE) is unknown to the dataset and has no default"}},
		"a missing key":         {methodArray, nil, "CREATE TABLE T (" + columns + ")", func(p *loader.Preparation) { p.PrimaryKey = true }, []string{"it has no primary key", "(ID)"}},
		"not for Fast Ingest":   {methodFast, nil, "CREATE TABLE T (" + columns + ")", nil, []string{"not MEMOPTIMIZE FOR WRITE", "MEMOPTIMIZE FOR WRITE"}},
		"no partition":          {methodDirect, map[string]string{optionPartition: "p1"}, "CREATE TABLE T (" + columns + ")", nil, []string{"it has no partition P1"}},
		"a table for partition": {methodDirect, map[string]string{optionPartition: "p1"}, "", nil, []string{"creates none", "--create never"}},
		"lost claims":           {methodArray, nil, "CREATE TABLE T (" + columns + ")", func(p *loader.Preparation) { p.Resume = true }, []string{"the claim table", "is gone"}},
		"long values":           {methodArray, nil, "", func(p *loader.Preparation) { p.Schema.Columns[4].Declared = 40_000 }, []string{"40000 bytes", "--payload-bytes"}},
	} {
		t.Run(label, func(t *testing.T) {
			s := startStandIn(t, true, fake.Options{})
			target := s.table(c.method)
			target.Options = c.with
			if c.table != "" {
				s.say(t, strings.Replace(c.table, "TABLE T", "TABLE "+qualified("", name(target)), 1))
			}
			before := len(s.Log())
			_, _, err := s.prepare(t, target, c.change)
			require.Error(t, err)
			for _, says := range c.says {
				assert.ErrorContains(t, err, says)
			}
			assert.Equal(t, loader.No, s.backend.Classify(err).Applied)
			for _, text := range s.sent(before) {
				assert.NotContains(t, text, "CREATE", "nothing was written")
			}
		})
	}
}

func TestPrepareWithoutThePrivilege(t *testing.T) {
	s := startStandIn(t, false, fake.Options{})
	target := s.table(methodArray)
	_, _, err := s.prepare(t, target, func(p *loader.Preparation) { p.Contract = atLeastOnce(p.Contract) })
	require.NoError(t, err)
	s.SetScript(fake.At(claimsDDL, 1, fake.Fault{Fail: &fake.Error{Code: 1031, Text: "insufficient privileges"}}))
	_, _, err = s.prepare(t, target, nil)
	require.ErrorContains(t, err, "ORA-01031")
	assert.ErrorContains(t, err, "--delivery at-least-once")

	// Another process may be faster.
	s.SetScript(fake.At(claimsDDL, 1, fake.Fault{FailAfter: &fake.Error{Code: codeNameTaken, Text: "name is already used"}}))
	_, _, err = s.prepare(t, target, nil)
	require.NoError(t, err)
}

const claimsDDL = `CREATE TABLE "TERA"."TERAPUSH_CLAIMS"`

// Whoever was faster may have made something that is no claim table, and what has its name may be none at all.
func TestNamesAreTaken(t *testing.T) {
	const keyless = "CREATE TABLE TERAPUSH_CLAIMS (run VARCHAR2(64), batch NUMBER(19), first_key NUMBER(19), row_count NUMBER(19))"
	for label, c := range map[string]struct{ kind, says string }{
		"a view":     {"VIEW", "is a view"},
		"a synonym":  {"SYNONYM", "is a synonym"},
		"a sequence": {"SEQUENCE", "is a sequence"},
		"hidden":     {"", ""},
	} {
		t.Run("claims, "+label, func(t *testing.T) {
			s := startStandIn(t, false, fake.Options{Taken: map[string]string{"TERAPUSH_CLAIMS": c.kind}})
			_, _, err := s.prepare(t, s.table(methodArray), nil)
			require.ErrorContains(t, err, cmp.Or(c.says, `create the claim table "TERA"."TERAPUSH_CLAIMS": ORA-00955`))
		})
		t.Run("target, "+label, func(t *testing.T) {
			s := startStandIn(t, false, fake.Options{Taken: map[string]string{"TAKEN": c.kind}})
			target := s.table(methodArray)
			target.Table = "taken"
			_, _, err := s.prepare(t, target, nil)
			require.ErrorContains(t, err, cmp.Or(c.says, "may this user SELECT from it?"))
		})
	}
	t.Run("a table made meanwhile is not marked", func(t *testing.T) {
		s := startStandIn(t, false, fake.Options{})
		target := s.table(methodArray)
		var once sync.Once
		s.SetScript(func(st fake.Statement) fake.Fault {
			if st.Is("CREATE TABLE " + qualified("", name(target))) {
				once.Do(func() { s.say(t, strings.Replace(st.Text, "CREATE TABLE ", "CREATE  TABLE ", 1)) })
			}
			return fake.Fault{}
		})
		_, table, err := s.prepare(t, target, nil)
		require.NoError(t, err)
		assert.True(t, table.Created)
		for _, text := range s.sent(0) {
			assert.NotContains(t, text, "COMMENT ON")
		}
		_, _, err = s.prepare(t, target, func(p *loader.Preparation) { p.Create = loader.CreateRecreate })
		require.ErrorContains(t, err, "was not made by terapush")
	})
	t.Run("made meanwhile, without a key", func(t *testing.T) {
		s := startStandIn(t, false, fake.Options{})
		var once sync.Once
		s.SetScript(func(st fake.Statement) fake.Fault {
			if st.Is(claimsDDL) {
				once.Do(func() { s.say(t, keyless) })
			}
			return fake.Fault{}
		})
		_, _, err := s.prepare(t, s.table(methodArray), nil)
		require.ErrorContains(t, err, "no unique key on exactly (run, batch)")
	})
}

// The key of a partitioned table may be partitioned like it, and has no status of its own then.
func TestPartitionedKeys(t *testing.T) {
	s := startStandIn(t, false, fake.Options{})
	target := s.table(methodArray)
	s.say(t, "CREATE TABLE "+qualified("", name(target))+" (ID VARCHAR2(40), RUN_ID VARCHAR2(40), SCENARIO VARCHAR2(20), TS TIMESTAMP(6), "+
		"PAYLOAD VARCHAR2(4000), PRIMARY KEY (ID) USING INDEX LOCAL) PARTITION BY RANGE (ID) (PARTITION one VALUES LESS THAN (MAXVALUE))")
	_, _, err := s.prepare(t, target, func(p *loader.Preparation) { p.PrimaryKey = true })
	require.NoError(t, err)
}

// Triggers on another user's table are not shown to everybody.
func TestTriggersOfOthers(t *testing.T) {
	for method, warns := range map[string]bool{methodArray: false, methodFast: true, methodDirect: true} {
		for _, owner := range []string{"TERA", "OTHER"} {
			s := startStandIn(t, true, fake.Options{Owner: owner})
			target := s.table(method)
			target.Table = owner + "." + target.Table
			var logged bytes.Buffer
			deps := testDeps()
			deps.Log = slog.New(slog.NewTextHandler(&logged, nil))
			l, err := s.backend.Open(t.Context(), target, deps)
			require.NoError(t, err)
			_, err = l.Prepare(t.Context(), loader.Preparation{
				Run: "r", Schema: journal(), Contract: contractOf(method, 10), Create: loader.CreateIfMissing,
			})
			require.NoError(t, err)
			assert.Equal(t, warns && owner == "OTHER", strings.Contains(logged.String(), "triggers may be invisible"), method+owner)
		}
	}
}

// A claim table that somebody made without a key would let a batch in twice.
func TestClaimsWantAKey(t *testing.T) {
	s := startStandIn(t, false, fake.Options{})
	s.say(t, "CREATE TABLE TERAPUSH_CLAIMS (run VARCHAR2(64), batch NUMBER(19), first_key NUMBER(19), row_count NUMBER(19))")
	_, _, err := s.prepare(t, s.table(methodArray), nil)
	require.ErrorContains(t, err, "no unique key on exactly (run, batch)")
}

func TestSilentSaysNothing(t *testing.T) {
	s := startStandIn(t, false, fake.Options{})
	target := s.table(methodArray)
	l, err := s.backend.Open(t.Context(), target, testDeps())
	require.NoError(t, err)
	before := len(s.Log())
	table, err := l.Prepare(t.Context(), loader.Preparation{Schema: journal(), Contract: atLeastOnce(contractOf(methodArray, 9)), Silent: true})
	require.NoError(t, err)
	assert.Equal(t, loader.Table{Name: target.Table}, table)
	// What Open's session still says logoff with may be logged after the count; nothing else may be.
	for _, st := range s.Log()[before:] {
		assert.Contains(t, []string{fake.LogOff, fake.End}, st.Kind, st.Text)
	}
}

func TestSettingsReachEveryConnection(t *testing.T) {
	s := startStandIn(t, false, fake.Options{})
	target := s.table(methodArray)
	target.Settings = []loader.Setting{{Name: "Current_Schema", Value: "tera"}, {Name: "commit_logging", Value: "BATCH"}}
	before := len(s.Log())
	_, _, err := s.prepare(t, target, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"ALTER SESSION SET Current_Schema = tera", "ALTER SESSION SET commit_logging = BATCH",
		"ALTER SESSION SET Current_Schema = tera", "ALTER SESSION SET commit_logging = BATCH",
	}, s.sent(before)[:4])
}

// The probe removes what it has left behind, and no row that was there before it.
func TestProbeRemovesItsOwn(t *testing.T) {
	s := startStandIn(t, false, fake.Options{})
	d := datasetOf(t, "journal", "")
	target := s.table(methodArray)
	l, _, err := s.prepare(t, target, nil)
	require.NoError(t, err)
	one := func() *batch.Batch { return encoded(t, d, batch.ColumnArrays, batch.ID{Run: "r"}, 0, 1) }
	probe := func() (loader.Proof, error) {
		b := one()
		b.Hold()
		defer b.Release()
		return l.Probe(t.Context(), contractOf(methodArray, 100), b)
	}
	proof, err := probe()
	require.NoError(t, err)
	assert.Equal(t, loader.Proof{Transactional: true}, proof)

	s.say(t, settled(t, l).InsertClaim(loader.Ref{ID: batch.ID{Run: "r", Number: sqlload.Probe}, Rows: 1}))
	proof, err = probe()
	require.NoError(t, err)
	assert.Contains(t, proof.Reason, "a claim survived a rollback")
	assert.Zero(t, s.Rows("TERAPUSH_CLAIMS"))

	s.say(t, "INSERT INTO "+qualified("", name(target))+" (ID, TS) VALUES ('00000000000000000000', TO_TIMESTAMP('2026-01-01', 'YYYY-MM-DD'))")
	_, err = probe()
	assert.ErrorContains(t, err, "is there already")
	assert.Equal(t, 1, s.Rows(name(target)))
}

// Runs that reserve at the same time get ranges of their own.
func TestReserve(t *testing.T) {
	s := startStandIn(t, false, fake.Options{})
	l, _, err := s.prepare(t, s.table(methodArray), nil)
	require.NoError(t, err)
	var wg sync.WaitGroup
	firsts := make([]int64, 8)
	for i := range firsts {
		wg.Go(func() {
			var err error
			firsts[i], err = l.Reserve(t.Context(), string(rune('a'+i)), 100, math.MaxInt64)
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	taken := map[int64]bool{}
	for _, first := range firsts {
		assert.Zero(t, first%100)
		assert.False(t, taken[first], first)
		taken[first] = true
	}
	again, err := l.Reserve(t.Context(), "a", 100, math.MaxInt64)
	require.NoError(t, err)
	assert.Equal(t, firsts[0], again)
	assert.Zero(t, s.Open())
}

// What --dry-run shows is what the server is sent, in words and in order.
func TestExplainShowsWhatIsSent(t *testing.T) {
	for _, method := range []string{methodSingle, methodBatch, methodArray, methodFast, methodDirect} {
		t.Run(method, func(t *testing.T) {
			s := startStandIn(t, method == methodDirect, fake.Options{})
			d := datasetOf(t, "journal", "")
			target := s.table(method)
			target.Table = "TERA." + name(target) // as the catalog completes it
			target.Settings = []loader.Setting{{Name: "commit_logging", Value: "BATCH"}}
			contract := contractOf(method, 1) // a batch of one row, so that rows and batches come once each
			if method == methodFast {
				contract = atLeastOnce(contract)
			}
			p := loader.Preparation{Run: "RUN", Schema: d.Schema(), Contract: contract, Create: loader.CreateIfMissing}
			var want []string
			for _, st := range s.backend.Explain(target, p) {
				want = append(want, st.Text)
			}

			l, err := s.backend.Open(t.Context(), target, testDeps())
			require.NoError(t, err)
			before := len(s.Log())
			_, err = l.Prepare(t.Context(), p)
			require.NoError(t, err)
			b := encoded(t, d, batch.ColumnArrays, batch.ID{Run: "RUN"}, 0, 1)
			session, err := l.Session(t.Context(), contract)
			require.NoError(t, err)
			_, err = load(t.Context(), session, b)
			require.NoError(t, err)
			require.NoError(t, session.Close())
			if contract.Dedup != loader.DedupNone {
				_, err = l.(loader.Resolver).Resolve(t.Context(), loader.RefOf(b))
				require.NoError(t, err)
			}
			_, err = l.(loader.Finisher).Finish(t.Context(), loader.KeyRange{}, 1)
			require.NoError(t, err)
			require.NoError(t, l.(loader.Counter).Count(t.Context(), loader.Grouping{Size: 1}, func(loader.Bucket) error { return nil }))
			if contract.Dedup == loader.DedupTx {
				_, err = l.(loader.Claims).Forget(t.Context(), "RUN")
				require.NoError(t, err)
			}
			shown := map[string]bool{}
			for _, text := range want {
				shown[text] = true
			}
			sent := map[string]bool{}
			for _, text := range s.sent(before) {
				text = strings.TrimSuffix(text, ";")
				sent[text] = true
				logoff := text == fake.Rollback && s.backend.client.endsByStatement // of every session, whether or not it has begun anything
				assert.True(t, shown[text] || logoff || strings.HasSuffix(text, "WHERE ROWNUM = 1"), "sent and not shown: %s", text)
			}
			for text := range shown {
				assert.True(t, sent[text], "shown and not sent: %s", text)
			}
		})
	}
}

// An external table that a broken attempt has left stands in nobody's way, and Forget removes it.
func TestLeftoversOfCloudCopy(t *testing.T) {
	s, store := startWithStore(t, fake.Options{})
	d := datasetOf(t, "people", dataset.Kind(""))
	target := s.through(store)
	l, err := s.backend.Open(t.Context(), target, testDeps())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	contract := contractOf(methodCloudCopy, 10)
	_, err = l.Prepare(t.Context(), loader.Preparation{Run: "r-1", Schema: d.Schema(), Contract: contract, Create: loader.CreateIfMissing})
	require.NoError(t, err)
	session, err := l.Session(t.Context(), contract)
	require.NoError(t, err)
	group := loader.Group{Ref: loader.Ref{ID: batch.ID{Run: "r-1"}, Rows: 20}}
	for n := range int64(2) {
		b := encoded(t, d, batch.CSV, batch.ID{Run: "r-1", Number: n}, n*10, 10)
		_, err := load(t.Context(), session, b)
		require.NoError(t, err)
		group.Members = append(group.Members, loader.RefOf(b))
	}
	// The connection breaks while the rows go in.
	s.SetScript(fake.At("/*+ APPEND */", 1, fake.Fault{Drop: true}))
	_, err = l.(loader.Committer).Commit(t.Context(), group)
	require.Error(t, err)
	assert.Equal(t, loader.No, s.backend.Classify(err).Applied)
	assert.True(t, s.has(t, externalTable("r-1", 0)))

	ack, err := l.(loader.Committer).Commit(t.Context(), group)
	require.NoError(t, err)
	assert.Equal(t, int64(20), ack.Rows)
	assert.Equal(t, 20, s.Rows(name(target)))
	assert.False(t, s.has(t, externalTable("r-1", 0)))

	// And the next one between the commit and its answer.
	s.SetScript(fake.At(fake.Commit, 1, fake.Fault{DropAfter: true}))
	next := group
	next.ID.Number, next.First = 1, 20
	next.Members = nil
	b := encoded(t, d, batch.CSV, batch.ID{Run: "r-1", Number: 4}, 20, 20)
	_, err = load(t.Context(), session, b)
	require.NoError(t, err)
	next.Members = []loader.Ref{loader.RefOf(b)}
	_, err = l.(loader.Committer).Commit(t.Context(), next)
	require.Error(t, err)
	assert.Equal(t, loader.Unknown, s.backend.Classify(err).Applied)
	res, err := l.(loader.Resolver).Resolve(t.Context(), next.Ref)
	require.NoError(t, err)
	assert.Equal(t, loader.Yes, res.Applied)
	assert.True(t, s.has(t, externalTable("r-1", 1)))
	_, err = l.(loader.Claims).Forget(t.Context(), "r-1")
	require.NoError(t, err)
	assert.False(t, s.has(t, externalTable("r-1", 1)))
	assert.Equal(t, 40, s.Rows(name(target)))
}

// has reports whether there is a table of that name.
func (s *standIn) has(t *testing.T, table string) (found bool) {
	t.Helper()
	l := &opened{target: s.table(methodArray), deps: testDeps(), client: s.backend.client}
	require.NoError(t, l.withLink(t.Context(), func(k *link) error {
		n, err := sqlload.Number(context.WithoutCancel(t.Context()), k, "SELECT TO_CHAR(COUNT(*)) FROM all_tables t WHERE t.table_name = "+sqlload.Literal(table))
		found = n > 0
		return err
	}))
	return found
}
