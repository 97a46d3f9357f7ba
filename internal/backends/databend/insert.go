package databend

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// insertPresigned puts the batch into the stage's object store itself, and inserts it.
func (s *session) insertPresigned(ctx context.Context, b *batch.Batch, m marks) (int64, error) {
	path := attachedPath(b)
	if err := s.putPresigned(ctx, path, b); err != nil {
		return 0, failed("upload", err)
	}
	return s.insertAttachment(ctx, path, b, m)
}

// insertUploaded lets the node put the batch into the stage, and inserts it.
func (s *session) insertUploaded(ctx context.Context, b *batch.Batch, m marks) (int64, error) {
	path := attachedPath(b)
	if err := s.node.upload(ctx, s.owner.plan.stage, path, b); err != nil {
		return 0, failed("upload", err)
	}
	return s.insertAttachment(ctx, path, b, m)
}

// attachedPath is a name that no other attempt uses: an upload that is still on its way must not change a file that is
// being read.
func attachedPath(b *batch.Batch) string {
	return fmt.Sprintf("%s/%s/%d-%s", folder, b.ID.Run, b.Attempt, fileName(b.ID.Number, b.Format))
}

// removeAttempts removes the files of all attempts at a batch.
func removeAttempts(stage string, id batch.ID, f batch.Format) string {
	return fmt.Sprintf("REMOVE @%s/%s/%s/ PATTERN = %s", stage, folder, id.Run,
		literal(strings.Replace("[0-9]+-"+fileName(id.Number, f), ".", "[.]", 1)))
}

// insertAttachment inserts the rows of an uploaded file. The server removes it when they are in; otherwise it is removed
// here, unless the statement may still be reading it.
func (s *session) insertAttachment(ctx context.Context, path string, b *batch.Batch, m marks) (int64, error) {
	written, err := s.node.run(ctx, statement{
		sql: s.insertAttached(), marks: m,
		attachment: &attachment{
			Location: "@" + s.owner.plan.stage + "/" + path,
			Format:   attachedFormat(b.Format),
			Copy:     map[string]string{"purge": "true"},
		},
	}, nil)
	if err == nil && written == 0 || err != nil && verdict(err).Applied == loader.No {
		_ = s.owner.exec(ctx, "REMOVE @"+s.owner.plan.stage+"/"+path)
	}
	return written, err
}

// presign asks for a URL that a file may be put to without credentials.
func (n *node) presign(ctx context.Context, stage, path string) (to *url.URL, headers map[string]string, err error) {
	var answer []string
	_, err = n.run(ctx, statement{sql: "PRESIGN UPLOAD @" + stage + "/" + path}, func(row [][]byte) error {
		for _, value := range row {
			answer = append(answer, string(value))
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if len(answer) < 3 || !strings.EqualFold(answer[0], http.MethodPut) {
		return nil, nil, fmt.Errorf("PRESIGN answered with %d values, and not with PUT, headers and a URL", len(answer))
	}
	if err := json.Unmarshal([]byte(answer[1]), &headers); err != nil {
		return nil, nil, &unreadableError{err}
	}
	to, err = url.Parse(answer[2])
	if err != nil || to.Host == "" {
		return nil, nil, fmt.Errorf("PRESIGN answered with something that is no URL") // it may hold a signature
	}
	return to, headers, nil
}

// putPresigned puts the batch into the object store behind the stage.
func (s *session) putPresigned(ctx context.Context, path string, b *batch.Batch) error {
	to, headers, err := s.node.presign(ctx, s.owner.plan.stage, path)
	if err != nil {
		return err
	}
	client, err := s.owner.clients.of(to)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://presigned/", nil)
	if err != nil {
		return err
	}
	r.URL, r.Host = to, to.Host
	for name, value := range headers {
		switch http.CanonicalHeaderKey(name) {
		case "Host":
			r.Host = value // it is signed
		case "Content-Length": // the batch knows its own
		default:
			r.Header.Set(name, value)
		}
	}
	httpload.Attach(r, nil, b, nil)
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	if answer.Status/100 != 2 {
		return storeRefusal(answer)
	}
	return nil
}

// storeRefusal reads an object store's error. Of its XML only code and message are repeated: the rest may hold what
// was signed, and the signature.
func storeRefusal(r *httpload.Response) error {
	var said struct {
		Code    string `xml:"Code"`
		Message string `xml:"Message"`
	}
	e := &serverError{status: r.Status, message: "the object store refuses the upload"}
	if xml.Unmarshal(r.Body, &said) == nil && said.Code != "" {
		e.message += ": " + said.Code + ": " + said.Message
	}
	return e
}

// probePresign asks for a URL, and whether somebody listens where it leads: a store may have a name that only the
// server can reach.
func (l *opened) probePresign(ctx context.Context) error {
	advice := "take --method " + insertNoPresign + ", which uploads through the node"
	u, _, err := l.host().presign(ctx, l.plan.stage, folder+"/preflight")
	if is(err, storageUnsupported) {
		return &loader.Error{Op: "presign an upload", Applied: loader.No,
			Err: fmt.Errorf("the storage behind stage @%s knows no presigned URLs: %w", l.plan.stage, err), Hint: advice}
	}
	if err != nil {
		return err
	}
	conn, err := l.clients.deps.Dial(ctx, "tcp", hostPort(u))
	if err != nil {
		return &loader.Error{Op: "connect to " + u.Host, Applied: loader.No,
			Err: fmt.Errorf("presigned uploads go there: %w", err), Hint: advice}
	}
	return conn.Close()
}

func hostPort(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Host
	case u.Scheme == "https":
		return u.Host + ":443"
	}
	return u.Host + ":80"
}
