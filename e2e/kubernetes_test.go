//go:build linux

package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/report"
)

// The manifests of deploy/kubernetes, by the commands of docs/MANY.md: an API server accepts them, its controller of
// Jobs makes the pods, makes them again when they fail and judges their exit codes.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	c := startControlPlane(t)
	for name, k := range map[string]struct {
		on   []kind // TestShards kills on others
		test func(*testing.T, *controlPlane, *database)
	}{
		"killed": {[]kind{mariaDB}, podsAreKilled}, "refused": {backEnds(), podIsRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onServers(t, k.on, func(t *testing.T, d *database) { k.test(t, c, d) })
		})
	}
}

// Pods are killed at random, each index up to twice. One is evicted. One is lost with its node, while its process works
// on beside the one that replaces it.
func podsAreKilled(t *testing.T, c *controlPlane, d *database) {
	r := c.deploy(t, d)
	seed := uint64(time.Now().UnixNano())
	lost := rand.New(rand.NewPCG(seed, 0)).IntN(r.shards)
	evicted := (lost + 1) % r.shards
	t.Logf("seed %d: pod %d is lost, pod %d is evicted", seed, lost, evicted)
	stopped := make(chan *instance, 1)
	r.during = func(i *instance) bool {
		index, err := strconv.Atoi(i.index)
		if err != nil || i.nth > 2 {
			return false
		}
		each := int(r.load.batches()) / r.shards
		done := func() int64 {
			return d.claimsIn(fmt.Sprintf("(SELECT * FROM terapush_claims WHERE batch BETWEEN %d AND %d) AS own", index*each, (index+1)*each-1))
		}
		begun := func() bool { return done() > 0 }
		switch {
		case index == lost && i.nth == 1:
			i.sees(begun)
			_ = i.Process.Signal(syscall.SIGSTOP) // or it could end before the other one starts
			stopped <- i
			return true
		case index == lost: // it waits only for a transaction that is open
			stale, left := <-stopped, done()
			i.sees(func() bool { return done() > left || strings.Contains(r.log(i), "waiting for run nightly") })
			_ = stale.Process.Signal(syscall.SIGCONT)
			<-stale.done
			assert.Equal(t, 9, stale.ProcessState.ExitCode(), r.log(stale))
		case index == evicted && i.nth == 1:
			i.sees(begun)
			name := i.pod.Metadata.Name
			r.tell(http.MethodPost, r.path("/"+name+"/eviction"), `{"metadata": {"name": "`+name+`"}}`)
		default:
			at := rand.New(rand.NewPCG(seed, uint64(i.nth<<8+index))).Int64N(r.load.batches())
			i.sees(func() bool { return d.claims() >= at })
			_ = i.Process.Kill()
		}
		return false
	}
	r.work()
	r.sh(docs(t, "kubectl apply -k")+"kubectl wait --for=condition=complete --timeout=2m job/terapush-proof").ends(t, 0)
	r.mu.Lock()
	assert.Equal(t, 143, r.instances[strconv.Itoa(evicted)][0].ProcessState.ExitCode())
	pods := 0
	for _, all := range r.instances {
		pods += len(all)
	}
	r.mu.Unlock()
	t.Logf("%d pods", pods)
	d.isExact(t, r.load)
	assert.Equal(t, r.load.batches(), d.claims())

	r.sh(docs(t, "kubectl logs")).ends(t, 0)
	whole := reportOf(t, r.sh("terapush report merge --json terapush-push-*.json").ends(t, 0))
	assert.Equal(t, []any{report.OK, true, r.load.rows, r.load.batches(), r.shards},
		[]any{whole.Result.Outcome, whole.Verify.OK, whole.Result.Rows, whole.Result.Batches, len(whole.Merged.Shards)})
}

