package oracle

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/golden"
	fake "github.com/terapush/terapush/internal/standin/oracle"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// dictionary is in a question to the server's dictionary.
var dictionary = regexp.MustCompile(` (all|user|session|product|nls)_|v\$(parameter|resource|session|database|log)|'(CLOUD_SERVICE|SESSION_USER)'`)

// sent lists what the server has received since the first n requests, without questions to its dictionary.
func (s *standIn) sent(n int) (all []string) {
	for _, r := range s.Requests()[n:] {
		if !dictionary.MatchString(r.SQL) && r.SQL != fake.Connect && r.SQL != fake.LogOff {
			all = append(all, r.SQL)
		}
	}
	return all
}

// run runs statements of an administrator, in which T is the target's table.
func (s *standIn) run(t *testing.T, target loader.Target, statements ...string) {
	t.Helper()
	for _, text := range statements {
		require.NoError(t, s.Run(strings.Replace(text, "TABLE T ", "TABLE "+sqlload.Qualified("", name(target))+" ", 1)))
	}
}

// insert adds a row of the journal, or of pairs.
func (s *standIn) insert(t *testing.T, target loader.Target, dataset string, n int64) {
	t.Helper()
	require.NoError(t, s.Insert(name(target), backendtest.Row(datasetOf(t, dataset, ""), n)))
}

const (
	mine    = "COMMENT ON TABLE T IS 'mine'"
	keyless = "CREATE TABLE TERAPUSH_CLAIMS (run VARCHAR2(64), batch NUMBER(19), first_key NUMBER(19), row_count NUMBER(19))"
)

// partitioned gives every table the partition that a question names.
var partitioned = fake.Where(map[string]fake.Fault{"all_tab_partitions": {Answer: [][]any{{"1"}}}})

func creating(mode loader.CreateMode) func(*loader.Preparation) {
	return func(p *loader.Preparation) { p.Create = mode }
}

// What is read of a table that is filled, emptied and made again, and what is sent for that. What is sent when, and what is
// refused, is package sqlload's to show.
func TestPrepareReplaces(t *testing.T) {
	for _, method := range []string{methodArray, methodFast} {
		s := startStandIn(t, fake.Options{Native: true})
		target := s.table(method)
		_, made, err := s.prepare(t, target, nil)
		require.NoError(t, err)
		assert.Equal(t, loader.Table{Name: "TERA." + name(target), Identity: made.Identity, Created: true}, made)
		s.insert(t, target, "journal", 7)
		_, filled, err := s.prepare(t, target, nil)
		require.NoError(t, err)
		assert.Equal(t, loader.Table{Name: made.Name, Identity: made.Identity, HasRows: true}, filled)

		n := len(s.Requests())
		_, emptied, err := s.prepare(t, target, creating(loader.CreateTruncate))
		require.NoError(t, err)
		assert.NotEqual(t, made.Identity, emptied.Identity)
		assert.Zero(t, s.Rows(name(target)))
		sent, truncate := strings.Join(s.sent(n), "\n"), "\nTRUNCATE TABLE "+sqlload.Qualified("TERA", name(target))
		assert.Contains(t, sent, truncate)
		assert.Equal(t, method == methodFast, strings.Contains(sent, flushWrites+truncate))

		_, anew, err := s.prepare(t, target, creating(loader.CreateRecreate))
		require.NoError(t, err)
		assert.NotEqual(t, emptied.Identity, anew.Identity)

		s.run(t, target, mine)
		_, _, err = s.prepare(t, target, creating(loader.CreateTruncate))
		require.ErrorContains(t, err, "was not made by terapush")
	}
}

