package host

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/pkg/loader"
)

// fast50 is an instance with nothing to complain of.
func fast50() Facts {
	return Facts{
		Cores: Cores{Machine: 32, Usable: 32}, Memory: 64 << 30, OpenFiles: 1 << 20,
		NICs: []NIC{{Name: "ens5", Driver: "ena", BitsPerSecond: 50e9}, {Name: "lo"}},
		Sysctls: map[string]string{
			"net.ipv4.ip_local_port_range": "32768\t60999", "net.ipv4.tcp_wmem": "4096\t16384\t4194304",
			"net.netfilter.nf_conntrack_count": "100", "net.netfilter.nf_conntrack_max": "262144",
		},
		EC2: Instance{Here: true, ID: "i-0abc", Type: "c6in.8xlarge", AZID: "use1-az1", PlacementGroup: "close"},
		Out: "ens5", RoundTrip: 430 * time.Microsecond,
	}
}

func want50() Want {
	return Want{BitsPerSecond: 50e9, Target: "db:5432", Workers: 32, Memory: 16 << 30, BatchBytes: 64 << 20}
}

// weak has something wrong wherever that can be.
func weak() Facts {
	f := fast50()
	f.Cores = Cores{Machine: 32, Usable: 2, Quota: 2}
	f.Memory, f.OpenFiles = 2<<30, 40
	f.NICs = []NIC{{Name: "ens5", Driver: "ena", BitsPerSecond: 10e9}}
	f.Sysctls = map[string]string{
		"net.ipv4.ip_local_port_range": "60000 60009", "net.ipv4.tcp_wmem": "4096 16384 4194304",
		"net.netfilter.nf_conntrack_count": "262140", "net.netfilter.nf_conntrack_max": "262144",
	}
	f.EC2.Type, f.EC2.PlacementGroup = "c7i.16xlarge", ""
	f.RoundTrip = 70 * time.Millisecond
	return f
}

func weakWant() Want {
	return Want{BitsPerSecond: 50e9, Target: "db:5432", Workers: 9, Memory: 2 << 30, BatchBytes: 64 << 20}
}

// blind is a machine of which nothing can be read.
func blind() Facts {
	return Facts{EC2: Instance{Here: true, Unknown: "the metadata service did not answer within 1s"}}
}

func TestWhatIsPrinted(t *testing.T) {
	for name, c := range map[string]struct {
		facts  Facts
		want   Want
		server []loader.Finding
		ok     bool
	}{
		"fast": {fast50(), want50(), nil, true},
		"weak": {weak(), weakWant(), []loader.Finding{
			{Check: "connection", Grade: loader.GradeOK, Found: "db:5432 answers: MySQL 8.4.2"},
			{Check: "local_infile", Grade: loader.GradeFail, Found: "OFF: the server\nrefuses\x1b[2J", Fix: "SET GLOBAL local_infile = 1"},
		}, false},
		"blind": {blind(), want50(), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReport(judge(c.facts, c.want), c.server)
			require.Equal(t, c.ok, r.OK)
			var text, object bytes.Buffer
			require.NoError(t, r.WriteText(&text))
			require.NoError(t, r.WriteJSON(&object))
			golden.Equal(t, name+".txt", text.String())
			if name == "weak" {
				golden.Equal(t, name+".json", object.String())
			}
		})
	}
}

// grades are those of a check, by its name.
func grades(findings []loader.Finding) map[string]loader.Finding {
	all := map[string]loader.Finding{}
	for _, f := range findings {
		all[f.Check] = f
	}
	return all
}

