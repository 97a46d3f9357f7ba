// Command sink runs the sinks in a process of their own, so that a client's CPU time can be measured alone.
//
//	sink -mysql 127.0.0.1:0 -postgres 127.0.0.1:0 -s3 127.0.0.1:0 -databend 127.0.0.1:0 -tcp 127.0.0.1:0
//	sink -doris 127.0.0.1:0 -doris-sql 127.0.0.1:0
//
// It prints the addresses as one JSON object, and on SIGINT, SIGTERM or (with -stdin) the end of its input what each
// of them took in as another. -tcp is no protocol at all: it counts bytes, beside which the others are measured.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/mysql"
	"github.com/terapush/terapush/internal/sink/postgres"
	"github.com/terapush/terapush/internal/sink/raw"
	"github.com/terapush/terapush/internal/sink/web"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sink:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	over := func(a web.Answers) func(string, sink.Options) (*sink.Server, error) {
		return func(addr string, o sink.Options) (*sink.Server, error) { return web.ListenWith(addr, o, a) }
	}
	protocols := map[string]func(string, sink.Options) (*sink.Server, error){
		"mysql": mysql.Listen, "postgres": postgres.Listen, "tcp": raw.Listen,
		"s3": over(web.Answers{}), "databend": over(web.Databend()), "doris": over(web.Doris()),
		"doris-sql": func(addr string, o sink.Options) (*sink.Server, error) {
			o.Answer = web.DorisSQL
			return mysql.Listen(addr, o)
		},
	}
	flags := flag.NewFlagSet("sink", flag.ContinueOnError)
	wanted := map[string]*string{}
	for name := range protocols {
		wanted[name] = flags.String(name, "", "`address` to listen on for "+name)
	}
	var o sink.Options
	flags.Int64Var(&o.RowBytes, "row-bytes", 0, "drop load data inside the kernel; rows are bytes / `size`")
	untilEOF := flags.Bool("stdin", false, "end when standard input ends, as a child should when its parent is gone")
	if err := flags.Parse(args); err != nil {
		return err
	}

	addresses, servers := map[string]string{}, map[string]*sink.Server{}
	for name, listen := range protocols {
		if *wanted[name] == "" {
			continue
		}
		s, err := listen(*wanted[name], o)
		if err != nil {
			return err
		}
		defer func() { _ = s.Close() }()
		addresses[name], servers[name] = s.Addr(), s
	}
	out := json.NewEncoder(stdout)
	if err := out.Encode(addresses); err != nil {
		return err
	}
	if *untilEOF {
		_, _ = io.Copy(io.Discard, stdin) // however it ends, it has ended
	} else {
		<-ctx.Done()
	}
	taken := map[string]sink.Stats{}
	for name, s := range servers {
		taken[name] = s.Stats()
	}
	return out.Encode(taken)
}
