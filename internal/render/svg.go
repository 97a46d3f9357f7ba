package render

import (
	"io"

	"github.com/terapush/terapush/internal/analysis"
)

// SVG writes the chart of the first table: an image holds one.
func SVG(w io.Writer, tables []analysis.Table) error {
	if len(tables) == 0 {
		return errNothing
	}
	return Chart(w, tables[0])
}
