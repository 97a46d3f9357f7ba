package mysql

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// pipelineServer is a SingleStore of one pipeline. What it answers follows SingleStore's manual; nobody has run these
// tests against a real one.
type pipelineServer struct {
	*fakeServer
	bucket backendtest.Store

	mu     sync.Mutex
	state  string            // of the pipeline; "": there is none
	files  map[string]string // that it knows, with their states
	rows   int64             // in the table
	errors []string          // its newest
	fail   map[string]uint16 // statements, by their first words, that are answered with an error
	broken map[string]bool   // files that cannot be loaded
	slow   int               // looks at the files until the next one is loaded
	after  func(statement string)
}

const rowsPerFile = 10

func (s *pipelineServer) answer(query string) *fakeAnswer {
	s.mu.Lock()
	defer s.mu.Unlock()
	for prefix, number := range s.fail {
		if strings.HasPrefix(query, prefix) {
			return &fakeAnswer{err: &mysql.MySQLError{Number: number, Message: "near '" + query + "'"}}
		}
	}
	if s.after != nil {
		defer s.after(query)
	}
	switch {
	case strings.HasPrefix(query, "SELECT state FROM"):
		if s.state == "" {
			return nil
		}
		return rowsOf([]string{s.state})
	case strings.HasPrefix(query, "SELECT pipeline_name"):
		return rowsOf([]string{"terapush_test_1"}, []string{"terapush_test_12"}, []string{"terapush_test_1_5"}, []string{"terapush_test_"}, []string{"mine"})
	case strings.HasPrefix(query, "SELECT file_name"):
		s.work()
		rows := [][]string{}
		for name, state := range s.files {
			rows = append(rows, []string{name, state})
		}
		return &fakeAnswer{rows: rows}
	case strings.HasPrefix(query, "SELECT error_message"):
		rows := [][]string{}
		for _, text := range s.errors {
			rows = append(rows, []string{text})
		}
		return &fakeAnswer{rows: rows}
	case strings.HasPrefix(query, "CREATE PIPELINE"):
		s.state, s.files = "Stopped", make(map[string]string)
	case strings.HasPrefix(query, "START PIPELINE"):
		s.state = running
		for _, key := range s.bucket.Keys() {
			if strings.Contains(key, "/g000000000001/") && s.files[key] == "" {
				s.files[key] = "Unloaded"
			}
		}
	case strings.HasPrefix(query, "STOP PIPELINE") && s.state == running:
		s.state = "Stopped"
	case strings.Contains(query, "DROP FILE"):
		_, name, _ := strings.Cut(query, "DROP FILE '")
		delete(s.files, strings.TrimSuffix(name, "'"))
	case strings.HasPrefix(query, "DROP PIPELINE"):
		s.state, s.files = "", nil
	case strings.HasPrefix(query, "SELECT COUNT(*) FROM `db`.`documents`"):
		return rowsOf([]string{fmt.Sprint(s.rows)})
	}
	return nil
}

// work loads what can be loaded.
func (s *pipelineServer) work() {
	if s.state != running {
		return
	}
	if s.slow > 0 {
		s.slow--
		return
	}
	for name, state := range s.files {
		switch {
		case state != "Unloaded":
		case s.broken[name]:
			s.files[name], s.state = fileSkipped, "Error"
		default:
			s.files[name] = fileLoaded
			s.rows += rowsPerFile
		}
	}
}

