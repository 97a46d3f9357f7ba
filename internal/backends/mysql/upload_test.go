package mysql

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// Each case is one connection, which takes one body after the other: the server, another author's, checks the number of
// every packet, and the driver that of the answer.
func TestUploads(t *testing.T) {
	const (
		least = smallestPacket + numbers*smallestPacket
		full  = smallestPacket + numbers*largestPacket
	)
	type sent struct{ size, packets, longest int }
	for name, c := range map[string]struct {
		tls  loader.TLSMode
		most string // max_allowed_packet
		want []sent
	}{
		"plain": {loader.TLSOff, "67108864", []sent{
			{0, 0, 0}, {1, 1, 1}, {smallestPacket, 1, smallestPacket}, {smallestPacket + 1, 2, smallestPacket},
			{least - 1, 1 + numbers, smallestPacket}, {least, 1 + numbers, smallestPacket}, {least + 1, 1 + numbers, smallestPacket + 1},
			{full, 1 + numbers, largestPacket}, {full + 1, 1 + 2*numbers, largestPacket/2 + 1}, {2 * full, 1 + 3*numbers, 43712}, {1, 1, 1},
		}},
		"small packets": {loader.TLSOff, "40001", []sent{{smallestPacket + 40_000*numbers + 1, 1 + 2*numbers, 20_001}}},
		"TLS":           {loader.TLSRequire, "67108864", []sent{{least + 1, 2 + numbers, smallestPacket}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &fakeServer{vars: map[string]string{"version": "8.0.36", "max_allowed_packet": c.most}}
			if c.tls != loader.TLSOff {
				web := httptest.NewTLSServer(nil)
				defer web.Close()
				s.tls = web.TLS
			}
			target := s.start(t, "mysql")
			target.TLS = c.tls
			session := uploadSession(t, target, backendtest.Deps().Dial)
			for number, want := range c.want {
				data := make([]byte, want.size)
				_, _ = rand.NewChaCha8([32]byte{byte(number)}).Read(data)
				returned := 0
				b := &batch.Batch{
					ID: id(int64(number)), Format: batch.TSV, Rows: int64(bytes.Count(data, []byte{'\n'})), Encoded: data,
					Free: func() { returned++ },
				}
				b.Hold()
				ack, err := session.Load(t.Context(), b)
				require.NoError(t, err, want.size)
				require.Equal(t, b.Rows, ack.Rows, want.size)
				require.True(t, bytes.Equal(data, s.file), want.size)
				longest := 0
				if len(s.cut) > 0 {
					longest = slices.Max(s.cut)
				}
				require.Equal(t, want, sent{len(s.file), len(s.cut), longest})
				require.EqualValues(t, want.size, b.Sent())
				b.Release()
				require.Equal(t, 1, returned)
			}
		})
	}
}

// uploadSession loads without claims into a table that is not looked at.
func uploadSession(t *testing.T, target loader.Target, dial dialer) *session {
	deps := backendtest.Deps()
	deps.Dial = dial
	contract := contractOf(methodLoadData, 1)
	contract.Delivery, contract.Dedup = loader.AtLeastOnce, loader.DedupNone
	return prepared(t, target, deps, silent(t, contract)).testSession(t, contract)
}

// After half a file nothing may follow, above all no empty packet.
func TestUploadOverBrokenConnection(t *testing.T) {
	for after := range 4 { // the gathered packet, a header, data, a header
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			inner := &recorder{fails: io.ErrClosedPipe, after: after}
			c := over(t, inner)
			b := &batch.Batch{Encoded: make([]byte, smallestPacket+numbers*smallestPacket)}
			b.Hold()
			u := &upload{body: b.Open(), conn: c, largest: largestPacket}
			packet := make([]byte, headerBytes+smallestPacket)
			n, err := u.Read(packet[headerBytes:])
			require.NoError(t, err)
			appendHeader(packet[:0], 2, n)
			_, err = c.Write(packet)
			require.NoError(t, err)
			_, err = u.Read(packet[headerBytes:])
			require.ErrorIs(t, err, io.EOF, "for another error the driver would end the file, too")
			inner.fails = nil
			_, err = c.Write(appendHeader(nil, 3, 0))
			require.ErrorIs(t, err, io.ErrClosedPipe)
			_, err = c.Read(packet)
			require.ErrorIs(t, err, io.ErrClosedPipe)
			require.NoError(t, c.Close())
			assert.Len(t, inner.writes, after)
		})
	}
}

// Whoever sends: half a file is not applied, and the server has seen no end of it.
func TestUploadIsCut(t *testing.T) {
	for name, direct := range map[string]bool{"past the driver": true, "by the driver": false} {
		t.Run(name, func(t *testing.T) {
			s := &fakeServer{vars: map[string]string{"version": "8.0.36"}}
			cut := &loadertest.ConnFault{Action: loadertest.Cut, Bytes: 6 << 20}
			session := uploadSession(t, s.start(t, "mysql"), loadertest.NewFaults(backendtest.Deps().Dial, cut).Dial)
			if !direct {
				session.wire = nil
			}
			b := textBatch(id(0), 1, strings.Repeat("x", 8<<20))
			_, err := session.Load(t.Context(), b)
			require.EqualValues(t, 1, cut.Injected())
			assert.Equal(t, loader.Reconnect(loader.ClassConnection), New().Classify(err), err)
			assert.Nil(t, s.file)
		})
	}
}

// Between driver and coalescer there may be something that wraps packets.
func TestPacketOfTheDriver(t *testing.T) {
	packet := append(appendHeader(nil, 255, 4), "data"...)
	for name, c := range map[string]struct {
		written []byte
		n       int
		is      bool
	}{
		"as it is":   {packet, 4, true},
		"longer":     {append(packet, 0), 4, false},
		"compressed": {[]byte{1, 0, 0, 0, 4, 0, 0, 'x'}, 4, false},
		"encrypted":  {[]byte{0x17, 3, 3, 0, 3, 'x', 'y', 'z'}, 4, false},
		"sent":       {make([]byte, 2*coalesceBytes), 2*coalesceBytes - headerBytes, false},
	} {
		t.Run(name, func(t *testing.T) {
			conn := over(t, &recorder{})
			_, err := conn.Write(c.written)
			require.NoError(t, err)
			number, is := conn.packet(c.n)
			assert.Equal(t, c.is, is)
			if is {
				assert.EqualValues(t, 255, number)
			}
		})
	}
}
