// Package terapush_test holds the house rules that no single package can check of itself.
package terapush_test

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

const module = "github.com/terapush/terapush/"

// rule says what the packages below a folder may import of this module. Order of the data path, bottom up: rows, batch,
// loader, event; dataset, encode, source; netio, sqlload, mysqlconn; back-ends; engine; push; cli.
type rule struct {
	from string
	may  []string // prefixes inside the module, tests excepted
	std  bool     // nothing but the standard library besides
}

func rules() []rule {
	contract := []string{"pkg/rows", "pkg/batch", "pkg/loader", "pkg/event"}
	with := func(more ...string) []string { return append(append([]string{}, contract...), more...) }
	return []rule{
		{from: "pkg/rows", std: true},
		{from: "pkg/batch", may: []string{"pkg/rows"}, std: true},
		{from: "pkg/loader", may: []string{"pkg/rows", "pkg/batch", "pkg/loader"}, std: true},
		{from: "pkg/event", may: []string{"pkg/loader"}, std: true},

		{from: "internal/spelling", std: true},
		{from: "internal/recent", std: true},
		{from: "internal/dataset", may: []string{"pkg/rows", "internal/recent", "internal/spelling"}},
		{from: "internal/encode", may: []string{"pkg/rows", "pkg/batch"}},
		{from: "internal/source", may: []string{"pkg/rows", "pkg/batch", "internal/dataset", "internal/encode", "internal/recent"}},

		{from: "internal/files", may: []string{"pkg/batch", "pkg/loader", "internal/engine/retry", "internal/objstore", "internal/source"}},

		{from: "internal/netio", may: []string{"pkg/loader", "pkg/event", "internal/file"}},
		{from: "pkg/sqlload", may: contract, std: true}, // no driver
		{from: "pkg/mysqlconn", may: with("internal/netio", "pkg/sqlload")},
		{from: "internal/httpload", may: contract},
		{from: "internal/objstore", may: with("internal/httpload", "internal/netio")},
		{from: "internal/backends/discard", may: contract},
		{from: "internal/backends/postgres", may: with("pkg/sqlload", "internal/objstore", "internal/netio", "internal/units")},
		{from: "internal/backends/mysql", may: with("pkg/sqlload", "pkg/mysqlconn", "internal/objstore", "internal/netio",
			"internal/units")},
		{from: "internal/backends/oracle", may: with("pkg/sqlload", "internal/netio")},
		{from: "internal/backends/databend", may: with("pkg/sqlload", "internal/httpload", "internal/objstore", "internal/netio")},
		{from: "internal/backends/doris", may: with("pkg/sqlload", "pkg/mysqlconn", "internal/httpload", "internal/objstore",
			"internal/netio")},
		{from: "internal/backends/s3", may: with("internal/objstore")},
		{from: "internal/backends/backendtest", may: with("internal/dataset", "internal/encode", "internal/netio")}, // for tests
		{from: "internal/backends/all", may: with("internal/backends")},

		{from: "internal/file"},
		{from: "internal/calibrate/baseline", may: []string{"internal/file", "internal/host"}},
		{from: "internal/calibrate", may: with("internal/calibrate/baseline", "internal/config", "internal/dataset", "internal/encode", "internal/source",
			"internal/host", "internal/report", "internal/results", "internal/sweep", "internal/units")},
		{from: "internal/host", may: []string{"pkg/loader", "internal/file", "internal/netio", "internal/report", "internal/units"}},
		{from: "internal/config", may: with("experiments", "internal/dataset", "internal/file", "internal/netio", "internal/spelling", "internal/units", "internal/verify")},
		{from: "internal/stats", may: with("internal/units")},
		{from: "internal/live", may: with("internal/stats", "internal/units")},
		{from: "internal/report", may: with("internal/stats", "internal/units")},
		{from: "internal/verify", may: with("internal/dataset", "internal/report", "internal/source")},
		{from: "internal/run", may: with("internal/config", "internal/dataset", "internal/encode", "internal/files", "internal/source")},
		{from: "internal/runlog", may: with("internal/config", "internal/dataset", "internal/file", "internal/files", "internal/run", "internal/source")},
		{from: "internal/engine", may: with("internal/engine", "internal/source", "internal/stats")},
		{from: "internal/notes", may: []string{"pkg/loader"}},
		{from: "internal/target", may: []string{"pkg/loader", "internal/config", "internal/engine/retry", "internal/netio", "internal/notes"}},
		{from: "internal/progress", may: with("internal/engine", "internal/notes", "internal/run", "internal/runlog", "internal/target")},
		{from: "internal/push", may: with("internal/config", "internal/dataset", "internal/engine", "internal/files", "internal/source",
			"internal/calibrate/baseline", "internal/file", "internal/host", "internal/netio", "internal/notes", "internal/progress",
			"internal/report", "internal/run", "internal/runlog", "internal/stats", "internal/target", "internal/verify")},
		// Results are read on any machine and at any later time: they know of no push, no plan and no back-end.
		{from: "internal/results", may: []string{"pkg/event", "pkg/loader", "internal/file", "internal/host", "internal/report", "internal/results/chart",
			"internal/units"}},
		{from: "internal/results/chart"},
		{from: "internal/units"},
		{from: "experiments"},
		{from: "internal/sweep", may: []string{"pkg/event", "pkg/loader", "internal/config", "internal/push", "internal/units",
			"internal/results", "internal/report", "internal/run", "internal/runlog", "internal/spelling", "experiments"}},
		{from: "internal/inspect", may: []string{"pkg/rows", "pkg/loader", "internal/dataset"}},
		{from: "internal/demo"},
		{from: "internal/sink", may: []string{"internal/sink", "pkg/loader"}},
		{from: "internal/standin", may: with("internal/dataset", "internal/sink", "internal/standin")},
		{from: "internal/faultproxy", may: []string{"pkg/loader"}},
		{from: "internal/golden"},
		{from: "pkg/command", may: []string{"internal/cli", "pkg/loader"}},
		{from: "cmd/terapush", may: []string{"pkg/command"}},
	}
}