func newPipelineServer(t *testing.T) (*pipelineServer, *pipelines) {
	s := &pipelineServer{bucket: backendtest.StoreAndKeys(t, nil), fail: make(map[string]uint16), broken: make(map[string]bool)}
	s.fakeServer = &fakeServer{vars: map[string]string{"version": "5.7.32", "memsql_version": "8.7.1"}, answer: s.answer}
	target := s.start(t, "singlestore")
	target.Method, target.Via = pipeline, s.bucket.Via()
	l := backendtest.Open(t, New(), target, backendtest.Deps())
	p := l.(*pipelines)
	contract := contractOf(pipeline, rowsPerFile)
	prepared := preparation(documents(t, 10), contract)
	prepared.Silent = true
	_, err := p.Prepare(t.Context(), prepared)
	require.NoError(t, err)
	session, err := p.Session(t.Context(), contract)
	require.NoError(t, err)
	for n := range int64(5) { // group 1 is 3, 4
		ack, err := session.Load(t.Context(), batchOf(t, documents(t, 10), batch.TSV, id(n), n*rowsPerFile, rowsPerFile))
		require.NoError(t, err)
		assert.Equal(t, loader.Ack{Stored: true, Rows: rowsPerFile}, ack)
	}
	s.fakeServer.mu.Lock()
	s.said = nil
	s.fakeServer.mu.Unlock()
	return s, p
}

// groupOne are batches 3 and 4.
func groupOne() loader.Group {
	g := loader.Group{Ref: loader.Ref{ID: id(1), First: 30, Rows: 20}}
	for n := range int64(2) {
		g.Members = append(g.Members, loader.Ref{ID: id(3 + n), First: 30 + n*rowsPerFile, Rows: rowsPerFile})
	}
	return g
}

func TestPipeline(t *testing.T) {
	s, p := newPipelineServer(t)
	s.slow = 2
	assert.Equal(t, []string{
		"in/test/g000000000000/000000000000.tsv", "in/test/g000000000000/000000000001.tsv", "in/test/g000000000000/000000000002.tsv",
		"in/test/g000000000001/000000000003.tsv", "in/test/g000000000001/000000000004.tsv",
	}, s.bucket.Keys())
	ack, err := p.Commit(t.Context(), groupOne())
	require.NoError(t, err)
	assert.Equal(t, loader.Ack{Rows: 20}, ack)
	all := strings.Replace(lines(s.statements()), s.bucket.URL, "http://ENDPOINT", 1)
	golden.Equal(t, "session-singlestore-pipeline.sql", strings.NewReplacer(backendtest.S3Secret, "SECRET", backendtest.S3Token, "TOKEN").Replace(all))

	again, err := p.Commit(t.Context(), groupOne())
	require.NoError(t, err)
	assert.Equal(t, loader.Ack{Rows: 20, AlreadyApplied: true}, again)
	assert.Equal(t, 1, s.count("CREATE PIPELINE"))

	var found []int64
	require.NoError(t, p.Discard(t.Context(), groupOne()))
	require.NoError(t, p.Objects(t.Context(), "test", func(_ string, number, bytes int64) error {
		found = append(found, number)
		assert.Positive(t, bytes)
		return nil
	}))
	assert.Equal(t, []int64{0, 1, 2}, found)
}

// A file that cannot be loaded stops the pipeline. The next attempt goes on with it, and loads nothing twice.
func TestPipelineGoesOn(t *testing.T) {
	s, p := newPipelineServer(t)
	const bad = "in/test/g000000000001/000000000004.tsv"
	s.broken[bad] = true
	s.errors = []string{"Leaf error: 1366 for key " + backendtest.S3Secret[3:]}
	_, err := p.Commit(t.Context(), groupOne())
	assert.EqualError(t, err, "load by pipeline: pipeline terapush_test_1 is running with 1 of 2 objects loaded: Leaf error: 1366 for key ***")
	assert.Equal(t, loader.Verdict{Applied: loader.Unknown, Class: loader.ClassOther, Retry: true}, New().Classify(err))
	r, err := p.Resolve(t.Context(), groupOne().Ref)
	require.NoError(t, err)
	assert.Equal(t, loader.Resolution{Applied: loader.No}, r)

	s.broken = nil
	ack, err := p.Commit(t.Context(), groupOne())
	require.NoError(t, err)
	assert.Equal(t, loader.Ack{Rows: 20}, ack)
	assert.EqualValues(t, 20, s.rows)
	assert.Equal(t, 1, s.count("ALTER PIPELINE `terapush_test_1` DROP FILE '"+bad+"'"))
	assert.Equal(t, 1, s.count("ALTER PIPELINE `terapush_test_1` SET CREDENTIALS"), "the old ones may have expired")
	assert.Equal(t, 1, s.count("CREATE PIPELINE"))
	assert.Equal(t, 1, s.count("DROP PIPELINE"))
}

