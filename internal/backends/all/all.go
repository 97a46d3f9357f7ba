// Package all lists the back-ends. It is the one place that knows them all.
package all

import (
	"github.com/terapush/terapush/internal/backends/databend"
	"github.com/terapush/terapush/internal/backends/discard"
	"github.com/terapush/terapush/internal/backends/doris"
	"github.com/terapush/terapush/internal/backends/mysql"
	"github.com/terapush/terapush/internal/backends/oracle"
	"github.com/terapush/terapush/internal/backends/postgres"
	"github.com/terapush/terapush/internal/backends/s3"
	"github.com/terapush/terapush/pkg/loader"
)

// Drivers makes a registry of every back-end, and more.
func Drivers(more ...loader.Driver) (*loader.Registry, error) {
	own := []loader.Driver{
		postgres.New(), mysql.New(), oracle.New(), databend.New(), doris.New(), s3.New(), discard.New(),
	}
	return loader.NewRegistry(append(own, more...)...)
}
