package mysql

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
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
	target loader.Target

	mu      sync.Mutex
	state   string            // of the pipeline; "": there is none
	files   map[string]string // that it knows, with their states
	sizes   map[string]int    // of files, when it found them
	loaded  map[int64]int64   // rows in the table, by batch
	errors  []string          // its newest
	fail    map[string]uint16 // statements, by their first words, that are answered with an error
	broken  map[string]bool   // files that cannot be loaded
	slow    int               // looks at the files until the next ones are loaded
	foreign int64             // rows of others in every range
	after   func(statement string)
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
	var first, last int64
	switch {
	case strings.HasPrefix(query, "SELECT state FROM"):
		if s.state == "" {
			return nil
		}
		return rowsOf([]string{s.state})
	case strings.HasPrefix(query, "SELECT file_name FROM"):
		return &fakeAnswer{rows: s.list(func(name string) bool { return s.files[name] == fileSkipped })}
	case strings.HasPrefix(query, "SELECT file_name"):
		s.work()
		_, names, _ := strings.Cut(query, " BETWEEN '")
		from, to, _ := strings.Cut(strings.TrimSuffix(names, "'"), "' AND '")
		return &fakeAnswer{rows: s.list(func(name string) bool { return from <= path.Base(name) && path.Base(name) <= to })}
	case strings.HasPrefix(query, "SELECT error_message"):
		rows := [][]string{}
		for _, text := range s.errors {
			rows = append(rows, []string{text})
		}
		return &fakeAnswer{rows: rows}
	case strings.HasPrefix(query, "CREATE PIPELINE"):
		s.state, s.files, s.sizes = "Stopped", make(map[string]string), make(map[string]int)
	case strings.HasPrefix(query, "START PIPELINE"):
		s.state = running
	case strings.HasPrefix(query, "STOP PIPELINE") && s.state == running:
		s.state = "Stopped"
	case strings.Contains(query, "DROP FILE"):
		_, name, _ := strings.Cut(query, "DROP FILE '")
		delete(s.files, strings.TrimSuffix(name, "'"))
	case strings.HasPrefix(query, "DROP PIPELINE"):
		s.state, s.files = "", nil
	case strings.HasPrefix(query, "SELECT COUNT(*) FROM `db`.`documents`"):
		_, keys, _ := strings.Cut(query, " BETWEEN ")
		_, _ = fmt.Sscanf(keys, "%d AND %d", &first, &last)
		n := s.foreign
		for batch, rows := range s.loaded {
			if first <= batch*rowsPerFile && batch*rowsPerFile <= last {
				n += rows
			}
		}
		return rowsOf([]string{fmt.Sprint(n)})
	}
	return nil
}

func (s *pipelineServer) list(shown func(name string) bool) [][]string {
	rows := [][]string{}
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		if shown(name) {
			rows = append(rows, []string{name, s.files[name], fmt.Sprint(s.sizes[name])})
		}
	}
	return rows
}

// work finds objects under names that it does not know, and loads what can be loaded.
func (s *pipelineServer) work() {
	if s.state != running {
		return
	}
	for _, key := range s.bucket.Keys() {
		if strings.HasPrefix(key, "in/test/") && s.files[key] == "" {
			content, _ := s.bucket.Read(key)
			s.files[key], s.sizes[key] = "Unloaded", len(content)
		}
	}
	if s.slow > 0 {
		s.slow--
		return
	}
	for name, state := range s.files {
		var batch int64
		switch {
		case state != "Unloaded":
		case s.broken[name]:
			s.files[name], s.state = fileSkipped, "Error"
		default:
			s.files[name] = fileLoaded
			_, _ = fmt.Sscanf(path.Base(name), "%d.tsv", &batch)
			s.loaded[batch] += rowsPerFile
		}
	}
}

