package cli

import (
	"context"
	"net"
	"strings"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/pkg/loader"
)

// inStore reports whether a path is that of an object store.
func inStore(path string) bool { return strings.HasPrefix(path, "s3://") }

// files opens an object store for small files.
func (a *app) files(ctx context.Context, url string, c *config.Connect) (objstore.Files, error) {
	t, err := loader.ParseTarget(url)
	if err != nil {
		return objstore.Files{}, err
	}
	store, err := objstore.Open(ctx, t, loader.Deps{Dial: new(net.Dialer).DialContext, TLS: c.Trust.TLS, Log: a.log()})
	return objstore.Files{Store: store}, err
}

// shared returns what opens the common files of a named run's processes, nil without --state-dir s3://….
func (a *app) shared(c *config.Push) func(context.Context) (push.Files, error) {
	if c.Shared == "" {
		return nil
	}
	return func(ctx context.Context) (push.Files, error) { return a.files(ctx, c.Shared, &c.Connect) }
}
