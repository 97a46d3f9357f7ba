package s3_test

import (
	"crypto/md5" //nolint:gosec // what Content-MD5 is made with
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/sinktest"
)

// What other SDKs send, byte by byte.
func TestChunks(t *testing.T) {
	signed := ";chunk-signature=" + strings.Repeat("0", 64)
	sum := md5.Sum([]byte("1\n2\n")) //nolint:gosec // see above
	for name, c := range map[string]struct {
		fields, body, want string
		rows               int64
	}{
		"unsigned with trailer": {"x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER|x-amz-trailer: x-amz-checksum-crc32|x-amz-decoded-content-length: 4",
			"4\r\n1\n2\n\r\n0\r\nx-amz-checksum-crc32:" + crc("1\n2\n") + "\r\n\r\n", "200", 2},
		"no line behind the trailer": {"x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER|x-amz-trailer: x-amz-checksum-crc32",
			"4\r\n1\n2\n\r\n0\r\nx-amz-checksum-crc32:" + crc("1\n2\n") + "\r\n", "200", 2},
		"signed": {"x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
			"2" + signed + "\r\n1\n\r\n2" + signed + "\r\n2\n\r\n0" + signed + "\r\n\r\n", "200", 2},
		"signed with trailer": {"x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER|x-amz-trailer: x-amz-checksum-crc32",
			"4" + signed + "\r\n1\n2\n\r\n0" + signed + "\r\nx-amz-checksum-crc32:" + crc("1\n2\n") + "\r\nx-amz-trailer-signature:" + strings.Repeat("0", 64) + "\r\n\r\n", "200", 2},
		"wrong length": {"x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER|x-amz-decoded-content-length: 5",
			"4\r\n1\n2\n\r\n0\r\n\r\n", "IncompleteBody", 0},
		"chunk too long":     {"x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER", "2\r\n1\n2\n\r\n0\r\n\r\n", "IncompleteBody", 0},
		"chunk beyond":       {"x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER", "40\r\n1\n2\n\r\n0\r\n\r\n", "IncompleteBody", 0},
		"no size":            {"x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER", "-4\r\n1\n2\n\r\n0\r\n\r\n", "400", 0},
		"huge size":          {"x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER", "ffffffffffffffff\r\n1\n2\n\r\n0\r\n\r\n", "400", 0},
		"no last chunk":      {"x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER", "4\r\n1\n2\n\r\n", "400", 0},
		"MD5":                {"Content-MD5: " + base64.StdEncoding.EncodeToString(sum[:]), "1\n2\n", "200", 2},
		"condition":          {"If-None-Match: *", "1\n2\n", "NotImplemented", 0},
		"without a checksum": {"", "1\n2\n3", "200", 3},
		"broken Parquet":     {"", "PAR1\n2\n3", "Parquet footer", 0},
	} {
		t.Run(name, func(t *testing.T) {
			for _, inChunks := range []bool{false, true} {
				s := listen(t, sink.Options{CRC: true})
				fields := strings.ReplaceAll(c.fields, "|", "\r\n")
				if fields != "" {
					fields += "\r\n"
				}
				body := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(c.body), c.body)
				if inChunks { // of HTTP, which cut in the middle of those of S3
					body = "Transfer-Encoding: chunked\r\n\r\n"
					for i := range len(c.body) {
						body += "1\r\n" + c.body[i:i+1] + "\r\n"
					}
					body += "0\r\n\r\n"
				}
				out := sinktest.Say(t, s, "PUT /b/k HTTP/1.1\r\nHost: x\r\n"+fields+body)
				require.Contains(t, out, c.want)
				require.Equal(t, c.rows, s.Stats().Rows)
				if c.rows == 0 {
					require.Zero(t, s.Stats().Bytes)
				}
			}
		})
	}
}

func crc(text string) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(text))))
}

func FuzzPut(f *testing.F) {
	f.Add("x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER\r\nx-amz-trailer: x-amz-checksum-crc32\r\n", "4\r\n1\n2\n\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n")
	f.Add("x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD\r\n", "ffffffffffffffff;x\r\n")
	f.Add("", "PAR1PAR1")
	f.Add("", "PAR1\x15\x02\xff\xff\xff\xff\x0f\x05\x00\x00\x00PAR1")
	s := listen(f, sink.Options{CRC: true})
	f.Fuzz(func(t *testing.T, fields, body string) {
		before := s.Stats().Bytes
		out := sinktest.Say(t, s, fmt.Sprintf("PUT /b/k HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n%s", fields, len(body), body))
		if strings.HasPrefix(out, "HTTP/1.1 200 ") == (s.Stats().Bytes == before) && len(body) > 0 && fields == "" {
			t.Errorf("%d bytes more after %q", s.Stats().Bytes-before, out)
		}
	})
}
