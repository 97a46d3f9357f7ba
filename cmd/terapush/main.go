// Command terapush pushes terabytes into databases and proves that every row arrived exactly once.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/terapush/terapush/internal/cli"
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	os.Exit(cli.Run(context.Background(), os.Args[1:], cli.Process{
		Stdout: os.Stdout, Stderr: os.Stderr, LookupEnv: os.LookupEnv, Signals: signals,
	}))
}
