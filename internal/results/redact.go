package results

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/report"
)

// LeftOut stands for a text that Redact takes out.
const LeftOut = "(left out)"

// Redact returns the records without the fields that say whose they are: the machine's name, endpoints, and what a
// server has said, which may quote any name. Flags, axes and settings that name something (targets, tables, users,
// files) are numbered instead, equal values alike in all records, so that it still shows which differ. What the
// plan's author wrote for others to read stays: its name, titles and published figures. The records given are not
// changed.
//
// Names are known by their fields alone. To look for them in free text needs patterns for all that could be a host, a
// user or a path in a server's words, and one that is missing tells the name after all.
func Redact(records []Record) []Record {
	r := redactor{labels: map[string]string{}, counts: map[string]int{}}
	clean := slices.Clone(records)
	for i := range clean {
		r.record(&clean[i])
	}
	return clean
}

// redactor numbers names.
type redactor struct {
	labels map[string]string // by name
	counts map[string]int    // of labels, by what they begin with
}

// naming matches flags, axes and settings whose values are names.
var naming = regexp.MustCompile(
	`(?i)(target|via|table|user|role|host|addr|endpoint|schema|database|bucket($|[^s])|path|name|dir($|[^e]|ector)|` +
		`file|url|uri|yes-drop|resume|config|tls-|stage|credential|partition|metrics|prices|^be$)`)

// vocabulary are flags whose values are terapush's own words.
var vocabulary = []string{"method", "format", "dataset", "delivery", "verify", "create", "payload-kind"}

func (r *redactor) record(rec *Record) {
	if rec.File != "" {
		rec.File = r.label("record", filepath.Clean(rec.File))
	}
	rec.Head.Machine.Host = ""
	rec.Head.Parts = slices.Clone(rec.Head.Parts)
	for i := range rec.Head.Parts {
		r.part(&rec.Head.Parts[i])
	}
	rec.Entries = slices.Clone(rec.Entries)
	for i := range rec.Entries {
		e := &rec.Entries[i]
		if e.Status == Failed { // why one was skipped is in our words
			e.Error = leftOut(e.Error)
		}
		e.Settings = slices.Clone(e.Settings)
		for j, s := range e.Settings {
			e.Settings[j].Value = r.value(s.Axis, s.Value)
		}
		if e.Report != nil {
			e.Report = r.report(*e.Report)
		}
	}
}

func (r *redactor) part(p *Part) {
	p.Push = r.flags(p.Push)
	p.Methods = maps.Clone(p.Methods)
	for _, method := range slices.Sorted(maps.Keys(p.Methods)) {
		p.Methods[method] = r.flags(p.Methods[method])
	}
	p.Axes = slices.Clone(p.Axes)
	for i, a := range p.Axes {
		p.Axes[i].Values = slices.Clone(a.Values)
		for j, v := range a.Values {
			p.Axes[i].Values[j] = r.value(a.Name, v)
		}
	}
	if p.Facts != nil {
		facts := *p.Facts
		facts.Points = slices.Clone(facts.Points)
		for i, f := range facts.Points {
			facts.Points[i].At = r.values(f.At)
		}
		p.Facts = &facts
	}
}

// flags gives equal records equal numbers, so it goes by the order of names.
func (r *redactor) flags(all map[string][]string) map[string][]string {
	clean := map[string][]string{}
	for _, flag := range slices.Sorted(maps.Keys(all)) {
		for _, v := range all[flag] {
			if name, value, isSetting := strings.Cut(v, "="); isSetting && flag == "set" {
				v = name + "=" + r.value("set."+name, value)
			} else {
				v = r.value(flag, v)
			}
			clean[flag] = append(clean[flag], v)
		}
	}
	return clean
}

func (r *redactor) report(t report.Report) *report.Report {
	t.Target.URL, t.Target.Via = r.value(axisTarget, t.Target.URL), r.value("via", t.Target.Via)
	t.Target.Table = r.value("table", t.Target.Table)
	t.Target.Endpoint, t.BoundBy.Evidence.Server.URL = "", ""
	settings := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(t.Target.Settings)) {
		settings[name] = r.value("set."+name, t.Target.Settings[name])
	}
	t.Target.Settings, t.Plan.Options = settings, r.values(t.Plan.Options)
	t.Result.Error = leftOut(t.Result.Error)
	t.Warnings, t.Verify.Problems = nil, nil
	t.Verify.BadBatches = slices.Clone(t.Verify.BadBatches)
	for i := range t.Verify.BadBatches {
		t.Verify.BadBatches[i].Detail = leftOut(t.Verify.BadBatches[i].Detail)
	}
	return &t
}

func (r *redactor) values(all map[string]string) map[string]string {
	clean := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		clean[name] = r.value(name, all[name])
	}
	return clean
}

// value returns what may be told of a flag, an axis or an option, or of a setting, whose name begins with "set.". A
// table may be called 20240101; of a setting a number is a size or a switch, as in innodb_file_per_table.
func (r *redactor) value(name, v string) string {
	setting, isSetting := strings.CutPrefix(name, "set.")
	switch {
	case v == "", slices.Contains(vocabulary, plainName(name)), isSetting && !parseValue(v).isText:
		return v
	case strings.Contains(v, "://"):
		scheme, _, _ := strings.Cut(v, "://")
		return r.label(scheme, v)
	case !naming.MatchString(name):
		return v
	case isSetting:
		return r.label(setting, v)
	}
	return r.label(name, v)
}

// label returns the number of a name. A server writes a table's name with quotation marks, a plan without.
func (r *redactor) label(what, name string) string {
	name = strings.NewReplacer(`"`, "", "`", "").Replace(name)
	if _, known := r.labels[name]; !known {
		r.counts[what]++
		r.labels[name] = fmt.Sprintf("%s %d", what, r.counts[what])
	}
	return r.labels[name]
}

func leftOut(text string) string {
	if text == "" {
		return ""
	}
	return LeftOut
}
