package loader_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

// A host that is down is passed over, and what another one answers is returned alone: beside the first one's "nothing
// was sent" it would be taken for that.
func TestHosts(t *testing.T) {
	down, refused := errors.New("down"), errors.New("refused")
	answers := map[string]error{"a": down, "c": refused, "d": down}
	h := loader.Hosts[string]{List: []string{"a", "b", "c", "d"}, Another: func(err error) bool { return errors.Is(err, down) }}
	var asked string
	ask := func(_ context.Context, host string) error {
		asked += host
		return answers[host]
	}

	require.NoError(t, h.From(t.Context(), 0, ask))
	assert.Equal(t, "ab", asked)
	asked = ""
	require.Same(t, refused, h.From(t.Context(), 2, ask))
	assert.Equal(t, "c", asked)
	asked = ""
	require.NoError(t, h.From(t.Context(), 7, ask), "a number beyond that of hosts, which is Turn's")
	assert.Equal(t, "dab", asked)

	assert.Equal(t, "a", h.Current())
	asked = ""
	require.NoError(t, h.Ask(t.Context(), ask))
	require.NoError(t, h.Ask(t.Context(), ask))
	assert.Equal(t, "abb", asked, "the one that has answered is asked first")
	answers["b"] = down
	require.Same(t, refused, h.Ask(t.Context(), ask))
	assert.Equal(t, "c", h.Current(), "a refusal is an answer")

	answers["b"], answers["c"] = down, down
	asked = ""
	err := h.Ask(t.Context(), ask)
	require.ErrorIs(t, err, down)
	assert.Equal(t, "cdab", asked)
	assert.Equal(t, "c", h.Current())

	over, cancel := context.WithCancel(t.Context())
	asked = ""
	err = h.From(over, 0, func(ctx context.Context, host string) error {
		cancel()
		return ask(ctx, host)
	})
	require.ErrorIs(t, err, down)
	assert.Equal(t, "a", asked, "nobody waits for the others")
	assert.Equal(t, []int{0, 1}, []int{h.Turn(), h.Turn()})
}
