//go:build linux

package e2e_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// withTest has the kernel end a process with the process of the tests, which may be killed.
var withTest = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}

// controlPlane is a Kubernetes API server with its etcd and its controller of Jobs, without nodes: a test runs the
// pods.
type controlPlane struct {
	programs string // the folder of kubectl
	url      string
	client   *http.Client
	logs     string // the folder with a pod's log as NAMESPACE/POD/CONTAINER
}

// startControlPlane starts one. Its programs are those of tools/kubernetes, in the folder $TERAPUSH_TEST_KUBERNETES.
func startControlPlane(t *testing.T) *controlPlane {
	programs := os.Getenv("TERAPUSH_TEST_KUBERNETES")
	if programs == "" {
		missing(t, `TERAPUSH_TEST_KUBERNETES is not set: run scripts/servers kubernetes and eval "$(scripts/servers env)"`)
	}
	// kubectl logs reads from the kubelet, through the API server.
	logs := t.TempDir()
	kubelet := httptest.NewTLSServer(http.StripPrefix("/containerLogs", http.FileServer(http.Dir(logs))))
	t.Cleanup(kubelet.Close)
	_, port, err := net.SplitHostPort(kubelet.Listener.Addr().String())
	require.NoError(t, err)
	securePort := freePort(t)
	c := &controlPlane{programs: programs, url: "https://127.0.0.1:" + securePort, logs: logs, client: &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, // it signs its certificate itself
	}}
	start := func(name string, args ...string) *process {
		p := startCommand(t, invocation{attr: withTest}, filepath.Join(programs, name), args...)
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("the end of %s: %s", name, p.stderr.String()[max(0, len(p.stderr.String())-3000):])
			}
		})
		return p
	}
	etcd := "http://127.0.0.1:" + freePort(t)
	start("etcd", "--data-dir", t.TempDir(), "--unsafe-no-fsync", "--listen-client-urls", etcd, "--advertise-client-urls", etcd,
		"--listen-peer-urls", "http://127.0.0.1:"+freePort(t))
	key := serviceKey(t)
	server := start("kube-apiserver", "--etcd-servers", etcd, "--bind-address", "127.0.0.1", "--secure-port", securePort,
		"--cert-dir", t.TempDir(), "--token-auth-file", writeFile(t, "token,test,1\n"), "--authorization-mode", "AlwaysAllow",
		"--service-account-issuer", "https://kubernetes.default", "--service-account-key-file", key,
		"--service-account-signing-key-file", key, "--service-cluster-ip-range", "10.0.0.0/24",
		"--disable-admission-plugins", "ServiceAccount") // its controller does not run, and no pod talks to the API
	server.until(t, "it is ready", func() bool { return c.ask(http.MethodGet, "/readyz", "", nil) == nil })
	start("kube-controller-manager", "--kubeconfig", c.config(t, "default"), "--controllers", "job-controller",
		"--leader-elect=false", "--secure-port", "0")
	require.NoError(t, c.ask(http.MethodPost, "/api/v1/nodes", `{"metadata": {"name": "test"}, "status": {
		"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
		"daemonEndpoints": {"kubeletEndpoint": {"Port": `+port+`}}}}`, nil))
	return c
}

// serviceKey writes the key that would sign the tokens of service accounts.
func serviceKey(t *testing.T) (path string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	return writeFile(t, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})))
}

// config writes a kubeconfig for a namespace. JSON is YAML.
func (c *controlPlane) config(t *testing.T, namespace string) (path string) {
	return writeFile(t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "test",
		"clusters": [{"name": "test", "cluster": {"server": %q, "insecure-skip-tls-verify": true}}],
		"users": [{"name": "test", "user": {"token": "token"}}],
		"contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": %q}}]}`, c.url, namespace))
}

// ask sends a request with a body, "" for none, and decodes the answer unless into is nil.
func (c *controlPlane) ask(method, path, body string, into any) error {
	answer, err := c.open(method, path, body)
	if err != nil {
		return err
	}
	defer answer.Close()
	text, err := io.ReadAll(answer)
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func (c *controlPlane) open(method, path, body string) (io.ReadCloser, error) {
	r, err := http.NewRequest(method, c.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer token")
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/strategic-merge-patch+json")
	}
	answer, err := c.client.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= 300 {
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, bytes.TrimSpace(text))
	}
	return answer.Body, nil
}
