package databend

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// insertFile puts the batch into the stage, through the node or straight into the store behind the stage, and inserts
// its rows. The server removes the file when they are in; otherwise it is removed here, unless the statement may
// still be reading it.
func (s *session) insertFile(ctx context.Context, b *batch.Batch, m marks) (int64, error) {
	stage, path, put := s.owner.plan.stage, attachedPath(b), s.node.upload
	if s.owner.plan.method.Name == insert {
		put = s.putPresigned
	}
	if err := put(ctx, stage, path, b); err != nil {
		return 0, failedBefore("upload", err)
	}
	at := "@" + stage + "/" + path
	written, err := s.node.run(ctx, statement{
		sql: s.insertAttached(), marks: m,
		attachment: &attachment{Location: at, Format: attachedFormat(b.Format), Copy: map[string]string{"purge": "true"}},
	}, nil)
	if err == nil && written == 0 || err != nil && verdict(err).Applied == loader.No {
		_ = s.owner.exec(ctx, "REMOVE "+at)
	}
	return written, err
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

// presign asks for a request that a file may be put with without credentials. Its body is still to come.
func (n *node) presign(ctx context.Context, stage, path string) (*http.Request, error) {
	var answer []string
	_, err := n.run(ctx, statement{sql: "PRESIGN UPLOAD @" + stage + "/" + path}, func(row [][]byte) error {
		for _, value := range row {
			answer = append(answer, string(value))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(answer) < 3 || !strings.EqualFold(answer[0], http.MethodPut) {
		return nil, fmt.Errorf("PRESIGN answered with %d values, and not with PUT, headers and a URL", len(answer))
	}
	var headers map[string]string
	if err := json.Unmarshal([]byte(answer[1]), &headers); err != nil {
		return nil, &unreadableError{err}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, answer[2], nil)
	if err != nil || r.URL.Host == "" {
		return nil, fmt.Errorf("PRESIGN answered with something that is no URL") // it may hold a signature
	}
	for name, value := range headers {
		switch http.CanonicalHeaderKey(name) {
		case "Host":
			r.Host = value // it is signed
		case "Content-Length": // the batch knows its own
		default:
			r.Header.Set(name, value)
		}
	}
	return r, nil
}

// putPresigned puts the batch into the object store behind the stage.
func (s *session) putPresigned(ctx context.Context, stage, path string, b *batch.Batch) error {
	r, err := s.node.presign(ctx, stage, path)
	if err != nil {
		return err
	}
	client, err := s.owner.clients.of(r.URL)
	if err != nil {
		return err
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
	r, err := l.host().presign(ctx, l.plan.stage, folder+"/preflight")
	if is(err, storageUnsupported) {
		return &loader.Error{Op: "presign an upload", Applied: loader.No,
			Err: fmt.Errorf("the storage behind stage @%s knows no presigned URLs: %w", l.plan.stage, err), Hint: advice}
	}
	if err != nil {
		return err
	}
	port := cmp.Or(r.URL.Port(), map[string]string{"http": "80", "https": "443"}[r.URL.Scheme])
	conn, err := l.clients.deps.Dial(ctx, "tcp", net.JoinHostPort(r.URL.Hostname(), port))
	if err != nil {
		return &loader.Error{Op: "connect to " + r.URL.Host, Applied: loader.No,
			Err: fmt.Errorf("presigned uploads go there: %w", err), Hint: advice}
	}
	return conn.Close()
}
