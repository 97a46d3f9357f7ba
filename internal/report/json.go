package report

import (
	"encoding/json"
	"fmt"
	"io"
)

// Complete sets the schema, and replaces nil lists and maps, so that JSON has [] and {} and no null.
func (r *Report) Complete() {
	r.Schema = Schema
	emptyMap(&r.Target.Settings)
	emptyMap(&r.Plan.Options)
	emptyMap(&r.Cost)
	emptyMap(&r.Result.Errors)
	emptyList(&r.Result.Failures)
	emptyMap(&r.BoundBy.Evidence.Allowance)
	if r.WorkerSeconds == nil {
		r.WorkerSeconds = secondsByState(nil)
	}
	if r.BoundBy.Shares == nil {
		r.BoundBy.Shares, r.BoundBy.Seconds = byLimit(nil), byLimit(nil)
	}
	emptyList(&r.Timeline.Moments)
	emptyList(&r.Verify.BadBatches)
	emptyList(&r.Verify.Problems)
	emptyList(&r.Warnings)
}

// WriteJSON writes the report as one JSON object.
func (r Report) WriteJSON(w io.Writer) error {
	r.Complete()
	if err := WriteJSON(w, r); err != nil {
		return fmt.Errorf("report: write JSON: %w", err)
	}
	return nil
}

// WriteJSON writes an object indented and without escapes for HTML, so that commands can be copied.
func WriteJSON(w io.Writer, object any) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(object)
}

func emptyList[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}

func emptyMap[M ~map[K]V, K comparable, V any](m *M) {
	if *m == nil {
		*m = M{}
	}
}
