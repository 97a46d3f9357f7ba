package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/record"
	"github.com/terapush/terapush/internal/report"
)

// hiddenText stands for what was taken out.
const hiddenText = "***"

// Redact returns the records without what tells whose they are: hosts, addresses, users, databases, tables, buckets,
// files and the machine's name. Targets and tables are numbered instead, the same in all records, so that it still shows
// which differ. Of free text, such as a server's error, it takes out all those names wherever they stand, and whatever
// looks like an address, a URL, a path or a quoted name. Where published figures come from is such free text; the note on
// how they were come by goes altogether, as nothing depends on it. The records given are left as they are.
func Redact(records []record.Record) []record.Record {
	r := newRedactor(records)
	clean := make([]record.Record, len(records))
	for i, rec := range records {
		clean[i] = r.record(rec)
	}
	return clean
}

// redactor knows the names that must not be told and how targets and tables are called instead.
type redactor struct {
	long   *regexp.Regexp    // names that count wherever they stand; nil without any
	short  *regexp.Regexp    // names that count as whole words: "db" is a piece of many
	tables map[string]string // tables by their names without a schema; "" where two schemas have one of that name
	labels map[string]string
	counts map[string]int
}

func newRedactor(records []record.Record) *redactor {
	r := &redactor{tables: map[string]string{}, labels: map[string]string{}, counts: map[string]int{}}
	found := map[string]bool{}
	add := func(names ...string) {
		for _, n := range names {
			if n != "" {
				found[n] = true
			}
		}
	}
	of := func(name string, values ...string) {
		if identifies(name) {
			add(flatten(values, namesIn)...)
		}
	}
	for _, rec := range records {
		add(hostNames(rec.Head.Machine.Host)...)
		for _, p := range rec.Head.Parts {
			for _, push := range append(slices.Collect(maps.Values(p.Methods)), p.Push) {
				for flag, values := range push {
					of(flag, values...)
				}
			}
			for _, a := range p.Axes {
				of(a.Name, a.Values...)
			}
			if p.Facts != nil {
				for _, f := range p.Facts.Points {
					for name, v := range f.At {
						of(name, v)
					}
				}
			}
		}
		for _, e := range rec.Entries {
			for _, s := range e.Settings {
				of(s.Axis, s.Value)
			}
			if t := e.Report; t != nil {
				add(flatten([]string{t.Target.URL, t.Target.Via, t.Target.Endpoint, t.Target.Table}, namesIn)...)
				r.qualified(t.Target.Table)
				for option, v := range t.Plan.Options {
					of(option, v)
				}
			}
		}
	}
	r.know(found)
	return r
}

// qualified notes a table as the server calls it, by its name without a schema.
func (r *redactor) qualified(table string) {
	plain := unquoted(table)
	bare := plain[strings.LastIndex(plain, ".")+1:]
	if bare == plain {
		return
	}
	if had, ok := r.tables[bare]; ok && had != plain {
		plain = "" // which of them a bare name means cannot be told
	}
	r.tables[bare] = plain
}

func unquoted(name string) string { return strings.NewReplacer(`"`, "", "`", "").Replace(name) }

// same is one text for all ways to write one name: plans leave a table's schema to the server.
func (r *redactor) same(v string) string {
	if strings.Contains(v, "://") {
		return v
	}
	return cmp.Or(r.tables[unquoted(v)], unquoted(v))
}

// know makes patterns of the names, the longest first, so that none is left in pieces.
func (r *redactor) know(names map[string]bool) {
	var long, short []string
	for _, name := range slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	}) {
		if len(name) >= 4 {
			long = append(long, regexp.QuoteMeta(name))
		} else {
			short = append(short, regexp.QuoteMeta(name))
		}
	}
	if len(long) > 0 {
		r.long = regexp.MustCompile("(?i)" + strings.Join(long, "|"))
	}
	if len(short) > 0 {
		r.short = regexp.MustCompile(`(?i)(^|[^\pL\pN])(?:` + strings.Join(short, "|") + `)($|[^\pL\pN])`)
	}
}

func flatten(texts []string, of func(string) []string) []string {
	var all []string
	for _, t := range texts {
		all = append(all, of(t)...)
	}
	return all
}

// identifies tells whether a flag, an axis or a server's setting holds a name by its nature.
func identifies(flag string) bool { return identifying.MatchString(flag) }

var identifying = regexp.MustCompile(
	`(?i)(target|via|table|user|role|host|addr|endpoint|schema|database|bucket($|[^s])|path|name|dir($|[^e]|ector)|file|url|uri|yes-drop|resume|config|tls-|stage|credential|partition|^be$)`)

