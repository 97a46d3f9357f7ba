package runlog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/terapush/terapush/internal/file"
	"github.com/terapush/terapush/pkg/event"
)

func touch(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("starting the journal: %w", err)
	}
	return errors.Join(f.Close(), file.SyncFolder(filepath.Dir(path)))
}

func openToReplay(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		err = fmt.Errorf("opening the journal: %w", err)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = &DamagedError{err}
	}
	return file, err
}

// replayMarks reads the marks. A crash leaves some of the newest out, and changes none.
func replayMarks(dir string, f func(event.Event)) error {
	path := filepath.Join(dir, batchesFile)
	file, err := openToReplay(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := readMarks(bufio.NewReaderSize(file, 1<<16), f); err != nil {
		err = fmt.Errorf("reading the journal %s: %w", path, err)
		if errors.As(err, new(*fs.PathError)) { // the disk has failed, not the journal
			return err
		}
		return &DamagedError{err}
	}
	return file.Sync()
}

func readMarks(marks io.ByteReader, f func(event.Event)) error {
	for e := (event.Event{Attempt: 1}); ; e.Batch++ {
		mark, err := marks.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case mark == 0:
			continue
		case mark == begun:
			e.Outcome = event.Started
		case mark == in:
			e.Outcome = event.Applied
		default:
			return fmt.Errorf("the mark of batch %d is %d, which has no meaning", e.Batch, mark)
		}
		f(e)
	}
}

// replay reads the journal and cuts off a line that a crash left half written, so that no new line joins it.
func replay(dir, run string, f func(event.Event)) error {
	path := filepath.Join(dir, journalFile)
	file, err := openToReplay(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err = readEvents(file, run, f); err != nil {
		err = fmt.Errorf("reading the journal %s: %w", path, err)
		if errors.As(err, new(*fs.PathError)) { // the disk has failed, not the journal
			return err
		}
		torn := (*event.TornError)(nil)
		if !errors.As(err, &torn) || torn.Offset == 0 { // a crash cannot cut the first line: Create has synced it
			return &DamagedError{err}
		}
		err = file.Truncate(torn.Offset)
	}
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		return fmt.Errorf("repairing the journal %s: %w", path, err)
	}
	return nil
}

func readEvents(file io.Reader, run string, f func(event.Event)) error {
	r, err := event.NewReader(file)
	if err == nil && r.Header().Run != run {
		return fmt.Errorf("it is the journal of run %q", r.Header().Run)
	}
	for err == nil {
		var e event.Event
		if e, err = r.Next(); err == nil {
			f(e)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