// locked changes or reads the server's state.
func (s *pipelineServer) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// newPipelineServer is a server without a pipeline, and a loader that has sent nothing.
func newPipelineServer(t *testing.T) (*pipelineServer, *staged) {
	s := &pipelineServer{
		bucket: backendtest.StoreAndKeys(t, nil), fail: make(map[string]uint16), broken: make(map[string]bool), loaded: make(map[int64]int64),
	}
	s.fakeServer = &fakeServer{vars: map[string]string{"version": "5.7.32", "memsql_version": "8.7.1"}, answer: s.answer}
	s.target = s.start(t, "singlestore")
	s.target.Method, s.target.Via = methodPipeline, s.bucket.Via()
	p := s.process(t, loader.DedupKey)
	s.fakeServer.mu.Lock()
	s.said = nil
	s.fakeServer.mu.Unlock()
	return s, p
}

// process is another process of the run.
func (s *pipelineServer) process(t *testing.T, dedup loader.Dedup) *staged {
	p := backendtest.Open(t, New(), s.target, backendtest.Deps()).(*staged)
	want := silent(t, contractOf(methodPipeline, rowsPerFile))
	want.Contract.Dedup = dedup
	_, err := p.Prepare(t.Context(), want)
	require.NoError(t, err)
	return p
}

// put stores the run's five batches: group 0 is 0, 1, 2 and group 1 is 3, 4.
func put(t *testing.T, p *staged) {
	session, err := p.Session(t.Context(), contractOf(methodPipeline, rowsPerFile))
	require.NoError(t, err)
	for n := range int64(5) {
		ack, err := session.Load(t.Context(), batchOf(t, documents(t, 10), batch.TSV, id(n), n*rowsPerFile, rowsPerFile))
		require.NoError(t, err)
		assert.Equal(t, loader.Ack{Stored: true, Rows: rowsPerFile}, ack)
	}
}

// stored is newPipelineServer with the batches in the store.
func stored(t *testing.T) (*pipelineServer, *staged) {
	s, p := newPipelineServer(t)
	put(t, p)
	return s, p
}

func groupZero() loader.Group { return group(0, 0, 3) }

func groupOne() loader.Group { return group(1, 3, 2) }

// group is a group of batches first … first+n−1.
func group(number, first, n int64) loader.Group {
	g := loader.Group{Ref: loader.Ref{ID: id(number), First: first * rowsPerFile, Rows: n * rowsPerFile}}
	for b := first; b < first+n; b++ {
		g.Members = append(g.Members, loader.Ref{ID: id(b), First: b * rowsPerFile, Rows: rowsPerFile})
	}
	return g
}

// commits commits a group, which goes in or is in.
func (p *staged) commits(t *testing.T, g loader.Group) {
	t.Helper()
	ack, err := p.Commit(t.Context(), g)
	require.NoError(t, err)
	assert.Equal(t, loader.Ack{Rows: g.Rows}, ack)
}

// One pipeline loads both groups. Before it is dropped the folder is empty.
func TestPipeline(t *testing.T) {
	s, p := stored(t)
	assert.Equal(t, []string{
		"in/test/000000000000.tsv", "in/test/000000000001.tsv", "in/test/000000000002.tsv",
		"in/test/000000000003.tsv", "in/test/000000000004.tsv",
	}, s.bucket.Keys())
	s.slow = 2
	for _, g := range []loader.Group{groupOne(), groupZero()} {
		for range 2 { // the second finds it loaded
			p.commits(t, g)
		}
	}
	require.NoError(t, p.Discard(t.Context(), groupOne()))
	var found []int64
	require.NoError(t, p.Objects(t.Context(), "test", func(_ string, number, bytes int64) error {
		found = append(found, number)
		assert.Positive(t, bytes)
		return nil
	}))
	assert.Equal(t, []int64{0, 1, 2}, found)
	require.NoError(t, p.Discard(t.Context(), groupZero()))
	require.NoError(t, p.Close())
	all := strings.Replace(lines(s.statements()), s.bucket.URL, "http://ENDPOINT", 1)
	golden.Equal(t, "session-singlestore-pipeline.sql", strings.NewReplacer(backendtest.S3Secret, "SECRET", backendtest.S3Token, "TOKEN").Replace(all))
	assert.Equal(t, absent, s.state)
}

