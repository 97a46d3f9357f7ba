package results

import (
	"encoding/json"
	"fmt"
	"io"
)

// TableSchema names the form of JSON. Fields may be added under the same name.
const TableSchema = "terapush.table/v1"

// JSON writes all tables with all their numbers as one object. Times are seconds, sizes are bytes.
func JSON(w io.Writer, tables []Table) error {
	if len(tables) == 0 {
		return errNothing
	}
	return writeJSON(w, struct {
		Schema string  `json:"schema"`
		Tables []Table `json:"tables"`
	}{TableSchema, tables})
}

func writeJSON(w io.Writer, v any) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	if err := out.Encode(v); err != nil {
		return fmt.Errorf("render: write the JSON: %w", err)
	}
	return nil
}
