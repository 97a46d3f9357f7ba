// Package notes keeps the warnings of a run, for its log and its report.
package notes

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

// Notes are the warnings of a run. They belong to one goroutine.
type Notes struct {
	Log  *slog.Logger // may be nil
	List []string
}

// Warn notes a text once: a plan that is made again says the same again.
func (n *Notes) Warn(text string) {
	if slices.Contains(n.List, text) {
		return
	}
	n.List = append(n.List, text)
	if n.Log != nil {
		n.Log.Warn(text)
	}
}

// Warnf is Warn of a format. Errors among args are told with their hints.
func (n *Notes) Warnf(format string, args ...any) {
	for i, arg := range args {
		if err, ok := arg.(error); ok {
			args[i] = loader.Explain(err)
		}
	}
	n.Warn(fmt.Sprintf(format, args...))
}

// WarnAll is Warn of each text.
func (n *Notes) WarnAll(texts []string) {
	for _, text := range texts {
		n.Warn(text)
	}
}

// During logs what takes long: when it begins, and once a minute until stop is called.
func (n *Notes) During(what string) (stop func()) {
	if n.Log == nil {
		return func() {}
	}
	began, ended, minute := time.Now(), make(chan struct{}), time.NewTicker(time.Minute)
	n.Log.Info(what)
	go func() {
		for {
			select {
			case <-minute.C:
				n.Log.Info(what, "for", time.Since(began).Round(time.Second))
			case <-ended:
				return
			}
		}
	}()
	return func() {
		minute.Stop()
		close(ended)
	}
}
