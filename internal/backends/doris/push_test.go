package doris

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/config"
	fake "github.com/terapush/terapush/internal/fake/doris"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/loader"
)

// pushed is one push of the product into the stand-in.
func pushed(t *testing.T, s *standIn, args string) (*report.Report, string, error) {
	drivers, err := loader.NewRegistry(New())
	require.NoError(t, err)
	c := config.Push{}
	f := pflag.NewFlagSet("push", pflag.ContinueOnError)
	c.Flags(f, drivers)
	require.NoError(t, f.Parse(strings.Fields(args)))
	require.NoError(t, config.Complete(f, func(string) (string, bool) { return "", false }, ""))
	c.Target = fmt.Sprintf("doris://root:hunter2@%s/d?http_port=%s", s.SQLAddress(), s.HTTPPort())
	c.State = t.TempDir()
	var log strings.Builder
	r, err := push.Run(t.Context(), push.Job{
		Config: c, Drivers: drivers, Given: config.Given(f), Explicit: func(string) bool { return false },
		Drain: make(chan struct{}), Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	return r, log.String(), err
}

// The whole product: a thousand small batches, one in five of which loses an answer, proven row by row.
func TestPushWithLostAnswers(t *testing.T) {
	for _, method := range []string{streamLoad, insert} {
		t.Run(method, func(t *testing.T) {
			s := startStandIn(t, fake.Options{Backends: 2, Script: lossy})
			r, log, err := pushed(t, s, "--method "+method+" --dataset people --rows 5000 --batch-rows 5 --workers 8 --retries 20 --verify full")
			require.NoError(t, err, log)
			assert.Equal(t, report.OK, r.Result.Outcome)
			assert.Equal(t, int64(5000), s.Rows("d.people"))
			assert.Len(t, s.KeyCounts("d.people"), 5000)
			assert.Equal(t, string(loader.ExactlyOnce), r.Plan.Delivery)
			assert.NotContains(t, log, "hunter2")
		})
	}
}

func TestPushWithGroupCommit(t *testing.T) {
	s := startStandIn(t, fake.Options{})
	r, log, err := pushed(t, s, "--dataset people --rows 500 --batch-rows 50 --workers 4 --verify full --group-commit async --group-commit-interval-ms 50")
	require.NoError(t, err, log)
	assert.Equal(t, report.OK, r.Result.Outcome)
	assert.Equal(t, string(loader.AtLeastOnce), r.Plan.Delivery)
	assert.Equal(t, int64(500), s.Rows("d.people"))
	_, _, err = pushed(t, s, "--dataset people --table other --rows 500 --group-commit async --delivery exactly-once")
	require.ErrorContains(t, err, "group commit")
}

// Groups whose answers are lost are asked about, and sent again only where they are not in.
func TestPushThroughAStore(t *testing.T) {
	s, via := startWithStore(t, func(r fake.Request) fake.Fault {
		if r.Kind != fake.Statement || r.Label == "" || r.Attempt > 1 {
			return fake.Fault{}
		}
		return map[byte]fake.Fault{'1': {CutAnswer: true}, '2': {CutBody: 1}, '3': {Fail: fake.TooManyVersions}}[r.Label[len(r.Label)-1]]
	})
	r, log, err := pushed(t, s, "--method s3-load --via "+via.String()+" --dataset people --rows 600 --batch-rows 10 --commit-batches 3 --workers 4 --retries 20 --verify full")
	require.NoError(t, err, log)
	assert.Equal(t, report.OK, r.Result.Outcome)
	assert.Equal(t, int64(600), s.Rows("d.people"))
	assert.Len(t, s.KeyCounts("d.people"), 600)
	assert.NotContains(t, log, "hunter2")
}
