package baseline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/host"
)

func anna() host.Machine {
	return host.Machine{Host: "anna", OS: "Linux 6.12", Arch: "amd64", CPU: "AMD EPYC", Cores: 4, MemoryBytes: 8 << 30}
}

func loadData() Key {
	return Key{Backend: "mysql", Method: "load-data", Format: "tsv", Dataset: "documents", PayloadBytes: 512, PayloadKind: "bytes"}
}

// reached is a ceiling of anna's.
func reached(k Key, workers int, bytes float64) Measurement {
	return Measurement{
		Key: k, Measured: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Version: "v1", Machine: anna(),
		Workers: workers, BytesPerSecond: bytes, RowsPerSecond: bytes / 520, CPUSecondsPerGiB: 0.3, BoundBy: "client-cpu",
	}
}

func save(t *testing.T, state string, all ...Measurement) {
	t.Helper()
	for _, m := range all {
		require.NoError(t, Save(state, m))
	}
}

func TestBest(t *testing.T) {
	state := t.TempDir()
	far := reached(loadData(), 8, 300)
	far.Host = "10.0.0.7"
	encrypted := loadData()
	encrypted.TLS = true
	save(t, state, far, reached(loadData(), 4, 250), reached(encrypted, 2, 90))
	other := func(change func(*Key)) Key {
		k := loadData()
		change(&k)
		return k
	}
	on := func(change func(*host.Machine)) host.Machine {
		m := anna()
		change(&m)
		return m
	}
	for name, c := range map[string]struct {
		key     Key
		machine host.Machine
		want    float64 // 0: none
	}{
		"the best of all sinks":            {loadData(), anna(), 300},
		"with TLS":                         {encrypted, anna(), 90},
		"another method":                   {other(func(k *Key) { k.Method = "insert" }), anna(), 0},
		"another back-end":                 {other(func(k *Key) { k.Backend = "doris" }), anna(), 0},
		"another format":                   {other(func(k *Key) { k.Format = "csv" }), anna(), 0},
		"another dataset":                  {other(func(k *Key) { k.Dataset = "people" }), anna(), 0},
		"another payload":                  {other(func(k *Key) { k.PayloadBytes = 200 }), anna(), 0},
		"another kind of payload":          {other(func(k *Key) { k.PayloadKind = "text" }), anna(), 0},
		"the folder was copied":            {loadData(), on(func(m *host.Machine) { m.Host = "berta" }), 0},
		"fewer cores, as GOMAXPROCS says":  {loadData(), on(func(m *host.Machine) { m.Cores = 1 }), 0},
		"another processor":                {loadData(), on(func(m *host.Machine) { m.CPU = "Xeon" }), 0},
		"a new kernel is no other machine": {loadData(), on(func(m *host.Machine) { m.OS = "Linux 6.13" }), 300},
		"more memory is no other machine":  {loadData(), on(func(m *host.Machine) { m.MemoryBytes = 16 << 30 }), 300},
	} {
		got, ok, err := bestOf(state, c.key, c.machine)
		require.NoError(t, err, name)
		require.Equal(t, c.want > 0, ok, name)
		require.Equal(t, c.want, got.BytesPerSecond, name)
	}
	_, ok, err := Best(state, loadData())
	require.NoError(t, err)
	require.False(t, ok, "this machine is not anna")
	mine := reached(loadData(), 1, 100)
	mine.Machine = host.ThisMachine()
	save(t, state, mine)
	got, _, err := Best(state, loadData())
	require.NoError(t, err)
	require.Equal(t, mine, got)

	_, ok, err = Best(filepath.Join(t.TempDir(), "none"), loadData())
	require.NoError(t, err)
	require.False(t, ok)
}

// Calibrating again makes the old figures void, even better ones of other workers; others stay.
func TestSaveReplaces(t *testing.T) {
	state := t.TempDir()
	far, berta := reached(loadData(), 2, 50), reached(loadData(), 2, 60)
	far.Host, berta.Machine.Host = "10.0.0.7", "berta"
	save(t, state, reached(loadData(), 4, 500), far, berta, reached(loadData(), 1, 110))
	all, err := Read(state)
	require.NoError(t, err)
	require.Equal(t, []Measurement{far, berta, reached(loadData(), 1, 110)}, all)
	left, err := filepath.Glob(filepath.Join(state, ".ceilings-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// What cannot be read is named, and left as it is.
func TestBadFiles(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"empty":         {"", "damaged"},
		"cut off":       {`{"schema":"terapush.ceilings/v1","ceilings":[{"stage":"lo`, "damaged"},
		"no JSON":       {"\x00\x01", "damaged"},
		"newer":         {`{"schema":"terapush.ceilings/v2","ceilings":{"by":"key"}}`, `schema is "terapush.ceilings/v2", and this terapush knows terapush.ceilings/v1`},
		"of no schema":  {`{}`, `schema is ""`},
		"another type":  {`{"schema":"terapush.ceilings/v1","ceilings":[{"workers":"two"}]}`, "damaged"},
		"beyond floats": {`{"schema":"terapush.ceilings/v1","ceilings":[{"workers":2,"bytes_per_second":1e999}]}`, "damaged"},
		"huge":          {strings.Repeat(" ", maxBytes+1), "more than 16 MiB"},
	} {
		state := t.TempDir()
		require.NoError(t, os.WriteFile(Path(state), []byte(c.text), 0o600))
		_, ok, err := Best(state, loadData())
		require.False(t, ok, name)
		require.ErrorContains(t, err, c.says, name)
		require.ErrorContains(t, err, Path(state), name)
		require.ErrorContains(t, Save(state, reached(loadData(), 1, 1)), c.says, name)
		text, err := os.ReadFile(Path(state))
		require.NoError(t, err)
		require.Equal(t, c.text, string(text), name)
	}
}

// Fields of another version under the same schema are no damage. Earlier ones also kept how fast rows were made, which is
// of no back-end.
func TestLaterFields(t *testing.T) {
	state := t.TempDir()
	text := `{"schema":"terapush.ceilings/v1","moon":"full","ceilings":[{"stage":"fill","workers":2,"bytes_per_second":5,"tides":[1]}]}`
	require.NoError(t, os.WriteFile(Path(state), []byte(text), 0o600))
	all, err := Read(state)
	require.NoError(t, err)
	require.Len(t, all, 1)
}
