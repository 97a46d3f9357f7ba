package doris

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/terapush/terapush/pkg/sqlload"
)

// walPath is where a frontend says how many files the backends' write-ahead logs have ("Get WAL size" in the manual).
const walPath = "/api/get_wal_size"

// Measured implements loader.Measurer. Under async it counts the log's files, of all tables: those that are left when
// the rows can be read belong to other runs, or to rows that the server tries to put in again and again.
func (l *opened) Measured(ctx context.Context) (cost map[string]float64, notes []string) {
	if l.options.group != groupAsync {
		return nil, nil
	}
	// A frontend waits for a backend that is down for minutes.
	ctx, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()
	a, err := l.question(ctx, http.MethodGet, walPath, "")
	var backends []string // host:port:files
	if err == nil {
		err = json.Unmarshal(a.Data, &backends)
	}
	if err != nil {
		return nil, []string{fmt.Sprintf("the files of the write-ahead log are not counted: %v; "+
			"it takes NODE_PRIV, and a release with apache/doris#38895", err)}
	}
	files := int64(0)
	for _, b := range backends {
		files += sqlload.Integer(b[strings.LastIndexByte(b, ':')+1:])
	}
	return map[string]float64{"wal_files": float64(files)}, nil
}
