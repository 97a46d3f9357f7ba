package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/sweep"
)

// apart refuses files that would take each other's place.
func (s *sweeper) apart() error {
	kept := input{"the record", s.record}
	plan, config := input{"--plan", s.planFile}, input{"--config", s.file}
	return errors.Join(refuseOver("--report", s.html, kept, plan, config), refuseOver("--record", s.record, plan, config))
}

// look reads the record without taking it, and says why the sweep would not go on with it.
func (s *sweeper) look() (results.Record, error) {
	was, err := results.Look(s.record)
	if err != nil {
		return results.Record{}, fmt.Errorf("--record: %w", err)
	}
	if s.restart {
		return results.Record{}, nil
	}
	if was.Head.Schema == "" {
		return was, nil
	}
	if d := was.Head.Difference(s.head()); d != "" {
		return results.Record{}, s.another(&sweep.OtherSweepError{Difference: d})
	}
	return was, nil
}

// another says that the record is of another sweep.
func (s *sweeper) another(err error) error {
	return fmt.Errorf("%s holds %w; give another --record, or --restart to begin anew", s.record, err)
}

// head is the record's.
func (s *sweeper) head() results.Head {
	return results.Head{
		Schema: results.Schema, Name: s.Plan.Name, Title: s.Plan.Title, Scale: s.Plan.Scale, Digest: results.Digest(s.Parts, s.Plan.Limit),
		Started: time.Now(), Version: buildVersion().Version, Machine: host.ThisMachine(), Repeats: s.Plan.Repeats,
		Limit: s.Plan.Limit.Seconds(), Parts: s.Parts,
	}
}

// begin writes the head of a new record, or makes sure that the record is of this sweep.
func (s *sweeper) begin(file *results.File) error {
	if s.restart {
		if err := file.Reset(); err != nil {
			return err
		}
	}
	warnings, err := sweep.Begin(file, s.head())
	var other *sweep.OtherSweepError
	if errors.As(err, &other) {
		return usage(s.another(err))
	}
	if n := len(file.Record().Entries); n > 0 {
		fmt.Fprintf(s.terminal, "going on with %s, which has %s\n", s.record, english.Plural(n, "push", "pushes"))
	}
	for _, text := range warnings {
		s.log().Warn(text)
	}
	return err
}