// The server says its statement back.
func TestPipelineErrorsKeepSecrets(t *testing.T) {
	s, p := newPipelineServer(t)
	s.fail["CREATE PIPELINE"] = 1064
	_, err := p.Commit(t.Context(), groupOne())
	require.ErrorContains(t, err, "create the pipeline: Error 1064 (HY000): near 'CREATE PIPELINE")
	shown := fmt.Sprintf("%v %+v %#v", err, err, err)
	assert.NotContains(t, shown, backendtest.S3Secret)
	assert.NotContains(t, shown, backendtest.S3Token)
	assert.Equal(t, loader.No, New().Classify(err).Applied)
	assert.Zero(t, s.count("START PIPELINE"))
}

func TestPipelineFails(t *testing.T) {
	for name, c := range map[string]struct {
		stage   func(s *pipelineServer)
		applied loader.Applied
		text    string
	}{
		"somebody stops it": {func(s *pipelineServer) {
			s.slow = 1000
			s.after = func(q string) {
				if strings.HasPrefix(q, "SELECT file_name") {
					s.state = "Stopped"
				}
			}
		}, loader.No, "pipeline terapush_test_1 is stopped with 0 of 2 objects loaded"},
		"start refused": {func(s *pipelineServer) { s.fail["START PIPELINE"] = 1142 }, loader.Unknown, "start the pipeline: Error 1142"},
		"foreign file": {func(s *pipelineServer) {
			s.after = func(q string) {
				if strings.HasPrefix(q, "START") {
					s.files["in/test/g000000000001/x"] = "Unloaded"
				}
			}
		}, loader.Unknown, "x is no object of the group"},
		"too many rows": {func(s *pipelineServer) {
			s.after = func(q string) {
				if strings.HasPrefix(q, "CREATE") {
					s.rows = 1
				}
			}
		}, loader.Unknown, "load by pipeline: the server took 21 of 20 rows (every object was loaded"},
		"rows before it began": {func(s *pipelineServer) { s.rows = 3 }, loader.Unknown, "group test/1: 3 rows of its 20 keys from 30 on are there"},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := newPipelineServer(t)
			c.stage(s)
			_, err := p.Commit(t.Context(), groupOne())
			require.ErrorContains(t, err, c.text)
			assert.Equal(t, c.applied, New().Classify(err).Applied)
			assert.Zero(t, s.count("DROP PIPELINE"))
		})
	}
}

// The deadline passes while the pipeline is at work: nobody knows, until Resolve has stopped it and counted.
func TestPipelineDeadline(t *testing.T) {
	s, p := newPipelineServer(t)
	s.slow, s.errors = 1<<30, []string{"cannot list the bucket"}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // ends in a pause, not in a query
	defer cancel()
	_, err := p.Commit(ctx, groupOne())
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "pipeline terapush_test_1 is running with 0 of 2 objects loaded: cannot list the bucket")
	assert.Equal(t, loader.ClassTimeout, New().Classify(err).Class)
	assert.Equal(t, loader.Unknown, New().Classify(err).Applied)
	assert.Equal(t, 1, s.count("STOP PIPELINE"), "nobody may ever resolve it")

	s.mu.Lock()
	assert.Equal(t, "Stopped", s.state)
	s.slow = 0
	s.mu.Unlock()
	for _, c := range []struct {
		rows int64
		want loader.Resolution
	}{{0, loader.Resolution{Applied: loader.No}}, {10, loader.Resolution{Applied: loader.No}}, {20, loader.Resolution{Applied: loader.Yes}}} {
		s.mu.Lock()
		s.rows, s.state = c.rows, running
		s.mu.Unlock()
		r, err := p.Resolve(t.Context(), groupOne().Ref)
		require.NoError(t, err)
		assert.Equal(t, c.want, r)
	}
	assert.Equal(t, 1, s.count("DROP PIPELINE"), "once it is in")
}

