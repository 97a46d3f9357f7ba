package databend

import (
	"cmp"
	"path"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// Explain lists the statements of a run. RUN stands for the run's id, ATTEMPT for 1, 2 ….
func (Driver) Explain(t loader.Target, p loader.Preparation) []loader.Statement {
	asked, _ := planOf(t) // Check has reported the error
	table := &sqlload.Table{Catalog: catalog{&opened{plan: asked}}}
	r := sqlload.NewRecorder(table)
	c, s := p.Contract, newStatements(asked.name, p.Schema)
	labelled := c.Dedup == loader.DedupKey
	batchID := batch.ID{Run: "RUN"}
	stage, folder := asked.Stage, folder+"/RUN"
	via := c.Staged() && t.Via != nil
	if via {
		stage, folder = stageName("RUN"), "RUN"
	}
	file := folder + "/" + fileName(0, c.Format)
	attached := "@" + stage + "/" + folder + "/ATTEMPT-" + fileName(0, c.Format)
	span := loader.KeyRange{Last: c.BatchRows - 1}
	tagged := func(k kind) string {
		if !labelled {
			return ""
		}
		return "\nX-DATABEND-DEDUPLICATE-LABEL: " + label(asked.name, k, batchID) +
			"\nX-DATABEND-QUERY-ID: of RUN, number and ATTEMPT"
	}

	if labelled {
		r.Add("once", selectProcesses([]string{"QUERY-ID"}))
	}
	if via {
		r.Add("once", createStage(stage, explainedAccess(*t.Via)))
	}
	r.Prepare(p, table.Prepare)

	if p.Records {
		explainRecords(r, asked, s, c.Format)
		return r.Statements()
	}

	switch asked.method.Name {
	case streamingLoad:
		r.Add("per batch", "PUT /v1/streaming_load\nX-DATABEND-SQL: "+s.insertStreamed(c.Format)+tagged(batchKind))
	case insert:
		r.Add("per batch", "PRESIGN UPLOAD "+attached, "PUT the presigned URL")
		r.Add("per batch", s.insertAttached()+"\nfrom "+attached+tagged(batchKind))
	case insertNoPresign:
		r.Add("per batch", "PUT /v1/upload_to_stage to "+attached)
		r.Add("per batch", s.insertAttached()+"\nfrom "+attached+tagged(batchKind))
	case stageLoad:
		put := "PUT /v1/upload_to_stage to @" + stage + "/" + file
		if via {
			put = "PUT s3://" + path.Join(t.Via.Hosts[0], t.Via.Database, file)
		}
		r.Add("per batch", put)
		r.Add("per group", s.copyInto(stage, []string{file, "…"}, c.Format)+tagged(groupKind))
		span.Last = c.BatchRows*c.GroupBatches - 1
	}

	const again = "after a lost answer and on a resume"
	if labelled {
		r.Add(again+", on every host for every ATTEMPT so far", "GET "+cancelPath("QUERY-ID"))
		r.Add(again+", on every host until there is none", selectProcesses([]string{"QUERY-ID", "…"}), killQuery("SESSION"))
		r.Add(again, s.SelectCount(span))
	}
	switch {
	case labelled && asked.method.Name == streamingLoad:
		r.Add("where a broken connection left a part of the rows in a table that terapush made", s.deleteRows(span)+
			"\nX-DATABEND-DEDUPLICATE-LABEL: "+label(asked.name, batchKind, batchID)+":removal-ATTEMPT"+
			"\nX-DATABEND-QUERY-ID: of RUN, number, ATTEMPT and try")
	case labelled && !c.Staged():
		r.Add(again, removeAttempts(stage, batchID, c.Format))
	}

	own := &serverStage{name: stage, folder: folder, format: c.Format}
	if c.Staged() && !via {
		r.Add("per batch that is sent again", own.listStatement(file))
	}
	r.Count(p)
	switch {
	case via:
		r.Add("afterwards", "DROP STAGE IF EXISTS "+stage)
	case c.Staged():
		r.Add("per group, once it is in the table", own.removeStatement([]string{"…"}))
		r.Add("afterwards", own.listStatement(folder+"/"))
	}
	return r.Statements()
}

// explainedAccess is what is known of a store without connecting to it.
func explainedAccess(via loader.Target) objstore.Access {
	p := via.Params
	return objstore.Access{
		Bucket: via.Hosts[0], Prefix: via.Database, Region: p.Get("region"),
		Endpoint: cmp.Or(p.Get("server_endpoint"), p.Get("endpoint")), PathStyle: p.Get("path_style") == "true",
		KeyID: "***", Secret: "***",
	}
}

// explainRecords lists the statements of a load of files.
func explainRecords(r *sqlload.Recorder, asked plan, s statements, f batch.Format) {
	stage := &serverStage{name: asked.Stage, folder: folder + "/RUN", format: f}
	path := stage.path(0)
	r.Add("once", selectLoaded(asked.name, path))
	r.Add("per batch", "PUT /v1/upload_to_stage to @"+asked.Stage+"/"+path, s.copyFiles(asked.Stage, s.Columns(s.Schema), []string{path}, recordFormat(f))+" PURGE = true"+
		"\nX-DATABEND-QUERY-ID: of RUN, number and ATTEMPT")
	const again = "after a lost answer and on a resume"
	r.Add(again+", on every host for every ATTEMPT so far", "GET "+cancelPath("QUERY-ID"))
	r.Add(again+", on every host until there is none", selectProcesses([]string{"QUERY-ID", "…"}), killQuery("SESSION"))
	r.Add(again, selectLoaded(asked.name, path))
}
