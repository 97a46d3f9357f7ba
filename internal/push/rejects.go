package push

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/terapush/terapush/internal/engine"
	"github.com/terapush/terapush/internal/file"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// rejects are the records that a load leaves out, in the user's file: a line of JSON for each, with the run and the batch. A
// line is on disk before its batch is committed without the record, so that a kill in between leaves lines of batches that
// are not in: whoever sends such a batch replaces them.
type rejects struct {
	path string
	run  string
	most int64

	mu    sync.Mutex
	lines map[int64][][]byte // by batch
	all   int64
	file  *os.File
}

// reject is a line of the file.
type reject struct {
	Run   string `json:"run"`
	Batch int64  `json:"batch"`
	batch.Bad
}

// openRejects opens the file of --rejects, and keeps of it the lines of batches that are in.
func (p *push) openRejects() error {
	c := p.Config.Files
	if c == nil || c.MaxRejects == 0 || p.idle || p.rejects != nil {
		return nil
	}
	path, err := filepath.Abs(c.Rejects)
	if err != nil {
		return err
	}
	r := &rejects{path: path, run: p.progress.ID, most: c.MaxRejects, lines: make(map[int64][][]byte)}
	done := p.progress.Done
	if p.progress.Stage() != runlog.Loading { // all batches are in
		done = func(int64) bool { return true }
	}
	if err := r.read(done); err != nil {
		return failed(Usage, fmt.Errorf("--rejects: %w", err))
	}
	p.rejects = r
	return nil
}

// read takes the lines of this run, of batches that are in.
func (r *rejects) read(done func(number int64) bool) error {
	text, err := os.ReadFile(r.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for line := range bytes.Lines(text) {
		var one reject
		if err := json.Unmarshal(line, &one); err != nil && bytes.HasSuffix(line, []byte("\n")) {
			return fmt.Errorf("%s is not a file of rejected records: choose another name", r.path)
		} else if err != nil {
			break // a crash has cut it off
		}
		if one.Run != r.run {
			return fmt.Errorf("%s has the rejected records of run %s: choose another name, or move it away", r.path, one.Run)
		}
		if done(one.Batch) {
			r.lines[one.Batch] = append(r.lines[one.Batch], bytes.Clone(line))
			r.all++
		}
	}
	return r.rewrite()
}

// rewrite replaces the file by the lines that are kept.
func (r *rejects) rewrite() error {
	var text []byte
	for _, lines := range r.lines {
		text = append(text, bytes.Join(lines, nil)...)
	}
	if r.file != nil {
		_ = r.file.Close() // all of it is replaced
	}
	err := file.Replace(r.path, text)
	if err != nil {
		return err
	}
	r.file, err = os.OpenFile(r.path, os.O_WRONLY|os.O_APPEND, 0)
	return err
}

// Take implements engine.Rejects.
func (r *rejects) Take(number int64, bad []batch.Bad) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	had := len(r.lines[number])
	if now := r.all - int64(had) + int64(len(bad)); now > r.most {
		last := bad[len(bad)-1]
		return fmt.Errorf("%d records are refused, more than --max-rejects %d; the last is in %s, line %d: %s",
			now, r.most, last.File, last.Line, last.Words)
	}

	var lines [][]byte
	for _, one := range bad {
		line, err := json.Marshal(reject{r.run, number, one})
		if err != nil {
			return err
		}
		lines = append(lines, append(line, '\n'))
	}
	r.lines[number] = lines
	r.all += int64(len(lines) - had)
	if had > 0 {
		return r.failed(r.rewrite())
	}
	_, err := r.file.Write(bytes.Join(lines, nil))
	if err == nil {
		err = r.file.Sync()
	}
	return r.failed(err)
}

func (r *rejects) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("keeping rejected records, without which their batch is not sent: %w", err)
}

// taker returns what the engine gives rejected records to; nil if the first ends the run.
func (r *rejects) taker() engine.Rejects {
	if r == nil {
		return nil
	}
	return r
}

// count returns how many records are left out.
func (r *rejects) count() int64 {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}

// leftOut returns an error if records were left out: the others are in.
func (p *push) leftOut() error {
	n := p.rejects.count()
	if n == 0 {
		return nil
	}
	err := fmt.Errorf("%d records were refused by the server, and are in %s; all others are in", n, p.rejects.path)
	return &Error{Outcome: report.Rejected, Err: loader.Final(err)}
}
