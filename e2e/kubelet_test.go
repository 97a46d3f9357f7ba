//go:build linux

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// kubelet runs the pods of a namespace. The one container of each is a process of terapush with an empty state folder.
// There is no image, no network of its own and no limit.
type kubelet struct {
	*controlPlane
	t         *testing.T
	namespace string
	before    func(*instance)             // called before a container starts
	during    func(*instance) (lost bool) // called when it has started; lost: its pod is given up while its process lives

	mu        sync.Mutex
	instances map[string][]*instance // by index of the Indexed Job, in the order of their starts
}

// instance is a pod with its process.
type instance struct {
	*process
	pod   pod
	index string // "" of a Job without
	nth   int    // of its index, from 1
}

// pod is what a kubelet needs to know of one.
type pod struct {
	Metadata struct {
		Name, UID, DeletionTimestamp string
		Labels                       map[string]string
	}
	Spec struct{ Containers []container }
}

type container struct {
	Name, Image string
	Args        []string
	EnvFrom     []struct{ ConfigMapRef struct{ Name string } }
	Env         []struct {
		Name, Value string
		ValueFrom   struct {
			SecretKeyRef struct{ Name, Key string }
			FieldRef     struct{ FieldPath string }
		}
	}
	Ports        []struct{ ContainerPort int }
	VolumeMounts []struct{ MountPath string }
}

const indexLabel = "batch.kubernetes.io/job-completion-index"

// work runs all pods until the test ends.
func (k *kubelet) work() {
	var pods sync.WaitGroup
	k.t.Cleanup(pods.Wait)
	k.instances = make(map[string][]*instance)
	events, err := k.open(http.MethodGet, k.path("?watch=true"), "")
	require.NoError(k.t, err)
	context.AfterFunc(k.t.Context(), func() { events.Close() })
	pods.Go(func() {
		deleted := make(map[string]context.CancelFunc)
		for in := json.NewDecoder(events); ; {
			var e struct {
				Type   string
				Object pod
			}
			if err := in.Decode(&e); err != nil {
				if k.t.Context().Err() == nil {
					k.t.Error("the watch of the pods broke:", err)
				}
				return
			}
			is := e.Object.Metadata
			if deleted[is.UID] == nil && e.Type == "ADDED" {
				var ctx context.Context
				ctx, deleted[is.UID] = context.WithCancel(context.Background())
				pods.Go(func() { k.run(ctx, e.Object) })
			}
			if is.DeletionTimestamp != "" {
				deleted[is.UID]()
			}
		}
	})
}

// run runs a pod until it ends, or is deleted.
func (k *kubelet) run(deleted context.Context, p pod) {
	name := p.Metadata.Name
	// Only a pod that has a node is deleted in two steps.
	k.tell(http.MethodPost, k.path("/"+name+"/binding"), `{"metadata": {"name": "`+name+`"}, "target": {"name": "test"}}`)
	i := &instance{pod: p, index: p.Metadata.Labels[indexLabel]}
	k.mu.Lock()
	k.instances[i.index] = append(k.instances[i.index], i)
	i.nth = len(k.instances[i.index])
	k.mu.Unlock()
	k.before(i)
	if k.t.Context().Err() != nil { // nobody would end its process
		return
	}
	if len(p.Spec.Containers) != 1 {
		k.t.Errorf("pod %s has %d containers", name, len(p.Spec.Containers))
		return
	}
	i.process = k.start(p)
	defer context.AfterFunc(deleted, func() { _ = i.Process.Signal(syscall.SIGTERM) })()
	k.status(i, `"phase": "Running"`, `"running": {}`)
	if k.during(i) {
		k.status(i, `"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}]`,
			`"waiting": {}`)
		return
	}
	<-i.done
	code, phase := i.ProcessState.ExitCode(), "Succeeded"
	if end := i.ProcessState.Sys().(syscall.WaitStatus); end.Signaled() {
		code = 128 + int(end.Signal())
	}
	if code != 0 {
		phase = "Failed"
	}
	if code == 5 || code == 9 {
		k.t.Logf("pod %s ended with %d:\n%s", name, code, k.log(i))
	}
	k.status(i, `"phase": "`+phase+`"`, fmt.Sprintf(`"terminated": {"exitCode": %d}`, code))
	if deleted.Err() != nil {
		k.tell(http.MethodDelete, k.path("/"+name+"?gracePeriodSeconds=0"), "")
	}
}

// start starts a pod's process.
func (k *kubelet) start(p pod) *process {
	c := p.Spec.Containers[0]
	values := make(map[string]string)
	for _, from := range c.EnvFrom {
		var is struct{ Data map[string]string }
		assert.NoError(k.t, k.ask(http.MethodGet, k.in("configmaps/"+from.ConfigMapRef.Name), "", &is))
		for name, value := range is.Data {
			values[name] = value
		}
	}
	for _, v := range c.Env {
		if from := v.ValueFrom.SecretKeyRef; from.Name != "" {
			var is struct{ Data map[string][]byte }
			assert.NoError(k.t, k.ask(http.MethodGet, k.in("secrets/"+from.Name), "", &is))
			v.Value = string(is.Data[from.Key])
		}
		if label, is := strings.CutPrefix(v.ValueFrom.FieldRef.FieldPath, "metadata.labels['"); is {
			v.Value = p.Metadata.Labels[strings.TrimSuffix(label, "']")]
		}
		values[v.Name] = v.Value
	}
	args := c.Args
	for n, a := range args {
		for name, value := range values {
			a = strings.ReplaceAll(a, "$("+name+")", value)
		}
		for _, port := range c.Ports { // its network is every pod's
			if a == fmt.Sprint(":", port.ContainerPort) {
				a = ":0"
			}
		}
		args[n] = a
	}
	var env []string
	for name, value := range values {
		for _, m := range c.VolumeMounts { // an emptyDir
			if value == m.MountPath {
				value = k.t.TempDir()
			}
		}
		env = append(env, name+"="+value)
	}
	path := filepath.Join(k.logs, k.namespace, p.Metadata.Name, c.Name)
	assert.NoError(k.t, os.MkdirAll(filepath.Dir(path), 0o700))
	log, err := os.Create(path)
	assert.NoError(k.t, err)
	defer log.Close()
	return startCommand(k.t, invocation{env: env, log: log, attr: withTest}, binary, args...)
}

// status reports how a pod is.
func (k *kubelet) status(i *instance, phase, state string) {
	c := i.pod.Spec.Containers[0]
	body := fmt.Sprintf(`{"status": {%s, "containerStatuses": [
		{"name": %q, "image": %q, "imageID": "", "ready": false, "restartCount": 0, "state": {%s}}]}}`, phase, c.Name, c.Image, state)
	k.tell(http.MethodPatch, k.path("/"+i.pod.Metadata.Name+"/status"), body)
}

// tell sends what has to be accepted.
func (k *kubelet) tell(method, path, body string) {
	if err := k.ask(method, path, body, nil); k.t.Context().Err() == nil {
		assert.NoError(k.t, err)
	}
}

// in is the path of something in the namespace.
func (k *kubelet) in(what string) string { return "/api/v1/namespaces/" + k.namespace + "/" + what }

// path is that of the namespace's pods, or of something below.
func (k *kubelet) path(below string) string { return k.in("pods" + below) }

// log is what an instance has printed.
func (k *kubelet) log(i *instance) string {
	text, err := os.ReadFile(filepath.Join(k.logs, k.namespace, i.pod.Metadata.Name, i.pod.Spec.Containers[0].Name))
	assert.NoError(k.t, err)
	return string(text)
}
