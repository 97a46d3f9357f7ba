package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Find is Buckets.Find without object stores.
func Find(patterns []string) ([]File, error) {
	return new(Buckets).Find(context.Background(), patterns)
}

// Find returns the files that patterns name, in their order, those of a glob or folder sorted by name, none twice. A
// pattern is a path, a glob, a folder (its files, not those of folders in it) or Stdin, which stands alone; or s3://
// with one of an object, a glob, or what all objects below it begin with. A missing file, a pattern or folder without
// files, and what is not a regular file are errors. The files have no Header yet; see ReadHeaders.
func (b *Buckets) Find(ctx context.Context, patterns []string) ([]File, error) {
	if len(patterns) == 0 {
		return nil, errors.New("no files are named")
	}
	if slices.Contains(patterns, Stdin) {
		if len(patterns) > 1 {
			return nil, errors.New("- is standard input: it stands alone, without other files")
		}
		stop := stdin().until(ctx)
		head, _ := stdin().Peek(6) // fewer bytes, or an error, are seen by who reads them
		_ = stop()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		how, err := compression("standard input", head)
		return []File{{Path: Stdin, Size: -1, Compression: how}}, err
	}

	var found []File
	var seen []fs.FileInfo
	for _, p := range patterns {
		if InBucket(p) {
			objects, err := b.find(ctx, p)
			if err != nil {
				return nil, err
			}
			for _, f := range objects {
				if !slices.ContainsFunc(found, func(o File) bool { return o.Path == f.Path && o.Store == f.Store }) {
					found = append(found, f)
				}
			}
			continue
		}
		paths, err := expand(p)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			f, info, err := look(path)
			if err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(seen, func(other fs.FileInfo) bool { return os.SameFile(info, other) }) {
				found, seen = append(found, f), append(seen, info)
			}
		}
	}
	return found, nil
}

// expand returns the paths of a pattern, sorted.
func expand(pattern string) ([]string, error) {
	info, err := os.Stat(pattern)
	switch {
	case err == nil && info.IsDir():
		return inFolder(pattern)
	case err == nil:
		return []string{pattern}, nil
	case !errors.Is(err, fs.ErrNotExist) || !strings.ContainsAny(pattern, `*?[`):
		return nil, err
	}

	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pattern, err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s: no file has such a name", pattern)
	}
	return paths, nil
}

// inFolder returns the files of a folder, but for those that begin with a dot.
func inFolder(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			paths = append(paths, filepath.Join(folder, e.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("the folder %s has no files", folder)
	}
	return paths, nil
}

// endBytes is how much of each end of a file its hash covers.
const endBytes = 64 << 10

// look reads what File says of a file.
func look(path string) (File, fs.FileInfo, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return File{}, nil, err
	case info.IsDir():
		return File{}, nil, fmt.Errorf("%s is a folder: name its files, or it alone", path)
	case !info.Mode().IsRegular():
		return File{}, nil, fmt.Errorf("%s is not a regular file: only those can be read again. "+
			"A pipe can be standard input: cat … | terapush load … -", path)
	}

	in, err := os.Open(path)
	if err != nil {
		return File{}, nil, err
	}
	defer in.Close()
	size := info.Size()
	ends := make([]byte, min(size, 2*endBytes))
	head := ends[:min(size, endBytes)]
	tail := ends[len(head):]
	_, err = io.ReadFull(io.NewSectionReader(in, 0, size), head)
	if err == nil {
		_, err = io.ReadFull(io.NewSectionReader(in, size-int64(len(tail)), size), tail)
	}
	if err != nil {
		return File{}, nil, fmt.Errorf("reading %s: %w", path, err)
	}
	f := File{Path: path, Size: size, Ends: crc32.Checksum(ends, castagnoli)}
	f.Compression, err = compression(path, head)
	return f, info, err
}

// compression recognises it by a file's first bytes. What no database reads as records is an error.
func compression(path string, head []byte) (Compression, error) {
	for _, f := range []struct {
		magic string
		how   Compression
		name  string
	}{
		{"\x1f\x8b", Gzip, ""},
		{"\x28\xb5\x2f\xfd", Zstd, ""},
		{"BZh", "", "is compressed with bzip2: decompress it, or pipe it: bzip2 -dc … | terapush load … -"},
		{"\xfd7zXZ\x00", "", "is compressed with xz: decompress it, or pipe it: xz -dc … | terapush load … -"},
		{"\x04\x22\x4d\x18", "", "is compressed with lz4: decompress it, or pipe it: lz4 -dc … | terapush load … -"},
		{"PK\x03\x04", "", "is a zip archive: unpack it, or pipe a file of it: unzip -p … | terapush load … -"},
	} {
		if !bytes.HasPrefix(head, []byte(f.magic)) {
			continue
		}
		if f.name != "" {
			return "", fmt.Errorf("%s %s", path, f.name)
		}
		return f.how, nil
	}
	if len(head) > 3 && head[0]&0xf0 == 0x50 && string(head[1:4]) == "\x2a\x4d\x18" {
		return Zstd, nil // a frame without data, as pzstd writes before each
	}
	return Plain, utf16(path, head)
}

// Check looks at the file again. It returns a *ChangedError if it is gone, or its size, compression or ends differ. Of
// an object every read checks the ETag.
func (f File) Check() error {
	if f.Path == Stdin || InBucket(f.Path) {
		return nil
	}
	if info, err := os.Stat(f.Path); err == nil && !info.Mode().IsRegular() {
		return &ChangedError{f.Path, "something else is in its place, which is no regular file"}
	}
	now, _, err := look(f.Path)
	if err != nil {
		return f.gone(err)
	}
	switch {
	case now.Size != f.Size:
		return &ChangedError{f.Path, fmt.Sprintf("it has %d bytes, and had %d when the run began", now.Size, f.Size)}
	case now.Compression != f.Compression, now.Ends != f.Ends:
		return &ChangedError{f.Path, "its first or last 64 KiB are not those of the file that the run began with"}
	}
	return nil
}

// gone says of an error that the file is there no more, if that is so.
func (f File) gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &ChangedError{f.Path, "it is gone"}
	}
	return err
}