// A process that is killed leaves the pipeline running. The next one takes it over, its list of files and its own
// credentials; a batch that is put again under its name is not loaded again.
func TestPipelineOutlivesTheProcess(t *testing.T) {
	s, _ := stored(t)
	s.locked(s.work)
	t.Setenv("AWS_SESSION_TOKEN", "renewed")
	p := s.process(t, loader.DedupKey)
	backendtest.Resolves(t, p, groupZero().Ref, loader.Yes)
	require.NoError(t, p.Discard(t.Context(), groupZero()))
	put(t, p)
	p.commits(t, groupOne())
	assert.Equal(t, map[int64]int64{0: 10, 1: 10, 2: 10, 3: 10, 4: 10}, s.loaded)
	assert.Equal(t, 1, s.count("CREATE PIPELINE"))
	assert.Equal(t, 1, s.count("ALTER PIPELINE `terapush_test` SET CREDENTIALS"))
	require.NoError(t, p.Close())
	assert.Equal(t, "Stopped", s.state, "its list of files is needed as long as there are objects")
}

// Credentials that expire are replaced while the pipeline lives.
func TestPipelineGetsNewCredentials(t *testing.T) {
	s, p := stored(t)
	p.started.access.Token = "expired"
	for range 2 {
		p.commits(t, groupOne())
	}
	assert.Equal(t, 1, s.count("ALTER PIPELINE `terapush_test` SET CREDENTIALS"))
}

// Without its pipeline it is not known which objects are in the table, and another one would load all of them.
func TestPipelineIsGone(t *testing.T) {
	s, _ := stored(t)
	s.locked(s.work)
	s.locked(func() { s.state, s.files = absent, nil })
	p := s.process(t, loader.DedupKey)
	_, err := p.Session(t.Context(), contractOf(methodPipeline, rowsPerFile))
	const gone = "pipeline terapush_test is gone, and only it knew which of the 5 objects in in/test/ are loaded"
	require.ErrorContains(t, err, gone)
	_, err = p.Commit(t.Context(), groupOne())
	require.ErrorContains(t, err, gone)
	assert.Equal(t, loader.Unknown, New().Classify(err).Applied)
	assert.False(t, New().Classify(err).Retry)
	require.NoError(t, p.Close())
	assert.Zero(t, s.count("STOP PIPELINE")+s.count("DROP PIPELINE"), "it is not this process's")

	require.NoError(t, p.Discard(t.Context(), groupOne()))
	require.NoError(t, p.Discard(t.Context(), groupZero()))
	put(t, s.process(t, loader.DedupKey))
	assert.Equal(t, 2, s.count("CREATE PIPELINE"), "over an empty folder, as after a CREATE that was denied")
}

// A file that cannot be loaded stops the pipeline. The next attempt goes on with it, and loads nothing twice.
func TestPipelineGoesOn(t *testing.T) {
	s, p := stored(t)
	const bad = "in/test/000000000004.tsv"
	s.broken[bad] = true
	s.errors = []string{"Leaf error: 1366 for key " + backendtest.S3Secret[3:]}
	_, err := p.Commit(t.Context(), groupOne())
	assert.EqualError(t, err, "load by pipeline: pipeline terapush_test is running with 1 of 2 objects loaded: Leaf error: 1366 for key ***")
	assert.Equal(t, loader.Verdict{Applied: loader.Unknown, Class: loader.ClassOther, Retry: true}, New().Classify(err))
	backendtest.Resolves(t, p, groupOne().Ref, loader.No)

	s.broken = nil
	p.commits(t, groupOne())
	assert.EqualValues(t, 10, s.loaded[3])
	assert.Equal(t, 1, s.count("ALTER PIPELINE `terapush_test` DROP FILE '"+bad+"'"))
	assert.Equal(t, 1, s.count("CREATE PIPELINE"))
	assert.Zero(t, s.count("DROP PIPELINE"))
}

