package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/files"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/run"
)

// dryLoad prints what a load would do: files, columns, batches and statements.
func (a *app) dryLoad(ctx context.Context, c *config.Push) error {
	stop, release := a.stopping(ctx)
	defer release()
	o, err := push.OutlineLoad(stop.hard, push.Job{
		Config: *c, Drivers: a.drivers, Drain: stop.drain, Log: a.log(),
		Buckets: files.Buckets{Open: a.openStore(&c.Connect)},
	})
	if err != nil {
		return err
	}
	_, err = io.WriteString(a.Stdout, outlineOfLoad(c, o))
	return err
}

func outlineOfLoad(c *config.Push, o push.Outline) string {
	p, f := &o.Plan, o.Plan.Files
	asked := "the beginnings of the files and the table's columns were read, and nothing was sent or written"
	if o.Unread != nil {
		asked = "the beginnings of the files were read, and nothing was sent or written"
	}

	var text strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	line("dry run: %s", asked)
	line("target    %s, table %s", o.Target, o.Target.Table)
	line("contract  method %s, format %s, delivery %s by %s", p.Method, p.Format, p.Delivery, p.Dedup)
	line("files     %s, %s", english.Plural(len(f.Files), "file", ""), written(f))
	writeFiles(&text, f)
	if !f.Shard.Whole() {
		line("shard     %s, which %s", &f.Shard, shareOf(f))
	}
	writeColumns(&text, f)
	each := fmt.Sprintf("of %s of a file, up to the end of a record", humanize.IBytes(uint64(f.BatchBytes)))
	if f.Format == files.Parquet {
		each = "of a file each"
	}
	line("batches   %s, by %d workers", each, p.Workers)
	line("memory    %d buffers = %s", p.Buffers, humanize.IBytes(uint64(p.Memory)))
	line("rejects   %s", leftOut(c.Files))
	line("verify    %s", proofOf(c))
	if o.Unread != nil {
		line("warning   the columns are not compared with the table's: %v", o.Unread)
	}
	for _, warning := range o.Warnings {
		line("warning   %s", warning)
	}
	writeStatements(&text, o.Statements)
	return text.String()
}

// shareOf says what a shard of a load does.
func shareOf(f *run.Files) string {
	only, _ := f.Share()
	if only == nil {
		return fmt.Sprintf("reads all files, and sends each %s batch", humanize.Ordinal(int(f.Shard.Count)))
	}
	count := 0
	for i := range f.Files {
		if only(i) {
			count++
		}
	}
	return fmt.Sprintf("loads %s of them", english.Plural(count, "file", ""))
}

// written says how the records are read.
func written(f *run.Files) string {
	if f.Format.Named() {
		return string(f.Format)
	}
	text := fmt.Sprintf("%s, delimiter %q", f.Format, f.Delimiter)
	if f.Quote != "" {
		text += fmt.Sprintf(", quote %q, escape %q", f.Quote, f.Escape)
	}
	return text + fmt.Sprintf(", NULL %q", f.Null)
}

// shownFiles is how many files are listed.
const shownFiles = 20

func writeFiles(to *strings.Builder, f *run.Files) {
	for i, one := range f.Files[:min(len(f.Files), shownFiles)] {
		size := "size not known"
		if one.Size >= 0 {
			size = humanize.IBytes(uint64(one.Size))
		}
		split := "cut as it is read"
		if n := f.Batches(i); n > 0 && f.Format != files.Parquet {
			split = fmt.Sprintf("%s or more", english.Plural(int(n), "batch", "batches"))
		}
		if one.Compression != files.Plain {
			split = fmt.Sprintf("%s, cut as it is decompressed", one.Compression)
		}
		fmt.Fprintf(to, "          %s: %s, %s\n", one.Name(), size, split)
	}
	if more := len(f.Files) - shownFiles; more > 0 {
		fmt.Fprintf(to, "          and %s more, %s in all\n", humanize.Comma(int64(more)), humanize.IBytes(uint64(f.Bytes())))
	}
}

// writeColumns says into which columns the fields go, once for files that have the same header.
func writeColumns(to *strings.Builder, f *run.Files) {
	switch {
	case len(f.Columns) > 0:
		fmt.Fprintf(to, "columns   %s, in the order of the fields\n", columnNames(f.Columns))
		return
	case !f.Header && !f.Format.Named():
		fmt.Fprintf(to, "columns   those of the table, in order\n")
		return
	}

	var headers [][]string
	first, count := map[string]string{}, map[string]int{}
	for i, one := range f.Files {
		names := columnNames(f.Fields(i))
		if count[names]++; count[names] == 1 {
			headers = append(headers, f.Fields(i))
			first[names] = one.Name()
		}
	}
	label := "columns"
	for _, header := range headers {
		names := columnNames(header)
		of := fmt.Sprintf("by %s of %s", f.Format.Naming(), first[names])
		if more := count[names] - 1; more > 0 {
			of += fmt.Sprintf(" and %s", english.Plural(more, "other file", ""))
		}
		fmt.Fprintf(to, "%-9s %s, %s\n", label, cmp.Or(names, "none"), of)
		label = ""
	}
}

// columnNames lists the columns of the fields of a record.
func columnNames(columns []string) string {
	names := slices.Clone(columns)
	for i, name := range names {
		names[i] = cmp.Or(name, "(left out)")
	}
	return strings.Join(names, ", ")
}

func leftOut(c *config.Files) string {
	if c.MaxRejects == 0 {
		return "none: the first record that the server refuses stops the load"
	}
	return fmt.Sprintf("up to %s, kept in %s", english.Plural(int(c.MaxRejects), "record", ""), c.Rejects)
}

func proofOf(c *config.Push) string {
	if c.Verify == config.VerifyAuto {
		return c.Verify + ": records = acknowledged = claimed, and the table's rows where it is empty"
	}
	return c.Verify
}
