package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/inspect"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/sweep"
	"github.com/terapush/terapush/pkg/loader"
)

const inspectHelp = `Write a dataset's file whose rows fit an existing table, for push --dataset: its columns in order, with types, keys, references
and CHECKs. Keys and unique columns count up, foreign keys are drawn from the range of the parent's keys, and what a file cannot
express becomes a comment. inspect reads the server's catalog and, of the rows, only the number and the range of the parents'
keys; it changes nothing.

With --schema the file has all tables of a schema except views and foreign tables. References are by name, and follow the number
of rows that a push gives the parent. A table that cannot be described becomes a comment with the reason.

With --stats the rows resemble the existing ones: inspect reads the server's statistics (pg_stats, MySQL's histograms, MariaDB's
column_stats, TiDB's SHOW STATS_…) and writes the shares of NULLs and common values, a histogram of numbers and times, the
number of distinct values and the lengths of texts. Common texts become v1, v2 … of their length, unless --keep-values; labels of
enums and of CHECK (… IN …) stay. Numbers and times are the table's own.

It reads tables of PostgreSQL, YugabyteDB, MySQL, MariaDB, TiDB, OceanBase, Databend, Oracle and Doris. Of the last two only
stand-ins have been tried, and the file says so.

Exit codes: 0 ok, 2 usage, 5 no such table, or none that a file can describe, 129, 130 or 143 stopped by a signal.`

func (a *app) inspect() *cobra.Command {
	var c config.Push
	var file, schema string
	cmd := &cobra.Command{
		Use:   "inspect TARGET --table NAME | --schema NAME",
		Short: "Write the file of a dataset for a table that exists, or for all of a schema",
		Long:  inspectHelp,
		Example: `  terapush inspect "$DATABASE_URL" --table orders > orders.yaml
  terapush inspect "$DATABASE_URL" --table orders --stats > orders.yaml
  terapush preview orders.yaml
  terapush push "$DATABASE_URL" --dataset orders.yaml --table orders_copy --rows 100M
  terapush inspect "$DATABASE_URL" --schema public > shop.yaml`,
		Args: oneTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			c.Target = args[0]
			if err := a.complete(cmd.Flags(), &c, file); err != nil {
				return usage(err)
			}
			if (c.Table == "") == (schema == "") {
				return usage(errors.New("inspect needs --table NAME or --schema NAME, one of them"))
			}
			if c.KeepValues && !c.Stats {
				return usage(errors.New("--keep-values is for --stats"))
			}
			stop, release := a.stopping(cmd.Context())
			defer release()
			var text []byte
			var err error
			if schema != "" {
				text, err = a.schemaOf(stop, c, schema)
			} else {
				text, err = a.tableOf(stop, c)
			}
			if err != nil {
				return err
			}
			_, err = a.Stdout.Write(text)
			return err
		},
	}
	c.Flags(cmd.Flags(), a.drivers)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		asked := []string{"table", "stats", "keep-values"}
		f.Hidden = !slices.Contains(asked, f.Name) && config.GroupOf(f) != config.GroupConnection
	})
	cmd.Flags().Lookup("table").Usage = "table to read, as name or schema.name"
	config.Group(cmd.Flags(), config.GroupWhat, func(f *pflag.FlagSet) {
		f.StringVar(&schema, "schema", "", "schema whose tables are all read into one file; in MySQL's family, a database")
	})
	addConfig(cmd.Flags(), &file)
	return cmd
}

// describe reads what the table of c is like, and names the server.
func (a *app) describe(s stop, c config.Push) (d *loader.Description, server string, err error) {
	return push.Describe(s.hard, push.Job{Config: c, Drivers: a.drivers, Drain: s.drain, Log: a.log()})
}

// tableOf reads the table of c, and writes the file of a dataset for it.
func (a *app) tableOf(s stop, c config.Push) ([]byte, error) {
	d, server, err := a.describe(s, c)
	if err != nil {
		return nil, err
	}
	return specOf(d, server, c.KeepValues)
}

// specOf writes the file of a dataset for a table.
func specOf(d *loader.Description, server string, keepValues bool) ([]byte, error) {
	text, err := inspect.Write(d, server, keepValues)
	if err != nil {
		return nil, &push.Error{Outcome: report.PreflightFailed, Err: err}
	}
	return text, nil
}

// schemaOf reads all tables of a schema, and writes the file of a dataset for them.
func (a *app) schemaOf(s stop, c config.Push, schema string) ([]byte, error) {
	log := sweep.Once(a.log())
	found, server, err := push.DescribeSchema(s.hard, push.Job{Config: c, Drivers: a.drivers, Drain: s.drain, Log: log}, schema)
	if err != nil {
		return nil, err
	}

	prefix := schema + "."
	const byDefault = "public"
	if t, err := loader.ParseTarget(c.Target); err == nil && (schema == t.Database || schema == byDefault) {
		prefix = ""
	}
	text, err := inspect.WriteSchema(found, schema, prefix, server, c.KeepValues)
	if err != nil {
		return nil, &push.Error{Outcome: report.PreflightFailed, Err: err}
	}
	return text, nil
}

// readRows reads the dataset of the user: its file, or the table of --like, which nothing else is asked of.
func (a *app) readRows(ctx context.Context, c *config.Push) error {
	if err := c.ReadSpec(); err != nil || c.Like == "" {
		return usage(err)
	}
	if c.Tables != nil {
		return usage(fmt.Errorf("--like with --dataset %s: it makes one table, and the file has several: name one, as %s#%s",
			c.Dataset, c.Dataset, c.Tables.Tables[0].Name))
	}
	like := *c
	like.Table, like.Own = c.Like, nil
	stop, release := a.stopping(ctx)
	defer release()
	d, server, err := a.describe(stop, like)
	if err != nil {
		return fmt.Errorf("--like: %w", err)
	}
	c.LikeTable = loader.TableName{Schema: d.Schema, Name: d.Table}
	if !c.RowsOfLike() {
		return nil
	}
	text, err := specOf(d, server, c.KeepValues)
	if err != nil {
		return fmt.Errorf("--like: %w", err)
	}
	c.Own, err = dataset.ParseSpec(c.Like, text, nil)
	return usage(err)
}
