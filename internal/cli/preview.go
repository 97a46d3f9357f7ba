package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/run"
	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

func (a *app) preview() *cobra.Command {
	var d config.Data
	var n uint64
	var table string
	cmd := &cobra.Command{
		Use:   "preview DATASET",
		Short: "Show the columns and first rows of a dataset, and which formats can carry them",
		Long: `Show the columns and first rows of a dataset, a built-in one or a file.yaml of your own, and which formats can carry them.
A derived column follows from the row's number, and never repeats unless it has a cycle; a drawn one repeats after the
push's --distinct-bytes.`,
		Example: `  terapush preview orders.yaml --param customers=1000
  terapush preview lineitem --rows 3`,
		Args: func(cmd *cobra.Command, args []string) error {
			if slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, "://") }) {
				return usage(errors.New(`preview reads no database: terapush inspect "$DATABASE_URL" --table orders > orders.yaml ` +
					"writes the file of a table, and terapush preview orders.yaml shows its rows"))
			}
			return exactly(1, "preview takes one DATASET, a name or a file")(cmd, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if d.Dataset = args[0]; table != "" {
				d.Dataset += "#" + table
			}
			if err := d.ReadSpec(); err != nil {
				return usage(err)
			}
			if d.Tables != nil {
				return a.previewTables(&d)
			}
			spec := run.NewSpec(&d, new(config.Batches), "", false)
			data, err := spec.Data()
			if err != nil {
				if !config.IsFile(d.Dataset) {
					err = fmt.Errorf("%w; a file.yaml of your own is named by its path, and terapush inspect writes one for a table", err)
				}
				return usage(err)
			}

			var out strings.Builder
			fmt.Fprintf(&out, "dataset %s: %s of column data a row, seed %d\n\n",
				spec.DatasetID(), units.Size(data.Dataset.Schema().RowBytes()), d.Seed)
			writeTable(&out, previewColumns(data.Dataset.Schema()), cmp.Or(a.columns, listColumns))
			out.WriteString("\n")
			shown := int(min(int64(n), maxPreview, data.Dataset.Schema().MaxNumber()))
			writeTable(&out, previewRows(data.Dataset, shown), cmp.Or(a.columns, listColumns))
			out.WriteString("\n")
			writeTable(&out, previewFormats(data.Dataset), cmp.Or(a.columns, listColumns))
			_, err = io.WriteString(a.Stdout, out.String())
			return err
		},
	}
	config.Group(cmd.Flags(), config.GroupWhat, func(f *pflag.FlagSet) {
		d.RowFlags(f)
		f.VarP(config.Count(&n, 5), "rows", "n", "rows to show")
		f.StringVarP(&table, "table", "t", "", "table to show, of a file of several")
	})
	return cmd
}

// previewTables shows a line for each table of a file of several.
func (a *app) previewTables(d *config.Data) error {
	table := [][]string{{"TABLE", "ROWS", "BYTES A ROW", "COLUMNS", "KEY", "REFERS TO"}}
	for _, t := range d.Tables.Tables {
		data, err := t.Spec.Compile(d.Seed)
		if err != nil {
			return usage(err)
		}
		refers := strings.Join(t.Parents, ", ")
		if len(t.Broken) > 0 {
			refers = units.Join("; ", refers, "NULL: "+strings.Join(t.Broken, ", "))
		}
		table = append(table, []string{
			t.Name, units.Count(t.Spec.Rows), fmt.Sprint(data.Schema().RowBytes()), fmt.Sprint(len(t.Spec.Columns)),
			strings.Join(t.Spec.Key, ", "), refers,
		})
	}

	var out strings.Builder
	fmt.Fprintf(&out, "%s: %d tables, in the order in which push fills them; --table shows one of them\n\n",
		d.Dataset, len(d.Tables.Tables))
	writeTable(&out, table, cmp.Or(a.columns, listColumns))
	_, err := io.WriteString(a.Stdout, out.String())
	return err
}

// maxPreview is the most rows that are shown.
const maxPreview = 1000

func previewColumns(s rows.Schema) [][]string {
	table := [][]string{{"COLUMN", "TYPE", "VALUES", "BYTES"}}
	for _, c := range s.Columns {
		values, bytes := "drawn", fmt.Sprint(c.Type.Size())
		if c.Derived {
			values = "derived"
		}
		if c.Nullable {
			values = "drawn or NULL"
		}
		switch {
		case c.Type.Variable() && c.Derived:
			bytes = fmt.Sprint(c.MaxBytes)
		case c.Type.Variable():
			bytes = fmt.Sprintf("at most %d", c.MaxBytes)
		}
		table = append(table, []string{c.Name, dataset.TypeName(c), values, bytes})
	}
	return table
}

func previewRows(d dataset.Dataset, n int) [][]string {
	s := d.Schema()
	block := rows.NewBlock(s) // of one row at a time: rows may have megabytes
	table := [][]string{s.Names()}
	for i := range n {
		dataset.Row(block, d, 0, int64(i), 0)
		row := make([]string, len(s.Columns))
		for k, c := range s.Columns {
			row[k] = previewValue(c, &block.Columns[k])
		}
		table = append(table, row)
	}
	return table
}

// previewValue shows a value, and of a long one the beginning.
func previewValue(c rows.Column, v *rows.Vector) string {
	switch {
	case v.IsNull(0):
		return "NULL"
	case c.Type == rows.UUID:
		return dataset.UUIDText(v.UUID(0))
	case !c.Type.Variable():
		return c.TextOf(v.At(0))
	case c.Type.IsList():
		return shortened(string(c.AppendList(nil, v.Value(0))))
	case c.Type == rows.Bytes:
		return shortened(fmt.Sprintf("%x", v.Value(0)))
	}
	return shortened(units.Printable(string(v.Value(0))))
}

// shortened cuts a text of more runes than a cell of a table has.
func shortened(text string) string {
	const most = 60
	all := []rune(text)
	if len(all) <= most {
		return text
	}
	return string(all[:most-1]) + "…"
}

// previewFormats says for every format whether it can carry the rows, or why not.
func previewFormats(d dataset.Dataset) [][]string {
	table := [][]string{{"FORMAT", "CARRIES THE ROWS"}}
	for _, f := range batch.Formats() {
		if _, how := f.Compression(); how != "" {
			continue // as without
		}

		answer := "yes"
		if _, err := source.NewEncoder(f, d, 0, 1); err != nil {
			answer = "no: " + err.Error()
		}
		table = append(table, []string{string(f), answer})
	}
	return table
}
