package oracle

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fake "github.com/terapush/terapush/internal/fake/oracle"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// filled is a stand-in with a table that terapush has made for pairs, with a key and one row.
func filled(t *testing.T, method string, o fake.Options) (*standIn, loader.Target, loader.Table) {
	t.Helper()
	s := startStandIn(t, true, o)
	target := s.table(method)
	_, table, err := s.preparePairs(t, target, nil)
	require.NoError(t, err)
	s.say(t, "INSERT INTO "+qualified("", name(target))+" (K, R, S) VALUES (7, 7, 7)")
	require.Equal(t, 1, s.Rows(name(target)))
	return s, target, table
}

func (s *standIn) preparePairs(t *testing.T, target loader.Target, change func(*loader.Preparation)) (*opened, loader.Table, error) {
	t.Helper()
	return s.prepare(t, target, func(p *loader.Preparation) {
		p.Schema, p.PrimaryKey = schemaOf(t, "pairs"), true
		if change != nil {
			change(p)
		}
	})
}

func truncate(p *loader.Preparation) { p.Create = loader.CreateTruncate }

func TestPrepareTruncates(t *testing.T) {
	for _, method := range []string{methodSingle, methodBatch, methodArray, methodFast, methodDirect} {
		t.Run(method, func(t *testing.T) {
			s, target, before := filled(t, method, fake.Options{})
			s.say(t, "DELETE FROM "+qualified("", name(target)), "INSERT INTO "+qualified("", name(target))+" (K, R, S) VALUES (8, 8, 8)")
			n := len(s.Log())
			_, emptied, err := s.preparePairs(t, target, truncate)
			require.NoError(t, err)
			assert.Zero(t, s.Rows(name(target)))
			assert.Equal(t, loader.Table{Name: before.Name, Identity: emptied.Identity}, emptied, "it is there already, and empty")
			assert.NotEqual(t, before.Identity, emptied.Identity)
			want := []string{"TRUNCATE TABLE " + qualified("TERA", name(target))}
			if method == methodFast {
				want = append([]string{flushWrites}, want...)
			}
			sent := slices.DeleteFunc(s.sent(n), func(text string) bool { return strings.HasPrefix(text, "SELECT") })
			assert.Equal(t, want, sent, "and nothing else")

			// A resume looks for the table as it is now, with its key and its mark.
			_, again, err := s.preparePairs(t, target, func(p *loader.Preparation) { p.Create = loader.CreateNever })
			require.NoError(t, err)
			assert.Equal(t, emptied, again)
			_, _, err = s.preparePairs(t, target, truncate)
			require.NoError(t, err)
		})
	}
}

// A table that is missing is made, claims and all.
func TestPrepareTruncatesNothing(t *testing.T) {
	s := startStandIn(t, false, fake.Options{})
	_, table, err := s.preparePairs(t, s.table(methodArray), truncate)
	require.NoError(t, err)
	assert.True(t, table.Created)
	for _, text := range s.sent(0) {
		assert.NotContains(t, text, "TRUNCATE")
	}
}

// The claim table is made while the rows are still there: what it lacks is found in time.
func TestClaimsComeBeforeTruncate(t *testing.T) {
	s, target, _ := filled(t, methodArray, fake.Options{})
	s.say(t, "DROP TABLE TERAPUSH_CLAIMS")
	s.SetScript(fake.At(claimsDDL, 1, fake.Fault{Fail: &fake.Error{Code: 1031, Text: "insufficient privileges"}}))
	_, _, err := s.preparePairs(t, target, truncate)
	require.ErrorContains(t, err, "--delivery at-least-once")
	assert.Equal(t, 1, s.Rows(name(target)))

	n := len(s.Log())
	_, _, err = s.preparePairs(t, target, truncate)
	require.NoError(t, err)
	sent := strings.Join(s.sent(n), "\n")
	assert.Less(t, strings.Index(sent, claimsDDL), strings.Index(sent, "TRUNCATE"))
	assert.Contains(t, sent, claimsDDL)

	// At least once there are none to wait for.
	_, _, err = s.preparePairs(t, target, func(p *loader.Preparation) { truncate(p); p.Contract = atLeastOnce(p.Contract) })
	require.NoError(t, err)
}

func TestTruncateIsRefused(t *testing.T) {
	for label, c := range map[string]struct {
		method  string
		options fake.Options
		before  string // a statement, with T for the table
		change  func(*loader.Preparation)
		with    map[string]string
		says    []string
	}{
		"another's table": {method: methodArray, before: "COMMENT ON TABLE T IS 'mine'", says: []string{"so it is not emptied"}},
		"another name": {
			method: methodArray, before: "COMMENT ON TABLE T IS 'mine'", change: func(p *loader.Preparation) { p.MayDrop = "other" },
			says: []string{"was not made by terapush"},
		},
		"other columns": {
			method: methodArray, change: func(p *loader.Preparation) { p.Schema = schemaOf(t, "httplogs") }, says: []string{"column ts (TIMESTAMP(6)) is missing"},
		},
		"no privilege": {
			method: methodArray, options: fake.Options{Denied: map[string]int{"TRUNCATE TABLE": 1031}}, says: []string{"ORA-01031", "DROP ANY TABLE"},
		},
		"foreign keys": {
			method: methodArray, options: fake.Options{Denied: map[string]int{"TRUNCATE TABLE": codeReferenced}}, says: []string{"ORA-02266", "foreign keys of other tables"},
		},
		"a partition": {method: methodDirect, before: "", with: map[string]string{optionPartition: "p1"}, says: []string{"empties whole tables"}},
	} {
		t.Run(label, func(t *testing.T) {
			s, target, _ := filled(t, c.method, c.options)
			if c.before != "" {
				s.say(t, strings.Replace(c.before, "TABLE T", "TABLE "+qualified("", name(target)), 1))
			}
			target.Options = c.with
			_, _, err := s.preparePairs(t, target, func(p *loader.Preparation) {
				truncate(p)
				if c.change != nil {
					c.change(p)
				}
			})
			require.Error(t, err)
			for _, says := range c.says {
				assert.ErrorContains(t, err, says)
			}
			assert.Equal(t, loader.No, s.backend.Classify(err).Applied)
			assert.Equal(t, 1, s.Rows(name(target)))
		})
	}
}