// isVocabulary tells whether an axis takes words of terapush's own only, which may happen to be somebody's name as well.
func isVocabulary(axis string) bool {
	return slices.Contains([]string{"method", "format", "dataset", "delivery", "verify", "create", "payload-kind"}, record.PlainName(axis))
}

// namesIn takes a URL, a host with its port or a table's name apart into all that could be told again by itself.
func namesIn(text string) []string {
	names := []string{text}
	rest := text
	if _, after, isURL := strings.Cut(text, "://"); isURL {
		rest = after
	}
	rest, query, _ := strings.Cut(rest, "?")
	params, err := url.ParseQuery(query)
	if err != nil {
		params = nil // what is no query is taken whole, with the text
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		for _, v := range params[name] {
			_, public := publicValues[strings.ToLower(v)]
			if isNumber := parse(v).kind == number && !strings.HasSuffix(name, "port") && name != "sid"; !public && !isNumber {
				names = append(names, flatten([]string{strings.TrimPrefix(strings.TrimPrefix(v, "https://"), "http://")}, namesIn)...)
			}
		}
	}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		user, _, _ := strings.Cut(rest[:at], ":")
		names = append(names, unescaped(user)...)
		rest = rest[at+1:]
	}
	for piece := range strings.FieldsFuncSeq(rest, func(r rune) bool { return strings.ContainsRune("/,", r) }) {
		for _, plain := range unescaped(piece) {
			names = append(names, hostNames(plain)...)
		}
	}
	return names
}

// publicValues are parameters' values that are nobody's name and must not be taken out of texts.
var publicValues = map[string]struct{}{
	"true": {}, "false": {}, "disable": {}, "require": {}, "prefer": {}, "allow": {}, "verify-ca": {}, "verify-full": {}, "skip-verify": {},
	"on": {}, "off": {}, "local": {}, "remote_write": {}, "remote_apply": {}, "any": {}, "read-write": {}, "read-only": {}, "primary": {},
}

func unescaped(s string) []string {
	if plain, err := url.PathUnescape(s); err == nil && plain != s {
		return []string{s, plain}
	}
	return []string{s}
}

// hostNames are a host or a dotted name and its parts, without a port.
func hostNames(s string) []string {
	if i := strings.LastIndex(s, ":"); i >= 0 && strings.Trim(s[i+1:], "0123456789") == "" {
		s = s[:i]
	}
	s = strings.Trim(s, "[]")
	names := []string{s}
	for label := range strings.SplitSeq(s, ".") {
		if strings.Trim(label, "0123456789") != "" || len(label) > 3 { // the digits of an address are everywhere
			names = append(names, strings.Trim(label, "\"`"))
		}
	}
	return names
}

func (r *redactor) record(rec record.Record) record.Record {
	rec.File = r.text(filepath.Base(rec.File))
	rec.Head.Title, rec.Head.Name = r.text(rec.Head.Title), r.text(rec.Head.Name)
	rec.Head.Machine.Host = ""
	rec.Head.Parts = slices.Clone(rec.Head.Parts)
	for i, p := range rec.Head.Parts {
		rec.Head.Parts[i] = r.part(p)
	}
	rec.Entries = slices.Clone(rec.Entries)
	for i := range rec.Entries {
		e := &rec.Entries[i]
		e.Error = r.text(e.Error)
		e.Settings = slices.Clone(e.Settings)
		for j, s := range e.Settings {
			e.Settings[j].Value = r.value(s.Axis, s.Value)
		}
		if e.Report != nil {
			e.Report = r.report(*e.Report)
		}
	}
	return rec
}

func (r *redactor) part(p record.Part) record.Part {
	p.Name, p.Title = r.text(p.Name), r.text(p.Title)
	p.Push = r.push(p.Push)
	p.Methods = maps.Clone(p.Methods)
	for _, method := range slices.Sorted(maps.Keys(p.Methods)) {
		p.Methods[method] = r.push(p.Methods[method])
	}
	p.Axes = slices.Clone(p.Axes)
	for i, a := range p.Axes {
		values := make([]string, len(a.Values))
		for j, v := range a.Values {
			values[j] = r.value(a.Name, v)
		}
		p.Axes[i].Values = values
	}
	p.Facts = r.facts(p.Facts)
	return p
}

func (r *redactor) facts(f *record.Facts) *record.Facts {
	if f == nil {
		return nil
	}
	clean := &record.Facts{Source: r.text(f.Source), Machine: r.text(f.Machine), Points: slices.Clone(f.Points)}
	for i, p := range f.Points {
		clean.Points[i].At = r.values(p.At)
	}
	return clean
}

func (r *redactor) push(flags map[string][]string) map[string][]string {
	push := map[string][]string{}
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		for _, v := range flags[flag] {
			if name, value, isSetting := strings.Cut(v, "="); isSetting && flag == "set" {
				push[flag] = append(push[flag], name+"="+r.setting(name, value))
				continue
			}
			push[flag] = append(push[flag], r.value(flag, v))
		}
	}
	return push
}