func TestPrepareRefuses(t *testing.T) {
	const columns = "ID VARCHAR2(40), RUN_ID VARCHAR2(40), SCENARIO VARCHAR2(20), TS TIMESTAMP(6), PAYLOAD VARCHAR2(4000)"
	const plain = "CREATE TABLE T (" + columns + ")"
	const compound = "CREATE TABLE T (K NUMBER(19), R NUMBER(19), S NUMBER(19), PRIMARY KEY (K, R))"
	keyed := func(p *loader.Preparation) { p.PrimaryKey = true }
	pairs := func(p *loader.Preparation) { p.Schema, p.PrimaryKey = schemaOf(t, "pairs"), true }
	denied := func(code int) map[string]fake.Fault { return map[string]fake.Fault{"TRUNCATE": {Fail: fake.Ora(code)}} }
	partition := map[string]string{"partition": "p1"}
	truncate := creating(loader.CreateTruncate)
	for label, c := range map[string]struct {
		method string
		with   map[string]string // options
		table  string            // DDL before
		denied map[string]fake.Fault
		change func(*loader.Preparation)
		says   []string
	}{
		"columns": {table: "CREATE TABLE T (ID NUMBER(10), X DATE NOT NULL)", says: []string{
			"column id is NUMBER(10,0), want VARCHAR2(40 BYTE)", "column payload (VARCHAR2(4000 BYTE)) is missing",
			"column X (DATE) is unknown to the dataset and has no default",
		}},
		"a virtual column": {
			table: strings.Replace(plain, "ID VARCHAR2(40)", "ID VARCHAR2(40) GENERATED ALWAYS AS ('x')", 1),
			says:  []string{"column id is generated"},
		},
		"a missing key":         {table: plain, change: keyed, says: []string{"it has no primary key", "(ID)"}},
		"a longer key":          {table: compound, change: pairs, says: []string{"it has no primary key (K)"}},
		"not for Fast Ingest":   {method: methodFast, table: plain, says: []string{"not MEMOPTIMIZE FOR WRITE"}},
		"no partition":          {method: methodDirect, with: partition, table: plain, says: []string{"it has no partition P1"}},
		"a table for partition": {method: methodDirect, with: partition, says: []string{"creates none", "--create never"}},
		"a partition's table": {
			method: methodDirect, with: partition, table: plain, change: truncate,
			says: []string{"empties whole tables", "TRUNCATE PARTITION"},
		},
		"long values": {change: func(p *loader.Preparation) { p.Schema.Columns[4].Declared = 32_768 }, says: []string{
			"column payload have up to 32768 bytes", "--payload-bytes",
		}},
		"no privilege": {table: plain, denied: denied(1031), change: func(p *loader.Preparation) {
			p.Create, p.MayDrop = loader.CreateTruncate, p.Schema.Dataset
		}, says: []string{"ORA-01031", "DROP ANY TABLE"}},
		"uncommitted rows": {table: plain, denied: denied(54), change: truncate, says: []string{"ORA-00054", "uncommitted rows"}},
		"foreign keys": {table: plain, denied: denied(codeReferenced), change: truncate, says: []string{
			"ORA-02266", "foreign keys of other tables",
		}},
	} {
		t.Run(label, func(t *testing.T) {
			s := startStandIn(t, fake.Options{Native: true, Script: fake.Where(c.denied)})
			target := s.table(cmp.Or(c.method, methodArray))
			target.Options = c.with
			if c.table != "" {
				s.run(t, target, c.table, strings.Replace(mine, "mine", loader.MadeBy, 1))
			}
			_, _, err := s.prepare(t, target, c.change)
			require.Error(t, err)
			for _, says := range c.says {
				assert.Contains(t, loader.Explain(err), says)
			}
			assert.Equal(t, loader.No, s.backend.Classify(err).Applied)
			assert.Equal(t, c.table != "", s.Has(name(target)))
		})
	}
}

// A table may have a column that the dataset does not know, where that may stay empty or has a default.
func TestPrepareAccepts(t *testing.T) {
	s := startStandIn(t, fake.Options{Native: true, Script: partitioned})
	target := s.table(methodDirect)
	target.Options = map[string]string{"partition": "p1"}
	s.run(t, target, "CREATE TABLE T (K NUMBER(19), R NUMBER(19), S NUMBER(19), X DATE, Y DATE DEFAULT SYSDATE NOT NULL)")
	_, _, err := s.prepare(t, target, func(p *loader.Preparation) {
		p.Schema, p.Create = schemaOf(t, "pairs"), loader.CreateNever
	})
	require.NoError(t, err)
}

// What has a name may be no table, or hidden.
func TestNamesAreTaken(t *testing.T) {
	for kind, says := range map[string]string{"VIEW": "is a view", "SYNONYM": "is a synonym", "": ""} {
		s := startStandIn(t, fake.Options{Taken: map[string]string{"TERAPUSH_CLAIMS": kind, "TAKEN": kind}})
		_, _, err := s.prepare(t, s.table(methodArray), nil)
		require.ErrorContains(t, err, cmp.Or(says, `create the claim table "TERA"."TERAPUSH_CLAIMS": ORA-00955`))
		target := s.table(methodArray)
		target.Table = "taken"
		_, _, err = s.prepare(t, target, nil)
		require.ErrorContains(t, err, cmp.Or(says, "may this user SELECT from it?"))
	}
}

// A claim table that others have made may be of no use.
func TestPrepareChecksTheClaims(t *testing.T) {
	s := startStandIn(t, fake.Options{})
	require.NoError(t, s.Run(keyless))
	_, _, err := s.prepare(t, s.table(methodArray), nil)
	require.ErrorContains(t, err, "no unique key on exactly (run, batch)")
}

