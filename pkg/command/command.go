// Package command is terapush's command line for programs that bring back-ends of their own:
//
//	func main() { command.Main(mydb.New()) }
//
// Such a program has every command, flag and back-end of terapush, and pushes into mydb:// besides. docs/BACKENDS.md says how
// a back-end is written.
package command

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	_ "golang.org/x/crypto/x509roots/fallback" // authorities for a container that holds this binary and nothing else

	"github.com/terapush/terapush/internal/cli"
	"github.com/terapush/terapush/pkg/loader"
)

// Main runs the command line of this process with terapush's back-ends and the given ones, and ends the process with the
// exit code. Two back-ends of one name or scheme are an error.
func Main(more ...loader.Driver) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as it is under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // ends no run; children would inherit signal.Ignore

	os.Exit(cli.Run(context.Background(), os.Args[1:], cli.Process{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, LookupEnv: os.LookupEnv, Environ: os.Environ, Signals: signals,
		Drivers: more,
	}))
}
