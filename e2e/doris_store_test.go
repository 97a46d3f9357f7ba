package e2e_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/fake/doris"
	"github.com/terapush/terapush/internal/report"
)

// reader reads the object store as a statement tells a backend to: by its endpoint, region and keys.
type reader struct{}

func (reader) client(at doris.Location) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: &at.Endpoint, Region: at.Region, UsePathStyle: at.PathStyle,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: at.AccessKey, SecretAccessKey: at.SecretKey, SessionToken: at.SessionKey}, nil
		}),
	})
}

func (r reader) List(ctx context.Context, at doris.Location, prefix string) (keys []string, err error) {
	pages := s3.NewListObjectsV2Paginator(r.client(at), &s3.ListObjectsV2Input{Bucket: &at.Bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, o := range page.Contents {
			keys = append(keys, *o.Key)
		}
	}
	return keys, nil
}

func (r reader) Open(ctx context.Context, at doris.Location, key string) (io.ReadCloser, error) {
	got, err := r.client(at).GetObject(ctx, &s3.GetObjectInput{Bucket: &at.Bucket, Key: &key})
	if err != nil {
		return nil, err
	}
	return got.Body, nil
}

// isCommit reports whether a request loads the commit group of that number; −1: any.
func isCommit(r doris.Request, group int64) bool {
	return r.Kind == doris.Statement && strings.Contains(r.SQL, "FROM S3(") &&
		(group < 0 || strings.HasSuffix(r.Label, fmt.Sprintf("_g%d", group)))
}

// staged is a load by way of the objects in the folder.
func (f *folder) staged(flags ...string) []string {
	return append(flags, "--method", "s3-load", "--via", f.target())
}

// Objects on a real store, loaded group by group, and removed.
func TestDorisThroughAStore(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"doriscsv", "parquet"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			f, s := newFolder(t), newCluster(t, doris.Options{Objects: reader{}})
			f.put(t, f.prefix+"/foreign.csv", "somebody's")
			l := peopleLoad(scaled[int64](12_000, 500_000), scaled[int64](500, 1000))
			r := s.push(f.staged(l.peopleFlags("--format", format, "--commit-batches", "4", "--workers", "4", "--verify", "full")...)...).run(t).ends(t, 0)
			hasAllFields(t, r.stdout)
			assert.Empty(t, r.stderr)
			is := reportOf(t, r)
			groups := (l.batches() + 3) / 4
			assert.Equal(t, []any{"s3-load", "exactly-once", int64(4), l.rows, l.batches()},
				[]any{is.Plan.Method, is.Plan.Delivery, is.Plan.GroupBatches, is.Result.Rows, is.Result.Batches})
			assert.Contains(t, is.Target.Via, f.prefix)
			assert.Equal(t, is.Result.EncodedBytes, is.Result.StoredBytes)
			assert.Positive(t, is.Phases.Stage)
			assert.Positive(t, is.Rates.Commit)
			s.isExact(t, l, r)
			assert.Equal(t, []object{{f.prefix + "/foreign.csv", 10}}, f.list(t), "objects are removed once they are loaded, and no others")
			assert.Len(t, s.commits(), int(groups))
			keepsSecrets(t, s.database, storeSecrets(t), r.all())
		})
	}
}

// commits are the statements that load groups.
func (c *cluster) commits() (all []doris.Request) {
	for _, r := range c.Requests() {
		if isCommit(r, -1) {
			all = append(all, r)
		}
	}
	return all
}

// Commits whose answer is lost, that never happened, or that the server refuses for now; and uploads whose answer is lost.
func TestDorisStoreLosses(t *testing.T) {
	t.Parallel()
	f, seen := newFolder(t), newPuts()
	var commits, lost atomic.Int64
	s := newCluster(t, doris.Options{Objects: reader{}, Script: func(r doris.Request) doris.Fault {
		if !isCommit(r, -1) {
			return doris.Fault{}
		}
		n := commits.Add(1)
		if n%2 == 1 {
			lost.Add(1)
			return []doris.Fault{{CutAnswer: true}, {CutBody: 1}, {Fail: doris.TooManyVersions}}[n/2%3]
		}
		return doris.Fault{}
	}})
	front := seen.front(t, f)
	l := peopleLoad(8000, 50)
	via := f.target(behind(front))
	r := s.push(l.peopleFlags("--method", "s3-load", "--via", via, "--commit-batches", "10", "--workers", "4", "--retries", "20", "--verify", "full")...).run(t).ends(t, 0)
	is := reportOf(t, r)
	assert.GreaterOrEqual(t, lost.Load(), int64(8))
	assert.Positive(t, is.Result.Duplicates)
	s.isExact(t, l, r)
	assert.Empty(t, f.list(t))
	_, acked := seen.soFar()
	for key, n := range acked {
		assert.Equal(t, 1, n, "%s was stored, and sent again", key)
	}
	keepsSecrets(t, s.database, storeSecrets(t), r.all())
}

