package sweep

import (
	"strings"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/loader"
)

// ShownSetting is an entry of --set as it may be shown.
func ShownSetting(text string) string {
	name, value, found := strings.Cut(text, "=")
	if !found || !loader.IsSecret(name) {
		return text
	}
	return name + "=" + loader.Secret(value).String()
}

// ShownTarget is a target without anything that may be secret. Its error shows nothing secret either.
func ShownTarget(text string) (string, error) {
	t, err := loader.ParseTarget(text)
	if err != nil {
		return "", err
	}
	return t.String(), nil
}

// withoutSecrets is the report as it may be recorded: without what --set has let in.
func (s *Setup) withoutSecrets(r *report.Report) *report.Report {
	if r == nil {
		return nil
	}
	r.Schema = report.Schema
	if len(s.secrets) == 0 {
		return r
	}
	for name, value := range r.Target.Settings {
		if loader.IsSecret(name) {
			value = loader.Secret(value).String()
		}
		r.Target.Settings[name] = loader.Redact(value, s.secrets...)
	}
	for name, value := range r.Plan.Options {
		r.Plan.Options[name] = loader.Redact(value, s.secrets...)
	}
	r.Result.Error = loader.Redact(r.Result.Error, s.secrets...)
	for i, text := range r.Warnings {
		r.Warnings[i] = loader.Redact(text, s.secrets...)
	}
	return r
}
