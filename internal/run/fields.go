package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/files"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// FirstRecord is what the first record of a file looks like, where no header is declared.
type FirstRecord struct {
	File   string
	Fields []string
}

// ForTable returns the files with the columns of a table that is there: those of --columns, of the headers, or else all
// of the table, in its order. Names are the table's, whatever the case in a header. first are first records of files
// without a header.
func (f *Files) ForTable(table []loader.Column, wire batch.Format, first []FirstRecord) (*Files, error) {
	made := *f
	made.Files = slices.Clone(f.Files)
	switch {
	case len(f.Columns) > 0:
		columns, err := match(f.Columns, table)
		if err != nil {
			return nil, fmt.Errorf("--columns: %w", err)
		}
		made.Columns = columns
		if err := errors.Join(made.inFooters(), made.inHeaders()); err != nil {
			return nil, err
		}
	case f.Header || f.Format.Named():
		if err := made.matchHeaders(f.Files, table); err != nil {
			return nil, err
		}
	default:
		for _, c := range table {
			if c.Generated == "" {
				made.Columns = append(made.Columns, c.Name)
			}
		}
	}

	if f.Format.Named() && slices.Contains(made.Columns, "") {
		return nil, fmt.Errorf("--columns: %s names its columns: name those that are wanted, and others are left out", f.Format)
	}
	if wire != batch.TSV && slices.Contains(made.Columns, "") {
		return nil, errors.New("--columns: only LOAD DATA of MySQL's family can leave a field out: name a column for every " +
			"field, or load into a staging table that has them all, and INSERT from there")
	}
	made.Fragile = nil
	for _, c := range table {
		one := files.Field{
			Column: c.Name, NoEmpty: c.NoEmpty, NoNull: c.NoNull, NoZeroDay: c.NoZeroDay, FloatBits: c.FloatBits,
			Quoted: c.Quoted,
		}
		if one != (files.Field{Column: c.Name}) {
			made.Fragile = append(made.Fragile, one)
		}
	}
	for _, one := range first {
		if err := made.likely(one, table); err != nil {
			return nil, err
		}
	}
	return &made, nil
}

// matchHeaders finds the columns of each header. All of them name the same, in any order: a record of one file would
// else have defaults where those of another have values. An empty file has no header, and no records.
func (f *Files) matchHeaders(from []files.File, table []loader.Column) error {
	first := -1
	for i, file := range from {
		if file.Header == nil {
			continue
		}
		columns, err := match(file.Header, table)
		if err != nil {
			return f.headerError(file, table, err)
		}
		f.Files[i].Header = columns
		if first < 0 {
			first = i
			continue
		}
		for _, pair := range [][2]int{{first, i}, {i, first}} {
			for _, name := range f.Files[pair[0]].Header {
				if !slices.Contains(f.Files[pair[1]].Header, name) {
					return fmt.Errorf("%s of %s names column %s, and that of %s does not: load files with other columns by "+
						"themselves", f.Format.Naming(), from[pair[0]].Path, name, from[pair[1]].Path)
				}
			}
		}
	}
	if first < 0 {
		return errors.New("the files are empty, and name no columns")
	}
	return nil
}

// inFooters returns an error if a Parquet file lacks one of the columns. Other files have no list of all their names.
func (f *Files) inFooters() error {
	if f.Format != files.Parquet {
		return nil
	}
	for _, file := range f.Files {
		for _, name := range f.Columns {
			has := func(other string) bool { return strings.EqualFold(name, other) }
			if !slices.ContainsFunc(file.Header, has) {
				return fmt.Errorf("--columns: %s has no column %s, but %s", file.Path, name, strings.Join(file.Header, ", "))
			}
		}
	}
	return nil
}

// inHeaders returns an error if a header has more fields than there are columns, or fewer: so have the records behind.
func (f *Files) inHeaders() error {
	if !f.Header {
		return nil
	}
	for _, file := range f.Files {
		if n := len(file.Header); n > 0 && n != len(f.Columns) {
			return fmt.Errorf("--columns: %s has %s, and %d are named: name a column for each",
				file.Name(), english.Plural(n, "field", ""), len(f.Columns))
		}
	}
	return nil
}

// match finds the columns that names stand for; "" stands for none.
func match(names []string, table []loader.Column) ([]string, error) {
	found := make([]string, len(names))
	var problems []error
	for i, name := range names {
		if name == "" {
			continue
		}
		c, err := column(name, table)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if slices.Contains(found[:i], c) {
			problems = append(problems, fmt.Errorf("column %s is named twice", c))
		}
		found[i] = c
	}
	if !slices.ContainsFunc(found, func(name string) bool { return name != "" }) && len(problems) == 0 {
		problems = append(problems, errors.New("no column is named"))
	}
	return found, errors.Join(problems...)
}

// column finds a column by its name, or by the same letters in another case if only one has them.
func column(name string, table []loader.Column) (string, error) {
	var alike []string
	var names []string
	for _, c := range table {
		if c.Name == name {
			return name, nil
		}
		if strings.EqualFold(c.Name, name) {
			alike = append(alike, c.Name)
		}
		names = append(names, c.Name)
	}
	if len(alike) == 1 {
		return alike[0], nil
	}
	return "", config.Unknown("column", name, names)
}

// headerError explains why a header does not fit a table.
func (f *Files) headerError(file files.File, table []loader.Column, err error) error {
	known := slices.ContainsFunc(file.Header, func(name string) bool {
		_, unknown := column(name, table)
		return unknown == nil
	})
	if known || f.Format.Named() {
		return fmt.Errorf("%s of %s: %w", f.Format.Naming(), file.Path, err)
	}
	return fmt.Errorf("%s: its first line names no column of the table, %s: is it a header, and is --delimiter %q right?",
		file.Path, quoted(file.Header), f.Delimiter)
}

// likely returns an error if the first record of a file cannot be one of the table's, as with a header that was not
// declared or another delimiter.
func (f *Files) likely(first FirstRecord, table []loader.Column) error {
	columns, err := match(first.Fields, table)
	if err == nil && !slices.Contains(columns, "") {
		return fmt.Errorf("%s: its first line looks like a header: give --header", first.File)
	}
	if len(first.Fields) == len(f.Columns) {
		return nil
	}
	text := fmt.Sprintf("%s: its first record has %s, but %d columns are to be filled",
		first.File, english.Plural(len(first.Fields), "field", ""), len(f.Columns))
	if len(first.Fields) == 1 {
		text += fmt.Sprintf(": is --delimiter %q right?", f.Delimiter)
		for _, other := range [...]string{",", ";", "\t", "|"} {
			if n := strings.Count(first.Fields[0], other) + 1; other != f.Delimiter && n == len(f.Columns) {
				text += fmt.Sprintf(" With --delimiter %q it has %d", other, n)
			}
		}
		return errors.New(text)
	}
	return errors.New(text + ": choose them with --columns")
}

// quoted shows the beginning of a record.
func quoted(fields []string) string {
	text := strings.Join(fields, " · ")
	if runes := []rune(text); len(runes) > 60 {
		text = string(runes[:60]) + " …"
	}
	return fmt.Sprintf("%q", text)
}
