package e2e_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// methodFlags are the command line's for a load by one of the methods; two batches make a commit group.
func methodFlags(l load, method string, more ...string) []string {
	flags := l.flags("--method", method, "--verify", "full")
	if method == "stage-load" {
		flags = append(flags, "--commit-batches", "2")
	}
	return append(flags, more...)
}

// terapush is killed before the answer to a statement, which has run, or is still on its way: it comes when the resume
// is over, and finds its label taken. The resume looks for the query first, and ends it.
func TestDatabendKillBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	for method, third := range map[string]string{"streaming-load": ":3", "stage-load": ":group-3"} {
		for name, arrives := range map[string]bool{"the statement is on its way": false, "the statement has run": true} {
			t.Run(method+", "+name, func(t *testing.T) {
				t.Parallel()
				held, release := make(chan asked, 1), make(chan struct{})
				let := sync.OnceFunc(func() { close(release) })
				var first atomic.Bool
				hold := func(here bool) func(asked) {
					return func(a asked) {
						if here && strings.HasSuffix(a.label, third) && first.CompareAndSwap(false, true) {
							held <- a
							<-release
						}
					}
				}
				f := newFront(t, hold(!arrives), hold(arrives))
				t.Cleanup(let)
				l := peopleLoad(1000, 100)
				p := f.push(methodFlags(l, method, "--workers", "2")...).start(t)
				p.until(t, "the statement that is held", func() bool { return len(held) > 0 })
				p.kill(t)
				before := len(f.requests())
				is := reportOf(t, f.resume(t).run(t).ends(t, 0))
				assert.Equal(t, []any{true, l.rows, int64(0)}, []any{is.Verify.OK, is.Result.Rows, is.Result.Unknown})
				id := (<-held).queryID
				assert.True(t, slices.ContainsFunc(f.requests()[before:], func(a asked) bool {
					return strings.Contains(a.sql, "system.processes") && strings.Contains(a.sql, id)
				}), "the resume looks for the query")
				run := f.run(t)
				let()
				f.Close() // when all that was asked is done
				f.isExact(t, l)
				assert.NoError(t, f.query("LIST @~/terapush/"+run+"/", func(func(...any) error) error {
					return errors.New("a file is left in the user's stage")
				}))
			})
		}
	}
}

// A load of files is killed before the answer to a COPY, which has run, or is still on its way: it comes when the resume is
// over, and finds its file loaded.
func TestDatabendFilesKilledBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	for name, arrives := range map[string]bool{"the statement is on its way": false, "the statement has run": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			held, release := make(chan asked, 1), make(chan struct{})
			let := sync.OnceFunc(func() { close(release) })
			var first atomic.Bool
			hold := func(here bool) func(asked) {
				return func(a asked) {
					third := strings.Contains(a.sql, "COPY INTO") && strings.Contains(a.sql, "/000000000003.csv")
					if here && third && first.CompareAndSwap(false, true) {
						held <- a
						<-release
					}
				}
			}
			f := newFront(t, hold(!arrives), hold(arrives))
			t.Cleanup(let)
			want := records(1000)
			f.makeRecordTable(t)
			file := filepath.Join(t.TempDir(), "a.csv")
			require.NoError(t, os.WriteFile(file, []byte(csv(want)), 0o600))
			p := f.loads(f.target(), file, "--table", "orders", "--header", "--batch-bytes", "8KiB", "--workers", "2").start(t)
			p.until(t, "the statement that is held", func() bool { return len(held) > 0 })
			p.kill(t)
			is := reportOf(t, f.loads(f.target(), "--resume", "last").run(t).ends(t, 0))
			assert.Equal(t, []any{true, int64(1000), int64(0)}, []any{is.Verify.OK, is.Result.Rows, is.Result.Unknown})
			let()
			f.Close() // when all that was asked is done
			f.holdsRecords(t, want)
		})
	}
}
