// Package machine tells what this process may use of the computer it runs on, how that is set up, and what it has done.
// Nothing here is an error: what cannot be read is empty.
package host

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Memory is the memory this process may use, in bytes: the cgroup's limit where there is one, else the machine's
// memory; 0 where neither can be read.
func Memory() int64 { return memory("/") }

func memory(root string) int64 {
	total := machineMemory(filepath.Join(root, "proc/meminfo"))
	// Version 2 of cgroups first; its limit is the word "max" where there is none. Version 1 writes a number near 2^63.
	for _, name := range []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue
		}
		limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err == nil && limit > 0 && (total == 0 || limit < total) {
			return limit
		}
	}
	return total
}

// machineMemory reads the line "MemTotal:       24567890 kB" of /proc/meminfo; its kB are KiB.
func machineMemory(path string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) >= 2 && fields[0] == "MemTotal:" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err == nil {
				return kib << 10
			}
		}
	}
	return 0
}
