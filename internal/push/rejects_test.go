package push

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/batch"
)

func openTestRejects(t *testing.T, path, run string) (*rejects, error) {
	t.Helper()
	r := &rejects{path: path, run: run, most: 100, lines: make(map[int64][][]byte)}
	err := r.open()
	if err != nil {
		_ = r.close()
		return nil, err
	}
	t.Cleanup(func() { _ = r.close() })
	return r, nil
}

func badRecords(n int) (all []batch.Bad) {
	for i := range n {
		all = append(all, batch.Bad{File: "a.csv", Line: int64(i + 1), Words: "no", Record: "x\n"})
	}
	return all
}

// Of two loads with one file the second is refused, also after the first has replaced the file.
func TestRejectsOfTwoLoads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "refused.jsonl")
	first, err := openTestRejects(t, path, "r1")
	require.NoError(t, err)
	refused := func() {
		t.Helper()
		_, err := openTestRejects(t, path, "r1")
		require.ErrorContains(t, err, "is written by another load")
	}
	refused()
	require.NoError(t, first.Take(7, badRecords(1)))
	require.NoError(t, first.Take(7, badRecords(2)))
	require.NoError(t, first.Take(3, badRecords(1)))
	refused()

	require.NoError(t, first.close())
	again, err := openTestRejects(t, path, "r1")
	require.NoError(t, err)
	require.EqualValues(t, 3, again.count())
	require.NoError(t, again.keep(func(number int64) bool { return number == 7 }))
	require.EqualValues(t, 2, again.count())
	refused()
	require.NoError(t, again.Take(4, badRecords(1)))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(string(text), "\n"))
}

// What a load would spoil is refused, and stays as it is.
func TestRejectsLeaveOthersAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, text := range []string{"one line without an end", "{}\n", "1,2\n3,4", `{"run":"r2","batch":1}` + "\n"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := openTestRejects(t, path, "r1")
		require.ErrorContains(t, err, "choose another name", text)
		is, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(is))
	}
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(path, link))
	for _, odd := range []string{os.DevNull, link, dir} {
		_, err := openTestRejects(t, odd, "r1")
		require.ErrorContains(t, err, "not a regular file", odd)
	}

	// What a kill has cut off behind a line of the run's own goes.
	whole := `{"run":"r1","batch":1,"file":"a","line":1,"error":"no","record":"x"}` + "\n"
	require.NoError(t, os.WriteFile(path, []byte(whole+`{"run":"r1","ba`), 0o600))
	r, err := openTestRejects(t, path, "r1")
	require.NoError(t, err)
	require.EqualValues(t, 1, r.count())
	is, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, whole, string(is))
}

// A record is there as its bytes are. After a write that failed nothing is taken any more.
func TestRejectsKeepBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "refused.jsonl")
	r, err := openTestRejects(t, path, "r1")
	require.NoError(t, err)
	require.NoError(t, r.Take(1, []batch.Bad{{File: "a", Line: 1, Words: "no", Record: "é\n"}, {File: "a", Line: 2, Words: "no", Record: "\xe9\n"}}))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	want := `{"run":"r1","batch":1,"file":"a","line":%d,"error":"no",%s}` + "\n"
	require.Equal(t, fmt.Sprintf(want, 1, `"record":"é\n"`)+fmt.Sprintf(want, 2, `"record_base64":"6Qo="`), string(text))

	require.NoError(t, r.file.Close())
	require.ErrorContains(t, r.Take(2, badRecords(1)), "keeping rejected records")
	r.file, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	require.ErrorContains(t, r.Take(2, badRecords(1)), "keeping rejected records")
}
