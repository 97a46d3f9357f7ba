package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/terapush/terapush/internal/engine/retry"
	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/loader"
)

// Buckets finds files in object stores, and connects those of an earlier process. It keeps a store open for each folder.
// It is not safe for concurrent use; what is read of its files is.
type Buckets struct {
	// Open opens a store, whose target's Database is a folder; nil: there are none.
	Open func(context.Context, loader.Target) (objstore.Files, error)

	stores map[string]objstore.Files
}

// InBucket reports whether a path is the URL of an object, or a pattern of such.
func InBucket(path string) bool { return strings.HasPrefix(path, "s3://") }

// object is a file in a bucket.
type object struct {
	store objstore.Files
	name  string // in the store
}

// Connect makes the files of a spec that was kept readable again. An object that is gone is an error, and one that has
// changed a *ChangedError.
func (b *Buckets) Connect(ctx context.Context, files []File) error {
	for i := range files {
		f := &files[i]
		if !InBucket(f.Path) {
			continue
		}
		url := f.Path
		if f.Store != "" {
			url += "?" + f.Store
		}
		store, _, name, err := b.store(ctx, url)
		if err != nil {
			return err
		}
		f.object = &object{store, name}
	}
	return eachHead(ctx, files, func(*File, []byte) error { return nil })
}

// Close closes the stores, once no file is read any more.
func (b *Buckets) Close() error {
	var err error
	for _, s := range b.stores {
		err = errors.Join(err, s.Close())
	}
	b.stores = nil
	return err
}

// store opens the store of a URL's folder, unless it is open. rest is what follows the folder.
func (b *Buckets) store(ctx context.Context, url string) (_ objstore.Files, t loader.Target, rest string, err error) {
	if t, err = loader.ParseTarget(url); err != nil {
		return objstore.Files{}, t, "", err
	}
	if b.Open == nil {
		return objstore.Files{}, t, "", fmt.Errorf("%s: files in a bucket cannot be read here", t)
	}
	folder := t.Database
	if glob := strings.IndexAny(folder, `*?[`); glob >= 0 {
		folder = folder[:glob]
	}
	folder = folder[:strings.LastIndexByte(folder, '/')+1]
	t.Database, rest = folder, t.Database[len(folder):]

	key := t.String()
	s, found := b.stores[key]
	if !found {
		if s, err = b.Open(ctx, t); err != nil {
			return s, t, "", err
		}
		if b.stores == nil {
			b.stores = map[string]objstore.Files{}
		}
		b.stores[key] = s
	}
	return s, t, rest, nil
}

// parallelHeads is how many objects' first bytes are read at a time.
const parallelHeads = 32

// eachHead calls do with the first bytes of every file in a bucket.
func eachHead(ctx context.Context, files []File, do func(f *File, head []byte) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelHeads)
	for i := range files {
		f := &files[i]
		if f.object == nil {
			continue
		}
		g.Go(func() error {
			head := make([]byte, min(f.Size, 16))
			if err := f.object.read(ctx, *f, head, 0); err != nil {
				return err
			}
			return do(f, head)
		})
	}
	return g.Wait()
}

