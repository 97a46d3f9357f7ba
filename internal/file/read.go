// Package file reads the files that a user names, and writes those that a user asks for.
package file

import (
	"fmt"
	"io"
	"os"

	"github.com/dustin/go-humanize"
)

// Limits of what is read whole. A parser may take thirty times the bytes of its text.
const (
	MaxSettings = 1 << 20  // what people write: plans, settings, prices, passwords
	MaxCerts    = 16 << 20 // the bundles of systems have 250 KB
)

// Read reads a whole file, or all that a pipe has. More than most bytes are an error and are not kept in memory: /dev/zero
// has no end.
func Read(path string, most int64) ([]byte, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s has more than %s: is it the right file?", path, humanize.IBytes(uint64(most)))
	}
	return text, nil
}
