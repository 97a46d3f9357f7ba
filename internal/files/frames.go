package files

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	// unitBytes is how many bytes units have, stored or decompressed, if frames are small.
	unitBytes = 1 << 20
	// unitStored is the most that a unit has stored: what is read of a file that may have them.
	unitStored = 4 << 20
	// unitsBytes is the most that all units of a run have, stored and decompressed.
	unitsBytes = 32 << 20

	zstdBlock  = 128 << 10 // the most that a block has decompressed
	bgzipBlock = 64 << 10
)

// frames decompresses several parts of a file at a time: the frames of pzstd, and others that are small enough; the
// blocks of bgzip, which is gzip whose members say how long they are. From the first on that is not so, the file is
// decompressed in one go.
type frames struct {
	how  Compression
	in   *bufio.Reader
	most int // units at a time
	room int // bytes that more units may have

	zstd  *zstd.Decoder
	units []*unit // in their order
	read  *unit
	rest  []byte        // of the one that is read
	last  io.ReadCloser // what is not to be split
	err   error
}

// unit is some frames that are decompressed together.
type unit struct {
	stored, plain []byte
	done          chan error
}

// decompressed reads a file of several that are read at a time: each has its part of the CPUs and of the memory. 0
// reads it in one go.
func decompressed(in io.Reader, how Compression, parallel int) (io.ReadCloser, error) {
	most := runtime.GOMAXPROCS(0) / max(parallel, 1)
	if parallel == 0 || most < 2 {
		return inOneGo(bufio.NewReaderSize(in, piece), how)
	}
	f := &frames{how: how, in: bufio.NewReaderSize(in, unitStored), most: most, room: unitsBytes / parallel}
	if how == Gzip {
		return f, nil
	}

	var err error
	f.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(most), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, err
	}
	return f, nil
}

// inOneGo decompresses what is not split.
func inOneGo(in io.Reader, how Compression) (io.ReadCloser, error) {
	if how == Gzip {
		d, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		return d, nil
	}
	d, err := zstd.NewReader(in)
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

// Read reads at most to the end of a unit.
func (f *frames) Read(p []byte) (n int, err error) {
	for f.err == nil && f.last == nil && len(f.rest) == 0 {
		f.err = f.next()
	}
	if f.err != nil {
		return 0, f.err
	}
	if f.last != nil {
		return f.last.Read(p)
	}
	n = copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// next goes to the next unit, or to what is not split.
func (f *frames) next() (err error) {
	if f.read != nil {
		f.room += f.read.bytes()
		f.read = nil
	}
	for len(f.units) < f.most && f.ask() {
	}
	if len(f.units) > 0 {
		f.read, f.units = f.units[0], f.units[1:]
		err = <-f.read.done
		f.rest = f.read.plain
		return err
	}
	if _, err := f.in.Peek(1); err != nil {
		return err
	}
	f.last, err = inOneGo(f.in, f.how)
	return err
}

// ask has the next unit decompressed, and reports whether there is one and room for it.
func (f *frames) ask() bool {
	stored, plain := f.split()
	if stored == 0 || stored+plain > f.room {
		return false
	}
	all, _ := f.in.Peek(stored) // which has succeeded before
	u := &unit{stored: bytes.Clone(all), plain: make([]byte, plain), done: make(chan error, 1)}
	_, _ = f.in.Discard(stored)
	f.room -= u.bytes()
	f.units = append(f.units, u)
	go func() { u.done <- f.decode(u) }()
	return true
}

func (u *unit) bytes() int { return len(u.stored) + cap(u.plain) }

func (f *frames) decode(u *unit) (err error) {
	if f.how == Zstd {
		u.plain, err = f.zstd.DecodeAll(u.stored, u.plain[:0])
		return err
	}

	in, err := gzip.NewReader(bytes.NewReader(u.stored))
	if err != nil {
		return err
	}
	if _, err := io.ReadFull(in, u.plain); err != nil {
		return err
	}
	if n, err := in.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		return gzip.ErrChecksum // it has more than it says
	}
	return nil
}

// split returns how long the next unit is, and the most that it has decompressed; 0 if the file has none, or is not
// whole, which is found in one go.
func (f *frames) split() (stored, plain int) {
	length := f.zstdFrame
	if f.how == Gzip {
		length = f.bgzipBlock
	}
	for stored < unitBytes && plain < unitBytes {
		n, size := length(stored)
		if n == 0 || stored+n > unitStored || plain+size > unitsBytes {
			break
		}
		if _, err := f.in.Peek(stored + n); err != nil {
			break
		}
		stored += n
		plain += size
	}
	return stored, plain
}

// bytes returns bytes that are not read yet, none if the file or the buffer ends before.
func (f *frames) bytes(at, n int) []byte {
	all, err := f.in.Peek(at + n)
	if err != nil {
		return nil
	}
	return all[at:]
}

// bgzipBlock returns how long the block behind so many bytes is, stored and decompressed, 0 if it is none: "SAM/BAM
// Format Specification", 4.1.
func (f *frames) bgzipBlock(at int) (stored, plain int) {
	const header, extra = 12, 6 // the extra field is alone
	head := f.bytes(at, header+extra)
	if head == nil || string(head[:4]) != "\x1f\x8b\x08\x04" || string(head[10:16]) != "\x06\x00BC\x02\x00" {
		return 0, 0
	}
	stored = int(binary.LittleEndian.Uint16(head[16:])) + 1
	block := f.bytes(at, stored)
	if len(block) < header+extra+8 {
		return 0, 0
	}
	size := binary.LittleEndian.Uint32(block[stored-4:])
	if size > bgzipBlock {
		return 0, 0
	}
	return stored, int(size)
}

// zstdFrame returns how long the frame behind so many bytes is, and the most that it has decompressed, 0 if it is too
// long: RFC 8878, 3.1.1.
func (f *frames) zstdFrame(at int) (stored, plain int) {
	head, _ := f.in.Peek(at + zstd.HeaderMaxSize)
	var h zstd.Header
	if len(head) <= at || h.Decode(head[at:]) != nil {
		return 0, 0
	}
	if h.Skippable {
		return h.HeaderSize + int(h.SkippableSize), 0
	}

	stored = h.HeaderSize
	for last := false; !last; {
		block := f.bytes(at+stored, 3)
		if block == nil {
			return 0, 0
		}
		b := int(block[0]) | int(block[1])<<8 | int(block[2])<<16
		last = b&1 != 0
		size := b >> 3
		stored += 3
		switch b >> 1 & 3 {
		case 0: // as it is
			stored += size
			plain += size
		case 1: // one byte again and again
			stored++
			plain += size
		default:
			stored += size
			plain += zstdBlock
		}
	}
	if h.HasCheckSum {
		stored += 4
	}
	return stored, plain
}

// Close waits for units that are being decompressed, and returns their errors.
func (f *frames) Close() (err error) {
	for _, u := range f.units {
		err = errors.Join(err, <-u.done)
	}
	f.units, f.err = nil, io.ErrClosedPipe
	if f.zstd != nil {
		f.zstd.Close()
	}
	if f.last != nil {
		err = errors.Join(err, f.last.Close())
	}
	return err
}