// TRUNCATE knows no more than the whole table, of which the run may fill one partition.
func TestTruncateSparesPartitions(t *testing.T) {
	s := startStandIn(t, true, fake.Options{})
	target := s.table(methodDirect)
	target.Options = map[string]string{optionPartition: "one"}
	s.say(t, "CREATE TABLE "+qualified("", name(target))+" (K NUMBER(19), R NUMBER(19), S NUMBER(19)) "+
		"PARTITION BY RANGE (K) (PARTITION one VALUES LESS THAN (10), PARTITION two VALUES LESS THAN (MAXVALUE))",
		"INSERT INTO "+qualified("", name(target))+" (K, R, S) VALUES (70, 7, 7)")
	_, _, err := s.prepare(t, target, func(p *loader.Preparation) {
		p.Schema, p.Create, p.MayDrop = schemaOf(t, "pairs"), loader.CreateTruncate, target.Table
	})
	require.ErrorContains(t, err, "empties whole tables")
	require.ErrorContains(t, err, "TRUNCATE PARTITION")
	assert.Equal(t, 1, s.Rows(name(target)))
}

// The user names somebody's table, which keeps what it has but the rows.
func TestTruncateOfNamedTables(t *testing.T) {
	for _, with := range []string{"", "tera."} {
		s, target, _ := filled(t, methodArray, fake.Options{})
		s.say(t, "COMMENT ON TABLE "+qualified("", name(target))+" IS 'mine'")
		_, _, err := s.preparePairs(t, target, func(p *loader.Preparation) { truncate(p); p.MayDrop = with + target.Table })
		require.NoError(t, err)
		assert.Zero(t, s.Rows(name(target)))
		_, _, err = s.preparePairs(t, target, truncate)
		require.ErrorContains(t, err, "was not made by terapush", "it is as little ours as it was")
	}
}

// Rows that nobody has committed are in the way of a TRUNCATE, which waits for nobody.
func TestTruncateMeetsOpenTransactions(t *testing.T) {
	s, target, _ := filled(t, methodArray, fake.Options{})
	l := &opened{target: target, deps: testDeps(), client: s.backend.client}
	require.NoError(t, l.withLink(t.Context(), func(k *link) error {
		require.NoError(t, k.begin(t.Context()))
		_, err := k.exec(t.Context(), "INSERT INTO "+qualified("", name(target))+" (K, R, S) VALUES (1, 1, 1)")
		require.NoError(t, err)
		_, _, err = s.preparePairs(t, target, truncate)
		require.ErrorContains(t, err, "ORA-00054")
		require.ErrorContains(t, err, "uncommitted rows")
		return nil
	}))
	assert.Equal(t, 1, s.Rows(name(target)))
}

// What an earlier run has left in the memory of Fast Ingest does not come in behind the TRUNCATE. Where the flush is denied
// that cannot be helped, and the proof finds it.
func TestTruncateOfWhatIsStillInMemory(t *testing.T) {
	s := startStandIn(t, false, fake.Options{})
	target := s.table(methodFast)
	d := datasetOf(t, "pairs", "")
	contract := contractOf(methodFast, 10)
	l := s.open(t, target, d, contract)
	session, err := l.Session(t.Context(), contract)
	require.NoError(t, err)
	_, err = load(t.Context(), session, encoded(t, d, contract.Format, batch.ID{Run: "r"}, 0, 10))
	require.NoError(t, err)
	require.NoError(t, session.Close())
	require.Zero(t, s.Rows(name(target)), "all of them are in memory")

	_, _, err = s.prepare(t, target, func(p *loader.Preparation) { p.Schema = d.Schema(); truncate(p) })
	require.NoError(t, err)
	s.say(t, flushWrites)
	assert.Zero(t, s.Rows(name(target)))
}

// A key of several columns is looked for, and made, as a whole.
func TestKeyOfSeveralColumns(t *testing.T) {
	s := startStandIn(t, false, fake.Options{})
	target := s.table(methodArray)
	lineitem := func(p *loader.Preparation) { p.Schema, p.PrimaryKey = schemaOf(t, "lineitem"), true }
	_, _, err := s.prepare(t, target, lineitem)
	require.NoError(t, err)
	_, again, err := s.prepare(t, target, lineitem)
	require.NoError(t, err)
	require.False(t, again.Created)

	ddl := planFor(target.Table, schemaOf(t, "lineitem"), methodArray, options{}).createTable()
	for _, key := range []string{`"L_ORDERKEY"`, `"L_ORDERKEY", "L_LINENUMBER", "L_PARTKEY"`} {
		s.say(t, "DROP TABLE "+qualified("", name(target)), strings.TrimSuffix(ddl, ")")+", PRIMARY KEY ("+key+"))")
		_, _, err = s.prepare(t, target, lineitem)
		require.ErrorContains(t, err, "it has no primary key (L_ORDERKEY, L_LINENUMBER)")
	}
}
