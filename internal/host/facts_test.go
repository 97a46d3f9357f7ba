package host

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

// plant makes a tree of files; a text that begins with "->" is a symbolic link, a name that ends in "/" a folder.
func plant(t testing.TB, files map[string]string) tree {
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if strings.HasSuffix(name, "/") {
			require.NoError(t, os.MkdirAll(path, 0o755))
			continue
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if to, isLink := strings.CutPrefix(text, "->"); isLink {
			require.NoError(t, os.Symlink(to, path))
			continue
		}
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return tree(root)
}

func TestLookReadsEverything(t *testing.T) {
	f := factsBelow(plant(t, map[string]string{
		"proc/meminfo":                          "MemTotal: 4 kB\n",
		"proc/stat":                             "cpu0 1 0 0 0 0 0 0 0\ncpu1 1 0 0 0 0 0 0 0\n",
		"sys/class/net/ens5/type":               "1",
		"sys/class/net/ens5/device/driver":      "->../../bus/pci/drivers/ena",
		"sys/fs/cgroup/cpu.max":                 "150000 100000\n",
		"proc/sys/net/ipv4/tcp_wmem":            "4096\t16384\t4194304\n",
		"proc/sys/net/ipv4/ip_local_port_range": "32768 60999\n",
	}))
	require.Equal(t, Cores{Machine: 2, Quota: 1.5}, f.Cores)
	require.EqualValues(t, 4096, f.Memory)
	n, ok := f.NIC("ens5")
	require.True(t, ok)
	require.Equal(t, NIC{Name: "ens5", Driver: "ena"}, n)
	_, ok = f.NIC("eth9")
	require.False(t, ok)
	require.Equal(t, map[string]string{"net.ipv4.tcp_wmem": "4096\t16384\t4194304", "net.ipv4.ip_local_port_range": "32768 60999"}, f.Sysctls)
	wmem, ok := f.Numbers("net.ipv4.tcp_wmem", 3)
	require.True(t, ok)
	require.Equal(t, []int64{4096, 16384, 4194304}, wmem)
}

func TestNumbersAreAllOrNone(t *testing.T) {
	for _, text := range []string{"", "1 2", "1 2 3 4", "1 2 x", "1 -2 3", "1 2 99999999999999999999", "\x00"} {
		f := factsBelow(plant(t, map[string]string{"proc/sys/net/ipv4/tcp_wmem": text}))
		_, ok := f.Numbers("net.ipv4.tcp_wmem", 3)
		require.False(t, ok, "%q", text)
	}
}

func TestLookFindsNothingInAnEmptyTree(t *testing.T) {
	require.Equal(t, Facts{Sysctls: map[string]string{}}, factsBelow(plant(t, nil)))
}

func TestQuota(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  float64
	}{
		"version 2":                {map[string]string{"sys/fs/cgroup/cpu.max": "400000 100000\n"}, 4},
		"version 2 without":        {map[string]string{"sys/fs/cgroup/cpu.max": "max 100000\n"}, 0},
		"version 1":                {map[string]string{"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 0.5},
		"version 1 without":        {map[string]string{"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 0},
		"garbage":                  {map[string]string{"sys/fs/cgroup/cpu.max": "many few\n"}, 0},
		"a period of no length":    {map[string]string{"sys/fs/cgroup/cpu.max": "1 0\n"}, 0},
		"one number":               {map[string]string{"sys/fs/cgroup/cpu.max": "1\n"}, 0},
		"none":                     {nil, 0},
		"a folder where a file is": {map[string]string{"sys/fs/cgroup/cpu.max/": ""}, 0},
	} {
		require.InDelta(t, c.want, quota(plant(t, c.files)), 0, name)
	}
}

func TestMemory(t *testing.T) {
	const meminfo = "MemTotal:       2048 kB\nMemFree: 1 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"machine":                  {map[string]string{"proc/meminfo": meminfo}, 2 << 20},
		"cgroup v2":                {map[string]string{"proc/meminfo": meminfo, "sys/fs/cgroup/memory.max": "1048576\n"}, 1 << 20},
		"cgroup v2 without limit":  {map[string]string{"proc/meminfo": meminfo, "sys/fs/cgroup/memory.max": "max\n"}, 2 << 20},
		"cgroup v1 without limit":  {map[string]string{"proc/meminfo": meminfo, "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 2 << 20},
		"nothing can be read":      {nil, 0},
		"only a cgroup limit read": {map[string]string{"sys/fs/cgroup/memory.max": "4096\n"}, 4096},
	} {
		require.Equal(t, c.want, memory(plant(t, c.files)), name)
	}
}

func TestThisMachine(t *testing.T) {
	f := readFacts()
	require.Positive(t, f.Cores.Usable)
	require.Positive(t, f.OpenFiles)

	m := ThisMachine()
	require.Equal(t, runtime.GOARCH, m.Arch)
	require.Positive(t, m.Cores)
	if runtime.GOOS != "linux" {
		return
	}
	require.Regexp(t, `^Linux \d+\.`, m.OS)
	require.Positive(t, m.MemoryBytes)
	before, after := ReadLoad(), ReadLoad()
	require.GreaterOrEqual(t, len(before.Cores), runtime.GOMAXPROCS(0))
	require.Len(t, after.Cores, len(before.Cores))

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	found := grades(Check(t.Context(), Want{BitsPerSecond: 1e6, Target: l.Addr().String(), Workers: 1}))
	require.Contains(t, found["TCP send buffers"].Found, "connections at ", "the round trip was measured")
	require.NotContains(t, found["TCP send buffers"].Found, "assumed")
	require.Equal(t, loader.GradeOK, found["NIC speed"].Grade)
	require.NotEqual(t, loader.GradeFail, found["open files"].Grade)
	require.Empty(t, CheckLimits(Want{Workers: 1}))
}
