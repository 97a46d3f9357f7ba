package calibrate

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/calibrate/baseline"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/units"
)

// Schema names the form of Found as JSON. Fields may be added under the same name.
const Schema = "terapush.calibrate/v1"

// Found is the result of a calibration.
type Found struct {
	Schema     string                 `json:"schema"`
	Started    time.Time              `json:"started"`
	Version    string                 `json:"version"` // of terapush
	Machine    host.Machine           `json:"machine"`
	Host       string                 `json:"host"`        // of the sink; "" is this machine
	RTTSeconds float64                `json:"rtt_seconds"` // to the sink, of TCP's handshake; 0 where the sink is on this machine
	Dataset    string                 `json:"dataset"`
	Seconds    float64                `json:"seconds"`  // that it all took
	Source     []baseline.Measurement `json:"source"`   // rows drawn and encoded
	Series     []Series               `json:"series"`   // by protocol, with and without TLS
	KeptIn     string                 `json:"kept_in"`  // the file of the ceilings
	Warnings   []string               `json:"warnings"` // what speaks against believing it, in sentences
}

// Series is one protocol with rising workers.
type Series struct {
	Protocol string                 `json:"protocol"`
	Method   string                 `json:"method"`
	Format   string                 `json:"format"`
	TLS      bool                   `json:"tls"`
	Points   []baseline.Measurement `json:"points"`
	Skipped  []Skipped              `json:"skipped"`
	Best     int                    `json:"best"`     // index into Points; -1 without any
	Complete bool                   `json:"complete"` // it came to its end, and is kept
	Error    string                 `json:"error"`    // why not
}

// Skipped is a number of workers that was not measured.
type Skipped struct {
	Workers int    `json:"workers"`
	Why     string `json:"why"`
}

func (c *Calibration) newFound(began time.Time) Found {
	return Found{
		Schema: Schema, Started: began.UTC().Truncate(time.Second), Version: c.Version, Machine: c.machine, Host: c.Host, Dataset: c.Dataset,
		Source: []baseline.Measurement{}, Series: []Series{}, KeptIn: baseline.Path(c.State), Warnings: []string{},
	}
}

// clearlyLess is the share of the best rate below which more workers have not paid.
const clearlyLess = 0.9

// enough returns why more workers are not tried: the last two were clearly slower than the best before. "" if they are.
func (s *Series) enough() string {
	best, below := 0.0, 0
	for _, p := range s.Points {
		if p.BytesPerSecond < clearlyLess*best {
			below++
		} else {
			below = 0
		}
		best = max(best, p.BytesPerSecond)
	}
	if below < 2 {
		return ""
	}
	return fmt.Sprintf("the last two were below %.0f %% of the best", 100*clearlyLess)
}

func (s *Series) skip(workers []int, why string) {
	for _, n := range workers {
		s.Skipped = append(s.Skipped, Skipped{n, why})
	}
}

// conclude finds the best point.
func (s *Series) conclude() {
	s.Best = -1
	for i, p := range s.Points {
		if s.Best < 0 || p.BytesPerSecond > s.Points[s.Best].BytesPerSecond {
			s.Best = i
		}
	}
}

// name is the protocol for people.
func (s *Series) name() string { return s.Protocol + " " + s.Method }

// line is the series for those who wait.
func (s *Series) line() string {
	text := s.name()
	if s.TLS {
		text += ", TLS"
	}
	if s.Best >= 0 {
		best := s.Points[s.Best]
		by := english.Plural(best.Workers, "worker", "")
		text += fmt.Sprintf(": %s/s by %s, bound by %s", size(best.BytesPerSecond), by, best.BoundBy)
	}
	if s.Error != "" {
		text += ": " + s.Error
	}
	return text
}

// WriteJSON prints one JSON object.
func (f Found) WriteJSON(w io.Writer) error { return report.WriteJSON(w, f) }

// WriteText prints a table, and below it what it leaves out.
func (f Found) WriteText(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	where := "a sink on this machine, which takes part of its cores"
	if f.Host != "" {
		where = fmt.Sprintf("a sink at %s, %s away", f.Host, time.Duration(f.RTTSeconds*float64(time.Second)).Round(time.Microsecond))
	}
	cores := english.Plural(f.Machine.Cores, "core", "")
	fmt.Fprintf(w, "%s of %s, into %s\n\n", cores, cmp.Or(f.Machine.CPU, "an unknown processor"), where)
	fmt.Fprintln(out, "WHAT\tFORMAT\tTLS\tBYTES/S\tROWS/S\tAT\tCPU S/GIB\tBOUND BY\tTRIED")
	row := func(what, tls string, m baseline.Measurement, unit, tried string) {
		at := english.Plural(m.Workers, unit, "")
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%.2f\t%s\t%s\n", what, cmp.Or(m.Format, "-"), tls,
			size(m.BytesPerSecond), units.Amount(m.RowsPerSecond), at, m.CPUSecondsPerGiB, m.BoundBy, tried)
	}
	for _, s := range f.Source {
		what := map[baseline.Stage]string{baseline.Fill: "draw rows", baseline.Encode: "draw and encode"}[s.Stage]
		if s.PayloadKind == string(dataset.Text) {
			what += ", text payload"
		}
		row(what, "", s, "core", "")
	}
	for _, s := range f.Series {
		tls := map[bool]string{true: "on", false: "off"}[s.TLS]
		if s.Best < 0 {
			fmt.Fprintf(out, "%s\t%s\t%s\t-\t-\t-\t-\t-\t\n", s.name(), cmp.Or(s.Format, "-"), tls)
			continue
		}
		var tried []string
		for _, p := range s.Points {
			tried = append(tried, strconv.Itoa(p.Workers))
		}
		row(s.name(), tls, s.Points[s.Best], "worker", strings.Join(tried, " "))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, line := range f.notes() {
		fmt.Fprintf(w, "%-9s %s\n", line[0], line[1])
	}
	_, err := fmt.Fprintf(w, "%-9s %.0f s; figures of %s are in %s\n", "took", f.Seconds, english.WordSeries(f.kept(), "and"), f.KeptIn)
	return err
}

// notes are what the table leaves out: errors, workers that were not tried, sinks that count.
func (f Found) notes() (lines [][2]string) {
	add := func(what, format string, args ...any) {
		lines = append(lines, [2]string{what, fmt.Sprintf(format, args...)})
	}
	for _, s := range f.Series {
		name := s.name()
		if s.TLS {
			name += " with TLS"
		}
		if s.Error != "" {
			add("failed", "%s: %s", name, s.Error)
		}
		var left []string
		why := ""
		for _, n := range s.Skipped {
			left, why = append(left, strconv.Itoa(n.Workers)), n.Why
		}
		if len(left) > 0 && s.Error == "" {
			add("skipped", "%s, %s workers: %s", name, english.WordSeries(left, "and"), why)
		}
		if s.Best >= 0 && s.Points[s.Best].Counting {
			add("note", "%s: the sink counts rows, which may have been slower than this client", name)
		}
	}
	for _, text := range f.Warnings {
		add("note", "%s", text)
	}
	return lines
}

// kept are what is on disk.
func (f Found) kept() []string {
	var names []string
	if len(f.Source) > 0 {
		names = append(names, "drawing and encoding")
	}
	n := 0
	for _, s := range f.Series {
		if s.Complete && len(s.Points) > 0 {
			n++
		}
	}
	if n > 0 || len(names) == 0 {
		names = append(names, english.Plural(n, "series", "series"))
	}
	return names
}

// size has three digits: a rate is not repeated to more.
func size(n float64) string { return humanize.IBytesN(uint64(max(n, 0)), 3) }
