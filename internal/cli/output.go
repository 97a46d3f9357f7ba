package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode"

	"github.com/terapush/terapush/internal/analysis"
	"github.com/terapush/terapush/internal/record"
	"github.com/terapush/terapush/internal/render"
)

// pipe is stdout. Whoever reads it may have seen enough, as head has: what comes behind that is thrown away, and what the
// command does ends as it would have.
type pipe struct {
	out    io.Writer
	closed bool
}

// Write implements io.Writer.
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

// printable puts a space for every control character: servers say what they want, and a terminal obeys some of it.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// input is a file that a command reads or keeps, by the flag or argument that names it; path is "" for none.
type input struct{ name, path string }

// refuseOver refuses to write a file over one that the command needs.
func refuseOver(flag, out string, inputs ...input) error {
	for _, in := range inputs {
		if out != "" && in.path != "" && sameFile(out, in.path) {
			return fmt.Errorf("%s %s: it is the same file as %s, which would be gone", flag, out, in.name)
		}
	}
	return nil
}

// sameFile tells whether two paths are one file, by whatever names and links, also if there is none yet.
func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return os.SameFile(infoA, infoB)
	}
	return resolved(a) == resolved(b)
}

// resolved is where a file is, or would be made.
func resolved(path string) string {
	const most = 40 // links, as the kernel has it
	for range most {
		if there, err := filepath.EvalSymlinks(path); err == nil {
			path = there
			break
		}
		next, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(next) {
			next = filepath.Join(filepath.Dir(path), next)
		}
		path = next
	}
	if folder, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(folder, filepath.Base(path))
	}
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

// canWrite finds out before hours of work whether writeNew will be able to put a file there.
func canWrite(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("--report %s: it is a folder", path)
	}
	trial, err := newBeside(path)
	if err == nil {
		err = errors.Join(trial.Close(), os.Remove(trial.Name()))
	}
	return err
}

// newBeside makes a file with a name of its own in the folder of another.
func newBeside(path string) (*os.File, error) {
	out, err := os.CreateTemp(filepath.Dir(path), ".terapush-*")
	var of *fs.PathError
	if errors.As(err, &of) {
		err = of.Err // its path is one that nobody has given
	}
	if err != nil {
		return nil, fmt.Errorf("--report %s: making a file in its folder: %w", path, err)
	}
	return out, nil
}

// writePage writes the tables and charts of a record.
func writePage(path string, r record.Record) error {
	return writeNew(path, func(w io.Writer) error { return render.HTML(w, analysis.Tables([]record.Record{r})) })
}

// writeNew puts a file in the place of another when it is whole.
func writeNew(path string, write func(io.Writer) error) error {
	out, err := newBeside(path)
	if err != nil {
		return err
	}
	defer os.RemoveAll(out.Name()) // it has its own name by then when all went well
	err = errors.Join(write(out), out.Chmod(0o644), out.Close())
	if err == nil {
		err = os.Rename(out.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("--report %s: %w", path, err)
	}
	return nil
}
