package host

import (
	"os"
	"regexp"
	"runtime"
)

// Machine identifies a machine beside figures that were measured on it. What the system does not tell is zero.
type Machine struct {
	Host        string `json:"host"`
	OS          string `json:"os"` // with the kernel's version
	Arch        string `json:"arch"`
	CPU         string `json:"cpu"` // the model's name
	Cores       int    `json:"cores"`
	MemoryBytes int64  `json:"memory_bytes"`
}

// ThisMachine returns the machine that this process runs on, with the cores that it may use.
func ThisMachine() Machine {
	m := Machine{OS: system(), Arch: runtime.GOARCH, Cores: runtime.GOMAXPROCS(0), MemoryBytes: Memory()}
	m.Host, _ = os.Hostname() // returns "" with an error
	text, _ := os.ReadFile("/proc/cpuinfo")
	// The first processor's name. Linux on ARM does not tell it.
	if name := regexp.MustCompile(`(?m)^model name\s*:\s*(.*\S)`).FindSubmatch(text); name != nil {
		m.CPU = string(name[1])
	}
	return m
}
