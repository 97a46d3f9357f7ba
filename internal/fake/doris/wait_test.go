package doris_test

import (
	"io"
	"net"
	"time"
)

// Bounds for what happens on another goroutine; nothing is measured by them.
const (
	timeLimit = 10 * time.Second
	tick      = time.Millisecond
)

func readUntilEOF(c net.Conn) (string, error) {
	text, err := io.ReadAll(c)
	return string(text), err
}
