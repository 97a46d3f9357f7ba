package databend

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func loadRules() []rule {
	columns := `(?:\s*\(([^()]*)\))?`
	return []rule{
		{shape: shape(`COPY INTO ` + tablePart + columns + ` FROM @(~|\w+)((?:/\S+)?) FILES = \((.*?)\) FILE_FORMAT\s*=\s*\((.*?)\)((?:\s+\w+ = \w+)*)`),
			kind: Copy, write: true, run: (*Fake).copyInto},
		{shape: shape(`INSERT INTO ` + tablePart + columns + `\s*VALUES\s*(\(.*\))`), kind: Insert, write: true, run: (*Fake).insertValues},
	}
}

// names reads a list of columns.
func names(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	all := strings.Split(text, ",")
	for i, n := range all {
		all[i] = bare(strings.TrimSpace(n))
	}
	return all
}

// options reads what follows a COPY's format: names in upper case.
func options(text string) map[string]string {
	all := make(map[string]string)
	words := strings.Fields(strings.ReplaceAll(text, "=", " "))
	for i := 0; i+1 < len(words); i += 2 {
		all[strings.ToUpper(words[i])] = strings.ToUpper(words[i+1])
	}
	return all
}

// copyInto loads files, all or none. A file whose name the table has loaded within a day is left out, without a word.
func (f *Fake) copyInto(s session, m []string) (result, error) {
	r := result{
		names: []string{"File", "Rows_loaded", "Errors_seen", "First_error", "First_error_line"},
		types: []string{"String", "Int32", "Int32", "Nullable(String)", "Nullable(Int32)"},
	}
	t, err := f.store.table(s.full(m[1]))
	if err != nil {
		return r, err
	}
	url, err := f.store.stage(m[3])
	if err != nil {
		return r, err
	}
	form, err := parseFormat(m[6])
	if err != nil {
		return r, err
	}
	with := options(m[7])
	if e := with["ON_ERROR"]; e != "" && e != "ABORT" {
		return r, failed(1006, "the stand-in aborts a COPY on every error, and knows no %s", e)
	}
	files := list(m[5])
	slices.Sort(files)
	var loaded []string
	var all [][]any
	for _, file := range files {
		path := strings.TrimPrefix(m[4]+"/"+file, "/")
		if t.loaded[path].After(f.options.Now()) && with["FORCE"] != "TRUE" {
			continue
		}
		data, err := f.staged(m[3], url, path)
		if err != nil {
			return r, err
		}
		rows, err := t.decode(data, form, names(m[2]), true)
		if err != nil {
			return r, err
		}
		all, loaded = append(all, rows...), append(loaded, path)
		r.rows = append(r.rows, append(texts(path, strconv.Itoa(len(rows)), "0"), nil, nil))
	}
	t.rows = append(t.rows, all...)
	r.written = int64(len(all))
	for _, path := range loaded {
		if with["FORCE"] != "TRUE" || with["PURGE"] != "TRUE" {
			t.loaded[path] = f.options.Now().Add(24 * time.Hour)
		}
		if with["PURGE"] == "TRUE" {
			delete(f.store.files, m[3]+"/"+path)
		}
	}
	return r, nil
}

// staged reads a file of a stage.
func (f *Fake) staged(stage, url, path string) ([]byte, error) {
	if url == "" {
		data, ok := f.store.files[stage+"/"+path]
		if !ok {
			return nil, failed(3001, "NotFound (persistent) at stat, path: %s", path)
		}
		return data, nil
	}
	if f.options.Object == nil {
		return nil, failed(3001, "the stand-in was given no way to read %s", url)
	}
	data, err := f.options.Object(url + "/" + path)
	if err != nil {
		return nil, failed(3001, "NotFound (persistent) at stat: %v", err)
	}
	return data, nil
}

// attached is the plan of an INSERT whose values are the rows of a staged file, as it is when the statement is planned:
// that it is removed while the statement waits or runs changes nothing. A file that is not there has no rows.
func (f *Fake) attached(sql string, s session, a attachment) (plan, error) {
	m := attachedShape.FindStringSubmatch(sql)
	if m == nil {
		return plan{kind: Insert}, failed(1005, "the stand-in attaches files to INSERT INTO <table> (<columns>) VALUES only: %s", sql)
	}
	stage, path, ok := strings.Cut(strings.TrimPrefix(a.Location, "@"), "/")
	form := format{}
	for name, value := range a.Format {
		form[strings.ToLower(name)] = value
	}
	if err := form.check(); err != nil {
		return plan{kind: Insert}, err
	}
	if empty := form.text("empty_field_as", "NULL"); strings.EqualFold(empty, "NULL") {
		form["empty_field_as"] = "FIELD_DEFAULT"
	}
	f.mu.Lock()
	data := f.store.files[stage+"/"+path]
	f.mu.Unlock()
	return plan{kind: Insert, write: true, run: func() (result, error) {
		t, err := f.store.table(s.full(m[1]))
		if err != nil {
			return result{}, err
		}
		if _, err := f.store.stage(stage); err != nil || !ok {
			return result{}, failed(2501, "no stage at %s", a.Location)
		}
		rows, err := t.decode(data, form, names(m[2]), true)
		if err != nil {
			return result{}, err
		}
		t.rows = append(t.rows, rows...)
		if strings.EqualFold(a.Copy["purge"], "true") {
			delete(f.store.files, stage+"/"+path)
		}
		return inserted(len(rows)), nil
	}}, nil
}

var attachedShape = shape(`INSERT INTO ` + tablePart + `(?:\s*\(([^()]*)\))?\s*VALUES`)

func inserted(n int) result {
	r := single("number of rows inserted", "UInt64", strconv.Itoa(n))
	r.written = int64(n)
	return r
}

// insertValues takes literals, as database/sql's users send them.
func (f *Fake) insertValues(s session, m []string) (result, error) {
	t, err := f.store.table(s.full(m[1]))
	if err != nil {
		return result{}, err
	}
	at, err := t.places(names(m[2]))
	if err != nil {
		return result{}, err
	}
	var rows [][]any
	for _, tuple := range tupleShape.FindAllString(m[3], -1) {
		values := valueShape.FindAllString(tuple, -1)
		if len(values) != len(at) {
			return result{}, failed(1006, "a tuple has %d values for %d columns", len(values), len(at))
		}
		row := make([]any, len(t.columns))
		for i, v := range values {
			if strings.EqualFold(v, "NULL") {
				continue
			}
			if row[at[i]], err = t.columns[at[i]].parse(unquote(v)); err != nil {
				return result{}, err
			}
		}
		rows = append(rows, row)
	}
	if err := t.complete(rows); err != nil {
		return result{}, err
	}
	t.rows = append(t.rows, rows...)
	return inserted(len(rows)), nil
}

var (
	tupleShape = regexp.MustCompile(`\((?:'(?:[^'\\]|\\.|'')*'|[^()'])*\)`)
	valueShape = regexp.MustCompile(`'(?:[^'\\]|\\.|'')*'|[^\s(),']+`)
)
