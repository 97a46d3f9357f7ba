package live

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/event"
)

// stalled is the time without an acknowledgement after which the line shows it.
const stalled = 30 * time.Second

// Percent returns the acknowledged part of the plan, 0 … 100, rounded down: 100 means all of it. It is unknown if the
// end of the run is a time.
func Percent(s event.Snapshot) (percent float64, known bool) {
	done, planned := s.Rows, s.PlannedRows
	if planned <= 0 {
		done, planned = s.PayloadBytes, s.PlannedBytes
	}
	if planned <= 0 {
		return 0, false
	}
	share := min(float64(done)/float64(planned), 1)
	return math.Floor(share*1000) / 10, true
}

// part is a piece of the line. Parts of low weight are dropped first if the line is too long.
type part struct {
	weight int
	text   string
}

// Line describes a run in ASCII, in at most the given number of columns; 0 means no limit.
func Line(s event.Snapshot, r stats.Rates, columns int) string {
	parts := []part{{9, heading(s)}}
	add := func(weight int, format string, args ...any) {
		parts = append(parts, part{weight, fmt.Sprintf(format, args...)})
	}
	moving := stats.Moving(s.Phase)
	switch {
	case moving || s.Phase == event.Done:
		add(8, "%s", of(units.Bytes(s.PayloadBytes), units.Bytes(s.PlannedBytes), s.PlannedBytes))
		if s.StoredBatches > 0 {
			add(7, "stored %s", units.Bytes(s.StoredBytes))
		}
		add(3, "%s rows", of(units.Count(s.Rows), units.Count(s.PlannedRows), s.PlannedRows))
		if moving {
			add(7, "%s/s now", units.Bytes(int64(r.Bytes)))
		}
		add(4, "%s/s avg", units.Bytes(int64(r.OverallBytes)))
		speed := r.Rows
		if !moving {
			speed = r.OverallRows
		}
		add(2, "%s rows/s", units.Count(int64(speed)))
		if r.ETAKnown {
			add(6, "ETA %s", round(r.ETA))
		}
	default:
		add(8, "%s", round(time.Duration(s.PhaseSeconds[s.Phase]*float64(time.Second))))
		switch v := s.Verification; {
		case s.Phase == event.Verify && v.Share > 0:
			add(8, "%.0f%% of the table", math.Floor(v.Share*100))
			add(3, "%s rows found", units.Count(v.FoundRows))
			if v.Share > v.Earlier {
				add(6, "ETA %s", round(time.Duration(s.PhaseSeconds[s.Phase]*(1-v.Share)/(v.Share-v.Earlier)*float64(time.Second))))
			}
		case s.Rows > 0:
			add(3, "%s rows acknowledged", units.Count(s.Rows))
		}
	}
	if quiet := s.At.Sub(s.LastProgress); moving && quiet >= stalled {
		add(9, "no answer for %s", round(quiet))
	}
	if s.MissingRows > 0 {
		add(9, "%s rows missing", units.Count(s.MissingRows))
	}
	if moving {
		add(1, "%d workers", s.Workers)
		if s.BoundBy != "" && s.Phase != event.Commit { // waits for a commit are not accounted for
			add(1, "%s-bound", s.BoundBy)
		}
	}
	if moving || s.Phase == event.Done {
		add(5, "retries %s", units.Count(s.Retries))
	}
	return fit(parts, columns)
}

func heading(s event.Snapshot) string {
	percent, known := Percent(s)
	word := string(s.Phase)
	switch s.Phase {
	case event.Done:
		if known && percent < 100 {
			word = "ended" // interrupted or failed
		}
	case event.Load, event.Stage, event.Commit:
	default:
		return word
	}
	if !known {
		return word
	}
	return fmt.Sprintf("%-5s %5.1f%%", word, percent)
}

// of returns "done of planned", or only what is done if nothing is planned.
func of(done, planned string, n int64) string {
	if n <= 0 {
		return done
	}
	return done + " of " + planned
}

// round formats a time in seconds, a long one in minutes.
func round(d time.Duration) string {
	if d >= 10*time.Hour {
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return d.Round(time.Second).String()
}

func fit(parts []part, columns int) string {
	const between = " | "
	for {
		var line string
		for _, p := range parts {
			line += between + p.text
		}
		line = line[len(between):]
		if columns <= 0 || len(line) <= columns {
			return line
		}
		if len(parts) == 1 {
			return line[:columns]
		}
		lightest := slices.MinFunc(parts, func(a, b part) int { return cmp.Compare(a.weight, b.weight) })
		i := slices.Index(parts, lightest)
		parts = slices.Delete(parts, i, i+1)
	}
}

// ProgressSchema names the form of a line of --progress json.
const ProgressSchema = "terapush.progress/v1"

// progressLine is one line of --progress json. Unknown values are absent.
type progressLine struct {
	Schema       string      `json:"schema"`
	At           time.Time   `json:"at"`
	Phase        event.Phase `json:"phase"`
	Percent      *float64    `json:"percent,omitempty"`
	Rows         int64       `json:"rows"`
	PlannedRows  int64       `json:"planned_rows,omitempty"`
	PayloadBytes int64       `json:"payload_bytes"`
	PlannedBytes int64       `json:"planned_bytes,omitempty"`
	StoredRows   int64       `json:"stored_rows,omitempty"` // by this process, on their way to the table
	StoredBytes  int64       `json:"stored_bytes,omitempty"`
	// Rates of the last 10 s and of the whole load.
	RowsPerSecond         float64     `json:"rows_per_second"`
	BytesPerSecond        float64     `json:"bytes_per_second"`
	OverallRowsPerSecond  float64     `json:"overall_rows_per_second"`
	OverallBytesPerSecond float64     `json:"overall_bytes_per_second"`
	ETASeconds            *float64    `json:"eta_seconds,omitempty"`
	Retries               int64       `json:"retries"`
	MissingRows           int64       `json:"missing_rows"`
	Workers               int         `json:"workers"`
	BoundBy               event.Limit `json:"bound_by,omitempty"` // of the last second in which rows moved
}

// JSONLine describes a run as one JSON object on one line, with its line feed.
func JSONLine(s event.Snapshot, r stats.Rates) []byte {
	l := progressLine{
		Schema: ProgressSchema, At: s.At, Phase: s.Phase,
		Rows: s.Rows, PlannedRows: s.PlannedRows, PayloadBytes: s.PayloadBytes, PlannedBytes: s.PlannedBytes,
		StoredRows: s.StoredRows, StoredBytes: s.StoredBytes,
		RowsPerSecond: r.Rows, BytesPerSecond: r.Bytes,
		OverallRowsPerSecond: r.OverallRows, OverallBytesPerSecond: r.OverallBytes,
		Retries: s.Retries, MissingRows: s.MissingRows, Workers: s.Workers, BoundBy: s.BoundBy,
	}
	if percent, known := Percent(s); known {
		l.Percent = &percent
	}
	if r.ETAKnown {
		seconds := r.ETA.Seconds()
		l.ETASeconds = &seconds
	}
	line, err := json.Marshal(l)
	if err != nil {
		panic(fmt.Sprintf("live: encode a progress line: %v", err)) // rates are never NaN or infinite
	}
	return append(line, '\n')
}