// One index fails for good after all others have ended. The Job fails, and the reports and the proof say which keys are
// missing.
func podIsRefused(t *testing.T, c *controlPlane, d *database) {
	r := c.deploy(t, d)
	code := map[kind]int{postgres: 2, mariaDB: 5}[d.kind]
	r.before = func(i *instance) {
		if i.index != "3" || i.nth != 2 {
			return
		}
		assert.Zero(t, r.sh("kubectl wait --for=jsonpath='{.status.succeeded}'=7 --timeout=2m job/terapush-push").code)
		if d.kind == postgres {
			assert.Zero(t, r.sh(`kubectl patch configmap terapush --patch '{"data": {"TERAPUSH_ROWS": "17000"}}'`).code)
		} else {
			assert.NoError(t, d.exec("REVOKE ALL ON "+d.name()+".* FROM tera@'%'"))
		}
	}
	r.during = func(i *instance) bool {
		if i.index == "3" && i.nth == 1 {
			_ = i.Process.Kill()
		}
		return false
	}
	r.work()
	apply, _, _ := strings.Cut(docs(t, "kubectl apply -k"), "kubectl wait")
	r.sh(apply+"kubectl wait --for=condition=failed --timeout=2m job/terapush-push").ends(t, 0)
	why := r.sh(`kubectl get job terapush-push -o jsonpath='{.status.conditions[?(@.type=="Failed")]}'`).ends(t, 0).stdout
	assert.Contains(t, why, fmt.Sprintf("failed with exit code %d ", code))
	assert.Contains(t, why, `"reason":"PodFailurePolicy"`)

	r.sh(docs(t, "kubectl logs")).ends(t, 2).says(t, "keys 6000 to 7999 are missing: no report has them, between shard 2 and shard 4")
	proof := invocation{args: append([]string{"verify", d.target(), "--run-id", "nightly", "--json"}, r.load.flags()...)}
	bad := reportOf(t, proof.run(t).ends(t, 4)).Verify.BadBatches
	require.NotEmpty(t, bad)
	for _, b := range bad {
		assert.True(t, b.FirstKey >= 6000 && b.LastKey < 8000, "%+v", b)
	}
}

// deployed is a run by the manifests, into the database of a test.
type deployed struct {
	kubelet
	load   load
	shards int
	script func(string) result
}

// deploy makes a namespace, and a copy of the manifests with the values that a user would change.
func (c *controlPlane) deploy(t *testing.T, d *database) *deployed {
	password := backendtest.Server(t, "TERAPUSH_TEST_PASSWORD")
	d.handOver(t)
	r := &deployed{load: small(16_000), shards: 8}
	r.kubelet = kubelet{controlPlane: c, t: t, namespace: strings.ReplaceAll(d.name(), "_", "-"), before: func(*instance) {}}
	require.NoError(t, c.ask(http.MethodPost, "/api/v1/namespaces", `{"metadata": {"name": "`+r.namespace+`"}}`, nil))

	folder := t.TempDir()
	manifests := filepath.Join(folder, "deploy", "kubernetes")
	require.NoError(t, os.CopyFS(manifests, os.DirFS("../deploy/kubernetes")))
	values := []string{"TARGET=" + d.target(as("tera", "")), "TERAPUSH_MAX_RATE=300KiB/s", "TERAPUSH_WORKERS=2"}
	for flags := r.load.flags(); len(flags) > 0; flags = flags[2:] {
		name := strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(flags[0], "--"), "-", "_"))
		values = append(values, "TERAPUSH_"+name+"="+flags[1])
	}
	path := filepath.Join(manifests, "kustomization.yaml")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "  literals:\n")
	require.Contains(t, string(text), ", podmonitor.yaml")
	edited := regexp.MustCompile(`(?m)^  - (TARGET|TERAPUSH_BYTES)=.*\n`).ReplaceAllString(string(text), "")
	edited = strings.Replace(edited, "  literals:\n", "  literals:\n  - "+strings.Join(values, "\n  - ")+"\n", 1)
	edited = strings.Replace(edited, ", podmonitor.yaml", "", 1) // there is no Prometheus operator
	require.NoError(t, os.WriteFile(path, []byte(edited), 0o600))

	programs := t.TempDir()
	require.NoError(t, os.Symlink(binary, filepath.Join(programs, "terapush")))
	env := []string{
		"KUBECONFIG=" + c.config(t, r.namespace), "TERAPUSH_PASSWORD=" + password,
		"PATH=" + strings.Join([]string{programs, c.programs, os.Getenv("PATH")}, ":"),
	}
	r.script = func(text string) result {
		return startCommand(t, invocation{env: env}, "bash", "-ec", "cd "+folder+"\n"+text).wait(t)
	}
	return r
}

// sh runs commands beside the manifests, as the docs have them but for their patience.
func (r *deployed) sh(text string) result {
	return r.script(strings.ReplaceAll(text, "--timeout=24h", "--timeout=2m"))
}

// docs is the block of commands of docs/MANY.md with a text in it.
func docs(t *testing.T, with string) string {
	text, err := os.ReadFile("../docs/MANY.md")
	require.NoError(t, err)
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(block[1], with) {
			return block[1]
		}
	}
	require.Fail(t, "no commands", with)
	return ""
}
