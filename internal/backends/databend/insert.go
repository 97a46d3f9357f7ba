package databend

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// attachForm sets the body: a multipart form with the batch as its only part. It is written by hand because
// mime/multipart would copy the batch, and the length has to be known before. Streaming loads want a part called
// "upload"; all routes want a file name. The boundary has 130 random bits, so it is not among the rows.
func attachForm(r *http.Request, file string, b *batch.Batch) {
	boundary := "terapush" + rand.Text()
	r.Header.Set("Content-Type", "multipart/form-data; boundary="+boundary)
	head := fmt.Appendf(nil, "--%s\r\nContent-Disposition: form-data; name=\"upload\"; filename=\"%s\"\r\n"+
		"Content-Type: application/octet-stream\r\n\r\n", boundary, file)
	httpload.Attach(r, head, b, fmt.Appendf(nil, "\r\n--%s--\r\n", boundary))
}

// folder holds the folders of the runs in a stage of the server.
const folder = "terapush"

// fileName is the name of a batch's file in its run's folder.
func fileName(number int64, f batch.Format) string { return fmt.Sprintf("%012d.%s", number, f) }

// upload puts the batch into a stage through the node.
func (n *endpoint) upload(ctx context.Context, stage, path string, b *batch.Batch) error {
	r, err := n.request(ctx, http.MethodPut, "/v1/upload_to_stage")
	if err != nil {
		return err
	}
	slash := strings.LastIndexByte(path, '/')
	file := path[slash+1:]
	r.Header.Set("X-DATABEND-STAGE-NAME", stage)
	r.Header.Set("X-DATABEND-RELATIVE-PATH", path[:slash])
	attachForm(r, file, b)
	answer, err := n.http.Do(r)
	if err != nil {
		return err
	}
	var body struct {
		State string   `json:"state"`
		Files []string `json:"files"`
	}
	if err := parse(answer, &body); err != nil {
		return err
	}
	// The server accepts a form that ends too early, and answers with the files it has seen.
	if !slices.Equal(body.Files, []string{file}) || !strings.EqualFold(body.State, "SUCCESS") {
		return &fileError{fmt.Sprintf("the server stored the files %q (%s), and was sent %q", body.Files, body.State, file)}
	}
	return nil
}

// fileError says that an upload did not arrive whole. It can be sent again.
type fileError struct{ text string }

func (e *fileError) Error() string { return e.text }

// presign returns a request that uploads a file without credentials. It has no body yet.
func (n *endpoint) presign(ctx context.Context, stage, path string) (*http.Request, error) {
	rows, err := sqlload.Rows(ctx, conn{run: n.run}, "PRESIGN UPLOAD @"+stage+"/"+path)
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 || len(rows[0]) < 3 || !strings.EqualFold(rows[0][0], http.MethodPut) {
		return nil, errors.New("the answer to PRESIGN is not PUT, headers and a URL")
	}
	var headers map[string]string
	if err := json.Unmarshal([]byte(rows[0][1]), &headers); err != nil {
		return nil, &unreadableError{err}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, rows[0][2], nil)
	if err != nil || r.URL.Host == "" {
		return nil, errors.New("the answer to PRESIGN has no URL") // not shown: it may hold a signature
	}
	for name, value := range headers {
		switch http.CanonicalHeaderKey(name) {
		case "Host":
			r.Host = value // it is signed
		case "Content-Length": // the batch has its own
		default:
			r.Header.Set(name, value)
		}
	}
	return r, nil
}

// uploadPresigned puts the batch into the object store behind the stage.
func (s *session) uploadPresigned(ctx context.Context, stage, path string, b *batch.Batch) error {
	r, err := s.endpoint.presign(ctx, stage, path)
	if err != nil {
		return err
	}
	client, err := s.owner.clients.client(r.URL)
	if err != nil {
		return err
	}
	httpload.Attach(r, nil, b, nil)
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	if answer.Status/100 != 2 {
		return storeError(answer)
	}
	return nil
}

// storeError reads an object store's XML. Only code and message are shown: the rest may hold the signature.
func storeError(r *httpload.Response) error {
	var body struct {
		Code    string `xml:"Code"`
		Message string `xml:"Message"`
	}
	e := &serverError{status: r.Status, message: "the object store refuses the upload"}
	if xml.Unmarshal(r.Body, &body) == nil && body.Code != "" {
		e.message += ": " + body.Code + ": " + body.Message
	}
	return e
}

// probePresign asks for a presigned URL and connects to its host, which may have a name that only the server knows.
func (l *opened) probePresign(ctx context.Context) error {
	const advice = "take --method " + methodInsertNoPresign + ", which uploads through the node"
	r, err := l.hosts.Current().presign(ctx, l.plan.Stage, folder+"/preflight")
	if is(err, storageUnsupported) {
		return &loader.Error{Op: "presign an upload", Applied: loader.No,
			Err: fmt.Errorf("the storage behind stage @%s has no presigned URLs: %w", l.plan.Stage, err), Hint: advice}
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

// insertFile uploads the batch and inserts the rows of the file. The server removes the file when they are in. After a
// failure it is removed here, unless the statement may still be reading it.
func (s *session) insertFile(ctx context.Context, b *batch.Batch, t tags) (int64, error) {
	stage, path, upload := s.owner.plan.Stage, attemptPath(b), s.endpoint.upload
	if s.owner.plan.method.Name == methodInsert {
		upload = s.uploadPresigned
	}
	if err := upload(ctx, stage, path, b); err != nil {
		return 0, failedBefore("upload", err)
	}
	location := "@" + stage + "/" + path
	written, err := s.endpoint.run(ctx, statement{sql: s.insertAttached(), tags: t, attachment: &attachment{
		Location: location, Format: attachedFormat(b.Format), Copy: map[string]string{"purge": "true"},
	}}, nil)
	if err == nil && written == 0 || err != nil && verdict(err).Applied == loader.No {
		_ = s.owner.exec(ctx, "REMOVE "+location)
	}
	return written, err
}

// attemptPath is the file of one attempt: a late upload must not change a file that is being read.
func attemptPath(b *batch.Batch) string {
	return fmt.Sprintf("%s/%s/%d-%s", folder, b.ID.Run, b.Attempt, fileName(b.ID.Number, b.Format))
}

// removeAttempts removes the files of all attempts at a batch.
func removeAttempts(stage string, id batch.ID, f batch.Format) string {
	return fmt.Sprintf("REMOVE @%s/%s/%s/ PATTERN = %s", stage, folder, id.Run,
		literal(strings.Replace("[0-9]+-"+fileName(id.Number, f), ".", "[.]", 1)))
}