// Triggers on another user's table may be invisible.
func TestTriggersOfOthers(t *testing.T) {
	for method, warns := range map[string]bool{methodArray: false, methodFast: true, methodDirect: true} {
		for _, owner := range []string{"TERA", "OTHER"} {
			s := startStandIn(t, fake.Options{Native: true, Owner: owner})
			target := s.table(method)
			target.Table = owner + "." + target.Table
			var logged strings.Builder
			_, err := backendtest.Open(t, s.backend, target, loggingTo(&logged)).Prepare(t.Context(), loader.Preparation{
				Run: "r", Schema: journal(), Contract: contractOf(method, 10), Create: loader.CreateIfMissing,
			})
			require.NoError(t, err)
			assert.Equal(t, warns && owner == "OTHER", strings.Contains(logged.String(), "triggers may be invisible"), method+owner)
		}
	}
}

// With Silent nothing but the rows is sent, and what Fast Ingest has in memory is asked for: it could not be read.
func TestSilent(t *testing.T) {
	d := documents(t)
	for method, asks := range map[string]int{methodArray: 0, methodFast: 1} {
		s := startStandIn(t, fake.Options{})
		target := s.table(method)
		c := atLeastOnce(contractOf(method, 10))
		s.open(t, target, d, c) // creates the table
		s.quiet(t)
		before := s.requests("SELECT") + s.requests("CREATE")
		l := backendtest.Open(t, s.backend, target, backendtest.Deps())
		opened := s.requests("SELECT") + s.requests("CREATE")
		assert.Greater(t, opened, before)
		table, err := l.Prepare(t.Context(), loader.Preparation{Schema: d.Schema(), Contract: c, Silent: true})
		require.NoError(t, err)
		assert.Equal(t, loader.Table{Name: target.Table}, table)
		loads(t, l, c, numbered(t, d, c, 0))
		assert.Equal(t, asks, s.requests("SELECT")+s.requests("CREATE")-opened, "GET_WRITE_HWM_SEQID of %s", method)
		cost, notes := l.(loader.Measurer).Measured(t.Context())
		assert.Empty(t, cost)
		assert.Empty(t, notes)
	}
}

func TestSettingsReachEveryConnection(t *testing.T) {
	s := startStandIn(t, fake.Options{})
	target := s.table(methodArray)
	target.Settings = []loader.Setting{
		{Name: "Current_Schema", Value: "tera"}, {Name: "sort_area_size", Value: "64M"},
		{Name: "tracefile_identifier", Value: "it's; DROP"},
	}
	_, _, err := s.prepare(t, target, nil)
	require.NoError(t, err)
	set := []string{
		"ALTER SESSION SET Current_Schema = tera", "ALTER SESSION SET sort_area_size = 64M",
		"ALTER SESSION SET tracefile_identifier = 'it''s; DROP'",
	}
	assert.Equal(t, slices.Concat(set, set), s.sent(0)[:6])
}

// The probe removes what it has left behind, and no row that was there before it. It is no part of what the run costs.
func TestProbeRemovesItsOwn(t *testing.T) {
	s := startStandIn(t, fake.Options{})
	d := datasetOf(t, "journal", "")
	target := s.table(methodArray)
	l, _, err := s.prepare(t, target, begins("r"))
	require.NoError(t, err)
	c := contractOf(methodArray, 1)
	probe := func() (loader.Proof, error) {
		b := numbered(t, d, c, 0)
		b.Hold()
		defer b.Release()
		return l.Probe(t.Context(), c, b)
	}
	proof, err := probe()
	require.NoError(t, err)
	assert.Equal(t, loader.Proof{Transactional: true}, proof)
	assert.Zero(t, s.requests("v$mystat"))

	require.NoError(t, s.Run(settled(t, l).InsertClaim(loader.Ref{ID: batch.ID{Run: "r", Number: sqlload.Probe}, Rows: 1})))
	proof, err = probe()
	require.NoError(t, err)
	assert.Contains(t, proof.Reason, "a claim survived a rollback")
	assert.Zero(t, s.Rows("TERAPUSH_CLAIMS"))

	s.insert(t, target, "journal", 0)
	_, err = probe()
	assert.ErrorContains(t, err, "is there already")
	assert.Equal(t, 1, s.Rows(name(target)))
}

