package host

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// tree is the folder in which /proc and /sys are looked for: "/", and another one in tests.
type tree string

// text is a file's content without the white space around it. Some files of /sys are there and refuse to be read, and in
// containers whole folders are missing: to a reader both are the same.
func (t tree) text(path ...string) (text string, ok bool) {
	read, err := os.ReadFile(t.path(path...))
	return strings.TrimSpace(string(read)), err == nil
}

// number is a file that holds one number; -1 for everything else, as the kernel says it of a link's speed.
func (t tree) number(path ...string) int64 {
	text, _ := t.text(path...)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// names lists a folder, sorted.
func (t tree) names(path ...string) []string {
	entries, _ := os.ReadDir(t.path(path...)) // one that cannot be read is as good as empty
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

func (t tree) path(path ...string) string {
	return filepath.Join(append([]string{string(t)}, path...)...)
}
