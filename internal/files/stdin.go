package files

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"sync"
)

// Stdin is the path of standard input.
const Stdin = "-"

// stdin is buffered so that its compression and header can be seen before its batches are read.
var stdin = sync.OnceValue(func() *input { return newInput(os.Stdin) })

func newInput(from io.Reader) *input {
	p := &pipe{from: from}
	return &input{Reader: bufio.NewReaderSize(p, maxHeader), pipe: p}
}

// input is standard input. It is read once, by one goroutine at a time.
type input struct {
	*bufio.Reader
	pipe *pipe
}

// until has all reading fail once ctx ends, unless stop is called before.
func (i *input) until(ctx context.Context) (stop func() error) {
	cancel := context.AfterFunc(ctx, func() { _ = i.pipe.ends().CloseWithError(ctx.Err()) })
	return func() error { cancel(); return nil }
}

// pipe reads something that may never come, and for which nothing ends a read: so a goroutine reads it, which is left
// alone then.
type pipe struct {
	from  io.Reader
	begin sync.Once
	out   *io.PipeReader
}

func (p *pipe) ends() *io.PipeReader {
	p.begin.Do(func() {
		var in *io.PipeWriter
		p.out, in = io.Pipe()
		go func() {
			_, err := io.CopyBuffer(in, struct{ io.Reader }{p.from}, make([]byte, piece))
			_ = in.CloseWithError(err)
		}()
	})
	return p.out
}

func (p *pipe) Read(to []byte) (int, error) { return p.ends().Read(to) }

// peeked reads the beginning of standard input, up to maxHeader, as soon as it is there. All of it is still to be read
// afterwards.
type peeked struct{ n int }

func (p *peeked) Read(to []byte) (int, error) {
	_, err := stdin().Peek(p.n + 1)
	if errors.Is(err, bufio.ErrBufferFull) {
		return 0, io.EOF
	}
	if err != nil {
		return 0, err
	}

	head, err := stdin().Peek(stdin().Buffered())
	if err != nil {
		return 0, err
	}
	n := copy(to, head[p.n:])
	p.n += n
	return n, nil
}
