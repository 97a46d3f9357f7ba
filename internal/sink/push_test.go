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
)

// The product pushes into every sink over HTTP with every method it has for it, and what it hears is what went in.
func TestPush(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "me")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	type open func(addr string, o sink.Options) (*sink.Server, error)
	for name, c := range map[string]struct {
		listen open   // nil: a Doris
		target string // "%s" is the address, "%p" its port
		args   string
		sql    bool // rows come over the MySQL protocol
	}{
		"s3":                         {s3.Listen, "s3://bucket/prefix?path_style=true&region=us-east-1&endpoint=http://%s", "", false},
		"s3, parquet":                {s3.Listen, "s3://bucket/prefix?path_style=true&region=us-east-1&endpoint=http://%s", "--format parquet", false},
		"doris stream-load":          {nil, "doris://root:secret@%q/db?http_port=%p", "--method stream-load", false},
		"doris stream-load, json":    {nil, "doris://root:secret@%q/db?http_port=%p", "--method stream-load --format ndjson", false},
		"doris group commit":         {nil, "doris://root:secret@%q/db?http_port=%p", "--method stream-load --group-commit sync", false},
		"doris insert":               {nil, "doris://root:secret@%q/db?http_port=%p", "--method insert", true},
		"databend streaming-load":    {databend.Listen, "databend://root:secret@%s/db?sslmode=disable", "--method streaming-load", false},
		"databend insert":            {databend.Listen, "databend://root:secret@%s/db?sslmode=disable", "--method insert", false},
		"databend insert-no-presign": {databend.Listen, "databend://root:secret@%s/db?sslmode=disable", "--method insert-no-presign", false},
		"databend stage-load":        {databend.Listen, "databend://root:secret@%s/db?sslmode=disable", "--method stage-load", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := sink.Options{Password: "secret"}
			var cluster doris.Cluster
			if c.listen == nil {
				c.listen = cluster.Listen
			}
			s, err := c.listen("127.0.0.1:0", o)
			require.NoError(t, err)
			defer s.Close()
			statements, err := cluster.ListenSQL("127.0.0.1:0", o)
			require.NoError(t, err)
			defer statements.Close()
			_, port, err := net.SplitHostPort(s.Addr())
			require.NoError(t, err)
			target := strings.NewReplacer("%s", s.Addr(), "%p", port, "%q", statements.Addr()).Replace(c.target)
			r, log, err := pushed(t, target, "--create never --delivery at-least-once --verify ack --dataset people --rows 500 --batch-rows 50 --workers 2 "+c.args)
			require.NoError(t, err, log)
			require.Equal(t, report.OK, r.Result.Outcome)
			require.EqualValues(t, 500, r.Result.Rows)
			rows := s.Stats().Rows
			if c.sql {
				rows = statements.Stats().Rows
			} else {
				require.Equal(t, r.Result.EncodedBytes, s.Stats().Bytes)
			}
			require.EqualValues(t, 500, rows)
		})
	}
}

// A store lists what was put into it, so that arrival can be proven by its names and sizes.
func TestPushIsFoundInTheStore(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "me")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	s, err := s3.Listen("127.0.0.1:0", sink.Options{})
	require.NoError(t, err)
	defer s.Close()
	_, log, err := pushed(t, "s3://bucket/prefix?path_style=true&region=us-east-1&endpoint=http://"+s.Addr(), "--dataset people --rows 500 --batch-rows 50 --workers 2 --verify count")
	require.NoError(t, err, log)
}

// Loads that fail because the sink was told so are sent again.
func TestPushIntoFailures(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "me")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	o := sink.Options{Fail: 3}
	var cluster doris.Cluster
	for name, listen := range map[string]func(string, sink.Options) (*sink.Server, error){"s3": s3.Listen, "doris": cluster.Listen, "databend": databend.Listen} {
		t.Run(name, func(t *testing.T) {
			s, err := listen("127.0.0.1:0", o)
			require.NoError(t, err)
			defer s.Close()
			statements, err := cluster.ListenSQL("127.0.0.1:0", sink.Options{})
			require.NoError(t, err)
			defer statements.Close()
			_, port, err := net.SplitHostPort(s.Addr())
			require.NoError(t, err)
			target := map[string]string{
				"s3":       "s3://bucket/prefix?path_style=true&region=us-east-1&endpoint=http://" + s.Addr(),
				"doris":    "doris://root@" + statements.Addr() + "/db?http_port=" + port,
				"databend": "databend://root@" + s.Addr() + "/db?sslmode=disable",
			}[name]
			r, log, err := pushed(t, target, "--create never --delivery at-least-once --verify ack --dataset people --rows 100 --batch-rows 20 --workers 1 --retries 5")
			require.NoError(t, err, log)
			require.Equal(t, report.OK, r.Result.Outcome)
			require.EqualValues(t, 100, s.Stats().Rows)
			require.Positive(t, s.Stats().Failed)
			require.Equal(t, s.Stats().Failed, r.Result.Retries)
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
