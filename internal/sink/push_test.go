package sink_test

import (
	"fmt"
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

// The product pushes into every sink over HTTP with every method it has for it, and what it hears is what went in. Loads
// that fail because the sink was told so are sent again.
func TestPush(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "me")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	const (
		store = "s3://bucket/prefix?path_style=true&region=us-east-1&endpoint=http://ADDRESS"
		dor   = "doris://root:secret@SQL/db?http_port=PORT"
		bend  = "databend://root:secret@ADDRESS/db?sslmode=disable"
	)
	for _, c := range []struct {
		target, args string
		fails        bool
	}{
		{store, "--verify count", false}, // a store lists what was put into it
		{store, "--format parquet", false},
		{store, "", true},
		{dor, "--method stream-load", false},
		{dor, "--method stream-load --format ndjson", false},
		{dor, "--method stream-load --group-commit sync", false},
		{dor, "--method stream-load", true},
		{dor, "--method insert", false},
		{bend, "--method streaming-load", false},
		{bend, "--method insert", false},
		{bend, "--method insert-no-presign", false},
		{bend, "--method stage-load", false},
		{bend, "--method streaming-load", true},
	} {
		scheme, _, _ := strings.Cut(c.target, ":")
		t.Run(strings.Join([]string{scheme, c.args, fmt.Sprint(c.fails)}, " "), func(t *testing.T) {
			o := sink.Options{Password: "secret"}
			if c.fails {
				o.Fail = 3
			}
			var cluster doris.Cluster
			listen := map[string]func(string, sink.Options) (*sink.Server, error){"s3": s3.Listen, "doris": cluster.Listen, "databend": databend.Listen}
			s, statements := sinktest.Open(t, listen[scheme], o), sinktest.Open(t, cluster.ListenSQL, sink.Options{Password: "secret"})
			_, port, err := net.SplitHostPort(s.Addr())
			require.NoError(t, err)
			target := strings.NewReplacer("ADDRESS", s.Addr(), "PORT", port, "SQL", statements.Addr()).Replace(c.target)
			args := "--dataset people --rows 500 --batch-rows 50 --workers 2 --retries 5 "
			if scheme != "s3" {
				args += "--create never --delivery at-least-once --verify ack "
			}
			r, log, err := pushed(t, target, args+c.args)
			require.NoError(t, err, log)
			require.Equal(t, report.OK, r.Result.Outcome)
			rows, bytes := s.Stats().Rows, s.Stats().Bytes
			if c.args == "--method insert" && scheme == "doris" { // over the MySQL protocol
				rows, bytes = statements.Stats().Rows, r.Result.EncodedBytes
			}
			require.Equal(t, []int64{500, 500, r.Result.EncodedBytes}, []int64{r.Result.Rows, rows, bytes})
			require.Equal(t, s.Stats().Failed, r.Result.Retries)
			require.Equal(t, c.fails, s.Stats().Failed > 0)
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
