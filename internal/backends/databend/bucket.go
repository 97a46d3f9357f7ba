package databend

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// bucket is an object store with a stage of the run's own that leads to it.
type bucket struct {
	of     *opened
	run    *objstore.Run
	format batch.Format
	name   string // of the stage

	mu   sync.Mutex
	made objstore.Access // what the stage was made with; zero before
}

func newBucket(l *opened, p loader.Preparation) *bucket {
	return &bucket{of: l, run: l.store.Run(p.Run), format: p.Contract.Format, name: stageName(p.Run)}
}

// stageName makes a name of a run's id: a stage's takes letters, digits and underscores.
func stageName(run string) string {
	return "terapush_" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, run)
}

func (b *bucket) store(ctx context.Context, _ *node, batch *batch.Batch) error {
	return b.run.Put(ctx, batch)
}

// stage makes the stage, and makes it anew when the credentials have changed since: those of a role do every few hours.
func (b *bucket) stage(ctx context.Context) (string, error) {
	access, err := b.of.store.Access(ctx)
	if err != nil {
		return "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if access == b.made {
		return b.name, nil
	}
	if err := b.of.exec(ctx, createStage(b.name, access)); err != nil {
		return "", cleanStage(err, access)
	}
	b.made = access
	return b.name, nil
}

// connection is what stands in front of the credentials.
const connection = "CONNECTION = "

// createStage is the statement with the credentials in it: it must not be shown. explainStage is what may be.
func createStage(name string, a objstore.Access) string {
	prefix := ""
	if a.Prefix != "" {
		prefix = a.Prefix + "/"
	}
	options := []string{}
	add := func(name, value string) {
		if value != "" {
			options = append(options, name+" = "+literal(value))
		}
	}
	add("endpoint_url", a.Endpoint) // with its scheme: without one the server takes https
	add("region", a.Region)
	add("access_key_id", a.KeyID)
	add("secret_access_key", a.Secret.Reveal())
	add("session_token", a.Token.Reveal())
	add("enable_virtual_host_style", fmt.Sprint(!a.PathStyle))
	return fmt.Sprintf("CREATE OR REPLACE STAGE %s URL = %s %s(%s)",
		name, literal("s3://"+a.Bucket+"/"+prefix), connection, strings.Join(options, ", "))
}

// explainStage is createStage without secrets.
func explainStage(name string, a objstore.Access) string {
	a.KeyID, a.Secret, a.Token = "***", "***", ""
	return createStage(name, a)
}

// cleanStage takes the credentials out of an error of createStage: the server repeats the statement that it cannot
// read, in pieces and with its own escapes. So everything from them on is cut off.
func cleanStage(err error, a objstore.Access) error {
	return reworded(err, func(words string) string {
		before, _, found := strings.Cut(words, connection)
		if found {
			before += connection + "(…"
		}
		return a.Redact(before)
	})
}

// clean takes the credentials out of an error of COPY: a store's own words can hold what was signed.
func (b *bucket) clean(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return reworded(err, b.made.Redact)
}

// reworded changes the server's words in an error, and nothing of what else it says.
func reworded(err error, change func(string) string) error {
	var server *serverError
	if errors.As(err, &server) {
		server.message = change(server.message)
	}
	return err
}

// path is a batch's file below the prefix, which is the stage's root.
func (b *bucket) path(number int64) string {
	key := b.run.Name(number, b.format)
	return path.Base(path.Dir(key)) + "/" + path.Base(key)
}

func (b *bucket) discard(ctx context.Context, members []loader.Ref) error {
	return b.run.Delete(ctx, members, b.format)
}

func (b *bucket) objects(ctx context.Context, f func(name string, number, bytes int64) error) error {
	return b.run.Objects(ctx, f)
}

// dropPatience bounds the last statement of a run.
const dropPatience = 10 * time.Second

// close drops the stage, and its credentials with it. A run that goes on makes it anew.
func (b *bucket) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.made == (objstore.Access{}) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), dropPatience)
	defer cancel()
	b.made = objstore.Access{}
	return failed("drop the stage "+b.name+", which holds credentials",
		b.of.exec(ctx, "DROP STAGE IF EXISTS "+b.name))
}
