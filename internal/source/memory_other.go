//go:build !linux

package source

// MapMemory makes n bytes of zeros; the garbage collector frees them.
func MapMemory(n int64) ([]byte, error) { return make([]byte, n), nil }

// UnmapMemory does nothing.
func UnmapMemory([]byte) error { return nil }
