package push

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/loader"
)

// Files are the files of a bucket, and what they mean by an error. Names are as in runlog.Files.
type Files interface {
	Create(ctx context.Context, name string, content []byte) error
	Write(ctx context.Context, name string, content []byte) error
	Read(ctx context.Context, name string) ([]byte, error)
	Names(ctx context.Context, folder string, each func(name string) error) error
	Remove(ctx context.Context, names ...string) error
	Classify(err error) loader.Verdict
	Close() error
}

// bucket is runlog.Files in a bucket, which is asked again while it cannot be reached.
type bucket struct {
	files Files
	ask   func(what string, f func(context.Context) error) error
}

var _ runlog.Files = bucket{}

// final calls f by ask, and again only after errors that may go away: that a file is there, or is not, is an answer.
func (b bucket) final(name string, f func(context.Context) error) error {
	answer := error(nil)
	err := b.ask(name, func(ctx context.Context) error {
		answer = f(ctx)
		if errors.Is(answer, fs.ErrExist) || errors.Is(answer, fs.ErrNotExist) {
			return nil
		}
		return answer
	})
	if err != nil {
		return err
	}
	return answer
}

// Create implements runlog.Files. One whose answer was lost has made the file, and returns fs.ErrExist.
func (b bucket) Create(name string, content []byte) error {
	return b.final(name, func(ctx context.Context) error { return b.files.Create(ctx, name, content) })
}

// Write implements runlog.Files.
func (b bucket) Write(name string, content []byte) error {
	return b.ask(name, func(ctx context.Context) error { return b.files.Write(ctx, name, content) })
}

// Open implements runlog.Files. The file is read at once.
func (b bucket) Open(name string) (io.ReadCloser, error) {
	var content []byte
	err := b.final(name, func(ctx context.Context) (err error) {
		content, err = b.files.Read(ctx, name)
		return err
	})
	return io.NopCloser(bytes.NewReader(content)), err
}

// Names implements runlog.Files.
func (b bucket) Names(folder string) (names []string, err error) {
	err = b.ask(folder, func(ctx context.Context) error {
		names = nil
		return b.files.Names(ctx, folder, func(name string) error {
			names = append(names, name)
			return nil
		})
	})
	return names, err
}

// Remove implements runlog.Files.
func (b bucket) Remove(names ...string) error {
	return b.ask("journals", func(ctx context.Context) error { return b.files.Remove(ctx, names...) })
}