// free are the folders without a rule: the top of the house, which may see everything.
var free = []string{"internal/cli", "bench", "e2e", "deploy"}

// What a loader can do besides is found once, by loader.FeaturesOf. A type assertion elsewhere would be asked again at
// every failed attempt, and would find nothing where a loader is wrapped.
func TestNobodyAssertsWhatALoaderCan(t *testing.T) {
	var names []string
	for f := range reflect.TypeFor[loader.Features]().Fields() {
		names = append(names, f.Name)
	}
	asserts := regexp.MustCompile(`\.\((loader\.)?(` + strings.Join(names, "|") + `)\)`)
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || path == "pkg/loader/optional.go" {
			return err
		}
		text, err := os.ReadFile(path)
		require.Empty(t, asserts.FindAllString(string(text), -1), path)
		return err
	}))
}

type goPackage struct {
	ImportPath string
	Imports    []string
	Standard   bool
}

func TestImportsFollowTheLayers(t *testing.T) {
	std := standard(t)
	for _, p := range packages(t, "./...") {
		from := strings.TrimPrefix(p.ImportPath, module)
		if from == p.ImportPath || has(free, from) {
			continue
		}
		r, ok := ruleFor(from)
		if !ok {
			t.Errorf("%s has no rule: say in imports_test.go what it may import", from)
			continue
		}
		for _, imported := range p.Imports {
			inside, isOurs := strings.CutPrefix(imported, module)
			switch {
			case isOurs && !has(r.may, inside):
				t.Errorf("%s imports %s, which its layer may not", from, inside)
			case !isOurs && r.std && !std[imported]:
				t.Errorf("%s imports %s: it is for everybody, or for every driver, and needs nothing but the standard library", from, imported)
			}
		}
	}
}

// ruleFor finds the rule with the longest folder.
func ruleFor(from string) (found rule, ok bool) {
	for _, r := range rules() {
		if has([]string{r.from}, from) && len(r.from) >= len(found.from) {
			found, ok = r, true
		}
	}
	return found, ok
}

func has(prefixes []string, path string) bool {
	for _, p := range prefixes {
		if path == p || strings.HasPrefix(path, p+"/") {
			return true
		}
	}
	return false
}

func standard(t *testing.T) map[string]bool {
	std := map[string]bool{}
	for _, p := range packages(t, "std") {
		std[p.ImportPath] = true
	}
	return std
}

func packages(t *testing.T, pattern string) []goPackage {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,Standard", pattern).Output()
	require.NoError(t, err, "go list %s", pattern)
	var all []goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else {
			require.NoError(t, err)
		}
		all = append(all, p)
	}
}
