package cli

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/databend"
	"github.com/terapush/terapush/internal/sink/doris"
	"github.com/terapush/terapush/internal/sink/mysql"
	"github.com/terapush/terapush/internal/sink/postgres"
	"github.com/terapush/terapush/internal/sink/raw"
	"github.com/terapush/terapush/internal/sink/s3"
)

// sinkProtocol is a protocol that a sink speaks.
type sinkProtocol struct {
	name   string // of the port's flag, and in the JSON
	port   int
	what   string
	listen func(addr string, o sink.Options) (*sink.Server, error)
	// target is the push's TARGET, "" if none can push; {mysql} stands for the address of the port mysql, {doris:port}
	// for the port alone.
	target   string
	compares bool // a push fails if the answer counts no rows
}

func sinkProtocols() []sinkProtocol {
	var cluster doris.Cluster // its two ports share the rows
	return []sinkProtocol{
		{name: "mysql", port: 13306, what: "MySQL: LOAD DATA LOCAL and INSERT", listen: mysql.Listen,
			target: "mysql://sink@{mysql}/sink?tls=false"},
		{name: "postgres", port: 15432, what: "PostgreSQL: COPY and INSERT", listen: postgres.Listen,
			target: "postgres://sink@{postgres}/sink?sslmode=disable"},
		{name: "databend", port: 18000, what: "Databend: streaming load and stage uploads", listen: databend.Listen,
			target: "databend://sink@{databend}/sink?sslmode=disable", compares: true},
		{name: "doris", port: 18030, what: "Doris: stream load", listen: cluster.Listen,
			target: "doris://sink@{doris-sql}/sink?http_port={doris:port}", compares: true},
		{name: "doris-sql", port: 19030, what: "Doris' statements, over the MySQL protocol", listen: cluster.ListenSQL},
		{name: "s3", port: 19000, what: "S3: objects, put whole", listen: s3.Listen,
			target: "s3://sink/prefix?region=us-east-1&path_style=true&endpoint=http://{s3}"},
		{name: "raw", port: 15201, what: "length-prefixed bytes, to compare protocols with", listen: raw.Listen},
	}
}

type sinkFlags struct {
	host      string
	ports     map[string]*int
	options   sink.Options
	rowBytes  config.Bytes
	readRate  config.Rate
	fail      oneIn
	cert, key string
	json      bool
	untilEOF  bool
}

