package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/terapush/terapush/internal/config"
)

const loadHelp = `Load your own files into a table that is there, exactly once, over many connections, and say what the limit was.

FILE is a path, a glob, a folder, - for standard input, or s3:// with an object, a glob or a prefix; .gz and .zst are
decompressed. The keys of a bucket come from where AWS's tools find them. The database parses the records: nothing is
converted. In csv an empty field is NULL and "" is an empty text, on every database; tsv and text write \N. Texts are UTF-8,
dates ISO, and times are in UTC unless they say otherwise.

Without --header and --columns the fields are the table's columns, in order. A load adds to the rows of the table, and drops,
empties and creates nothing. Each batch goes in with a claim, in one transaction, and where it begins and ends in its file is
written down before it is sent: a load that was killed goes on with --resume, sends what is missing, and refuses a file that
has changed. What it proves: the records in the files = acknowledged = claimed; the rows of the table as well where it was
empty, or with --verify count.

PostgreSQL (copy), MySQL, MariaDB and TiDB (load-data), and Databend (insert-no-presign, by labels in place of claims) take files
so far. Databend parses ndjson and Parquet too, whose names are the columns. UTF-16, types by guessing, and upsert are for other
tools: write csv, or load into a staging table and INSERT from there.

Exit codes: 0 ok, 1 failed and can be resumed, 2 usage, 3 finished with rejected records, 4 verification failed,
5 preflight failed: no record was sent, 6 slower than --fail-below, 7 the outcome of some batches is unknown,
9 another process has taken the run over, 129, 130 or 143 stopped by a signal and saved.`

func (a *app) load() *cobra.Command {
	var c config.Push
	var file string
	cmd := &cobra.Command{
		Use:   "load TARGET FILE... --table NAME [flags]",
		Short: "Load your own files exactly once, as fast as possible",
		Long:  loadHelp,
		Example: `  terapush load postgres://user@host/db --table orders 'exports/*.csv.gz' --header
  terapush load postgres://user@host/db --table orders s3://bucket/exports/ --workers 32
  terapush load mysql://user@host/db --table orders orders.csv --columns id,,total
  terapush load postgres://user@host/db --table orders orders.csv --header --dry-run
  terapush load postgres://user@host/db --resume last`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(fmt.Errorf("load takes a TARGET and one FILE or more"))
			}
			c.Target, c.Files.Paths = args[0], args[1:]
			explicit, err := a.restore(cmd.Context(), cmd.Flags(), &c, file)
			if err != nil {
				return usage(err)
			}
			if c.DryRun {
				return a.dryLoad(cmd.Context(), &c)
			}
			return a.runReported(cmd, &c, file, explicit)
		},
	}
	c.LoadFlags(cmd.Flags(), a.drivers)
	addConfig(cmd.Flags(), &file)
	return cmd
}
