package oracle

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"io"
	"slices"
	"time"
)

// CommitSent is in the bytes of an order to commit and, with its length in front, in no other statement's: there may be
// columns with such names.
const CommitSent = "\x06" + Commit

// request is what the driver sends.
type request struct {
	Kind     string // Connect, SQL, Commit, Rollback or LogOff
	Text     string
	Explicit bool // inside a transaction that the client began
	Binds    []Bind
}

// response is what the server answers.
type response struct {
	Err     *Error
	Panic   string
	Rows    int64
	Columns []string
	Cells   [][]Cell
	Outs    []Cell // of the binds that go out, in their order
}

// Bind is a bind as it was sent: one value, or an array of them. Which slice is used follows from Kind.
type Bind struct {
	Name  string // without the colon, where the client gave one
	Kind  Kind
	Array bool
	Out   bool
	Ints  Numbers
	Texts []string
	Raws  [][]byte
	Times []time.Time
	Nulls []bool // nil where there are none
}

// Numbers take eight bytes each on the wire, as they do in a batch: whoever cuts a connection in the middle of a batch's
// bytes cuts it in the middle of its body, however small the numbers are.
type Numbers []int64

// GobEncode implements gob.GobEncoder.
func (n Numbers) GobEncode() ([]byte, error) {
	all := make([]byte, 0, 8*len(n))
	for _, v := range n {
		all = binary.BigEndian.AppendUint64(all, uint64(v))
	}
	return all, nil
}

// GobDecode implements gob.GobDecoder.
func (n *Numbers) GobDecode(all []byte) error {
	*n = make(Numbers, 0, len(all)/8)
	for v := range slices.Chunk(all, 8) {
		if len(v) < 8 {
			return errors.New("stand-in: a number is cut off")
		}
		*n = append(*n, int64(binary.BigEndian.Uint64(v)))
	}
	return nil
}

// Kind is a bind's type.
type Kind byte

// The kinds of bind.
const (
	NullBind Kind = iota
	NumberBind
	TextBind
	RawBind
	TimeBind
)

// Len is how many values the bind has.
func (b Bind) Len() int {
	switch b.Kind {
	case NumberBind:
		return len(b.Ints)
	case TextBind:
		return len(b.Texts)
	case RawBind:
		return len(b.Raws)
	case TimeBind:
		return len(b.Times)
	}
	return max(len(b.Nulls), 1)
}

// Value is the i-th value: nil, int64, string, []byte or time.Time.
func (b Bind) Value(i int) any {
	if b.Nulls != nil && b.Nulls[i] {
		return nil
	}
	switch b.Kind {
	case NumberBind:
		return b.Ints[i]
	case TextBind:
		return b.Texts[i]
	case RawBind:
		return b.Raws[i]
	case TimeBind:
		return b.Times[i]
	}
	return nil
}

// Cell is a value of an answer.
type Cell struct {
	Kind   Kind
	Text   string // of a text or raw bytes, and the digits of a number
	Number float64
	At     time.Time
}

// packet is how much is written at once: a body of many packets can be cut in the middle, as TNS' can.
const packet = 8 << 10

// encoder writes messages as gob does, packet by packet.
type encoder struct {
	to   io.Writer
	buf  bytes.Buffer
	into *gob.Encoder
}

func newEncoder(to io.Writer) *encoder {
	e := &encoder{to: to}
	e.into = gob.NewEncoder(&e.buf)
	return e
}

func (e *encoder) send(message any) error {
	e.buf.Reset()
	if err := e.into.Encode(message); err != nil {
		return err
	}
	for e.buf.Len() > 0 {
		if _, err := e.to.Write(e.buf.Next(packet)); err != nil {
			return err
		}
	}
	return nil
}
