package sink_test

import (
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	backends "github.com/terapush/terapush/internal/backends/all"
	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/databend"
	"github.com/terapush/terapush/internal/sink/doris"
	"github.com/terapush/terapush/internal/sink/s3"
	"github.com/terapush/terapush/internal/sink/sinktest"
)

// The product pushes into every sink over HTTP with every method it has for it, and what it hears is what went in.
// Loads that the sink was told to refuse are in the tests of the command that opens sinks.
func TestPush(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "me")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	const (
		store = "s3://bucket/prefix?path_style=true&region=us-east-1&endpoint=http://ADDRESS"
		dor   = "doris://root:secret@SQL/db?http_port=PORT"
		bend  = "databend://root:secret@ADDRESS/db?sslmode=disable"
	)
	for _, c := range []struct{ target, args string }{
		{store, "--verify count"}, // a store lists what was put into it
		{store, "--format parquet"},
		{dor, "--method stream-load --format ndjson"},
		{dor, "--method stream-load --group-commit async --group-commit-interval-ms 20"},
		{dor, "--method insert"},
		{bend, "--method streaming-load"},
		{bend, "--method insert"},
		{bend, "--method insert-no-presign"},
		{bend, "--method stage-load"},
	} {
		scheme, _, _ := strings.Cut(c.target, ":")
		t.Run(scheme+" "+c.args, func(t *testing.T) {
			o := sink.Options{}
			var cluster doris.Cluster
			listen := map[string]func(string, sink.Options) (*sink.Server, error){"s3": s3.Listen, "doris": cluster.Listen, "databend": databend.Listen}
			s, statements := sinktest.Open(t, listen[scheme], o), sinktest.Open(t, cluster.ListenSQL, o)
			_, port, err := net.SplitHostPort(s.Addr())
			require.NoError(t, err)
			target := strings.NewReplacer("ADDRESS", s.Addr(), "PORT", port, "SQL", statements.Addr()).Replace(c.target)
			args := "--dataset people --rows 500 --batch-rows 50 --workers 2 "
			if scheme != "s3" {
				args += "--create never --delivery at-least-once --verify ack "
			}
			r, log, err := pushed(t, target, args+c.args)
			require.NoError(t, err, log)
			require.Equal(t, report.OK, r.Result.Outcome)
			require.NotContains(t, log, "level=WARN", "nothing is missing of what a run asks")
			rows, bytes := s.Stats().Rows, s.Stats().Bytes
			if c.args == "--method insert" && scheme == "doris" { // over the MySQL protocol
				rows, bytes = statements.Stats().Rows, r.Result.EncodedBytes
			}
			require.Equal(t, []int64{500, 500, r.Result.EncodedBytes}, []int64{r.Result.Rows, rows, bytes})
		})
	}
}

func pushed(t *testing.T, target, args string) (*report.Report, string, error) {
	drivers, err := backends.Drivers()
	require.NoError(t, err)
	c := config.Push{}
	f := pflag.NewFlagSet("push", pflag.ContinueOnError)
	c.Flags(f, drivers)
	require.NoError(t, f.Parse(strings.Fields(args)))
	require.NoError(t, config.Complete(f, func(string) (string, bool) { return "", false }, ""))
	c.Target, c.State = target, t.TempDir()
	var log strings.Builder
	r, err := push.Run(t.Context(), push.Job{
		Config: c, Drivers: drivers, Given: config.Given(f), Explicit: func(string) bool { return false },
		Drain: make(chan struct{}), Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	return r, log.String(), err
}
