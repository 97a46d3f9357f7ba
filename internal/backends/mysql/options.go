package mysql

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
)

// options are those of method pipeline.
type options struct {
	BatchInterval int64 `option:"batch-interval" default:"2500" help:"milliseconds between the pipeline's checks for new objects, its BATCH_INTERVAL"`
}

// checkVia refuses a staged method without an object store.
func checkVia(t loader.Target, m loader.Method, name tableName, o options) error {
	switch {
	case !m.Caps.Staged:
		return nil
	case ofScheme(t.Scheme) != singleStore && t.Scheme != "mysql":
		return fmt.Errorf("method %s is SingleStore's; the target says %s://", m.Name, t.Scheme)
	case t.Via == nil:
		return fmt.Errorf("method %s needs an object store: --staging s3://bucket/prefix", m.Name)
	case t.Database == "":
		return errors.New("a pipeline belongs to a database: write it into the URL, as in singlestore://user@host/database")
	case name != tableName{} && name.schema != t.Database:
		return fmt.Errorf("a pipeline of database %s loads no table of %s: name the table's database in the URL",
			t.Database, name.schema)
	case strings.ContainsAny(t.Via.Database, "*?[]{}"):
		return fmt.Errorf("a pipeline would read prefix %q as a pattern: name one without * ? [ ] { }", t.Via.Database)
	case o.BatchInterval > math.MaxInt32:
		return fmt.Errorf("--batch-interval %d: want a number of milliseconds", o.BatchInterval)
	}
	return objstore.Check(*t.Via)
}

// checkParams refuses unknown parameters, which must not be ignored silently.
func checkParams(t loader.Target) error {
	p, err := mysqlconn.ReadParams(t.Params)
	return errors.Join(err, p.Unknown("socket"))
}
