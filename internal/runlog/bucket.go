package runlog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
)

// Store is what a Bucket asks of a bucket. Its methods are those of Files, each a request or some.
type Store interface {
	Create(ctx context.Context, name string, content []byte) error
	Write(ctx context.Context, name string, content []byte) error
	Read(ctx context.Context, name string) ([]byte, error)
	// Names calls each with the names of the files whose names begin with a folder's, until it returns an error.
	Names(ctx context.Context, folder string, each func(name string) error) error
	Remove(ctx context.Context, names ...string) error
}

// Bucket is Files in a bucket.
type Bucket struct {
	Store Store
	// Ask calls f, and again while the bucket cannot be reached. What is the name of a file or folder.
	Ask func(what string, f func(context.Context) error) error
}

// answered calls f by Ask. That a file is there, or is not, is an answer, and no reason to ask again.
func (b Bucket) answered(name string, f func(context.Context) error) error {
	answer := error(nil)
	err := b.Ask(name, func(ctx context.Context) error {
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

// Create implements Files. If an answer is lost it finds the file that it has made, and returns fs.ErrExist: see
// create.
func (b Bucket) Create(name string, content []byte) error {
	return b.answered(name, func(ctx context.Context) error { return b.Store.Create(ctx, name, content) })
}

// Write implements Files.
func (b Bucket) Write(name string, content []byte) error {
	return b.Ask(name, func(ctx context.Context) error { return b.Store.Write(ctx, name, content) })
}

// Open implements Files. The file is read at once.
func (b Bucket) Open(name string) (io.ReadCloser, error) {
	var content []byte
	err := b.answered(name, func(ctx context.Context) (err error) {
		content, err = b.Store.Read(ctx, name)
		return err
	})
	return io.NopCloser(bytes.NewReader(content)), err
}

// Names implements Files.
func (b Bucket) Names(folder string) (names []string, err error) {
	err = b.Ask(folder, func(ctx context.Context) error {
		names = nil
		return b.Store.Names(ctx, folder, func(name string) error {
			names = append(names, name)
			return nil
		})
	})
	return names, err
}

// Remove implements Files.
func (b Bucket) Remove(names ...string) error {
	return b.Ask("journals", func(ctx context.Context) error { return b.Store.Remove(ctx, names...) })
}