func (r *redactor) report(t report.Report) *report.Report {
	t.Target.URL = r.value(axisTarget, t.Target.URL)
	t.Target.Via = r.value("via", t.Target.Via)
	t.Target.Table = r.value("table", t.Target.Table)
	t.Target.Endpoint = ""
	t.Target.Settings, t.Plan.Options = r.settings(t.Target.Settings), r.values(t.Plan.Options)
	t.Result.Error = r.text(t.Result.Error)
	t.Warnings = r.texts(t.Warnings)
	t.Verify.Problems = r.texts(t.Verify.Problems)
	t.Verify.BadBatches = slices.Clone(t.Verify.BadBatches)
	for i := range t.Verify.BadBatches {
		t.Verify.BadBatches[i].Detail = r.text(t.Verify.BadBatches[i].Detail)
	}
	return &t
}

// value is what may be told of a flag, an axis or an option. One that identifies somebody gets a number, equal values the
// same, be it a number itself: a table may be called 20240101. Other numbers and sizes identify nobody.
func (r *redactor) value(name, v string) string {
	if setting, ok := strings.CutPrefix(name, "set."); ok {
		return r.setting(setting, v)
	}
	switch {
	case v == "" || isVocabulary(name):
		return v
	case identifies(name):
		return r.label(name, v)
	case parse(v).kind != text:
		return v
	}
	return r.text(v)
}

// setting is what may be told of a server's setting. There a number is a size or a switch, as in innodb_file_per_table,
// unless somebody is called so.
func (r *redactor) setting(name, v string) string {
	switch {
	case v == "" || parse(v).kind != text && r.known(v) == v:
		return v
	case identifies(name):
		return r.label(name, v)
	}
	return r.text(v)
}

func (r *redactor) label(name, v string) string {
	what, same := name, r.same(v)
	if scheme, _, isURL := strings.Cut(v, "://"); isURL {
		what = scheme
	}
	if _, ok := r.labels[same]; !ok {
		r.counts[what]++
		r.labels[same] = fmt.Sprintf("%s %d", what, r.counts[what])
	}
	return r.labels[same]
}

// settings are those of a server, in the order of their names, so that equal records get equal numbers.
func (r *redactor) settings(all map[string]string) map[string]string {
	clean := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		clean[name] = r.setting(name, all[name])
	}
	return clean
}

// values are those of options or facts, in the order of their names as well.
func (r *redactor) values(all map[string]string) map[string]string {
	clean := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		clean[name] = r.value(name, all[name])
	}
	return clean
}

func (r *redactor) texts(all []string) []string {
	clean := make([]string, len(all))
	for i, s := range all {
		clean[i] = r.text(s)
	}
	return clean
}

// text takes out names and whatever looks like one.
func (r *redactor) text(s string) string {
	for _, p := range patterns {
		s = p.ReplaceAllString(s, "${1}"+hiddenText)
	}
	return r.known(s)
}

// known takes out the names that are known, in whatever capitals a server writes them.
func (r *redactor) known(s string) string {
	if r.long != nil {
		s = r.long.ReplaceAllString(s, hiddenText)
	}
	for r.short != nil && r.short.MatchString(s) { // again: neighbours share the sign between them
		s = r.short.ReplaceAllString(s, "${1}"+hiddenText+"${2}")
	}
	return s
}

// patterns are what names somebody although nobody has told it before: the addresses that a name resolved to, the other
// nodes of a cluster, an object's URL. They rather take out too much.
var patterns = []*regexp.Regexp{
	regexp.MustCompile(`()[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]+`),                                    // URL
	regexp.MustCompile("()['\"`]?[^\\s@'\"`]+['\"`]?@['\"`]?[^\\s'\"`,;]+['\"`]?"),                  // user@host, 'user'@'host'
	regexp.MustCompile(`()\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b`),                                    // IPv4
	regexp.MustCompile(`()\[?(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}(?:%\w+)?\]?(?::\d+)?`),      // IPv6
	regexp.MustCompile(`()\b[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*:\d{2,5}\b`),                         // host:port
	regexp.MustCompile(`()\b[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+\.[A-Za-z]{2,}\b`),                   // host.domain.tld
	regexp.MustCompile(`(?i)(\b(?:lookup|host|node|server)\s+)[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+`), // lookup host.tld
	regexp.MustCompile(`(?i)(\b(?:user|role|login|account|database|schema|table|relation|host|bucket|server|tenant|catalog)(?:\s+name)?:?\s+)["'` + "`" + `][^"'` + "`" + `]*["'` + "`" + `]`),
	regexp.MustCompile(`()(?:/[\w.~-]+){2,}/?`), // path
}
