package doris

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Explain lists what a run would say.
func (Driver) Explain(t loader.Target, p loader.Preparation) []loader.Statement {
	name, err := targetTable(t)
	if err != nil {
		name = tableName{schema: t.Database, table: t.Table} // Open refuses it; --dry-run shows it as it stands
	}
	o, _ := readOptions(t) // Check has told what is wrong with them
	table := &sqlload.Table{Catalog: catalog{&opened{name: name, options: o}}}
	s := statements{table.Plan(p).Statements}
	c := p.Contract
	var loads []loader.Statement
	add := func(when string, texts ...string) {
		for _, text := range texts {
			loads = append(loads, loader.Statement{When: when, Text: text})
		}
	}
	label := ""
	if c.Dedup == loader.DedupKey || c.Staged() { // a group has its label under every guarantee
		label = name.label(loader.Ref{ID: batch.ID{Run: "RUN"}}, c.Staged())
	}
	switch c.Method {
	case insert:
		add("per session", loadingSetup(o.group, t.Settings)...)
		add("per batch", s.insertHead(label)+"(…), …")
		if o.group.on() {
			add("per session", "SHOW LAST INSERT")
		} else {
			add("per batch", "SHOW LAST INSERT")
		}
		if label != "" {
			add("per batch", "GET "+name.labelPath()+"?label="+label+
				" where the frontend has no last INSERT: one that is not the master")
		}
	case s3Load:
		add("per batch", fmt.Sprintf("PUT %s%012d.%s", folderOf(t), 0, c.Format))
		add("per group", "HEAD of every object")
		add("per group", loadingSetup(o.group, t.Settings)...)
		printed := strings.NewReplacer("\x01", `\x01`, "\x02", `\x02`)
		add("per group", printed.Replace(s.loadObjects(label, shownSource(t, c.Format))))
	default:
		add("per batch", "PUT "+name.loadPath()+" to a frontend, without a body; it redirects to a backend")
		headers := o.headers(s, c.Format)
		if label != "" {
			headers["label"] = label
		}
		add("per batch", "PUT "+name.loadPath()+" to the backend\n"+shownHeaders(headers))
	}
	rows := loader.KeyRange{Last: c.BatchRows - 1}
	if label != "" {
		add("after a lost answer", "GET "+name.labelPath()+"?label="+label,
			"POST "+name.cancelPath()+"?label="+label+" while the load is under way", s.SelectCount(rows))
	}
	readable := s.SelectCount(rows)
	if o.group.on() {
		readable = s.SelectDistinct(rows)
	}
	add("at the end", readable+" -- over all keys of the run, until every row can be read")
	return table.Explain(p, loads)
}

func shownHeaders(h map[string]string) string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(h)) {
		lines = append(lines, "  "+name+": "+h[name])
	}
	return strings.Join(lines, "\n")
}

// folderOf is where the objects of a run lie, as s3://bucket/prefix/RUN/.
func folderOf(t loader.Target) string {
	if t.Via == nil || len(t.Via.Hosts) == 0 {
		return "s3://BUCKET/RUN/" // Check refuses it
	}
	prefix := strings.Trim(t.Via.Database, "/")
	if prefix != "" {
		prefix += "/"
	}
	return "s3://" + t.Via.Hosts[0] + "/" + prefix + "RUN/"
}

// shownSource stands in for what only the store knows: endpoint, region and keys.
func shownSource(t loader.Target, f batch.Format) source {
	from := source{
		uri:    folderOf(t) + fmt.Sprintf("{%012d.%[2]s,%012[3]d.%[2]s,…}", 0, f, 1),
		format: f, access: objstore.Access{Endpoint: "ENDPOINT", Region: "REGION", KeyID: "***", Secret: "***"},
	}
	if t.Via != nil {
		from.access.PathStyle = t.Via.Params.Get("path_style") == "true"
	}
	return from
}
