package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/rows"
)

// entry is a column with a generator that may do.
type entry struct {
	*column
	generator string
}

func (e entry) line() string {
	kind := e.kind
	if e.sql != "" {
		kind += ", sql: " + quoted(e.sql)
	}
	nulls := ""
	if e.Nullable && !strings.Contains(e.generator, ", nulls: ") {
		nulls = ", nulls: 0%"
	}
	return fmt.Sprintf("  %s: {type: %s, %s%s}", name(e.Name), kind, e.generator, nulls)
}

// file writes the spec. n is its number of rows, unless it is 0.
func (w *writer) file(server string, n int64) string {
	head := "# " + comment(tableName(w.Description)+" of "+server+", as terapush inspect has read it."+w.contents()) + "\n"
	if w.StandIn {
		head += triedOnStandIn
	}
	return head + w.hints() + w.remarks() + fmt.Sprintf("version: 1\nname: %s\n", name(w.name)) + w.body(n)
}

// triedOnStandIn is what a file says first of a server that could not be had.
const triedOnStandIn = "# Of this kind only a stand-in has been inspected, and no real server: check the types and keys.\n"

// hints say what is usual to edit, with the columns, and which table a push fills.
func (w *writer) hints() string {
	var out strings.Builder
	say := func(format string, args ...any) {
		fmt.Fprintf(&out, "# %s\n", comment(fmt.Sprintf(format, args...)))
	}
	say("Without --table a push fills table %s: for a copy give the name of another.", w.name)
	if w.hasShapes() {
		return out.String()
	}

	var skewed, nullable, shared []string
	for _, c := range w.columns {
		if c.omitted != "" || c.derived {
			continue
		}
		if strings.HasPrefix(c.generator, "ref: ") && c.own == nil {
			skewed = append(skewed, name(c.Name))
		}
		if c.Nullable && !strings.Contains(c.generator, ", nulls: ") {
			nullable = append(nullable, name(c.Name))
		}
		if strings.HasPrefix(c.generator, "values: ") && c.Values != nil && c.Values.Type != rows.Bool {
			shared = append(shared, name(c.Name))
		}
	}
	for _, hint := range []struct {
		text    string
		columns []string
	}{
		{"For skew add zipf: {s: 1.2} beside ref", skewed},
		{"For NULLs change nulls: 0%", nullable},
		{"For shares write values: {a: 70%, b: 30%}", shared},
	} {
		const most = 5
		if n := len(hint.columns); n > most {
			hint.columns = append(hint.columns[:most:most], "…")
		}
		if len(hint.columns) > 0 {
			say("%s: %s.", hint.text, strings.Join(hint.columns, ", "))
		}
	}
	return out.String()
}

// remarks are what a spec cannot say of the table.
func (w *writer) remarks() string {
	var out strings.Builder
	say := func(text string) { fmt.Fprintf(&out, "# %s\n", comment(text)) }
	w.sayShapes(say)
	for _, hidden := range w.Hidden {
		say("The server did not show this user its " + hidden + ".")
	}
	if len(w.Costs) > 0 {
		say("Every row pays for " + strings.Join(w.Costs, ", ") + ".")
	}
	if w.Partitions != "" {
		say("Partitioned by " + w.Partitions + ": a row without a partition stops the run.")
	}
	for _, text := range w.unknown {
		say("Not understood: " + text + ". A row that breaks it stops the run before it begins.")
	}
	return out.String()
}

// body is what a spec says of the table.
func (w *writer) body(n int64) string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	switch {
	case n == uncounted && n != w.Rows:
		line("rows: %d  # the table has none that the server has counted", n)
	case n > 0:
		line("rows: %d", n)
	}
	line("key: %s", names(w.key))
	if !slices.Equal(w.primary, w.key) {
		line("primary: %s", names(w.primary))
	}
	line("columns:")
	for _, c := range w.columns {
		if c.omitted != "" {
			line("  # %s", comment(fmt.Sprintf("%s %s is left out: %s", quoted(c.Name), c.Type, c.omitted)))
			continue
		}
		text := entry{c, c.generator}.line()
		if notes := c.comment(); notes != "" {
			text += "  # " + comment(notes)
		}
		line("%s", text)
	}
	if len(w.unique) > 0 {
		line("unique:")
		for _, set := range w.unique {
			line("  - %s", names(set))
		}
	}
	return out.String()
}

// contents says what of the table's rows is in the file.
func (w *writer) contents() string {
	if !w.hasShapes() {
		return " No value of its rows is in this file."
	}
	return ""
}

func (w *writer) hasShapes() bool {
	return slices.ContainsFunc(w.columns, func(c *column) bool { return c.Shape != nil })
}

// sayShapes says what statistics the file has, and which columns have none.
func (w *writer) sayShapes(say func(string)) {
	if !w.hasShapes() {
		if w.Analyze != "" {
			say("The server has no statistics of it. To gather them: " + w.Analyze)
		}
		return
	}
	texts := "Shapes only: no text of that table is in this file."
	if w.keepValues {
		texts = "Common values of that table, texts too, are in this file."
	}
	say(texts + " Correlations between columns are not imitated.")
	if w.Analyzed != "" {
		say("Its statistics are of " + w.Analyzed + ".")
	}

	var without []string
	for _, c := range w.columns {
		if c.Shape == nil && c.omitted == "" && !c.derived {
			without = append(without, name(c.Name))
		}
	}
	if len(without) > 0 {
		say("The server has no statistics of column " + strings.Join(without, ", ") + ". To gather them: " + w.Analyze)
	}
}

// comment is what a spec cannot say of a column that is in it.
func (c *column) comment() string {
	var all []string
	if c.Numbered != "" {
		all = append(all, string(c.Numbered))
	}
	if c.Default != "" && c.Default != "NULL" {
		all = append(all, "DEFAULT "+c.Default)
	}
	if c.OnUpdate != "" {
		all = append(all, "ON UPDATE "+c.OnUpdate)
	}
	if c.Invisible {
		all = append(all, "INVISIBLE")
	}
	all = append(all, c.notes...)
	if c.Comment != "" {
		all = append(all, c.Comment)
	}
	return strings.Join(all, "; ")
}
