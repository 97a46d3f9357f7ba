package doris

import (
	"context"
	"net/http"
)

// cancelPath is where a frontend cancels the load of a label (CancelLoadAction); it needs LOAD_PRIV on the database.
func (n tableName) cancelPath() string { return n.path("_cancel") }

// endAttempts cancels the load that is under way under a label. Resolve waits for its end in any case.
func (l *opened) endAttempts(ctx context.Context, label string) {
	if _, err := l.question(ctx, http.MethodPost, l.name.cancelPath(), label); err != nil {
		l.log.Warn("an abandoned load cannot be canceled; waiting for the server to end it", "label", label, "error", err)
	}
}