func (a *app) sink() *cobra.Command {
	f := sinkFlags{ports: map[string]*int{}}
	cmd := &cobra.Command{
		Use:   "sink",
		Short: "Accept rows as databases do, count them and discard them",
		Long: `Sink is a server that speaks the protocols of several databases. It counts the rows that arrive and discards them, so that
a push measures the client and the network alone. It can also be slow or fail on purpose. Other clients can use it, too.

The sink has no tables: push into it with --create never --delivery at-least-once --verify ack, or --verify none with
--no-count. Without a flag for a port it opens all of them; port 0 is any free port. Every port except raw accepts plain and
encrypted connections. A signal ends the sink.

A row counts when it is acknowledged, even if its transaction is rolled back. The sink counts rows by the format of the
load; of an S3 object it counts lines, or reads the Parquet footer. It refuses what it cannot count: loads whose number
of rows depends on a table, such as INSERT … SELECT and COPY … WHERE, prepared statements, compressed rows, and
multipart uploads.`,
		Example: `  terapush sink
  terapush sink --mysql 13306 --read-rate 100MiB/s --fail 1/20
  terapush sink --postgres 0 --no-count --row-bytes 520 --json`,
		Args: exactly(0, "sink takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runSink(cmd.Context(), f, cmd.Flags()) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.host, "host", "127.0.0.1", "address to listen on; 0.0.0.0 accepts other machines")
	for _, p := range sinkProtocols() {
		f.ports[p.name] = flags.Int(p.name, p.port, "`port` for "+p.what)
	}
	flags.BoolVar(&f.options.NoCount, "no-count", false, "discard the data in the kernel, and acknowledge 0 rows")
	flags.Var(&f.rowBytes, "row-bytes", "with --no-count: acknowledge a row for this many bytes")
	flags.Var(&f.readRate, "read-rate", "limit of each connection")
	flags.Var(config.Duration(&f.options.AckDelay, 0), "ack-delay", "wait before each answer to a load")
	flags.Var(&f.fail, "fail", "fail every N-th load with an error that clients retry")
	flags.BoolVar(&f.options.CRC, "crc", false, "print the XOR of the CRC-32C of all loads; costs CPU")
	flags.StringVar(&f.cert, "tls-cert", "", "`file` with the certificate (default: a self-signed one)")
	flags.StringVar(&f.key, "tls-key", "", "`file` with the certificate's key")
	flags.BoolVar(&f.json, "json", false, "print one JSON object when all ports are open, and one at the end")
	flags.BoolVar(&f.untilEOF, "until-eof", false, "end when standard input is closed, as a child process")
	return cmd
}

// oneIn is a flag value such as 1/20.
type oneIn int64

func (o *oneIn) Set(text string) error {
	n, err := strconv.ParseInt(strings.TrimPrefix(text, "1/"), 10, 64)
	if err != nil || n < 1 || !strings.HasPrefix(text, "1/") {
		return fmt.Errorf("%q is not a share of the loads: write it as 1/20", text)
	}
	*o = oneIn(n)
	return nil
}

func (o *oneIn) String() string {
	if *o == 0 {
		return ""
	}
	return fmt.Sprintf("1/%d", int64(*o))
}

func (*oneIn) Type() string { return "1/N" }

// check returns an error for every combination of flags that makes no sense.
func (f *sinkFlags) check(set func(name string) bool) error {
	var errs []error
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	refuse(f.options.NoCount && f.options.CRC, "--no-count reads no data, so that --crc has none to check: leave out one of them")
	refuse(set("row-bytes") && !f.options.NoCount, "--row-bytes needs --no-count: without it the rows are counted")
	refuse(set("row-bytes") && f.rowBytes <= 0, "--row-bytes %d: give more than 0", int64(f.rowBytes))
	refuse(f.options.AckDelay < 0, "--ack-delay %s: 0 or more", f.options.AckDelay)
	refuse((f.cert == "") != (f.key == ""), "--tls-cert and --tls-key belong together: give both or neither")
	for _, p := range sinkProtocols() {
		port := *f.ports[p.name]
		refuse(port < 0 || port > 65535, "--%s %d: a port is 0 to 65535", p.name, port)
	}
	return usage(errors.Join(errs...))
}

// certificate returns the TLS configuration with the given certificate, or one made for this host.
func (f *sinkFlags) certificate() (*tls.Config, error) {
	if f.cert == "" {
		return sink.SelfSigned(append(ownAddresses(f.host), f.host)...)
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, usage(fmt.Errorf("--tls-cert %s, --tls-key %s: %w", f.cert, f.key, err))
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// ownAddresses returns the names and addresses of this machine if host stands for all of them.
func ownAddresses(host string) []string {
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		return nil
	}
	var all []string
	if name, err := os.Hostname(); err == nil {
		all = append(all, name)
	}
	addresses, _ := net.InterfaceAddrs() // the name may be enough
	for _, a := range addresses {
		if network, ok := a.(*net.IPNet); ok {
			all = append(all, network.IP.String())
		}
	}
	return all
}

func (a *app) runSink(ctx context.Context, f sinkFlags, flags *pflag.FlagSet) error {
	if err := f.check(flags.Changed); err != nil {
		return err
	}
	f.options.RowBytes, f.options.ReadRate, f.options.Fail = int64(f.rowBytes), int64(f.readRate), int64(f.fail)
	var err error
	if f.options.TLS, err = f.certificate(); err != nil {
		return err
	}
	servers, err := openAll(f, flags.Changed)
	defer servers.close()
	if err != nil {
		return err
	}
	at := map[string]string{}
	for _, s := range servers {
		at[s.name] = s.server.Addr()
	}
	if f.json {
		err = json.NewEncoder(a.Stdout).Encode(map[string]any{"listening": at, "counting": !f.options.NoCount})
	} else {
		_, err = io.WriteString(a.Stdout, sinkHints(f, servers, at))
	}
	if err != nil {
		return err
	}
	a.waitForEnd(ctx, f.untilEOF)
	servers.close() // before the counters are read
	if !f.json {
		return sinkTable(a.Stdout, f, servers)
	}
	took := map[string]sink.Stats{}
	for _, s := range servers {
		took[s.name] = s.server.Stats()
	}
	return json.NewEncoder(a.Stdout).Encode(map[string]any{"took": took})
}

type openSink struct {
	sinkProtocol
	server *sink.Server
}

type openSinks []openSink

// openAll opens the protocols whose ports are set, or all.
func openAll(f sinkFlags, set func(name string) bool) (all openSinks, err error) {
	protocols := slices.DeleteFunc(sinkProtocols(), func(p sinkProtocol) bool { return !set(p.name) })
	if len(protocols) == 0 {
		protocols = sinkProtocols()
	}
	for _, p := range protocols {
		addr := net.JoinHostPort(f.host, strconv.Itoa(*f.ports[p.name]))
		s, err := p.listen(addr, f.options)
		if err != nil {
			err = fmt.Errorf("listening for %s: %w", p.name, err)
			if errors.Is(err, syscall.EADDRINUSE) {
				err = fmt.Errorf("%w: give another port with --%s PORT, or --%s 0 for one that is free", err, p.name, p.name)
			}
			return all, &push.Error{Outcome: report.PreflightFailed, Err: err}
		}
		all = append(all, openSink{p, s})
	}
	return all, nil
}

func (o openSinks) close() {
	for _, s := range o {
		_ = s.server.Close() // the second time it fails
	}
}

// waitForEnd waits for a signal or, with untilEOF, the end of stdin.
func (a *app) waitForEnd(ctx context.Context, untilEOF bool) {
	ended := make(chan struct{})
	if untilEOF {
		go func() {
			if a.Stdin != nil {
				_, _ = io.Copy(io.Discard, a.Stdin)
			}
			close(ended)
		}()
	}
	select {
	case <-ended:
	case <-a.Signals:
	case <-ctx.Done():
	}
}
