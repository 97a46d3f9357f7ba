package doris

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

// Loads go to any frontend that a name stands for; what makes the table and looks at it stays with one.
func TestWhichConnectionsTakeAnyFrontendOfAName(t *testing.T) {
	target, err := loader.ParseTarget("doris://root@fe/shop")
	require.NoError(t, err)
	deps := testDeps()
	deps.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("the one") }
	deps.Spread = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("any") }
	all, _, err := endpoints(target, deps)
	require.NoError(t, err)
	_, err = connector(all, 0, false, nil).Connect(t.Context())
	require.ErrorContains(t, err, "the one")
	_, err = connector(all, 0, true, nil).Connect(t.Context())
	require.ErrorContains(t, err, "any")
}
