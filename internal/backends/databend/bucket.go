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

// bucket is an object store, with a stage of the run's own that leads to it.
type bucket struct {
	owner  *opened
	run    *objstore.Run
	format batch.Format
	name   string // of the stage

	mu     sync.Mutex
	access objstore.Access // in the stage; zero if there is none
}

func newBucket(l *opened, p loader.Preparation) *bucket {
	return &bucket{owner: l, run: l.store.Run(p.Run), format: p.Contract.Format, name: stageName(p.Run + p.Shard)}
}

// stageName is made of a run's id, and of the shard's: each process drops its own at the end. Stages have names of
// letters, digits and underscores.
func stageName(run string) string {
	return "terapush_" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, run)
}

func (b *bucket) store(ctx context.Context, _ *endpoint, batch *batch.Batch) error {
	return b.run.Put(ctx, batch)
}

// stage creates the stage, and again when the credentials have changed: those of a role do every few hours.
func (b *bucket) stage(ctx context.Context) (string, error) {
	access, err := b.owner.store.Access(ctx)
	if err != nil {
		return "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if access == b.access {
		return b.name, nil
	}
	if err := b.owner.exec(ctx, createStage(b.name, access)); err != nil {
		return "", redactStage(err, access)
	}
	b.access = access
	return b.name, nil
}

const connection = "CONNECTION = " // comes before the credentials

// createStage is the statement with the credentials, which must not be shown.
func createStage(name string, a objstore.Access) string {
	prefix := ""
	if a.Prefix != "" {
		prefix = a.Prefix + "/"
	}
	var options []string
	for _, o := range [...][2]string{
		{"endpoint_url", a.Endpoint}, // with its scheme: the server's default is https
		{"region", a.Region},
		{"access_key_id", a.KeyID},
		{"secret_access_key", a.Secret.Reveal()},
		{"session_token", a.Token.Reveal()},
		{"enable_virtual_host_style", fmt.Sprint(!a.PathStyle)},
	} {
		if o[1] != "" {
			options = append(options, o[0]+" = "+literal(o[1]))
		}
	}
	return fmt.Sprintf("CREATE OR REPLACE STAGE %s URL = %s %s(%s)",
		name, literal("s3://"+a.Bucket+"/"+prefix), connection, strings.Join(options, ", "))
}

// redactStage takes the credentials out of an error of createStage. The server repeats a statement that it cannot
// parse, in pieces and with escapes of its own, so everything from the credentials on is cut off.
func redactStage(err error, a objstore.Access) error {
	return editMessage(err, func(message string) string {
		before, _, found := strings.Cut(message, connection)
		if found {
			before += connection + "(…"
		}
		return a.Redact(before)
	})
}

// redact takes the credentials out of an error of COPY: the message of a store may hold what was signed.
func (b *bucket) redact(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return editMessage(err, b.access.Redact)
}

func editMessage(err error, edit func(string) string) error {
	var server *serverError
	if errors.As(err, &server) {
		server.message = edit(server.message)
	}
	return err
}

// path is a batch's file below the prefix, which is the root of the stage.
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

// dropTimeout bounds the last statement of a run.
const dropTimeout = 10 * time.Second

// close drops the stage, which holds credentials. A run that goes on creates it again.
func (b *bucket) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.access == (objstore.Access{}) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), dropTimeout)
	defer cancel()
	b.access = objstore.Access{}
	return failed("drop the stage "+b.name+", which holds credentials",
		b.owner.exec(ctx, "DROP STAGE IF EXISTS "+b.name))
}
