package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/file"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
)

func (a *app) report() *cobra.Command {
	var format, out, part string
	var full bool
	cmd := &cobra.Command{
		Use:   "report FILE...",
		Short: "Show recorded sweeps and runs as tables, charts or benchmark lines",
		Long: `Show recorded sweeps and runs, offline. FILE is the record of a sweep, or the output of push --json. Records of one
plan appear side by side. So do single runs, by the inputs that differ; equal runs are repeats. The same files always
give the same output, byte for byte.

Text is for you and has everything. The other formats are for others: hosts, users, databases, tables and files are
numbered, as in postgres 2 and table 1, and servers' messages are left out, unless --full is given.

An SVG holds one chart: the first of the first table, or of the part that --only names. benchstat compares results with
equal inputs; name those that may differ with benchstat -ignore terapush,server before.bench after.bench.`,
		Example: `  terapush report sweep.jsonl
  terapush report sweep.jsonl --out sweep.html
  terapush report sweep.jsonl --only copy --out copy.svg
  terapush report before.json after.json --format markdown`,
		RunE: func(_ *cobra.Command, args []string) error {
			show, err := formatOf(format, out)
			if err != nil {
				return usage(err)
			}
			if len(args) == 0 {
				return usage(errors.New("report takes one FILE or more: 0 arguments given"))
			}
			for i, name := range args {
				if err := refuseOver("--out", out, input{name, name}); err != nil {
					return usage(err)
				}
				same := func(other string) bool { return file.Same(name, other) }
				if other := slices.IndexFunc(args[:i], same); other >= 0 {
					return usage(fmt.Errorf("%s and %s are the same file: name each file once", name, args[other]))
				}
			}
			records, err := readRecords(args, full || show == results.Text)
			if err != nil {
				return usage(err)
			}
			tables, err := onlyPart(results.Tables(records), part)
			if err != nil {
				return usage(err)
			}
			return a.show(out, func(w io.Writer) error {
				if show == results.Text && out == "" {
					return results.WriteText(w, tables, a.columns)
				}
				return show.Write(w, tables)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&format, "format", "", "text, markdown, json, html, svg or bench (default: as --out ends, else text)")
	f.StringVar(&out, "out", "", "file to write to instead of stdout")
	f.StringVar(&part, "only", "", "part of the sweep to show")
	f.BoolVar(&full, "full", false, fullHelp)
	cmd.AddCommand(a.merge())
	return cmd
}

func (a *app) merge() *cobra.Command {
	var asJSON bool
	var page string
	cmd := &cobra.Command{
		Use:   "merge FILE|DIR|s3://BUCKET/PREFIX...",
		Short: "Merge the reports of all shards of a run",
		Long: `Merge the reports of all shards of a run, as push --json printed them or --report-to kept them. Counts and CPU time are
sums. Latencies are those of all batches. Rates are over the time from the first row of any shard to the last. A
missing or doubled shard is an error.`,
		Example: `  terapush report merge shard-*.json
  terapush report merge s3://bucket/reports --json >whole.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(errors.New("report merge takes one FILE or more: 0 arguments given"))
			}
			var inputs []input
			for _, name := range args {
				inputs = append(inputs, input{name, name})
			}
			if err := errors.Join(refuseOver("--report", page, inputs...), canWrite(page)); err != nil {
				return usage(err)
			}
			var all []report.Report
			for _, name := range args {
				some, err := a.reports(cmd.Context(), name)
				if err == nil && len(some) == 0 {
					err = fmt.Errorf("%s has no reports (*.json)", name)
				}
				if err != nil {
					return usage(err)
				}
				all = append(all, some...)
			}
			whole, err := report.Merge(all)
			if err != nil {
				return usage(err)
			}
			if page != "" {
				err = writePage(page, results.Tables, results.Of(whole))
			}
			return errors.Join(a.print(whole, asJSON), err)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as one JSON object")
	cmd.Flags().StringVar(&page, "report", "", "also write the results with charts, without names, to this HTML file")
	return cmd
}

// parseReport reads what push --json has printed.
func parseReport(name string, text []byte) (r report.Report, err error) {
	if err = json.Unmarshal(text, &r); err == nil && r.Schema != report.Schema {
		err = fmt.Errorf("its schema is %q, this terapush reads %q", r.Schema, report.Schema)
	}
	if err != nil {
		return r, fmt.Errorf("reading the report %s: %w", name, err)
	}
	return r, nil
}

// maxReport is far more than the report of a run.
const maxReport = 64 << 20

const fullHelp = "show hosts, users, databases, tables, files and what servers said, as text does"

// formatOf returns the format of a name, or else the one that a file's extension stands for; text without either.
func formatOf(name, out string) (results.Format, error) {
	byEnd := map[string]results.Format{
		"": results.Text, ".txt": results.Text, ".md": results.Markdown, ".json": results.JSON,
		".bench": results.Benchmarks, ".html": results.HTML, ".htm": results.HTML, ".svg": results.SVG,
	}
	end := strings.ToLower(filepath.Ext(out))
	if err := config.Removed("--format " + cmp.Or(name, strings.TrimPrefix(end, "."))); err != nil {
		return "", err
	}
	if _, known := byEnd[end]; name == "" && !known {
		return "", fmt.Errorf("--out %s: no format has the extension %s; use one of %s, or give --format", out, end,
			strings.Join(slices.Sorted(maps.Keys(byEnd))[1:], ", "))
	}
	format := cmp.Or(results.Format(name), byEnd[end])
	if slices.Contains(results.Formats(), format) {
		return format, nil
	}
	var names []string
	for _, f := range results.Formats() {
		names = append(names, string(f))
	}
	return "", fmt.Errorf("--format: %w", config.Unknown("format", name, names))
}

// onlyPart returns the tables of a part, named with or without its sweep; all tables for "".
func onlyPart(tables []results.Table, part string) ([]results.Table, error) {
	if part == "" {
		return tables, nil
	}
	var found []results.Table
	var names []string
	for _, t := range tables {
		if t.Name == part || path.Base(t.Name) == part {
			found = append(found, t)
		}
		if t.Name != "" {
			names = append(names, path.Base(t.Name))
		}
	}
	switch {
	case len(found) > 0:
		return found, nil
	case len(names) == 0:
		return nil, fmt.Errorf("--only %q: single runs have no parts", part)
	}
	return nil, fmt.Errorf("--only: %w", config.Unknown("part", part, names))
}

// readRecords reads all files, without names unless full; the error names every bad one.
func readRecords(paths []string, full bool) ([]results.Record, error) {
	var records []results.Record
	var bad []error
	for _, path := range paths {
		r, err := results.Read(path)
		if err == nil && len(r.Head.Parts) == 0 {
			err = fmt.Errorf("%s: the record has no head: the sweep never began", path)
		}
		records, bad = append(records, r), append(bad, err)
	}
	if err := errors.Join(bad...); err != nil {
		return nil, err
	}
	if full {
		return records, nil
	}
	return results.WithoutNames(records)
}

// show writes to a file or to stdout once all text is made.
func (a *app) show(path string, write func(io.Writer) error) error {
	if path != "" {
		return writeFile("--out", path, write)
	}
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	_, err := a.Stdout.Write(text.Bytes())
	return err
}
