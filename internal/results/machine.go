package results

import (
	"bufio"
	"os"
	"runtime"
	"strings"

	"github.com/terapush/terapush/internal/host"
)

// ThisMachine is the one that this process runs on.
func ThisMachine() Machine {
	name, err := os.Hostname()
	if err != nil {
		name = ""
	}
	return Machine{
		Host: name, OS: system(), Arch: runtime.GOARCH, CPU: cpuModel(),
		Cores: runtime.GOMAXPROCS(0), MemoryBytes: host.Memory(),
	}
}

// cpuModel is the name of the first processor. Linux on ARM does not tell it.
func cpuModel() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		name, value, found := strings.Cut(lines.Text(), ":")
		if found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
