package cli_test

import (
	"encoding/json"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/pkg/loader"
)

func (s shell) doctor(args ...string) (host.Report, result) {
	s.Helper()
	r := s.run(append([]string{"doctor", "--json"}, args...)...)
	var all host.Report
	require.NoError(s, json.Unmarshal([]byte(r.stdout), &all), r.stdout+r.stderr)
	require.Equal(s, "terapush.doctor/v1", all.Schema)
	require.NotEmpty(s, all.Machine)
	return all, r
}

func TestDoctorOfATarget(t *testing.T) {
	all, r := newShell(t).doctor("discard://", "--workers", "3")
	require.Zero(t, r.code, r.stderr)
	require.True(t, all.OK)
	require.Equal(t, loader.Finding{Check: "connection", Grade: loader.GradeOK, Found: "discard"}, all.Server[len(all.Server)-1])

	none, _ := newShell(t).doctor()
	require.Equal(t, []loader.Finding{}, none.Server, "an empty list, and no null")
}

func TestDoctorKnowsTheWorkers(t *testing.T) {
	s := newShell(t)
	s.env["TERAPUSH_WORKERS"] = "4000"
	all, _ := s.doctor("--gbps", "50")
	for _, f := range all.Machine {
		if f.Check == "TCP send buffers" {
			require.Contains(t, f.Found, "50 Gbps over 4000 connections at an assumed 1.00 ms need 3.1 KiB each")
			return
		}
	}
	require.Fail(t, "no finding about buffers", all.Machine)
}

func TestDoctorOfAServerThatIsDown(t *testing.T) {
	const target = "postgres://u@127.0.0.1:1/d"
	all, r := newShell(t).doctor(target)
	require.Equal(t, 5, r.code)
	require.Equal(t, "terapush: this would stop a push: connection\n", r.stderr)
	require.False(t, all.OK)
	require.Len(t, all.Server, 1)
	require.Equal(t, loader.GradeFail, all.Server[0].Grade)
	require.Contains(t, all.Server[0].Found, "refused")

	r = newShell(t).run("doctor", target)
	require.Equal(t, 5, r.code)
	require.Contains(t, r.stdout, "this machine\n", "its part is printed all the same")
	require.Contains(t, r.stdout, "the server\n")
}

func TestDoctorIsStoppedByASignal(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	signals := make(chan os.Signal, 1)
	go func() {
		if _, err := l.Accept(); err == nil { // and says nothing
			signals <- syscall.SIGHUP
		}
	}()
	r := newShell(t).signalled(signals, "doctor", "postgres://u@"+l.Addr().String()+"/d?sslmode=disable")
	require.Equal(t, 129, r.code, r.stderr)
	require.Empty(t, r.stdout)
}
