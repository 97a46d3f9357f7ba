package e2e_test

import (
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/datafuselabs/databend-go" // the client that looks at what terapush did
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	standin "github.com/terapush/terapush/internal/standin/databend"
)

const databend kind = "databend"

// databendMethods are all of them, the default first.
func databendMethods() []string {
	return []string{"streaming-load", "insert", "insert-no-presign", "stage-load"}
}

// engineSlots bounds how many tests use the engine at a time: it is one process, and its front end has one core.
var engineSlots = make(chan struct{}, 3)

// newEngine makes a database in the real engine, which scripts/servers puts behind an HTTP front end.
func newEngine(t *testing.T) *database {
	t.Helper()
	text := os.Getenv("TERAPUSH_TEST_DATABEND")
	if text == "" {
		missing(t, `TERAPUSH_TEST_DATABEND is not set: run scripts/servers up and eval "$(scripts/servers env)"`)
	}
	engineSlots <- struct{}{}
	t.Cleanup(func() { <-engineSlots })
	u, err := url.Parse(text)
	require.NoError(t, err)
	name := "e2e_" + strings.ToLower(rand.Text()[:10])
	admin := databendClient(t, u)
	require.NoError(t, admin.exec("CREATE DATABASE "+name))
	t.Cleanup(func() { assert.NoError(t, admin.exec("DROP DATABASE "+name)) })
	u.Path = "/" + name
	return &database{kind: databend, url: u, client: databendClient(t, u), state: filepath.Join(t.TempDir(), "state")}
}

func databendClient(t *testing.T, u *url.URL) client {
	t.Helper()
	db, err := sql.Open("databend", u.String())
	require.NoError(t, err)
	c := sqlClient{db}
	t.Cleanup(c.close)
	return c
}

// stage makes a stage in the folder, which has presigned URLs, and gives its name.
func (d *database) stage(t *testing.T, f *folder) string {
	t.Helper()
	name := "presigned_" + strings.ToLower(rand.Text()[:10])
	d.must(t, fmt.Sprintf("CREATE STAGE %s URL = 's3://%s/%s/' CONNECTION = (endpoint_url = '%s', region = 'us-east-1', "+
		"access_key_id = '%s', secret_access_key = '%s')",
		name, f.bucket, f.prefix, f.endpoint, os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY")))
	t.Cleanup(func() { assert.NoError(t, d.exec("DROP STAGE IF EXISTS "+name)) })
	return name
}

// nothingLeft asserts that of the only run no object, no file and no stage is there.
func (d *database) nothingLeft(t *testing.T, f *folder) {
	t.Helper()
	assert.Empty(t, f.list(t), "objects in the store")
	stage := "terapush_" + strings.ReplaceAll(d.run(t), "-", "_")
	assert.Zero(t, d.number(t, "SELECT COUNT(*) FROM system.stages WHERE name = '"+stage+"'"), "the run's stage, with its credentials")
	assert.NoError(t, d.query("LIST @~/terapush/"+d.run(t)+"/", func(func(...any) error) error {
		return fmt.Errorf("a file is left in the user's stage")
	}))
}

// scripted is the stand-in of a server that fails on command.
type scripted struct {
	*database
	fake *standin.Server
}

func newScripted(t *testing.T, o standin.Options) *scripted {
	t.Helper()
	fake := standin.Start(o)
	t.Cleanup(fake.Close)
	u := &url.URL{Scheme: "databend", User: url.User("root"), Host: fake.Addr(), Path: "/default", RawQuery: "sslmode=disable"}
	return &scripted{&database{kind: databend, url: u, state: filepath.Join(t.TempDir(), "state")}, fake}
}
