package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"syscall"

	"github.com/terapush/terapush/internal/file"
	"github.com/terapush/terapush/internal/results"
)

// pipe is stdout. When its reader has gone, as head does, it drops the rest, and the command ends as it would have.
type pipe struct {
	out    io.Writer
	closed bool
}

func (p *pipe) Write(text []byte) (int, error) {
	if p.closed {
		return len(text), nil
	}
	n, err := p.out.Write(text)
	if errors.Is(err, syscall.EPIPE) {
		p.closed = true
		return len(text), nil
	}
	return n, err
}

// areOne reports whether what is written to both ends up in one place.
func areOne(out, log io.Writer) bool {
	a, isFile := out.(*os.File)
	b, areFiles := log.(*os.File)
	if !isFile || !areFiles {
		return false
	}
	x, errX := a.Stat()
	y, errY := b.Stat()
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// colors are those of the words with which lines begin that say how something went.
var colors = []struct {
	words  *regexp.Regexp
	escape string
}{
	{regexp.MustCompile(`(?m)^ *(ok|verify ok)\b`), "\x1b[32m$0\x1b[0m"},
	{regexp.MustCompile(`(?m)^ *(warn|warning|interrupted|rejected)\b`), "\x1b[33m$0\x1b[0m"},
	{regexp.MustCompile(`(?m)^ *(fail|failed|error|verify FAILED|verification_failed|unknown|preflight_failed)\b`), "\x1b[31m$0\x1b[0m"},
}

// colored returns text in colours, if it is for a terminal and its user has not set NO_COLOR.
func (a *app) colored(text []byte) []byte {
	noColor, _ := a.LookupEnv("NO_COLOR")
	kind, _ := a.LookupEnv("TERM")
	if a.columns == 0 || noColor != "" || kind == "dumb" {
		return text
	}
	for _, c := range colors {
		text = c.words.ReplaceAll(text, []byte(c.escape))
	}
	return text
}

// note prints to stderr what is no error.
func (a *app) note(format string, args ...any) {
	if !a.logging.Quiet {
		fmt.Fprintf(a.terminal, format, args...)
	}
}

// input is a file that a command reads or keeps, and the flag that names it; path may be "".
type input struct{ name, path string }

// refuseOver returns an error if a file would be written over one that the command needs.
func refuseOver(flag, out string, inputs ...input) error {
	for _, in := range inputs {
		if out != "" && in.path != "" && file.Same(out, in.path) {
			return fmt.Errorf("%s %s: it is the same file as %s, which it would overwrite", flag, out, in.name)
		}
	}
	return nil
}

// canWrite checks, before hours of work, that a page can be written; "" is none.
func canWrite(path string) error {
	if path == "" {
		return nil
	}
	if err := file.Writable(path); err != nil {
		return fmt.Errorf("--report %s: %w", path, err)
	}
	return nil
}

// writePage writes the tables that are made of records, and their charts, to an HTML file, for others to see: without
// names.
func writePage(path string, tables func([]results.Record) []results.Table, all ...results.Record) error {
	shown, err := results.WithoutNames(all)
	if err != nil {
		return fmt.Errorf("--report %s: %w", path, err)
	}
	return writeFile("--report", path, func(w io.Writer) error { return results.HTML.Write(w, tables(shown)) })
}

// writeFile writes the file that a flag names once its text is complete: half a report looks like a whole one.
func writeFile(flag, path string, write func(io.Writer) error) error {
	var text bytes.Buffer
	err := write(&text)
	if err == nil {
		err = file.Write(path, text.Bytes())
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", flag, path, err)
	}
	return nil
}
