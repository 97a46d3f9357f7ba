package encode

import (
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// compressed makes one gzip member (RFC 1952) or zstd frame (RFC 8878) of every batch in a format of rows. It compresses at
// the fastest level: at any other the client is the limit long before the wire. A compressed batch cannot be stamped, so
// every one is encoded anew.
type compressed struct {
	format batch.Format
	plain  Encoder
	head   []byte
	tail   []byte
	// streams are compressors with their tables, which take longer to make than a small batch to write.
	streams *sync.Pool
}

// stream is gzip.Writer or zstd.Encoder.
type stream interface {
	io.WriteCloser
	Reset(to io.Writer)
}

func newCompressed(f batch.Format, plain Encoder) *compressed {
	_, how := f.Compression()
	return &compressed{
		format: f, plain: plain, head: plain.AppendHead(nil), tail: plain.AppendTail(nil),
		streams: &sync.Pool{New: func() any {
			if how == batch.Gzip {
				w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
				must(err)
				return w
			}
			w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
			must(err)
			return w
		}},
	}
}

// must panics: the options are constants, and a slice takes all that is written.
func must(err error) {
	if err != nil {
		panic("encode: " + err.Error())
	}
}

func (c *compressed) Format() batch.Format { return c.format }
func (c *compressed) MaxRow() int          { return c.plain.MaxRow() }

// MaxBytes allows for rows that do not shrink: both formats store them in blocks, with a few bytes before each 64 KiB.
func (c *compressed) MaxBytes(n int64) int64 {
	rows := int64(len(c.head)+len(c.tail)) + n*int64(c.MaxRow())
	return rows + rows>>9 + 1<<10
}

func (c *compressed) AppendHead([]byte) []byte                        { panic(onlyACompressor) }
func (c *compressed) AppendRows([]byte, *rows.Block, *Offsets) []byte { panic(onlyACompressor) }
func (c *compressed) AppendTail([]byte) []byte                        { panic(onlyACompressor) }

const onlyACompressor = "encode: a batch is compressed by the encoder that ForBatch returns"

func (c *compressed) ForBatch(int) Encoder { return &compressor{compressed: c} }

// compressor makes one batch.
type compressor struct {
	*compressed
	to    sliceWriter
	into  stream
	piece []byte // rows before they are compressed
	at    Offsets
}

// sliceWriter appends to a buffer of the caller's.
type sliceWriter struct{ buf []byte }

func (w *sliceWriter) Write(p []byte) (int, error) {
	w.buf = append(w.buf, p...)
	return len(p), nil
}

func (c *compressor) AppendHead(dst []byte) []byte {
	c.into = c.streams.Get().(stream)
	c.into.Reset(&c.to)
	return c.write(dst, c.head)
}

func (c *compressor) AppendRows(dst []byte, b *rows.Block, _ *Offsets) []byte {
	c.at.Reset()
	c.piece = c.plain.AppendRows(c.piece[:0], b, &c.at)
	return c.write(dst, c.piece)
}

func (c *compressor) AppendTail(dst []byte) []byte {
	dst = c.write(dst, c.tail)
	c.to.buf = dst
	must(c.into.Close())
	c.streams.Put(c.into)
	return c.to.buf
}

func (c *compressor) write(dst, p []byte) []byte {
	c.to.buf = dst
	_, err := c.into.Write(p)
	must(err)
	return c.to.buf
}
