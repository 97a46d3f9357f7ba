package doris

import (
	"fmt"
	"net/http"
	"sync"
)

// errorFiles keeps the rejected rows of the last loads, as a backend does for a while.
type errorFiles struct {
	mu    sync.Mutex
	next  int
	files map[string][]byte
}

const keptErrorFiles = 100

// add keeps rows and returns their address.
func (e *errorFiles) add(address string, rows []byte) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.files == nil {
		e.files = map[string][]byte{}
	}
	name := fmt.Sprintf("__shard_0/error_log_insert_stmt_%d", e.next)
	e.files[name] = rows
	delete(e.files, fmt.Sprintf("__shard_0/error_log_insert_stmt_%d", e.next-keptErrorFiles))
	e.next++
	return fmt.Sprintf("http://%s/api/_load_error_log?file=%s", address, name)
}

func (e *errorFiles) serve(x *exchange) {
	e.mu.Lock()
	rows, there := e.files[x.url.Query().Get("file")]
	e.mu.Unlock()
	if !there {
		x.answer(http.StatusNotFound, "text/plain", []byte("file not exist.\n"))
		return
	}
	x.answer(http.StatusOK, "text/plain", rows)
}
