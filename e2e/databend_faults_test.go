package e2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	standin "github.com/terapush/terapush/internal/standin/databend"
)

// methodFlags are the command line's for a load by one of the methods; two batches make a commit group.
func methodFlags(l load, method string, more ...string) []string {
	flags := l.flags("--method", method, "--verify", "full")
	if method == "stage-load" {
		flags = append(flags, "--commit-batches", "2")
	}
	return append(flags, more...)
}

// The statement runs, and terapush is killed before the answer: the resume ends the query, or finds that its rows are in. The
// inserts have labels like the streaming load.
func TestDatabendKillBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	for method, third := range map[string]string{"streaming-load": ":3", "stage-load": ":group-3"} {
		for name, goesOn := range map[string]bool{"the query still runs": false, "the query went on": true} {
			t.Run(method+", "+name, func(t *testing.T) {
				t.Parallel()
				hold := make(chan struct{})
				isThird := func(r standin.Request) bool { return strings.HasSuffix(r.Label, third) }
				s := newScripted(t, standin.Options{Presign: true, Script: func(r standin.Request) (f standin.Fault) {
					if isThird(r) && r.Attempt == 1 {
						f.Hold = hold
					}
					return f
				}})
				l := peopleLoad(1000, 100)
				p := s.push(methodFlags(l, method, "--workers", "2")...).start(t)
				p.until(t, "the statement that is held", func() bool {
					return slices.ContainsFunc(s.fake.Requests(), func(r standin.Request) bool {
						return isThird(r) && slices.Contains(s.fake.Running(), r.QueryID)
					})
				})
				p.kill(t)
				if goesOn {
					close(hold)
					require.Eventually(t, func() bool { return len(s.fake.Running()) == 0 }, patience, 5*time.Millisecond)
				}
				is := reportOf(t, s.resume(t).run(t).ends(t, 0))
				assert.Equal(t, []any{true, l.rows, int64(0)}, []any{is.Verify.OK, is.Result.Rows, is.Result.Unknown})
				if !goesOn {
					close(hold) // too late: it was ended
				}
				l.isAll(t, s.fake.Rows(l.table))
				assert.Empty(t, s.fake.Files(), "files in the stage")
			})
		}
	}
}
