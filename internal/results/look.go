package results

import (
	"errors"
	"fmt"
	"os"
)

// Look reads a record as Open would find it, and neither takes nor changes it: empty where there is no file yet, or nothing
// of a head. Its error says that Open would refuse what is there.
func Look(path string) (Record, error) {
	r := Record{File: path}
	if err := refuseStrange(path); err != nil {
		return Record{}, err
	}
	in, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return Record{}, fmt.Errorf("reading the record: %w", err)
	}
	defer in.Close()
	if _, err := parseLines(in, &r); err != nil {
		return Record{}, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// refuseStrange refuses what cannot keep a record. As root a device could even be removed by Close, which leaves no empty
// file behind.
func refuseStrange(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("reading the record: %s is no regular file: give another --record", path)
	}
	return nil
}
