package runlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// room is what a run's folder takes at its start, several times over.
const room = 64 << 10

// Usable makes the state folder and tries to write a run's worth there: one that could not be kept must not touch a
// database.
func Usable(stateDir string) error {
	err := os.MkdirAll(stateDir, 0o700)
	if err == nil {
		var try string
		if try, err = os.MkdirTemp(stateDir, ".try-"); err == nil {
			err = errors.Join(writeFile(filepath.Join(try, recordFile), make([]byte, room)), os.RemoveAll(try))
		}
	}
	if err != nil {
		return fmt.Errorf("the state folder, without which a run cannot be resumed: %w; choose another --state-dir", err)
	}
	return nil
}

// replaceFile writes beside the old file, syncs and renames, then syncs the folder that holds the name.
func replaceFile(path string, text []byte) error {
	beside := path + ".new"
	if err := writeFile(beside, text); err != nil {
		return err
	}
	if err := os.Rename(beside, path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// writeFile is os.WriteFile, durably but for the name.
func writeFile(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncFolder(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
