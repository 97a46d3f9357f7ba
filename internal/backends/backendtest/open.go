package backendtest

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/loader"
)

// Deps returns the plain network, and a log that is discarded.
func Deps() loader.Deps {
	return loader.Deps{Dial: new(netio.Dialer).DialContext, TLS: netio.Trust{}.TLS, Log: slog.New(slog.DiscardHandler)}
}

// Dataset returns a dataset by its name.
func Dataset(t testing.TB, name string, o dataset.Options) dataset.Dataset {
	t.Helper()
	d, err := dataset.New(name, o)
	require.NoError(t, err)
	return d
}

// Open opens a loader that is closed when the test ends.
func Open(t testing.TB, d loader.Driver, to loader.Target, deps loader.Deps) loader.Loader {
	t.Helper()
	l, err := d.Open(t.Context(), to, deps)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// Session opens a session that is closed when the test ends.
func Session(t testing.TB, l loader.Loader, c loader.Contract) loader.Session {
	t.Helper()
	s, err := l.Session(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}
