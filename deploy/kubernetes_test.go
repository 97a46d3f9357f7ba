package deploy_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

// job is what the tests read of a Job.
type job struct {
	Spec struct {
		Completions, Parallelism int
		Template                 struct {
			Spec struct {
				Containers []struct{ Args []string }
			}
		}
	}
}

// What a platform is told to run is tried with one binary.
func TestJobs(t *testing.T) {
	run := newRunner(t)
	t.Run("Kubernetes manifests", func(t *testing.T) { kubernetesManifests(t, run) })
	t.Run("Batch job definitions", func(t *testing.T) { batchJobDefinitions(t, run) })
}

// The flags of the manifests are terapush's, the number of shards is that of the pods, and the values make a plan.
func kubernetesManifests(t *testing.T, run runner) {
	var k struct {
		Resources          []string
		ConfigMapGenerator []struct{ Literals []string } `yaml:"configMapGenerator"`
	}
	manifest(t, "kustomization.yaml", &k)
	env := []string{"JOB_COMPLETION_INDEX=3"}
	for _, m := range k.ConfigMapGenerator {
		env = append(env, m.Literals...)
	}
	var values []string
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		values = append(values, "$("+name+")", value)
	}
	for _, name := range append(k.Resources, "proof.yaml") {
		var j job
		manifest(t, name, &j)
		for _, c := range j.Spec.Template.Spec.Containers {
			if c.Args[0] == "push" {
				require.Equal(t, []int{8, 8}, []int{j.Spec.Completions, j.Spec.Parallelism})
				require.Contains(t, c.Args, "auto/8")
				require.Contains(t, run(env, values, append(c.Args, "--dry-run")...), "dry run")
			} else {
				run(env, values, append(c.Args, "--help")...)
			}
		}
	}
}

// The same of the job definitions for AWS Batch.
func batchJobDefinitions(t *testing.T, run runner) {
	for name, more := range map[string]string{"prepare": "--help", "push": "--dry-run", "proof": "--help"} {
		var d struct {
			JobDefinitionName   string
			Parameters          map[string]string
			ContainerProperties struct{ Command []string }
		}
		require.NoError(t, json.Unmarshal(read(t, "aws-batch/"+name+".json"), &d))
		require.Equal(t, "terapush-"+name, d.JobDefinitionName)
		var values []string
		for name, value := range d.Parameters {
			values = append(values, "Ref::"+name, value)
		}
		env := []string{"AWS_BATCH_JOB_ARRAY_INDEX=3", "AWS_BATCH_JOB_ARRAY_SIZE=8"}
		require.NotEmpty(t, run(env, values, append(d.ContainerProperties.Command, more)...))
	}
}

// runner runs terapush with a platform's variables, and with values for the platform's words.
type runner func(env, words []string, args ...string) string

func newRunner(t *testing.T) runner {
	binary := filepath.Join(checkout(t, "bin/terapush", "CGO_ENABLED=0"), "bin", "terapush")
	return func(env, words []string, args ...string) string {
		value := strings.NewReplacer(words...)
		for i, a := range args {
			args[i] = value.Replace(a)
		}
		cmd := exec.Command(binary, args...)
		cmd.Env = append(os.Environ(), append(env, "TERAPUSH_STATE_DIR="+t.TempDir())...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", cmd, out)
		return string(out)
	}
}

// manifest reads the one document of a manifest.
func manifest(t *testing.T, name string, into any) {
	t.Helper()
	in := yaml.NewDecoder(bytes.NewReader(read(t, "kubernetes/"+name)))
	require.NoError(t, in.Decode(into), name)
	require.ErrorIs(t, in.Decode(new(any)), io.EOF, "%s has one document", name)
}
