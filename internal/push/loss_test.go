package push

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWarnOfLoss(t *testing.T) {
	s := &state{notes: new(notes)}
	s.warnOfLoss(1)
	s.warnOfLoss(2)
	require.Equal(t, []string{
		"the server lost a batch that it had acknowledged; it is sent again",
		"the server lost 2 batches that it had acknowledged; they are sent again",
	}, s.notes.list)
}
