package files

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// gzipMember returns a member of gzip, which is a block of bgzip if it says how long it is.
func gzipMember(t *testing.T, text []byte, block bool) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if block {
		w.Extra = []byte("BC\x02\x00\x00\x00")
	}
	_, err := w.Write(text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	if block {
		binary.LittleEndian.PutUint16(out.Bytes()[16:], uint16(out.Len()-1))
	}
	return out.Bytes()
}

// Parts of a file that are decompressed at a time give the bytes and the errors that it gives in one go.
func TestFrames(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	r := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 4<<20)
	for i := range text {
		text[i] = 'a' + byte(r.IntN(4))
	}
	parts := func(size int, pack func([]byte) []byte) (all []byte) {
		for at := 0; at < len(text); at += size {
			all = append(all, pack(text[at:min(at+size, len(text))])...)
		}
		return all
	}
	block := func(p []byte) []byte { return gzipMember(t, p, true) }
	member := func(p []byte) []byte { return gzipMember(t, p, false) }
	writer, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	frame := func(p []byte) []byte { return writer.EncodeAll(p, nil) }
	counted := func(p []byte) []byte { // as pzstd has them
		stored := frame(p)
		return append(binary.LittleEndian.AppendUint32([]byte("\x50\x2a\x4d\x18\x04\x00\x00\x00"), uint32(len(stored))), stored...)
	}
	bgzip := append(parts(60_000, block), gzipMember(t, nil, true)...)
	longer := gzipMember(t, text[:1000], true)
	binary.LittleEndian.PutUint32(longer[len(longer)-4:], 999)
	noise := make([]byte, unitStored+1)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}

	for name, c := range map[string]struct {
		how    Compression
		stored []byte
		split  bool // to its end
	}{
		"bgzip":               {Gzip, bgzip, true},
		"bgzip without end":   {Gzip, parts(60_000, block), true},
		"bgzip, cut off":      {Gzip, bgzip[:len(bgzip)/2], false},
		"bgzip, then gzip":    {Gzip, append(bgzip[:len(bgzip):len(bgzip)], gzipMember(t, text, false)...), false},
		"block of other size": {Gzip, append(bgzip[:len(bgzip):len(bgzip)], longer...), true},
		"members":             {Gzip, parts(1<<20, member), false},
		"one member":          {Gzip, member(text), false},
		"small frames":        {Zstd, parts(10_000, frame), true},
		"large frames":        {Zstd, parts(2<<20, counted), true},
		"a frame too large":   {Zstd, append(parts(2<<20, frame), frame(noise)...), false},
		"one frame":           {Zstd, frame(noise), false},
		"frames, cut off":     {Zstd, parts(1<<20, frame)[:1<<20], false},
		"frames, then others": {Zstd, append(parts(1<<20, frame), "no frame"...), false},
	} {
		t.Run(name, func(t *testing.T) {
			once, err := inOneGo(bytes.NewReader(c.stored), c.how)
			require.NoError(t, err)
			want, wantErr := io.ReadAll(once)
			for _, files := range []int{1, 2} {
				in, err := decompressed(bytes.NewReader(c.stored), c.how, files)
				require.NoError(t, err)
				got, err := io.ReadAll(in)
				require.Equal(t, wantErr, err)
				if err == nil {
					require.True(t, bytes.Equal(want, got))
				}
				require.Equal(t, c.split, in.(*frames).last == nil, "split to the end")
				_ = in.Close()
			}
		})
	}

	in, err := decompressed(bytes.NewReader(bgzip), Gzip, 1)
	require.NoError(t, err)
	_, err = in.Read(make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, in.Close(), "while others are decompressed")
	_, err = in.Read(make([]byte, 1<<20))
	require.ErrorIs(t, err, io.ErrClosedPipe)
}
