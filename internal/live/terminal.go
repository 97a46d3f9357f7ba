package live

import (
	"bytes"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// Terminal shares one output between a line that is redrawn in place and everything else that is printed there. Hand
// it to the logger: it is safe for concurrent use.
type Terminal struct {
	mu    sync.Mutex
	out   io.Writer
	width func() int // columns; nil: no terminal
	line  string     // what stands on the screen's last line
	open  bool       // the last Write did not end its line
}

// NewTerminal wraps an output. Only what the system says is a terminal is drawn on.
func NewTerminal(out io.Writer) *Terminal {
	t := &Terminal{out: out}
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" {
		return t
	}
	t.width = func() int {
		columns, _, err := term.GetSize(int(file.Fd()))
		if err != nil || columns <= 0 {
			return 80
		}
		return columns
	}
	return t
}

// Interactive tells whether lines can be redrawn.
func (t *Terminal) Interactive() bool { return t.width != nil }

// columns is how many a drawn line may have. The last one stays empty: some terminals wrap as soon as it is written.
func (t *Terminal) columns() int { return max(t.width()-1, 1) }

// eraseLine goes back to the first column and clears the line.
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
		t.line = "" // the next Draw brings it back
	} else {
		t.put(shown)
	}
	return n, err
}

// draw replaces the drawn line; "" takes it away.
func (t *Terminal) draw(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open {
		return // on a line that somebody else has not ended
	}
	if t.line != "" {
		t.put(eraseLine)
	}
	t.put(line)
	t.line = line
}

// put has nobody to tell about an error: a terminal that is gone does not end a run.
func (t *Terminal) put(s string) { _, _ = io.WriteString(t.out, s) }
