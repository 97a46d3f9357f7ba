package results

import (
	"io"
)

// SVG writes the chart of the first table: an image holds one.
func SVG(w io.Writer, tables []Table) error {
	if len(tables) == 0 {
		return errNothing
	}
	return Chart(w, tables[0])
}