// Runs that reserve at the same time get ranges of their own.
func TestReserve(t *testing.T) {
	s := startStandIn(t, fake.Options{})
	target := s.table(methodArray)
	var wg sync.WaitGroup
	firsts := make([]int64, 8)
	for i := range firsts {
		l, _, err := s.prepare(t, target, begins(string(rune('a'+i))))
		require.NoError(t, err)
		wg.Go(func() {
			var err error
			firsts[i], err = l.Reserve(t.Context(), -1, 100, math.MaxInt64)
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	slices.Sort(firsts)
	for i, first := range firsts {
		assert.EqualValues(t, 100*i, first)
	}
	s.quiet(t)
}

// unshown are statements that are left out: looks at what is there, and the rollback at the end of a session, whether or not it
// has begun anything.
var unshown = regexp.MustCompile(` WHERE (ROWNUM = 1|1 = 0)$|^SELECT .*TERAPUSH_RUNS|^ROLLBACK$`)

var epoch = regexp.MustCompile(`\b\d+-[a-z2-7]{10}\b`)

// What --dry-run shows is what the server is sent.
func TestExplainShowsWhatIsSent(t *testing.T) {
	for _, method := range []string{methodSingle, methodBatch, methodArray, methodFast, methodDirect} {
		t.Run(method, func(t *testing.T) {
			s := startStandIn(t, fake.Options{Native: method == methodDirect})
			d := datasetOf(t, "journal", "")
			target := s.table(method)
			target.Table = "TERA." + name(target) // as the catalog completes it
			target.Settings = []loader.Setting{{Name: "commit_logging", Value: "BATCH"}}
			contract := contractOf(method, 1) // a batch of one row, so that rows and batches come once each
			p := loader.Preparation{Run: "r", Schema: d.Schema(), Contract: contract, Create: loader.CreateIfMissing}
			shown := map[string]bool{}
			for _, st := range s.backend.Explain(target, p) {
				shown[st.Text] = true
			}
			p.Begin, p.Owner = &loader.Beginning{}, "OWNER"
			l, _, err := s.prepare(t, target, func(to *loader.Preparation) { *to = p })
			require.NoError(t, err)
			row := settled(t, l).Row
			words := strings.NewReplacer("'r'", "'RUN'", fmt.Sprint(row.Changed.Unix()), "0")
			b := numbered(t, d, contract, 0)
			loads(t, l, contract, b)
			if contract.Dedup != loader.DedupNone {
				_, err = l.Resolve(t.Context(), loader.RefOf(b))
				require.NoError(t, err)
			}
			_, err = l.Finish(t.Context(), loader.KeyRange{}, 1)
			require.NoError(t, err)
			require.NoError(t, l.Count(t.Context(), loader.Grouping{Size: 1}, func(loader.Bucket) error { return nil }))
			sent := map[string]bool{}
			for _, text := range s.sent(0) {
				text = strings.TrimSuffix(epoch.ReplaceAllString(words.Replace(text), "EPOCH"), ";")
				sent[text] = true
				assert.True(t, shown[text] || unshown.MatchString(text), "sent and not shown: %s", text)
			}
			for text := range shown {
				assert.True(t, sent[text], "shown and not sent: %s", text)
			}
		})
	}
}

// Every question to the dictionary with all of its words: the stand-in knows them by a few.
func TestQuestions(t *testing.T) {
	asked := map[string]bool{}
	for _, owner := range []string{"TERA", "OTHER"} {
		for _, method := range []string{methodArray, methodFast, methodDirect} {
			s := startStandIn(t, fake.Options{Native: true, IdleBlocker: idleBlocker, Owner: owner, Script: partitioned})
			require.NoError(t, s.Run(`CREATE TABLE "`+owner+`"."T" (K NUMBER(19), R NUMBER(19), S NUMBER(19), PRIMARY KEY (K)) `+
				"MEMOPTIMIZE FOR WRITE"))
			target := s.table(method)
			target.Table = owner + ".T"
			if method == methodDirect {
				target.Options = map[string]string{"partition": "p1"}
			}
			l := backendtest.Open(t, s.backend, target, backendtest.Deps())
			p := loader.Preparation{Run: "r", Schema: schemaOf(t, "pairs"), Contract: contractOf(method, 1), PrimaryKey: true, Create: loader.CreateNever}
			_, err := l.Prepare(t.Context(), p)
			require.NoError(t, err)
			can := loader.FeaturesOf(l)
			_, err = can.Checker.CheckServer(t.Context(), loader.Intent{Preparation: p, Workers: 1, Advice: true})
			require.NoError(t, err)
			_, err = can.Sizer.Stored(t.Context())
			require.NoError(t, err)
			_, known, err := can.Claims.Forget(t.Context(), "r")
			require.NoError(t, err)
			assert.False(t, known)
			for _, r := range s.Requests() {
				if dictionary.MatchString(r.SQL) {
					asked[strings.ReplaceAll(r.SQL, "OTHER", "TERA")] = true
				}
			}
		}
	}
	golden.Equal(t, "questions.sql", strings.Join(slices.Sorted(maps.Keys(asked)), ";\n")+";\n")
}
