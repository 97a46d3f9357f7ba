// Command kubernetes is etcd, kube-apiserver, kube-controller-manager and kubectl in one binary, which is the one it is
// called by. Most of their code is the same: one binary is built in half the time, and is a third of the size.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/pkg/controller/job"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		// The time until a failed pod is restarted, doubled each time: a test cannot wait for the usual 10 seconds.
		job.DefaultJobPodFailureBackOff = time.Second
		os.Exit(cli.Run(manager.NewControllerManagerCommand()))
	case "kubectl":
		os.Exit(cli.Run(kubectl.NewDefaultKubectlCommand()))
	default:
		fmt.Fprintf(os.Stderr, "%s: call it etcd, kube-apiserver, kube-controller-manager or kubectl, by a link\n", name)
		os.Exit(2)
	}
}
