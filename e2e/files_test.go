package e2e_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// writeFile makes a file that only its owner can read.
func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// everythingIn is the text of all files under a folder.
func everythingIn(t testing.TB, folder string) (all string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all += string(text)
		return err
	}))
	return all
}

// hides looks for the password in every form that a URL, a shell or a program might give it.
func hides(t testing.TB, password string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		for _, form := range []string{
			password, url.QueryEscape(password), url.PathEscape(password), strings.TrimPrefix(url.UserPassword("", password).String(), ":"),
			strings.Trim(strings.ReplaceAll(password, `"`, `\"`), " "), "p@ss/w", "p%40ss",
		} {
			require.NotContains(t, text, form)
		}
	}
}
