package host

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/loader"
)

// reportSchema names the JSON form of a Report.
const reportSchema = "terapush.doctor/v1"

// Report is what the command doctor prints.
type Report struct {
	Schema  string           `json:"schema"`
	Machine []loader.Finding `json:"machine"`
	Server  []loader.Finding `json:"server"` // empty without a target
	OK      bool             `json:"ok"`     // nothing would stop a push
}

// NewReport puts findings together; server is nil without a target.
func NewReport(machine, server []loader.Finding) Report {
	r := Report{Schema: reportSchema, Machine: append([]loader.Finding{}, machine...), Server: append([]loader.Finding{}, server...)}
	r.OK = len(r.Failed()) == 0
	return r
}

// Failed names the checks of grade fail.
func (r Report) Failed() []string {
	var names []string
	for _, f := range append(append([]loader.Finding{}, r.Machine...), r.Server...) {
		if f.Grade == loader.GradeFail {
			names = append(names, f.Check)
		}
	}
	return names
}

// WriteJSON prints the report as one object.
func (r Report) WriteJSON(w io.Writer) error { return report.WriteJSON(w, r) }

// WriteText prints one line for a finding, and below it the command that fixes it.
func (r Report) WriteText(w io.Writer) error {
	var text strings.Builder
	grades, checks := 0, 0
	for _, f := range append(append([]loader.Finding{}, r.Machine...), r.Server...) {
		grades, checks = max(grades, utf8.RuneCountInString(string(f.Grade))), max(checks, utf8.RuneCountInString(f.Check))
	}
	for part, findings := range [][]loader.Finding{r.Machine, r.Server} {
		if len(findings) > 0 {
			fmt.Fprintln(&text, [...]string{"this machine", "the server"}[part])
		}
		for _, f := range findings {
			fmt.Fprintf(&text, "  %-*s  %-*s  %s\n", grades, f.Grade, checks, units.Printable(f.Check), units.Printable(f.Found))
			if f.Fix != "" {
				fmt.Fprintf(&text, "  %-*s  fix: %s\n", grades, "", units.Printable(f.Fix))
			}
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}
