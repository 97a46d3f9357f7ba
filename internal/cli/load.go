package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/terapush/terapush/internal/config"
)

const loadHelp = `Load your own files into an existing table, exactly once, over many connections, and name the bottleneck.

FILE is a path, a glob, a folder, - for standard input, or s3:// with an object, a glob or a prefix; .gz and .zst are
decompressed. Bucket keys come from where AWS's tools find them. The database parses the records; nothing is converted.
In csv an empty field is NULL and "" is an empty text, on every database; tsv and text write \N. Texts are UTF-8, dates
ISO, and times are in UTC unless they say otherwise.

Without --header and --columns the fields are the table's columns, in order. A load adds rows to the table; it creates, drops
and empties nothing. Each batch and its claim are one transaction, and the place of the batch in its file is recorded before
it is sent: after a kill, --resume sends what is missing, and refuses a file that has changed. The proof: the records in the
files = acknowledged = claimed, and also the rows of the table if it was empty, or with --verify count.

So far files go into PostgreSQL (copy), MySQL, MariaDB and TiDB (load-data), and Databend (insert-no-presign, with labels
instead of claims), which also parses ndjson and Parquet, by the names in them. For UTF-16, conversions and upsert use other
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
