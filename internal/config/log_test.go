package config_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/pkg/loader"
)

// What to do about an error stands in the log, though not in the error's own text.
func TestLogOfAnError(t *testing.T) {
	err := &loader.Error{Op: "connect", Err: errors.New("refused"), Hint: "is it up?"}
	for format, want := range map[string]string{
		config.LogText: `level=WARN msg=retry error="connect: refused (is it up?)"`,
		config.LogJSON: `"msg":"retry","error":"connect: refused (is it up?)"`,
	} {
		var out strings.Builder
		l := config.Log{Level: "info", Format: format}
		slog.New(l.Handler(&out)).Warn("retry", "error", err)
		require.Contains(t, out.String(), want)
	}
}
