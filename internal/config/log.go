package config

import (
	"io"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/terapush/terapush/pkg/loader"
)

// The forms of a log.
const (
	LogText = "text"
	LogJSON = "json"
)

// Log is what a command tells on stderr, for every command.
type Log struct {
	Quiet  bool // no progress, and nothing but errors
	Level  string
	Format string
}

// Flags declares the flags of the log.
func (l *Log) Flags(f *pflag.FlagSet) {
	f.BoolVarP(&l.Quiet, "quiet", "q", false, "print no progress, and log errors only")
	f.Var(newChoice(&l.Level, "info", "debug", "warn", "error"), "log-level", "least level of the log on stderr")
	f.Var(newChoice(&l.Format, LogText, LogJSON), "log-format", "format of the log, and of errors")
}

// Handler returns the handler that the flags ask for.
func (l *Log) Handler(w io.Writer) slog.Handler {
	var level slog.Level // info, without flags
	_ = level.UnmarshalText([]byte(l.Level))
	if l.Quiet {
		level = slog.LevelError
	}
	if l.Format == LogJSON {
		return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: explained})
	}
	return slog.NewTextHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, attr slog.Attr) slog.Attr {
		if attr.Key == slog.TimeKey {
			return slog.String(slog.TimeKey, attr.Value.Time().Format("15:04:05"))
		}
		return explained(groups, attr)
	}})
}

// explained gives an error its hint, which is not in its own text.
func explained(_ []string, attr slog.Attr) slog.Attr {
	if err, ok := attr.Value.Any().(error); ok {
		return slog.String(attr.Key, loader.Explain(err))
	}
	return attr
}
