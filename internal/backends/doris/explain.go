package doris

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/mysqlconn"
	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// Explain implements loader.Driver. Check has refused what is wrong with the target.
func (Driver) Explain(t loader.Target, p loader.Preparation) []loader.Statement {
	name, _ := targetTable(t)
	_, o, _ := readOptions(t)
	l := &opened{name: name, options: o}
	l.Table = &sqlload.Table{Catalog: catalog{l}}
	s := statements{l.Plan(p).Statements}
	c := p.Contract
	r := sqlload.NewRecorder(l.Table)
	r.Traits = []string{""}
	add := r.Add
	r.Prepare(p, l.Prepare)
	label, last, readable := "", "per batch", s.SelectCount
	if c.Dedup == loader.DedupKey || c.Staged() { // a group always has its label
		label = name.label(loader.Ref{ID: batch.ID{Run: "RUN"}}, c.Staged())
	}
	if o.group.on() {
		last, readable = "per session", s.SelectDistinct
	}
	get := "GET " + name.labelPath() + "?label=" + label
	if p.Create != loader.CreateRecreate {
		for _, property := range o.changes("") {
			add("once", s.setProperty(property, o.properties()[property])+" -- if the table is there with another value")
		}
	}
	switch c.Method {
	case insert:
		add("per session", mysqlconn.SetNames)
		add("per session", loadingSetup(o.group, t.Settings)...)
		if o.Prepared {
			add("per session", "COM_STMT_PREPARE "+s.insertParameters(1)+", …")
			add("per batch", fmt.Sprintf("COM_STMT_EXECUTE with %d parameters", c.BatchRows*int64(len(p.Schema.Columns))))
		} else {
			add("per batch", s.insertHead(label)+"(…), …")
		}
		add(last, "SHOW LAST INSERT")
		if label != "" {
			add("per batch", get+" if the frontend is not the master, and has no last INSERT")
		}
	case s3Load:
		folder := "s3://" + path.Join(t.Via.Hosts[0], t.Via.Database, "RUN") + "/"
		from := source{
			uri:    folder + fmt.Sprintf("{%012d.%[2]s,%012[3]d.%[2]s,…}", 0, c.Format, 1),
			format: c.Format, access: objstore.Access{
				Endpoint: "ENDPOINT", Region: "REGION", KeyID: "***", Secret: "***", // known to the store only
				PathStyle: t.Via.Params.Get("path_style") == "true",
			},
		}
		add("per batch", fmt.Sprintf("PUT %s%012d.%s", folder, 0, c.Format))
		add("per group", "HEAD of every object")
		add("per group", mysqlconn.SetNames)
		add("per group", loadingSetup(o.group, t.Settings)...)
		add("per group", strings.NewReplacer("\x01", `\x01`, "\x02", `\x02`).Replace(s.loadObjects(label, from)))
	default:
		headers := o.headers(s, c.Format)
		if label != "" {
			headers["label"] = label
		}
		sends := "PUT " + name.loadPath() + " to the backend"
		for _, header := range slices.Sorted(maps.Keys(headers)) {
			sends += "\n  " + header + ": " + headers[header]
		}
		ask := fmt.Sprintf("PUT %s to a frontend, without a body; it redirects to a backend", name.loadPath())
		add("per session", fmt.Sprintf("%s. Again after %v, or an error", ask, backendTime))
		add("per batch", sends)
	}
	rows := loader.KeyRange{Last: c.BatchRows - 1}
	if label != "" {
		add("after a lost answer", get,
			"POST "+name.cancelPath()+"?label="+label+" while the load is under way", s.SelectCount(rows))
	}
	add("at the end", readable(rows)+" -- over all keys of the run, until every row can be read")
	if o.group == groupAsync {
		add("at the end", "GET "+walPath)
	}
	r.Count(p)
	return r.Statements()
}
