package files_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/terapush/terapush/internal/files"
)

func TestFind(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"b.csv": "b", "a.csv": "a", "c[1].csv": "c", "folder/2": "2", "folder/10": "10", "folder/.hidden": "h",
		"nested/x/y": "y", "gz": "\x1f\x8b\x08", "zst": "\x28\xb5\x2f\xfd", "pzst": "\x50\x2a\x4d\x18",
		"skip": "\x5f\x2a\x4d\x18", "bz2": "BZh9", "xz": "\xfd7zXZ\x00", "zip": "PK\x03\x04",
		"utf16": "\xff\xfea\x00", "utf16le": "a\x00,\x00", "utf16be": "\x00a\x00,",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	require.NoError(t, os.Mkdir("empty", 0o700))
	require.NoError(t, os.Symlink("a.csv", "link"))
	require.NoError(t, unix.Mkfifo("pipe", 0o600))

	for _, c := range []struct {
		patterns []string
		paths    []string
		problem  string
	}{
		{patterns: []string{"b.csv", "a.csv"}, paths: []string{"b.csv", "a.csv"}},
		{patterns: []string{"*.csv"}, paths: []string{"a.csv", "b.csv", "c[1].csv"}},
		{patterns: []string{"b.csv", "*.csv", "link"}, paths: []string{"b.csv", "a.csv", "c[1].csv"}},
		{patterns: []string{"c[1].csv"}, paths: []string{"c[1].csv"}},
		{patterns: []string{"folder"}, paths: []string{"folder/10", "folder/2"}},
		{patterns: []string{"folder/"}, paths: []string{"folder/10", "folder/2"}},
		{problem: "no files are named"},
		{patterns: []string{"missing.csv"}, problem: "missing.csv: no such file"},
		{patterns: []string{"*.tsv"}, problem: "*.tsv: no file has such a name"},
		{patterns: []string{"[.csv"}, problem: "syntax error in pattern"},
		{patterns: []string{"empty"}, problem: "the folder empty has no files"},
		{patterns: []string{"nested"}, problem: "nested/x is a folder"},
		{patterns: []string{"f*"}, problem: "folder is a folder"},
		{patterns: []string{"pipe"}, problem: "pipe is not a regular file"},
		{patterns: []string{"-", "a.csv"}, problem: "it stands alone"},
		{patterns: []string{"bz2"}, problem: "bz2 is compressed with bzip2"},
		{patterns: []string{"xz"}, problem: "xz is compressed with xz"},
		{patterns: []string{"zip"}, problem: "zip is a zip archive"},
		{patterns: []string{"utf16"}, problem: "utf16 is UTF-16"},
		{patterns: []string{"utf16le"}, problem: "iconv -f UTF-16LE"},
		{patterns: []string{"utf16be"}, problem: "iconv -f UTF-16BE"},
	} {
		found, err := files.Find(c.patterns)
		if c.problem != "" {
			require.ErrorContains(t, err, c.problem, "%q", c.patterns)
			continue
		}
		require.NoError(t, err, "%q", c.patterns)
		var paths []string
		for _, f := range found {
			paths = append(paths, f.Path)
		}
		require.Equal(t, c.paths, paths, "%q", c.patterns)
	}

	for name, want := range map[string]files.Compression{
		"a.csv": files.Plain, "gz": files.Gzip, "zst": files.Zstd, "pzst": files.Zstd, "skip": files.Zstd,
	} {
		found, err := files.Find([]string{name})
		require.NoError(t, err)
		require.Equal(t, want, found[0].Compression)
	}
}

func TestSpecCheck(t *testing.T) {
	for problem, change := range map[string]func(*files.Spec){
		"":                              func(*files.Spec) {},
		"--format xml":                  func(s *files.Spec) { s.Format = "xml" },
		`--delimiter ""`:                func(s *files.Spec) { s.Delimiter = "" },
		`--delimiter "::"`:              func(s *files.Spec) { s.Delimiter = "::" },
		`--delimiter "é"`:               func(s *files.Spec) { s.Delimiter = "é" },
		`--delimiter "\n"`:              func(s *files.Spec) { s.Delimiter = "\n" },
		`is also the quote`:             func(s *files.Spec) { s.Delimiter = `"` },
		`--quote ""`:                    func(s *files.Spec) { s.Quote = "" },
		`--escape "ab"`:                 func(s *files.Spec) { s.Escape = "ab" },
		`--null "a,b" has the delim`:    func(s *files.Spec) { s.Null = "a,b" },
		`--null "\"\"" has the quote`:   func(s *files.Spec) { s.Null = `""` },
		`--null "\n"`:                   func(s *files.Spec) { s.Null = "\n" },
		`--null \.`:                     func(s *files.Spec) { s.Null = `\.` },
		`--quote "'": tsv has no quote`: func(s *files.Spec) { *s = files.NewSpec(files.TSV); s.Quote = "'" },
		`a backslash before it has`:     func(s *files.Spec) { *s = files.NewSpec(files.Text); s.Delimiter = "x" },
	} {
		s := files.NewSpec(files.CSV)
		change(&s)
		if err := s.Check(); problem != "" {
			require.ErrorContains(t, err, problem)
		} else {
			require.NoError(t, err)
		}
	}
}

func TestHeaders(t *testing.T) {
	for text, want := range map[string][]string{
		"a,b\n1,2\n":                      {"a", "b"},
		"\xef\xbb\xbf\"a\"\"\n,\",b\r\n1": {"a\"\n,", "b"},
		"only":                            {"only"},
		"":                                nil,
		"\xef\xbb\xbf":                    nil,
		"a,,b\n":                          nil,
		"a,b,a\n":                         nil,
		"\"a,b\n1,2\n":                    nil,
		"\"a,b":                           nil,
		"a,b\r1,2\r":                      nil,
	} {
		spec := files.NewSpec(files.CSV)
		spec.Header = true
		var err error
		spec.Files, err = files.Find([]string{write(t, "f", text)})
		require.NoError(t, err)
		err = spec.ReadHeaders(t.Context())
		problem := map[string]string{
			"a,,b\n": "line 1: column 2 of the header has no name", "a,b,a\n": `line 1: the header has "a" twice`,
			"\"a,b\n1,2\n": "line 1: the header does not end: is a quote missing?",
			"\"a,b":        "line 1: the header does not end: is a quote missing?",
			"a,b\r1,2\r":   "line 1: a carriage return that is not before a newline",
		}[text]
		if problem != "" {
			require.ErrorContains(t, err, problem)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, spec.Files[0].Header)
	}
}
