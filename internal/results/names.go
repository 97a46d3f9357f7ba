package results

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/loader"
)

// LeftOut replaces a text that WithoutNames leaves out.
const LeftOut = "(left out, see --full)"

// WithoutNames returns copies of records for others to see, without what names hosts, users, databases, tables and
// files, and without the texts of servers, which may quote such names. Flags, axes and settings that hold a name get
// numbers instead, as in postgres 2 and table 1, equal values the same one in all records, so that differences remain
// visible. Names, titles and facts of plans stay. The error is that of a figure that JSON has no word for.
//
// Names are found by their fields only: patterns for names in free text would miss some.
func WithoutNames(records []Record) ([]Record, error) {
	var copies []Record
	text, err := json.Marshal(records)
	if err == nil {
		err = json.Unmarshal(text, &copies)
	}
	if err != nil {
		return nil, fmt.Errorf("leaving names out: %w", err)
	}

	r := numbers{}
	for i := range copies {
		rec := &copies[i]
		if rec.File != "" {
			rec.File = r.number("record", rec.File)
		}
		rec.Head.Machine.Host = ""
		for n := range rec.Head.Parts {
			r.part(&rec.Head.Parts[n])
		}
		for n := range rec.Entries {
			e := &rec.Entries[n]
			if e.Status == Failed { // the reasons of skipped ones are terapush's own words
				e.Error = leftOut(e.Error)
			}
			for j, s := range e.Settings {
				e.Settings[j].Value = r.value(s.Axis, s.Value)
			}
			if e.Report != nil {
				r.report(e.Report)
			}
		}
	}
	return copies, nil
}

// numbers are those of names, by the flag or setting that has them, or by the scheme of a target. Each of these counts
// from 1, so the order of a map does not matter.
type numbers map[string]map[string]int

// naming matches flags, axes and settings whose values are names.
var naming = regexp.MustCompile(
	`(?i)(target|via|table|^like$|user|role|host|addr|endpoint|schema|database|bucket($|[^s])|path|name|dir($|[^e]|ector)|` +
		`file|rejects$|url|uri|-drop|resume|config|tls-|stage|staging|credential|partition|metrics)`)

func (r numbers) number(what, name string) string {
	if r[what] == nil {
		r[what] = map[string]int{}
	}
	if r[what][name] == 0 {
		r[what][name] = len(r[what]) + 1
	}
	return fmt.Sprintf("%s %d", what, r[what][name])
}

// value returns the value of a flag, an axis or, if its name begins with "set.", a setting, numbered if it is a name. A
// table may be called 20240101; the number of a setting is a size or a switch, as in innodb_file_per_table.
func (r numbers) value(name, v string) string {
	setting, isSetting := strings.CutPrefix(name, "set.")
	scheme, _, isURL := strings.Cut(v, "://")
	switch {
	case v == "", isSetting && !parseValue(v).isText:
		return v
	case isURL && name == axisTarget:
		return r.number(scheme, v)
	case naming.MatchString(setting), isURL,
		name == "dataset" && strings.ContainsAny(v, `/\.`) && !strings.HasPrefix(v, "preset:"): // a file of the user's
		return r.number(setting, v)
	}
	return v
}

func (r numbers) part(p *Part) {
	r.flags(p.Push)
	for _, method := range slices.Sorted(maps.Keys(p.Methods)) { // equal records get equal numbers
		r.flags(p.Methods[method])
	}
	for _, a := range p.Axes {
		for i, v := range a.Values {
			a.Values[i] = r.value(a.Name, v)
			if own := a.Settings[v]; own != nil {
				delete(a.Settings, v)
				r.flags(own)
				a.Settings[a.Values[i]] = own
			}
		}
	}
	if p.Facts != nil {
		for _, f := range p.Facts.Points {
			for axis, v := range f.At {
				f.At[axis] = r.value(axis, v)
			}
		}
	}
}

func (r numbers) flags(all map[string][]string) {
	for flag, values := range all {
		for i, v := range values {
			if name, value, ok := strings.Cut(v, "="); ok && flag == "set" {
				values[i] = name + "=" + r.value("set."+name, value)
			} else {
				values[i] = r.value(flag, v)
			}
		}
	}
}

func (r numbers) report(t *report.Report) {
	t.Target.URL, t.Target.Via = r.value(axisTarget, t.Target.URL), r.value("via", t.Target.Via)
	if own := t.Run.Flags["table"]; len(own) == 1 && strings.HasSuffix(t.Target.Table, "."+own[0]) {
		own[0] = t.Target.Table // one table, one number
	}
	t.Target.Table, t.BoundBy.Evidence.Server.URL = r.value("table", t.Target.Table), ""
	r.flags(t.Run.Flags)
	t.Client.Host, t.Client.Machine = r.value("host", t.Client.Host), r.value("host of containers", t.Client.Machine)
	if t.Target.Endpoint != loader.NoEndpoint {
		t.Target.Endpoint = ""
	}
	for name, v := range t.Target.Settings {
		t.Target.Settings[name] = r.value("set."+name, v)
	}
	for name, v := range t.Plan.Options {
		t.Plan.Options[name] = r.value(name, v)
	}
	if f := t.Plan.Files; f != nil {
		for i, path := range f.Paths {
			f.Paths[i] = r.number("file", path)
		}
	}
	t.Result.Error = leftOut(t.Result.Error)
	for i := range t.Result.Failures {
		t.Result.Failures[i].Error = LeftOut
	}
	t.Warnings, t.Verify.Problems = nil, nil
	for i := range t.Verify.BadBatches {
		t.Verify.BadBatches[i].Keys = "" // names a column
		t.Verify.BadBatches[i].Detail = leftOut(t.Verify.BadBatches[i].Detail)
	}
}

func leftOut(text string) string {
	if text == "" {
		return ""
	}
	return LeftOut
}
