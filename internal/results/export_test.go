package results

import "io"

// From reads a record as Read does.
func From(in io.Reader) (Record, error) { return read(in) }