// A run that is stopped at once leaves no pipeline at work, wherever the statement under way was cut off.
func TestPipelineIsStoppedWithTheRun(t *testing.T) {
	for _, when := range []string{"START PIPELINE", "SELECT file_name", "SELECT state"} {
		s, p := newPipelineServer(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.slow = 1 << 30
		s.after = func(query string) {
			if strings.HasPrefix(query, when) && s.state == running {
				cancel()
			}
		}
		_, err := p.Commit(ctx, groupOne())
		require.Error(t, err)
		s.mu.Lock()
		assert.Equal(t, "Stopped", s.state, when)
		s.mu.Unlock()
	}
}

func TestForgetDropsPipelines(t *testing.T) {
	s, p := newPipelineServer(t)
	_, err := p.Forget(t.Context(), "test")
	require.NoError(t, err)
	assert.Equal(t, 2, s.count("DROP PIPELINE"), "not those of run test-1, nor of others")
	assert.Equal(t, 1, s.count("DROP PIPELINE IF EXISTS `terapush_test_12`"))
	assert.True(t, ofRun(pipelineName(batch.ID{Run: "20261120-1-abc", Number: 7}), "20261120-1-abc"))
	s.fail["DROP PIPELINE"] = 1142
	_, err = p.Forget(t.Context(), "test")
	assert.ErrorContains(t, err, "drop pipeline terapush_test_1")
}

func TestResolveWithoutPipeline(t *testing.T) {
	s, p := newPipelineServer(t)
	for rows, want := range map[int64]loader.Applied{0: loader.No, 20: loader.Yes, 7: loader.Unknown, 21: loader.Unknown} {
		s.rows = rows
		r, err := p.Resolve(t.Context(), groupOne().Ref)
		require.NoError(t, err, "what was found is an answer")
		assert.Equal(t, want, r.Applied)
		if want == loader.Unknown {
			assert.Equal(t, fmt.Sprintf("group test/1: %d rows of its 20 keys from 30 on are there", rows), r.Reason)
		}
	}
}

// At least once asks the table nothing before it loads.
func TestPipelineAtLeastOnce(t *testing.T) {
	s, p := newPipelineServer(t)
	prepared := preparation(documents(t, 10), contractOf(pipeline, rowsPerFile))
	prepared.Silent, prepared.Contract.Dedup = true, loader.DedupNone
	_, err := p.Prepare(t.Context(), prepared)
	require.NoError(t, err)
	s.rows = 5
	ack, err := p.Commit(t.Context(), groupOne())
	require.NoError(t, err)
	assert.Equal(t, loader.Ack{Rows: 20, Detail: []string{"the group's key range holds 25 rows"}}, ack)
}

func TestPipelineIsRefused(t *testing.T) {
	b := backendtest.StartStore(t, nil)
	for text, change := range map[string]func(*loader.Target){
		"method pipeline is SingleStore's; the target says mariadb://": func(t *loader.Target) { t.Scheme = "mariadb" },
		"method pipeline needs an object store: --via s3://bucket/":    func(t *loader.Target) { t.Via = nil },
		"method load-data sends rows to the server itself":             func(t *loader.Target) { t.Method = loadData },
		"a pipeline belongs to a database":                             func(t *loader.Target) { t.Database, t.Table = "", "d.t" },
		"a pipeline of database db loads no table of other":            func(t *loader.Target) { t.Table = "other.t" },
		`a pipeline would read prefix "a*" as a pattern`:               func(t *loader.Target) { t.Via.Database = "a*" },
		"an object store is named s3://bucket/prefix, with one bucket": func(t *loader.Target) { t.Via.Scheme = "gs" },
	} {
		target := loader.Target{Scheme: "singlestore", Hosts: []string{"h"}, Database: "db", Table: "t", Method: pipeline, Via: b.Via()}
		change(&target)
		_, err := New().Open(t.Context(), target, backendtest.Deps())
		assert.ErrorContains(t, err, text)
	}
}
