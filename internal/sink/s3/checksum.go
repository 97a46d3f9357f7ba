package s3

import (
	"crypto/md5"  //nolint:gosec // what Content-MD5 is made with
	"crypto/sha1" //nolint:gosec // what x-amz-checksum-sha1 is made with
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"net/http"
	"net/textproto"
	"strings"
)

// digest is a checksum that a client declares, and what the sink makes of the body.
type digest struct {
	name    string // of the header field or the trailer
	hash    hash.Hash
	text    func([]byte) string
	want    string // "" until the trailer has come
	trailed bool
}

const (
	checksumPrefix = "X-Amz-Checksum-"
	contentMD5     = "Content-Md5"
	contentSHA256  = "X-Amz-Content-Sha256"
)

// nvme is the polynomial of CRC-64/NVME with its bits reversed, as the table wants it.
const nvme = 0x9a6c9329ac4bc9b5

// algorithm makes the hash of a checksum by the end of its name.
func algorithm(name string) hash.Hash {
	switch strings.ToLower(name) {
	case "crc32":
		return crc32.NewIEEE()
	case "crc32c":
		return crc32.New(crc32.MakeTable(crc32.Castagnoli))
	case "crc64nvme":
		return crc64.New(crc64.MakeTable(nvme))
	case "sha1":
		return sha1.New() //nolint:gosec // it is compared, and nothing rests on it
	case "sha256":
		return sha256.New()
	}
	return nil
}

// declared returns the checksums that a head announces. One that the sink does not know is refused, since the client
// asked for it to be compared and the sink was started to do so.
func declared(h http.Header) ([]*digest, error) {
	var all []*digest
	add := func(field, want string, trailed bool) error {
		name := textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(field))
		kind, is := strings.CutPrefix(name, checksumPrefix)
		if !is || kind == "Type" || kind == "Algorithm" || kind == "Mode" {
			return nil
		}
		d := &digest{name: name, hash: algorithm(kind), text: base64.StdEncoding.EncodeToString, want: want, trailed: trailed}
		if d.hash == nil {
			return &refusal{http.StatusBadRequest, "InvalidRequest", "terapush sink: checksum " + kind + " is not known here"}
		}
		all = append(all, d)
		return nil
	}
	for name, values := range h {
		if err := add(name, values[0], false); err != nil {
			return nil, err
		}
	}
	for _, names := range h.Values("X-Amz-Trailer") {
		for name := range strings.SplitSeq(names, ",") {
			if err := add(name, "", true); err != nil {
				return nil, err
			}
		}
	}
	if want := h.Get(contentMD5); want != "" {
		all = append(all, &digest{name: contentMD5, hash: md5.New(), text: base64.StdEncoding.EncodeToString, want: want}) //nolint:gosec // see above
	}
	if want := h.Get(contentSHA256); len(want) == hex.EncodedLen(sha256.Size) {
		all = append(all, &digest{name: contentSHA256, hash: sha256.New(), text: hex.EncodeToString, want: want})
	}
	return all, nil
}

// trailer takes over what came behind the body.
func (d *digest) trailer(all textproto.MIMEHeader) error {
	if !d.trailed {
		return nil
	}
	d.want = all.Get(d.name)
	if d.want == "" {
		return &refusal{http.StatusBadRequest, "MalformedTrailerError", "the trailer " + d.name + " was announced and has not come"}
	}
	return nil
}

func (d *digest) compare() error {
	if got := d.text(d.hash.Sum(nil)); got != d.want {
		code := "BadDigest"
		if d.name == contentSHA256 {
			code = "XAmzContentSHA256Mismatch"
		}
		return &refusal{http.StatusBadRequest, code, d.name + " is " + d.want + ", and the body's is " + got}
	}
	return nil
}

// proven returns the checksum as S3 repeats it.
func (d *digest) proven() []string {
	if !strings.HasPrefix(d.name, checksumPrefix) {
		return nil
	}
	return []string{strings.ToLower(d.name), d.want}
}