// kill -9 between the last PUT and the commit, whether or not the statement still takes effect: what is stored is not
// uploaded again, every row is there once, and no object is left.
func TestDorisKillBeforeTheCommit(t *testing.T) {
	t.Parallel()
	for name, takesEffect := range map[string]bool{"never happens": false, "happens late": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, seen := newFolder(t), newPuts()
			held := make(chan struct{})
			var killed atomic.Bool
			s := newCluster(t, doris.Options{Objects: reader{}, Script: func(r doris.Request) doris.Fault {
				switch {
				case !isCommit(r, -1) || killed.Load():
					return doris.Fault{}
				case takesEffect:
					return doris.Fault{Hold: held}
				}
				return doris.Fault{Hold: held, CutBody: 1}
			}})
			via := f.target(behind(seen.front(t, f)))
			l := peopleLoad(4000, 100)
			p := s.push(l.peopleFlags("--method", "s3-load", "--via", via, "--commit-batches", "5", "--workers", "4")...).start(t)
			// Uploads run ahead of the commits up to a bound, and then wait for them. The journal is at most 100 ms behind.
			last, since := -1, time.Now()
			p.until(t, "uploads that wait for commits", func() bool {
				if n := seen.done(); n != last {
					last, since = n, time.Now()
				}
				return len(s.commits()) > 0 && time.Since(since) > 500*time.Millisecond
			})
			p.kill(t)
			killed.Store(true)
			assert.Zero(t, s.Rows("d.people"))
			_, before := seen.soFar()
			assert.Len(t, f.list(t), len(before))
			close(held)
			if takesEffect {
				require.Eventually(t, func() bool { return s.Rows("d.people") > 0 }, time.Minute, 5*time.Millisecond)
			}

			r := s.resume(t, "--verify", "full").run(t).ends(t, 0)
			is := reportOf(t, r)
			assert.True(t, is.Verify.OK)
			assert.Equal(t, l.rows, is.Result.Rows)
			sent, _ := seen.soFar()
			assert.Len(t, sent, int(l.batches()))
			for key, n := range sent {
				assert.Equal(t, 1, n, "%s was stored, and sent again", key)
			}
			s.isExact(t, l, r)
			assert.Empty(t, f.list(t))
			keepsSecrets(t, s.database, storeSecrets(t), r.all())
		})
	}
}

// kill -9 at any moment of uploads and commits.
func TestDorisStoreKillAndResume(t *testing.T) {
	t.Parallel()
	f, seen := newFolder(t), newPuts()
	s := newCluster(t, doris.Options{Objects: reader{}})
	via := f.target(behind(seen.front(t, f)))
	l := peopleLoad(20_000, 100)
	flags := l.peopleFlags("--method", "s3-load", "--via", via, "--commit-batches", "5", "--workers", "4", "--max-rate", "8MiB/s")
	for part := 1; part <= 4; part++ {
		next := s.push(flags...)
		if part > 1 {
			next = s.resume(t)
		}
		p := next.start(t)
		p.until(t, "objects", func() bool { return seen.done() >= part*int(l.batches())/5 })
		p.kill(t)
	}
	r := s.resume(t, "--max-rate", "1GiB/s", "--verify", "full").run(t).ends(t, 0)
	assert.Equal(t, l.rows, reportOf(t, r).Result.Rows)
	s.isExact(t, l, r)
	assert.Empty(t, f.list(t))
}

// An object that goes missing before its group is loaded ends the run, named; nothing of the group is in.
func TestDorisStoreLosesAnObject(t *testing.T) {
	t.Parallel()
	f, held := newFolder(t), make(chan struct{})
	s := newCluster(t, doris.Options{Objects: reader{}, Script: func(r doris.Request) doris.Fault {
		if isCommit(r, 0) && r.Attempt == 1 {
			return doris.Fault{Hold: held, CutBody: 1}
		}
		return doris.Fault{}
	}})
	l := peopleLoad(400, 100)
	p := s.push(f.staged(l.peopleFlags("--commit-batches", "4", "--workers", "1", "--retries", "2")...)...).start(t)
	p.until(t, "the commit", func() bool { return len(s.commits()) == 1 })
	f.remove(t, f.object(s.run(t), 2, "doriscsv"))
	close(held)
	r := p.wait(t).ends(t, 1).says(t, "000000000002.doriscsv", "is missing or incomplete", "to go on: terapush")
	assert.Equal(t, report.Failed, reportOf(t, r).Result.Outcome)
	assert.Zero(t, s.Rows("d.people"))

	again := s.resume(t, "--verify", "full").run(t).ends(t, 0)
	s.isExact(t, l, again)
	assert.Empty(t, f.list(t))
}