// The server says its statement back.
func TestPipelineErrorsKeepSecrets(t *testing.T) {
	s, p := newPipelineServer(t)
	s.fail["CREATE PIPELINE"] = 1064
	_, err := p.Session(t.Context(), contractOf(methodPipeline, rowsPerFile))
	require.ErrorContains(t, err, "create the pipeline: Error 1064 (HY000): near 'CREATE PIPELINE")
	shown := fmt.Sprintf("%v %+v %#v", err, err, err)
	assert.NotContains(t, shown, backendtest.S3Secret)
	assert.NotContains(t, shown, backendtest.S3Token)
	assert.Equal(t, loader.No, New().Classify(err).Applied)
	assert.Zero(t, s.count("START PIPELINE"))
}

func TestPipelineFails(t *testing.T) {
	const name = "in/test/000000000003.tsv"
	for what, c := range map[string]struct {
		stage             func(s *pipelineServer)
		applied, resolved loader.Applied
		text              string
	}{
		"somebody stops it": {func(s *pipelineServer) {
			s.slow = 1000
			s.after = func(q string) {
				if strings.HasPrefix(q, "SELECT file_name") {
					s.state = "Stopped"
				}
			}
		}, loader.No, loader.No, "pipeline terapush_test is stopped with 0 of 2 objects loaded"},
		"start refused": {func(s *pipelineServer) {
			s.state, s.fail["START PIPELINE"] = "Stopped", 1142
		}, loader.Unknown, loader.No, "start the pipeline: Error 1142"},
		"foreign object": {func(s *pipelineServer) {
			_, err := s.bucket.Backend.PutObject("bucket", "in/test/x", nil, strings.NewReader("1"), 1, nil)
			require.NoError(t, err)
		}, loader.Unknown, loader.Unknown, "in/test/x is no object of the run"},
		"too many rows": {func(s *pipelineServer) { s.foreign = 1 },
			loader.Unknown, loader.Unknown, "load by pipeline: the server took 21 of 20 rows (every object was loaded"},
		// The PUT that repeats it comes too late.
		"what a broken PUT had left": {func(s *pipelineServer) {
			s.locked(s.work)
			s.sizes[name]--
		}, loader.Unknown, loader.Unknown, name + " had "},
	} {
		t.Run(what, func(t *testing.T) {
			s, p := stored(t)
			c.stage(s)
			_, err := p.Commit(t.Context(), groupOne())
			require.Contains(t, loader.Explain(err), c.text)
			assert.Equal(t, c.applied, New().Classify(err).Applied)
			backendtest.Resolves(t, p, groupOne().Ref, c.resolved)
			assert.Zero(t, s.count("DROP PIPELINE"))
		})
	}
}

// The deadline passes while the pipeline is at work: nobody knows, until Resolve has stopped it and looked. A worker that
// connects again does not start it.
func TestPipelineDeadline(t *testing.T) {
	s, p := stored(t)
	s.slow, s.errors = 1<<30, []string{"cannot list the bucket"}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := p.Commit(ctx, groupOne())
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "pipeline terapush_test is running with 0 of 2 objects loaded: cannot list the bucket")
	assert.Equal(t, loader.ClassTimeout, New().Classify(err).Class)
	assert.Equal(t, loader.Unknown, New().Classify(err).Applied)

	backendtest.Resolves(t, p, groupOne().Ref, loader.No)
	_, err = p.Session(t.Context(), contractOf(methodPipeline, rowsPerFile))
	require.NoError(t, err)
	s.locked(func() { assert.Equal(t, "Stopped", s.state) })
}

