package runlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/terapush/terapush/internal/file"
	"github.com/terapush/terapush/internal/files"
)

// rangesFile has a line for each batch of a load of files: its offsets, records and hash. A line is on disk before its
// batch is first sent, so that another process sends the same bytes.
const rangesFile = "ranges.jsonl"

// Ranges returns the ranges that processes of the run have kept, and what keeps more of them: all are on disk when it
// returns. It is for the log of a folder, once it has the run's name.
func (l *Log) Ranges() (kept []files.Range, keep func([]files.Range) error, err error) {
	dir := Folder(l.dir)
	f, err := os.OpenFile(dir.path(rangesFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the list of batches: %w", err)
	}
	kept, length, err := readRanges(dir)
	if err == nil {
		// What a crash has cut off, or left unwritten, was never sent.
		err = errors.Join(f.Truncate(length), f.Sync(), file.SyncFolder(l.dir))
	}
	if err == nil {
		_, err = f.Seek(length, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("reading the list of batches: %w", err), f.Close())
	}

	l.ranges = f
	return kept, func(more []files.Range) error {
		var text []byte
		for _, r := range more {
			var err error
			if text, err = appendLine(text, r); err != nil {
				return err
			}
		}
		_, err := f.Write(text)
		return errors.Join(err, f.Sync())
	}, nil
}

// readRanges reads whole lines up to the first that is none, and how many bytes they have.
func readRanges(dir Folder) (kept []files.Range, length int64, err error) {
	text, err := os.ReadFile(dir.path(rangesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	for line := range bytes.Lines(text) {
		var r files.Range
		if !bytes.HasSuffix(line, []byte("\n")) || json.Unmarshal(line, &r) != nil || r.Batch != int64(len(kept)) {
			break
		}
		kept = append(kept, r)
		length += int64(len(line))
	}
	return kept, length, nil
}
