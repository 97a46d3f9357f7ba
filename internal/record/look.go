package record

import (
	"errors"
	"fmt"
	"os"
)

// Look reads a record as Open would find it, and neither takes nor changes it: empty where there is no file yet, or nothing
// of a head. Its error says that Open would refuse what is there.
func Look(path string) (Record, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(text) == 0 {
		return Record{File: path}, nil
	}
	if err != nil {
		return Record{}, fmt.Errorf("reading the record: %w", err)
	}
	r := Record{File: path}
	if _, err := parse(text, &r); err != nil {
		return Record{}, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}
