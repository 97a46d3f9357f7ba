package push

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/files"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/run"
	"github.com/terapush/terapush/internal/verify"
	"github.com/terapush/terapush/pkg/loader"
)

// spec finds the files of a load that begins.
func (f *fromFiles) spec(ctx context.Context) (run.Spec, error) {
	p := f.p
	c := p.Config.Files
	paths := make([]string, len(c.Paths))
	for i, path := range c.Paths {
		paths[i] = path
		if path == files.Stdin || files.InBucket(path) {
			continue
		}
		if strings.Contains(path, "://") {
			return run.Spec{}, fmt.Errorf("%s: load reads files of this machine and of s3:// alone: fetch it first, or pipe "+
				"it: curl … | terapush load … -", path)
		}
		absolute, err := filepath.Abs(path) // a resume may be started in another folder
		if err != nil {
			return run.Spec{}, err
		}
		paths[i] = absolute
	}
	found, err := p.Buckets.Find(ctx, paths)
	if err != nil {
		return run.Spec{}, p.ofStore(err)
	}
	format, err := formatOf(c, found)
	if err != nil {
		return run.Spec{}, err
	}

	if format == files.Parquet && p.Config.BatchBytes > 0 {
		return run.Spec{}, errors.New("--batch-bytes: a Parquet file is a batch: leave it out")
	}
	if format.Named() && p.Config.Verify == string(verify.Full) {
		return run.Spec{}, errNotCompared
	}

	s := files.NewSpec(format)
	s.Files, s.Header = found, c.Header
	s.Delimiter, s.Null = c.Delimiter.Or(s.Delimiter), c.Null.Or(s.Null)
	s.Quote = c.Quote.Or(s.Quote)
	if format == files.CSV {
		s.Escape = c.Escape.Or(s.Quote)
	} else {
		s.Escape = c.Escape.Or("")
	}
	if err := s.Check(); err != nil {
		return run.Spec{}, err
	}
	if err := s.ReadHeaders(ctx); err != nil {
		return run.Spec{}, p.ofStore(err)
	}
	all := &run.Files{Spec: s, Columns: columnsOf(c.Columns), Shard: p.Config.Shard}
	return run.NewFilesSpec(all, &p.Config.Batches, p.target.Method), nil
}

// ofStore gives an error of an object store, or of who was stopped, its outcome: it is none of the command line.
func (p *push) ofStore(err error) error {
	if p.stopped() || errors.As(err, new(*loader.Error)) {
		return p.orInterrupted(report.PreflightFailed, err)
	}
	return err
}

// formatOf returns the format that the user says, or that all names say.
func formatOf(c *config.Files, found []files.File) (files.Format, error) {
	if c.Format != "" {
		return files.Format(c.Format), nil
	}
	format := ""
	for _, f := range found {
		is := config.FormatOf(f.Path)
		if is == "" {
			return "", fmt.Errorf("%s: its name does not say how it is written: give --format csv, tsv, text, ndjson or parquet%s",
				f.Name(), elsewhere(f.Path))
		}
		if format != "" && is != format {
			return "", fmt.Errorf(
				"%s is %s, and %s is %s: load files of one format at a time", found[0].Name(), format, f.Name(), is)
		}
		format = is
	}
	return files.Format(format), nil
}

// elsewhere says what loads a file of a format that these databases do not parse.
func elsewhere(name string) string {
	name = strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst"))
	switch filepath.Ext(name) {
	case ".orc", ".avro":
		return "; load does not read this one: write it as csv first"
	case ".yaml", ".yml":
		return "; a dataset's file is for terapush push --dataset"
	case ".json":
		return ", or ndjson if each line is an object; jq -c '.[]' makes such lines of an array"
	case ".xlsx", ".xls":
		return "; write a spreadsheet as csv first"
	}
	return ""
}

// columnsOf reads --columns. A - leaves a field out, as an empty name does.
func columnsOf(text string) []string {
	if text == "" {
		return nil
	}
	names := strings.Split(text, ",")
	for i, name := range names {
		if names[i] = strings.TrimSpace(name); names[i] == "-" {
			names[i] = ""
		}
	}
	return names
}
