package live

import (
	"bytes"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// Terminal is an output with a line that is redrawn below everything else that is printed. It is safe for concurrent
// use: the logger writes to it too.
type Terminal struct {
	mu    sync.Mutex
	out   io.Writer
	width func() int // columns; nil: no terminal
	line  string     // the drawn line
	open  bool       // the last Write did not end its line
}

// NewTerminal wraps an output. Lines are redrawn if it is a terminal and TERM is not "dumb".
func NewTerminal(out io.Writer) *Terminal {
	t := &Terminal{out: out}
	if Columns(out) > 0 && os.Getenv("TERM") != "dumb" {
		t.width = func() int { return Columns(out) }
	}
	return t
}

// Columns returns the width of an output that is a terminal, else 0.
func Columns(out io.Writer) int {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0
	}
	columns, _, err := term.GetSize(int(file.Fd()))
	if err != nil || columns <= 0 {
		return 80
	}
	return columns
}

// Interactive reports whether lines can be redrawn.
func (t *Terminal) Interactive() bool { return t.width != nil }

// columns returns the maximum length of a drawn line. The last column stays empty: some terminals wrap once it is
// written.
func (t *Terminal) columns() int { return max(t.width()-1, 1) }

// eraseLine clears the line and returns to its first column.
const eraseLine = "\r\x1b[2K"

// Write prints above the drawn line.
func (t *Terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	t.open = !bytes.HasSuffix(p, []byte("\n"))
	if t.line == "" {
		return t.out.Write(p)
	}
	shown := t.line
	t.put(eraseLine)
	n, err := t.out.Write(p)
	if t.open {
		t.line = "" // the next draw restores it
	} else {
		t.put(shown)
	}
	return n, err
}

// draw replaces the drawn line; "" removes it.
func (t *Terminal) draw(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open {
		return // another writer has not ended its line
	}
	if t.line != "" {
		t.put(eraseLine)
	}
	t.put(line)
	t.line = line
}

// put ignores errors: a closed terminal must not end a run.
func (t *Terminal) put(s string) { _, _ = io.WriteString(t.out, s) }
