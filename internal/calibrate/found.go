package calibrate

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/calibrate/baseline"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/host"
)

// Schema names the form of Found as JSON. Fields may be added under the same name.
const Schema = "terapush.calibrate/v1"

// Found is what a calibration has found.
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

// enough says why more workers are not tried: the last two were clearly slower than the best before. "" if they are.
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
	text := s.name() + map[bool]string{true: ", TLS"}[s.TLS] + ": "
	if s.Best >= 0 {
		best := s.Points[s.Best]
		text += fmt.Sprintf("%s/s by %s, bound by %s", size(best.BytesPerSecond), plural(best.Workers, "worker"), best.BoundBy)
	}
	if s.Error != "" {
		text = strings.TrimSuffix(text, ": ") + ": " + s.Error
	}
	return text
}

// WriteJSON prints one JSON object.
func (f Found) WriteJSON(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(f)
}

// WriteText prints a table, and below it what it leaves out.
func (f Found) WriteText(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	where := "a sink on this machine, which takes part of its cores"
	if f.Host != "" {
		where = fmt.Sprintf("a sink at %s, %s away", f.Host, time.Duration(f.RTTSeconds*float64(time.Second)).Round(time.Microsecond))
	}
	fmt.Fprintf(w, "%s of %s, into %s\n\n", plural(f.Machine.Cores, "core"), orUnknown(f.Machine.CPU), where)
	fmt.Fprintln(out, "WHAT\tFORMAT\tTLS\tBYTES/S\tROWS/S\tAT\tCPU S/GIB\tBOUND BY\tTRIED")
	for _, s := range f.Source {
		what := map[baseline.Stage]string{baseline.Fill: "draw rows", baseline.Encode: "draw and encode"}[s.Stage]
		if s.PayloadKind == string(dataset.Text) {
			what += ", text payload"
		}
		fmt.Fprintf(out, "%s\t%s\t\t%s\t%s\t%s\t%.2f\t\t\n", what, orNone(s.Format), size(s.BytesPerSecond), count(s.RowsPerSecond),
			plural(s.Workers, "core"), s.CPUSecondsPerGiB)
	}
	for _, s := range f.Series {
		if s.Best < 0 {
			fmt.Fprintf(out, "%s\t%s\t%s\t-\t-\t-\t-\t-\t\n", s.name(), orNone(s.Format), onOff(s.TLS))
			continue
		}
		b := s.Points[s.Best]
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%.2f\t%s\t%s\n", s.name(), s.Format, onOff(s.TLS), size(b.BytesPerSecond), count(b.RowsPerSecond),
			plural(b.Workers, "worker"), b.CPUSecondsPerGiB, b.BoundBy, s.tried())
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

// tried are the workers of the points.
func (s *Series) tried() string {
	var all []string
	for _, p := range s.Points {
		all = append(all, strconv.Itoa(p.Workers))
	}
	return strings.Join(all, " ")
}

// notes are what the table leaves out: errors, workers that were not tried, sinks that count.
func (f Found) notes() (lines [][2]string) {
	add := func(what, format string, args ...any) {
		lines = append(lines, [2]string{what, fmt.Sprintf(format, args...)})
	}
	for _, s := range f.Series {
		name := s.name() + map[bool]string{true: " with TLS"}[s.TLS]
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
		names = append(names, plural(n, "series"))
	}
	return names
}

func size(n float64) string { return humanize.IBytesN(uint64(max(n, 0)), 3) }

func count(n float64) string { return humanize.Comma(int64(math.Round(n))) }

func plural(n int, one string) string {
	if one == "series" {
		return strconv.Itoa(n) + " series"
	}
	return english.Plural(n, one, "")
}

func onOff(on bool) string { return map[bool]string{true: "on", false: "off"}[on] }

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func orUnknown(text string) string {
	if text == "" {
		return "an unknown processor"
	}
	return text
}