// find returns the objects that a URL names: one, those of a glob, or all below it.
func (b *Buckets) find(ctx context.Context, url string) ([]File, error) {
	store, t, rest, err := b.store(ctx, url)
	if err != nil {
		return nil, err
	}
	glob := strings.ContainsAny(rest, `*?[`)
	prefix := rest
	if glob {
		prefix = ""
	}

	var found []File
	folder, params := t.Database, t.Params.Encode()
	t.Params = nil
	err = store.Objects(ctx, prefix, func(o objstore.Object) error {
		is := rest == "" || o.Name == rest || strings.HasPrefix(o.Name, rest+"/")
		if glob && o.Name != rest {
			var err error
			if is, err = path.Match(rest, o.Name); err != nil {
				return fmt.Errorf("%s: %w", url, err)
			}
		}
		marksFolder := o.Name == "" || strings.HasSuffix(o.Name, "/")
		if !is || marksFolder && o.Bytes == 0 {
			return nil
		}
		t.Database = folder + o.Name
		found = append(found, File{Path: t.String(), Store: params, Size: o.Bytes, ETag: o.ETag, object: &object{store, o.Name}})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: there is no such object, and none below it", url)
	}

	return found, eachHead(ctx, found, func(f *File, head []byte) (err error) {
		f.Compression, err = compression(f.Path, head)
		return err
	})
}

// attempts bounds how often a read is tried: for some two minutes.
const attempts = 10

// read fills p with a file's bytes from an offset on.
func (o *object) read(ctx context.Context, f File, p []byte, from int64) error {
	if len(p) == 0 {
		return nil // a range of none is an error
	}
	var changed error
	err := retry.Policy{Retries: attempts}.Ask(ctx, o.store.Classify, func(error) {}, func(ctx context.Context) error {
		changed = nil
		err := o.store.ReadAt(ctx, o.name, f.ETag, p, from)
		switch {
		case errors.Is(err, objstore.ErrChanged):
			changed = &ChangedError{f.Path, "it was written again: its ETag is no longer " + f.ETag}
		case errors.Is(err, fs.ErrNotExist):
			changed = f.gone(err)
		default:
			return err
		}
		return nil
	})
	if changed != nil {
		return changed
	}
	return err
}

// Parts are what is read of an object with one request, several at a time: a connection to Amazon's store has some
// 90 MB/s.
const (
	firstPart  = 64 << 10 // enough for a header
	partBytes  = 4 << 20
	partsAhead = 8
)

// parts reads an object from an offset on.
type parts struct {
	object *object
	file   File
	parent context.Context
	at     int64 // of the next part to be asked for

	started bool
	ctx     context.Context
	stop    context.CancelFunc
	asked   []*part // in their order
	unused  [][]byte
	rest    []byte // of the part before asked
	whole   []byte // of which it is the rest
}

type part struct {
	bytes []byte
	done  chan error
}

func (o *object) open(ctx context.Context, f File) *parts {
	return &parts{object: o, file: f, parent: ctx}
}

// ask has the next part read.
func (p *parts) ask(bytes int64) {
	if bytes = min(bytes, p.file.Size-p.at); bytes <= 0 {
		return
	}
	var memory []byte
	if n := len(p.unused); n > 0 {
		memory, p.unused = p.unused[n-1], p.unused[:n-1]
	} else {
		memory = make([]byte, bytes)
	}
	next := &part{memory[:bytes], make(chan error, 1)}
	from := p.at
	p.at += bytes
	p.asked = append(p.asked, next)
	ctx := p.ctx
	go func() { next.done <- p.object.read(ctx, p.file, next.bytes, from) }()
}

// Read reads at most to the end of a part.
func (p *parts) Read(to []byte) (int, error) {
	switch {
	case len(p.rest) > 0:
	case !p.started:
		p.ctx, p.stop = context.WithCancel(p.parent)
		p.started = true
		p.ask(firstPart)
	default:
		for len(p.asked) < partsAhead && p.at < p.file.Size {
			p.ask(partBytes)
		}
	}
	if len(p.rest) == 0 {
		if len(p.asked) == 0 {
			return 0, io.EOF
		}
		next := p.asked[0]
		err := <-next.done
		next.done <- err // for who asks again, or ends the reading
		if err != nil {
			return 0, err
		}
		p.asked = p.asked[1:]
		if len(p.whole) == partBytes {
			p.unused = append(p.unused, p.whole)
		}
		p.whole, p.rest = next.bytes, next.bytes
	}
	n := copy(to, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// Seek goes to an offset from the beginning.
func (p *parts) Seek(offset int64, whence int) (int64, error) {
	if whence != io.SeekStart {
		return 0, errors.New("files: an object is only read from an offset on")
	}
	if len(p.asked) == 0 && len(p.rest) == 0 && offset == p.at {
		return offset, nil
	}
	_ = p.Close()
	p.at = offset
	return offset, nil
}

// Close ends the requests.
func (p *parts) Close() error {
	if p.stop != nil {
		p.stop()
	}
	for _, a := range p.asked {
		err := <-a.done
		a.done <- err
	}
	p.asked, p.rest, p.started, p.stop = nil, nil, false, nil
	return nil
}
