package results

import (
	"encoding/csv"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/units"
)

// asCSV formats one line for each point of all tables. Columns that every record has come first and keep their names;
// the axes follow as axis.NAME. What a table does not have or was not measured is empty. The columns
// _samples list all values of a quantity, separated by ';'.
func asCSV(tables []Table) (string, error) {
	var axes []string
	for _, t := range tables {
		for _, a := range t.Axes {
			if !slices.Contains(axes, a.Name) {
				axes = append(axes, a.Name)
			}
		}
	}
	var b strings.Builder
	out := csv.NewWriter(&b)
	_ = out.Write(csvHead(axes)) // Error returns its error
	for _, t := range tables {
		for i := range t.Points {
			_ = out.Write(csvLine(t, i, axes))
		}
	}
	out.Flush()
	return b.String(), out.Error()
}

func csvHead(axes []string) []string {
	head := strings.Split("table scale status pushes limited failed error retries best smallest knee", " ")
	for _, name := range Quantities() {
		head = append(head, name, name+"_low", name+"_high", name+"_samples")
	}
	for _, name := range Quantities() {
		head = append(head, "seed_"+name)
	}
	for _, a := range axes {
		head = append(head, "axis."+printable(a))
	}
	return head
}

func csvLine(t Table, i int, axes []string) []string {
	p := t.Points[i]
	line := []string{
		printable(t.Name), printable(t.Scale), string(p.Status),
		strconv.Itoa(len(p.Pushes)), strconv.Itoa(p.Limited), strconv.Itoa(p.Failed), units.OneLine(p.Error),
		strconv.FormatInt(p.Retries, 10),
		strconv.FormatBool(i == t.Best), strconv.FormatBool(i == t.Smallest), strconv.FormatBool(t.isKnee(p)),
	}
	for _, q := range p.quantities() {
		s := q.sample
		if s.N == 0 {
			line = append(line, "", "", "", "")
			continue
		}
		samples := make([]string, len(s.Values))
		for n, v := range s.Values {
			samples[n] = exact(v)
		}
		line = append(line, exact(s.Median), exact(s.Low), exact(s.High), strings.Join(samples, ";"))
	}
	for _, name := range Quantities() {
		if v := p.published(name); v == 0 {
			line = append(line, "")
		} else {
			line = append(line, exact(v))
		}
	}
	for _, a := range axes {
		line = append(line, printable(p.Settings.Value(a)))
	}
	return line
}

// exact formats a number with the fewest digits that identify it.
func exact(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
