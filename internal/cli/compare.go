package cli

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/terapush/terapush/internal/results"
)

// tooSlowError is the error of a missed threshold.
type tooSlowError string

func (e tooSlowError) Error() string { return string(e) }

func (a *app) compare() *cobra.Command {
	var threshold share
	var asJSON, redact bool
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare two sweeps or runs, case by case",
		Long: `Compare two recorded sweeps or runs, offline. For cases with the same settings it prints the change of the median rate, and
whether the change is more than noise. That takes 5 pushes of the case in A and in B, or 4 and 6, 3 and 9, 2 and 19. It lists
every input that differs.

With --fail-if-slower the exit code is 6 if a case failed in B alone, or if its median rate in B is lower by more than that.
With enough pushes the difference must also be more than noise. With too few pushes every such difference counts: repeat
the sweep five times. The exit code is 2 if no case is in both A and B.`,
		Example: `  terapush compare before.jsonl after.jsonl --fail-if-slower 5%`,
		Args:    exactly(2, "compare takes two files"),
		RunE: func(_ *cobra.Command, args []string) error {
			records, err := readRecords(args, redact)
			if err != nil {
				return usage(err)
			}
			c := results.Compare(records[0], records[1])
			show := c.Text
			if asJSON {
				show = c.JSON
			}
			if err := a.show("", func(w io.Writer) error { return show(w, float64(threshold)) }); err != nil {
				return err
			}
			return missed(c, float64(threshold))
		},
	}
	f := cmd.Flags()
	f.Var(&threshold, "fail-if-slower", "exit with 6 if a case of B is slower by more than this, such as 5%")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	f.BoolVar(&redact, "redact", false, redactHelp)
	return cmd
}

// missed returns the error of a missed threshold. A comparison of nothing has missed it.
func missed(c results.Comparison, threshold float64) error {
	slower, broken := len(c.SlowerBy(threshold)), len(c.Broken())
	switch {
	case threshold == 0:
		return nil
	case len(c.Cells)+broken == 0:
		return usage(errors.New("--fail-if-slower: the records have no measured case in common"))
	case slower+broken > 0:
		return tooSlowError(fmt.Sprintf("slower than --fail-if-slower allows: %d of %d cases slower, %d failed", slower, len(c.Cells), broken))
	}
	return nil
}

// share is a flag value such as 5%.
type share float64

func (s *share) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(*s)*100, 'g', -1, 64) + "%"
}

func (s *share) Type() string { return "percent" }

func (s *share) Set(text string) error {
	digits, isPercent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || !isPercent || !(n > 0 && n < 100) {
		return fmt.Errorf("%q is not a share: write it as 5%%, more than 0%% and less than 100%%", text)
	}
	*s = share(n / 100)
	return nil
}
