package objstore

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/pkg/batch"
)

// payload is what the SDK is given in the place of a batch: a seekable body of its length, which nobody reads. So no
// reader of the SDK's ever holds on to the batch.
type payload int64

var errRead = &refusal{errors.New("the SDK wants to read the body, for a checksum or a signature that nobody asked it for")}

func (p payload) Read([]byte) (int, error) { return 0, errRead }

// Len is the length in bytes. The SDK prefers it to Seek.
func (p payload) Len() int { return int(p) }

// Seek is asked for by middleware that looks whether it could.
func (p payload) Seek(offset int64, whence int) (int64, error) {
	if offset == 0 && (whence == io.SeekCurrent || whence == io.SeekStart) {
		return 0, nil
	}
	return 0, errRead
}

// sender is the SDK's HTTP client.
type sender struct {
	http  *httpload.Client
	batch *batch.Batch // that this request puts; nil for others
}

// Do sends a signed request, with the batch for its body: the SDK wraps what it is given, and behind its wrappers the
// bytes would be copied once more. And the transport may read for longer than this call takes, when a server answers
// early; it holds on to the batch as long as it does. Where signature or framing depend on the bytes, the body
// cannot be exchanged, and nothing is sent.
func (s *sender) Do(r *http.Request) (*http.Response, error) {
	if s.batch != nil {
		if signed := r.Header.Get("X-Amz-Content-Sha256"); signed != "UNSIGNED-PAYLOAD" {
			return nil, &refusal{fmt.Errorf("the SDK has signed the body as %q, and only an unsigned one can be sent", signed)}
		}
		r = r.WithContext(r.Context()) // a copy: the SDK closes the body of the request that it knows
		httpload.Attach(r, nil, s.batch, nil)
	}
	return s.http.RoundTrip(r)
}

// refusal is an error of ours, made before anything was sent; it is the same whenever it is tried again.
type refusal struct{ err error }

func (e *refusal) Error() string { return e.err.Error() }
func (e *refusal) Unwrap() error { return e.err }
