package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/results"
)

// tooSlowError is the error of a missed threshold.
type tooSlowError string

func (e tooSlowError) Error() string { return string(e) }

// inconclusiveError is the error of a comparison that cannot decide.
type inconclusiveError string

func (e inconclusiveError) Error() string { return string(e) }

func (a *app) compare() *cobra.Command {
	var threshold config.Share
	var asJSON, full bool
	var page, format string
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare two sweeps or runs, case by case",
		Long: `Compare two recorded sweeps or runs, offline. For cases with the same settings it prints the change of the rate and its 99 %
interval, since pushes of equal speed differ, too. A case is faster, slower, equal within 5 % (or --fail-if-slower), or
inconclusive; then it says how many pushes would decide. It takes at least 5 in A and in B, or 4 and 6. Every input that
differs is listed.

Where 8 or more pushes of A and B took turns, they are compared in pairs. Otherwise the interval includes what the machine may
have contributed, whose speed sweep measures before and after every push.

With --fail-if-slower the exit code is 6 if a case failed only in B, or is certainly slower in B by more than that. It is 8,
inconclusive, if a case may be that much slower, was not measured in B, or has other rows or another database.

Exit codes: 0 ok, 2 usage, or no case is in both A and B, 6 slower than --fail-if-slower allows, 8 inconclusive; without
--fail-if-slower 8 means that A and B have other rows.`,
		Example: `  terapush compare before.jsonl after.jsonl --fail-if-slower 5%
  terapush compare before.jsonl after.jsonl --format markdown >>"$GITHUB_STEP_SUMMARY"
  terapush compare before.jsonl after.jsonl --report change.html`,
		Args: exactly(2, "compare takes two files"),
		RunE: func(_ *cobra.Command, args []string) error {
			inputs := []input{{args[0], args[0]}, {args[1], args[1]}}
			show, err := comparisonFormat(format, asJSON)
			if err := errors.Join(err, refuseOver("--report", page, inputs...), canWrite(page)); err != nil {
				return usage(err)
			}
			records, err := readRecords(args, full || show == results.Text)
			if err != nil {
				return usage(err)
			}
			if err := writeComparison(page, args, full, float64(threshold)); err != nil {
				return err
			}
			c := results.Compare(records[0], records[1], float64(threshold))
			if err := a.show("", func(w io.Writer) error { return c.Write(w, show) }); err != nil {
				return err
			}
			return missed(c)
		},
	}
	f := cmd.Flags()
	f.Var(&threshold, "fail-if-slower", "exit with 6 if a case of B is slower by more than this, such as 5%, and with 8 if that is not certain")
	f.StringVar(&format, "format", "", "text, markdown or json; text alone has names (default text)")
	f.BoolVar(&asJSON, "json", false, "the same as --format json")
	f.StringVar(&page, "report", "", "also write the comparison with a chart, without names, to this HTML file")
	f.BoolVar(&full, "full", false, fullHelp)
	return cmd
}

// comparisonFormat returns the format that the flags of compare name.
func comparisonFormat(name string, asJSON bool) (results.Format, error) {
	if asJSON {
		if name != "" && name != string(results.JSON) {
			return "", fmt.Errorf("--json and --format %s exclude each other", name)
		}
		return results.JSON, nil
	}
	valid := []string{string(results.Text), string(results.Markdown), string(results.JSON)}
	if name = cmp.Or(name, valid[0]); !slices.Contains(valid, name) {
		return "", fmt.Errorf("--format: %w", config.Unknown("format", name, valid))
	}
	return results.Format(name), nil
}

// writeComparison writes the page of --report; "" is none.
func writeComparison(page string, of []string, full bool, threshold float64) error {
	if page == "" {
		return nil
	}
	records, err := readRecords(of, full)
	if err != nil {
		return err
	}
	c := results.Compare(records[0], records[1], threshold)
	return writeFile("--report", page, func(w io.Writer) error { return c.Write(w, results.HTML) })
}

// missed returns the error of a missed threshold, or of a comparison that says nothing. Doubt is not success.
func missed(c results.Comparison) error {
	slower, broken, undecided := len(c.Slower), len(c.Broken), len(c.Undecided)+len(c.Missing)
	switch {
	case len(c.Cells)+broken == 0:
		return usage(errors.New("the records have no measured case in common"))
	case c.Threshold == 0 && c.OtherRows():
		return inconclusiveError("inconclusive: A and B have other rows")
	case c.Threshold == 0:
		return nil
	case slower+broken > 0:
		return tooSlowError(fmt.Sprintf("slower than --fail-if-slower allows: %d of %d cases slower, %d failed", slower, len(c.Cells), broken))
	case undecided > 0:
		return inconclusiveError(fmt.Sprintf("inconclusive: %d of %d cases may be slower than --fail-if-slower allows",
			undecided, len(c.Cells)+len(c.Missing)))
	}
	return nil
}
