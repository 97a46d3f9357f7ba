package source

import "golang.org/x/sys/unix"

// MapMemory maps n zero bytes, ≥ 1, outside of Go's heap, where the garbage collector neither counts nor scans them. A
// kernel without huge pages refuses Madvise, which only costs speed.
func MapMemory(n int64) ([]byte, error) {
	memory, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, err
	}
	_ = unix.Madvise(memory, unix.MADV_HUGEPAGE)
	return memory, nil
}

// UnmapMemory gives back what MapMemory returned. Nobody may read it afterwards.
func UnmapMemory(memory []byte) error { return unix.Munmap(memory) }
