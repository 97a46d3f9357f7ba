package push

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWarnOfLoss(t *testing.T) {
	p := &push{Job: Job{Log: slog.New(slog.DiscardHandler)}}
	p.warnOfLoss(1)
	p.warnOfLoss(2)
	require.Equal(t, []string{
		"the server lost a batch that it had acknowledged; it is sent again",
		"the server lost 2 batches that it had acknowledged; they are sent again",
	}, p.warnings)
}