func TestGrades(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts, *Want)
		check  string
		grade  loader.Grade
		found  string
		fix    string
	}{
		"a gigabit takes one core": {func(f *Facts, w *Want) { f.Cores.Usable, w.BitsPerSecond = 1, 1e9 }, "cores", "ok", "1 of 32, by GOMAXPROCS or CPU affinity", ""},
		"few cores":                {func(f *Facts, _ *Want) { f.Cores = Cores{Machine: 6, Usable: 6} }, "cores", "warn", "6 cores; 50 Gbps take about 7", "a machine with more cores"},
		"affinity":                 {func(f *Facts, _ *Want) { f.Cores.Usable = 2 }, "cores", "warn", "2 of 32", "taskset"},
		"a quota that is enough":   {func(f *Facts, _ *Want) { f.Cores.Usable, f.Cores.Quota = 8, 7.5 }, "cores", "ok", "8 of 32, by the cgroup's quota of 7.5", ""},
		"a batch too large":        {func(f *Facts, w *Want) { f.Memory, w.BatchBytes = 1<<30, 2<<30 }, "memory", "fail", "1.0 GiB do not hold one batch of 2.0 GiB", "--batch-bytes 64MiB"},
		"a batch that fits":        {func(f *Facts, w *Want) { f.Memory, w.BatchBytes, w.Memory = 1<<30, 1<<30, 1<<28 }, "memory", "ok", "1.0 GiB, of which buffers may take 256 MiB", ""},
		"no budget":                {func(_ *Facts, w *Want) { w.Memory = 0 }, "memory", "ok", "64 GiB", ""},
		"this machine":             {func(f *Facts, _ *Want) { f.Out = "lo" }, "NIC speed", "ok", "on this machine", ""},
		"a veth pair":              {func(f *Facts, _ *Want) { f.NICs[0].Driver, f.NICs[0].BitsPerSecond = "", 10e9 }, "NIC speed", "unknown", "ens5 is virtual:", ""},
		"a silent driver":          {func(f *Facts, _ *Want) { f.NICs[0].BitsPerSecond = 0 }, "NIC speed", "unknown", "driver ena, does not report", ""},
		"a hidden card":            {func(f *Facts, _ *Want) { f.NICs = nil }, "NIC speed", "unknown", "ens5, which is not in /sys", ""},
		"ten flows":                {func(_ *Facts, w *Want) { w.Workers = 10 }, "connections", "ok", "10 of up to", ""},
		"a type nobody knows":      {func(f *Facts, _ *Want) { f.EC2.Type = "z9.huge" }, "EC2 instance", "ok", "z9.huge in use1-az1, placement group close; its lasting", ""},
		"buffers just enough":      {func(f *Facts, w *Want) { f.RoundTrip, w.Workers = 10*time.Millisecond, 30 }, "TCP send buffers", "ok", "over 30 connections at 10.00 ms need 4.0 MiB each", ""},
		"buffers just too small": {
			func(f *Facts, w *Want) { f.RoundTrip, w.Workers = 10*time.Millisecond, 29 }, "TCP send buffers", "warn", "they end at 48.65 Gbps", `net.ipv4.tcp_wmem="4096 16384 67108864"`,
		},
		"buffers beyond reason": {
			func(f *Facts, w *Want) { f.RoundTrip, w.Workers = time.Second, 1 }, "TCP send buffers", "warn", "need 12 GiB each", `16384 1073741824", and more --workers`,
		},
		"buffers by an assumed trip": {func(f *Facts, w *Want) { f.RoundTrip, w.Target = 0, "" }, "TCP send buffers", "ok", "at an assumed 1.00 ms", ""},
		"no files":                   {func(f *Facts, _ *Want) { f.OpenFiles = 8 }, "open files", "fail", "8, and a push opens 9 before its first connection", "ulimit -n 65536"},
		"fewer files than workers":   {func(f *Facts, _ *Want) { f.OpenFiles = 31 }, "open files", "warn", "31 are few for 32 workers", "ulimit -n 65536"},
		"enough files":               {func(f *Facts, _ *Want) { f.OpenFiles = 160 }, "open files", "ok", "160", ""},
		"few ports":                  {func(f *Facts, _ *Want) { f.Sysctls["net.ipv4.ip_local_port_range"] = "1000 1032" }, "local ports", "warn", "33, from 1000 to 1032: few for 32 workers", `"1024 65535"`},
		"ports of garbage":           {func(f *Facts, _ *Want) { f.Sysctls["net.ipv4.ip_local_port_range"] = "9 8" }, "local ports", "unknown", "cannot be read", ""},
		"conntrack nearly full":      {func(f *Facts, _ *Want) { f.Sysctls["net.netfilter.nf_conntrack_count"] = "262044" }, "conntrack", "warn", "little room", "nf_conntrack_max=524288"},
		"conntrack without a limit":  {func(f *Facts, _ *Want) { f.Sysctls["net.netfilter.nf_conntrack_max"] = "0" }, "conntrack", "ok", "without a limit", ""},
		"conntrack not there":        {func(f *Facts, _ *Want) { delete(f.Sysctls, "net.netfilter.nf_conntrack_max") }, "conntrack", "ok", "not tracked", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f, w := fast50(), want50()
			c.change(&f, &w)
			finding, is := grades(judge(f, w))[c.check]
			require.True(t, is)
			require.Equal(t, c.grade, finding.Grade, finding.Found)
			require.Contains(t, finding.Found, c.found)
			require.Contains(t, finding.Fix, c.fix)
			require.Equal(t, c.fix != "", finding.Fix != "")
		})
	}
}

func TestElsewhereNothingIsSaidOfEC2(t *testing.T) {
	f := fast50()
	f.EC2, f.NICs[0].Driver = Instance{}, "mlx5_core"
	found := grades(judge(f, want50()))
	for _, check := range []string{"EC2 instance", "connections"} {
		require.NotContains(t, found, check)
	}
}

func TestASocketIsOnThisMachine(t *testing.T) {
	f := gather(t.Context(), "/run/mysqld.sock")
	require.Equal(t, "lo", f.Out)
	require.Zero(t, f.RoundTrip)
}

func TestCheckLimits(t *testing.T) {
	for _, enough := range []Facts{fast50(), blind(), {}} {
		require.Empty(t, judgeLimits(enough, weakWant()))
	}
	weak := weak()
	for files, want := range map[int64]loader.Grade{8: loader.GradeFail, 10: loader.GradeWarn} {
		weak.OpenFiles = files
		got := grades(judgeLimits(weak, weakWant()))
		require.Equal(t, want, got["open files"].Grade)
		require.Equal(t, loader.GradeWarn, got["conntrack"].Grade)
		require.NotContains(t, got, "cores")
	}
}
