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
	RTTSeconds float64                `json:"rtt_seconds"` // to the sink at Host, of TCP's handshake
	Dataset    string                 `json:"dataset"`
	Seconds    float64                `json:"seconds"`  // the calibration took
	Source     []baseline.Measurement `json:"source"`   // rows drawn and encoded
	Series     []Series               `json:"series"`   // by protocol, with and without TLS
	KeptIn     string                 `json:"kept_in"`  // the baseline's file
	Warnings   []string               `json:"warnings"` // none so far
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
	Complete bool                   `json:"complete"` // and kept
	Error    string                 `json:"error"`    // why it is not complete
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

// clearlyLess is the share of the best rate below which more workers did not pay.
const clearlyLess = 0.9

// enough returns why more workers are not tried, "" if they are: the last two rates were clearly below the best.
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
func (s *Series) name() string {
	name := s.Protocol + " " + s.Method
	if s.TLS {
		name += ", TLS"
	}
	return name
}

// line is the series as a line of progress.
func (s *Series) line() string {
	text := s.name()
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

// WriteText prints a table, and below it errors, numbers of workers that were not tried, and sinks that count.
func (f Found) WriteText(w io.Writer) error {
	where := "a sink on this machine, which takes part of its cores"
	if f.Host != "" {
		where = fmt.Sprintf("a sink at %s, %s away", f.Host, time.Duration(f.RTTSeconds*float64(time.Second)).Round(time.Microsecond))
	}
	cores := english.Plural(f.Machine.Cores, "core", "")
	fmt.Fprintf(w, "%s of %s, into %s\n\n", cores, cmp.Or(f.Machine.CPU, "an unknown processor"), where)
	out := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(out, "WHAT\tFORMAT\tTLS\tBYTES/S\tROWS/S\tAT\tCPU S/GIB\tBOUND BY\tTRIED")
	row := func(what, tls string, m baseline.Measurement, unit, tried string) {
		at := english.Plural(m.Workers, unit, "")
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%.2f\t%s\t%s\n", what, cmp.Or(m.Format, "-"), tls,
			size(m.BytesPerSecond), units.Amount(m.RowsPerSecond), at, m.CPUSecondsPerGiB, m.BoundBy, tried)
	}
	for _, s := range f.Source {
		row(sourceName(s), "", s, "core", "")
	}
	for _, s := range f.Series {
		what, tls := s.Protocol+" "+s.Method, map[bool]string{true: "on", false: "off"}[s.TLS]
		if s.Best < 0 {
			fmt.Fprintf(out, "%s\t%s\t%s\t-\t-\t-\t-\t-\t\n", what, cmp.Or(s.Format, "-"), tls)
			continue
		}
		var tried []string
		for _, p := range s.Points {
			tried = append(tried, strconv.Itoa(p.Workers))
		}
		row(what, tls, s.Points[s.Best], "worker", strings.Join(tried, " "))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, s := range f.Series {
		var left []string
		for _, n := range s.Skipped {
			left = append(left, strconv.Itoa(n.Workers))
		}
		switch {
		case s.Error != "":
			fmt.Fprintf(w, "failed    %s: %s\n", s.name(), s.Error)
		case len(left) > 0:
			fmt.Fprintf(w, "skipped   %s, %s workers: %s\n", s.name(), english.WordSeries(left, "and"), s.Skipped[0].Why)
		}
		if s.Best >= 0 && s.Points[s.Best].Counting {
			fmt.Fprintf(w, "note      %s: the sink counts rows, which may have been slower than this client\n", s.name())
		}
	}
	_, err := fmt.Fprintf(w, "took      %.0f s; complete series are in %s\n", f.Seconds, f.KeptIn)
	return err
}

// size formats three digits: rates are not reproducible to more.
func size(n float64) string { return humanize.IBytesN(uint64(max(n, 0)), 3) }
