package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/standin/doris"
)

// Four processes without a common disk push one run. They are killed at random and started again with an empty disk,
// one while its old process lives, and the table is exact.
func TestShards(t *testing.T) {
	t.Parallel()
	onServers(t, []kind{postgres, mySQL}, func(t *testing.T, d *database) { // TestKubernetes has MariaDB
		const shards = 4
		l := small(8000)
		flags, reports := l.flags("--run-id", "nightly", "--workers", "2"), filepath.Join(t.TempDir(), "new")
		shard := func(t *testing.T, i int, more ...string) invocation {
			more = append(more, "--shard", fmt.Sprintf("%d/%d", i, shards), "--state-dir", t.TempDir(), "--report-to", reports)
			return d.pushTo(d.target(), append(flags, more...)...)
		}
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		t.Run("all", func(t *testing.T) {
			for i := range shards {
				t.Run(fmt.Sprint(i), func(t *testing.T) {
					t.Parallel()
					random := rand.New(rand.NewPCG(seed, uint64(i)))
					for range 2 {
						p := shard(t, i, "--max-rate", "1MiB/s").start(t)
						at := random.Int64N(l.batches())
						if p.sees(func() bool { return d.claims() >= at }) {
							_ = p.Process.Kill()
						}
						<-p.done
					}
					slow := shard(t, i, "--max-rate", "400KiB/s").start(t)
					late := shard(t, i).start(t)
					codes := []int{slow.wait(t).code, late.wait(t).code}
					assert.Contains(t, codes, 0, "whoever came last has the shard")
					assert.Subset(t, []int{0, 9}, codes)
				})
			}
		})
		d.isExact(t, l)
		is := reportOf(t, invocation{args: append([]string{"verify", d.target(), "--json", "--state-dir", t.TempDir()}, flags...)}.run(t).ends(t, 0))
		assert.Equal(t, []any{"count", true, l.rows}, []any{is.Verify.Mode, is.Verify.OK, is.Verify.FoundRows})
		require.Equal(t, l.batches(), d.claims())
		whole := reportOf(t, invocation{args: []string{"report", "merge", "--json", reports}}.run(t).ends(t, 0))
		assert.Equal(t, []any{report.OK, l.rows, l.batches(), shards}, []any{whole.Result.Outcome, whole.Result.Rows, whole.Result.Batches, len(whole.Merged.Shards)})
		invocation{args: []string{"forget", d.target(), "--run", "nightly", "--state-dir", t.TempDir(), "--table", l.table}}.run(t).ends(t, 0)
		assert.Zero(t, d.claims())
	})
}

// Where no claims say which batches are in, shards with empty disks find their journals in an object store: into Doris by
// labels and by groups of objects, and into a bucket.
func TestShardsWithoutClaims(t *testing.T) {
	t.Parallel()
	const shards = 2
	l := peopleLoad(1_200, 50)
	for name, more := range map[string][]string{
		"labels": {"--method", "stream-load"}, "groups": {"--method", "s3-load", "--commit-batches", "4"}, "objects": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state, store := newFolder(t), newFolder(t)
			s := newCluster(t, doris.Options{Backends: 2})
			d := s.database
			switch name {
			case "objects":
				d = store.database
			case "groups":
				more = append(more, "--staging", store.target())
			}
			flags := l.flags(append(more, "--run-id", "nightly", "--workers", "2", "--state-dir", state.target())...)
			command := func(t *testing.T, command string, more ...string) invocation {
				i := knowing(invocation{args: append([]string{command, d.target(), "--progress", "none"}, append(flags, more...)...)})
				i.env = append(i.env, "XDG_STATE_HOME="+t.TempDir())
				return i
			}
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			var killed atomic.Int64
			t.Run("all", func(t *testing.T) {
				for i := range shards {
					t.Run(fmt.Sprint(i), func(t *testing.T) {
						t.Parallel()
						random := rand.New(rand.NewPCG(seed, uint64(i)))
						shard := []string{"--shard", fmt.Sprintf("%d/%d", i, shards), "--json", "--report-to", state.target()}
						folder := fmt.Sprintf("/shard-%d-of-%d/", i, shards)
						pieces := func() (n int) {
							for _, o := range state.list(t) {
								if strings.Contains(o.key, folder) {
									n++
								}
							}
							return n
						}
						for range 2 {
							p := command(t, "push", append(shard, "--max-rate", "40KiB/s")...).start(t)
							at := pieces() + 3 + random.IntN(6)
							if p.sees(func() bool { return pieces() >= at }) {
								killed.Add(1)
								_ = p.Process.Kill()
							}
							<-p.done
						}
						is := reportOf(t, command(t, "push", shard...).run(t).ends(t, 0))
						assert.Equal(t, []any{"ack", true}, []any{is.Verify.Mode, is.Verify.OK})
					})
				}
			})
			require.GreaterOrEqual(t, killed.Load(), int64(shards))
			r := command(t, "verify", "--json", "--verify", "full").run(t).ends(t, 0)
			is := reportOf(t, r)
			assert.Equal(t, []any{true, l.rows}, []any{is.Verify.OK, is.Verify.FoundRows})
			if name == "objects" {
				assert.Len(t, store.list(t), int(l.batches()))
			} else {
				l.isAll(t, s.Table(l.table).Rows)
				assert.Empty(t, store.list(t))
			}
			for _, o := range state.list(t) {
				hides(t, dorisPassword, string(state.get(t, o.key)))
			}
			knowing(invocation{args: []string{
				"forget", d.target(), "--run", "nightly", "--state-dir", state.target(), "--table", l.table,
			}}).run(t).ends(t, 0)
			whole := reportOf(t, run(t, "report", "merge", "--json", state.target()).ends(t, 0))
			assert.Equal(t, []any{report.OK, l.rows, shards}, []any{whole.Result.Outcome, whole.Result.Rows, len(whole.Merged.Shards)})
			assert.Len(t, state.list(t), shards, "the reports are left")
		})
	}
}
