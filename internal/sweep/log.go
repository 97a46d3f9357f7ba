package sweep

import (
	"fmt"

	"github.com/terapush/terapush/internal/record"
)

// OtherSweepError is a record that is not of the sweep that is to be done. Nothing was written to it.
type OtherSweepError struct{ Difference string }

// Error says where the two differ.
func (e *OtherSweepError) Error() string { return "another sweep: " + e.Difference }

// Begin writes the head of a new record, or makes sure that the record is of this sweep. Where the sweep has more repeats
// by now, or another machine or version goes on with it, the head is written once more: who reads the record knows of every
// entry by whom it was pushed. warnings are what speaks against going on, in sentences. head needs no schema.
func Begin(file *record.File, head record.Head) (warnings []string, err error) {
	was := file.Record().Head
	if was.Schema == "" {
		return nil, file.Begin(head)
	}
	if d := was.Difference(head); d != "" {
		return nil, &OtherSweepError{d}
	}
	if file.Torn() {
		warnings = append(warnings, "the record's last line was cut off when the process before ended; that push is done again")
	}
	if was.Machine != head.Machine {
		warnings = append(warnings, fmt.Sprintf("the record was last added to on another machine (%s, %s); results of two machines say little about cells",
			was.Machine.Host, was.Machine.CPU))
	}
	if was.Version != head.Version {
		warnings = append(warnings, fmt.Sprintf("the record was last added to by version %s of terapush", was.Version))
	}
	head.Schema, head.Started, head.Repeats = was.Schema, was.Started, max(was.Repeats, head.Repeats)
	if was.Same(head) {
		return warnings, nil
	}
	return warnings, file.Begin(head)
}
