package databend

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/pkg/batch"
)

// attachForm makes a multipart form with one part, the batch as a file of the name, the request's body. It is written
// by hand because mime/multipart would copy the batch into it, and the length has to be known before. The part is
// called "upload", as a streaming load insists on, and has a file name, as both routes do. The boundary is as good as
// never among the rows: it has 130 random bits.
func attachForm(r *http.Request, file string, b *batch.Batch) {
	boundary := "terapush" + rand.Text()
	r.Header.Set("Content-Type", "multipart/form-data; boundary="+boundary)
	head := fmt.Appendf(nil, "--%s\r\nContent-Disposition: form-data; name=\"upload\"; filename=\"%s\"\r\n"+
		"Content-Type: application/octet-stream\r\n\r\n", boundary, file)
	httpload.Attach(r, head, b, fmt.Appendf(nil, "\r\n--%s--\r\n", boundary))
}

// folder is where files lie in a stage of the server; below it the runs.
const folder = "terapush"

// fileName is the name of a batch's file in its run's folder.
func fileName(number int64, f batch.Format) string { return fmt.Sprintf("%012d.%s", number, f) }

// upload lets the node put the batch into a stage.
func (n *node) upload(ctx context.Context, stage, path string, b *batch.Batch) error {
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
	if err := read(answer, &body); err != nil {
		return err
	}
	// A form that ends too early is no error to the server: it answers with the files it has seen.
	if !slices.Equal(body.Files, []string{file}) || !strings.EqualFold(body.State, "SUCCESS") {
		return &missingFileError{files: body.Files, state: body.State, sent: file}
	}
	return nil
}

// missingFileError says that the server has not seen the end of an upload: it can be sent again.
type missingFileError struct {
	files       []string
	state, sent string
}

func (e *missingFileError) Error() string {
	return fmt.Sprintf("the server stored the files %q (%s), and was sent %q", e.files, e.state, e.sent)
}