// A run that is stopped at once leaves no pipeline at work, wherever the statement under way was cut off.
func TestPipelineIsStoppedWithTheRun(t *testing.T) {
	for _, when := range []string{"START PIPELINE", "SELECT file_name", "SELECT state"} {
		s, p := stored(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.locked(func() {
			s.slow, s.state = 1<<30, "Error"
			s.after = func(query string) {
				if strings.HasPrefix(query, when) && s.state == running {
					cancel()
				}
			}
		})
		_, err := p.Commit(ctx, groupOne())
		require.Error(t, err)
		require.NoError(t, p.Close())
		s.locked(func() { assert.Equal(t, "Stopped", s.state, when) })
	}
}

func TestForgetDropsThePipeline(t *testing.T) {
	s, p := stored(t)
	_, _, err := p.Forget(t.Context(), "test")
	require.NoError(t, err)
	require.NoError(t, p.Close())
	assert.Equal(t, 1, s.count("DROP PIPELINE IF EXISTS `terapush_test`"))
	assert.Zero(t, s.count("STOP PIPELINE"))
	s.fail["DROP PIPELINE"] = 1142
	_, _, err = s.process(t, loader.DedupKey).Forget(t.Context(), "test")
	assert.ErrorContains(t, err, "drop pipeline terapush_test")
}

func TestResolveWithoutPipeline(t *testing.T) {
	s, p := newPipelineServer(t)
	for rows, want := range map[int64]loader.Applied{0: loader.No, 20: loader.Yes, 7: loader.Unknown, 21: loader.Unknown} {
		s.foreign = rows
		r, err := p.Resolve(t.Context(), groupOne().Ref)
		require.NoError(t, err, "what was found is an answer")
		assert.Equal(t, want, r.Applied)
		if want == loader.Unknown {
			assert.Equal(t, fmt.Sprintf("group test/1: %d rows of its 20 keys from 30 on are there", rows), r.Reason)
		}
	}
}

// At least once, rows from before do not matter.
func TestPipelineAtLeastOnce(t *testing.T) {
	s, _ := newPipelineServer(t)
	p := s.process(t, loader.DedupNone)
	put(t, p)
	s.foreign = 5
	ack, err := p.Commit(t.Context(), groupOne())
	require.NoError(t, err)
	assert.Equal(t, loader.Ack{Rows: 20, Detail: []string{"the group's key range holds 25 rows"}}, ack)
}

func TestPipelineIsRefused(t *testing.T) {
	b := backendtest.StartStore(t, nil)
	for text, change := range map[string]func(*loader.Target){
		"method pipeline is SingleStore's; the target says mariadb://":  func(t *loader.Target) { t.Scheme = "mariadb" },
		"method pipeline needs an object store: --staging s3://bucket/": func(t *loader.Target) { t.Via = nil },
		"a pipeline belongs to a database":                              func(t *loader.Target) { t.Database, t.Table = "", "d.t" },
		"a pipeline of database db loads no table of other":             func(t *loader.Target) { t.Table = "other.t" },
		`a pipeline would read prefix "a*" as a pattern`:                func(t *loader.Target) { t.Via.Database = "a*" },
		"an object store is named s3://bucket/prefix, with one bucket":  func(t *loader.Target) { t.Via.Scheme = "gs" },
		"--batch-interval 2147483648: want a number of milliseconds": func(t *loader.Target) {
			t.Options = map[string]string{"batch-interval": "2147483648"}
		},
		`--batch-interval: "-1" is not a valid int`: func(t *loader.Target) {
			t.Options = map[string]string{"batch-interval": "-1"}
		},
	} {
		target := loader.Target{Scheme: "singlestore", Hosts: []string{"h"}, Database: "db", Table: "t", Method: methodPipeline, Via: b.Via()}
		change(&target)
		_, err := New().Open(t.Context(), target, backendtest.Deps())
		assert.ErrorContains(t, err, text)
	}
}

// The shards of a run would stop its pipeline under each other.
func TestPipelineOfShardsIsRefused(t *testing.T) {
	_, p := newPipelineServer(t)
	want := silent(t, contractOf(methodPipeline, rowsPerFile))
	want.Shard = "1/3"
	_, err := p.Prepare(t.Context(), want)
	require.Contains(t, loader.Explain(err), "leave --shard out, or choose load-data")
}
