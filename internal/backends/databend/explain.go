package databend

import (
	"cmp"
	"path"
	"slices"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Explain lists what a run would say. RUN stands for the run's id, ATTEMPT for 1, 2 ….
func (Driver) Explain(t loader.Target, p loader.Preparation) []loader.Statement {
	asked, _ := planOf(t) // what is wrong with it, Check has said
	table := &sqlload.Table{Catalog: catalog{&opened{plan: asked}}}
	c, s := p.Contract, newStatements(asked.name, p.Schema)
	first := loader.Ref{ID: batch.ID{Run: "RUN"}, Rows: c.BatchRows}

	var all []loader.Statement
	add := func(when string, texts ...string) {
		for _, text := range texts {
			all = append(all, loader.Statement{When: when, Text: text})
		}
	}
	if c.Dedup == loader.DedupKey {
		add("once", selectAtWork([]string{"QUERY-ID"}))
	}
	via := c.Staged() && t.Via != nil
	stage := asked.stage
	if via {
		stage = stageName("RUN")
		add("once", explainStage(stage, explainedAccess(*t.Via)))
	}
	once := all
	all = nil
	if p.Create == loader.CreateTruncate { // said of a table that is there, what Table.Explain begins with of one that is not
		add("once, where the table was there", s.Truncate())
		p.Create = loader.CreateIfMissing
	}
	file := folder + "/RUN/" + fileName(0, c.Format)
	attached := "@" + stage + "/" + folder + "/RUN/ATTEMPT-" + fileName(0, c.Format)
	labelled := func(k kind) string {
		if c.Dedup != loader.DedupKey {
			return ""
		}
		return "\nX-DATABEND-DEDUPLICATE-LABEL: " + label(asked.name, k, first.ID) +
			"\nX-DATABEND-QUERY-ID: of RUN, number and ATTEMPT"
	}
	switch asked.method.Name {
	case streamingLoad:
		add("per batch", "PUT /v1/streaming_load\nX-DATABEND-SQL: "+s.insertStreamed(c.Format)+labelled(ofBatch))
	case insert:
		add("per batch", "PRESIGN UPLOAD "+attached, "PUT the presigned URL",
			s.insertAttached()+"\nfrom "+attached+labelled(ofBatch))
	case insertNoPresign:
		add("per batch", "PUT /v1/upload_to_stage to "+attached, s.insertAttached()+"\nfrom "+attached+labelled(ofBatch))
	case stageLoad:
		if via {
			file = "RUN/" + fileName(0, c.Format)
			add("per batch", "PUT s3://"+path.Join(t.Via.Hosts[0], t.Via.Database, file))
		} else {
			add("per batch", "PUT /v1/upload_to_stage to @"+stage+"/"+file)
		}
		add("per group", s.copyInto(stage, []string{file, "…"}, c.Format)+labelled(ofGroup))
	}
	span := loader.KeyRange{Last: c.BatchRows - 1}
	if c.Dedup == loader.DedupKey {
		const again = "after a lost answer and on a resume"
		add(again+", on every host for every ATTEMPT so far", "GET "+cancelPath("QUERY-ID"))
		add(again+", on every host until there is none", selectAtWork([]string{"QUERY-ID", "…"}), killQuery("SESSION"))
		all := span
		if c.Staged() {
			all.Last = c.BatchRows*c.GroupBatches - 1
		}
		add(again, s.SelectCount(all))
		switch asked.method.Name {
		case streamingLoad:
			add("where a broken connection left a part of the rows in a table that terapush made", s.deleteRows(span)+
				"\nX-DATABEND-DEDUPLICATE-LABEL: "+label(asked.name, ofBatch, first.ID)+":removal-ATTEMPT"+
				"\nX-DATABEND-QUERY-ID: of RUN, number, ATTEMPT and try")
		case insert, insertNoPresign:
			add(again, removeAttempts(stage, first.ID, c.Format))
		}
	}
	if c.Staged() && !via {
		add("per batch that is sent again", "LIST @"+stage+"/"+file)
	}
	all = slices.Concat(once, table.Explain(p, all))
	switch {
	case via:
		add("afterwards", "DROP STAGE IF EXISTS "+stage)
	case c.Staged():
		own := &ownStage{name: stage, folder: folder + "/RUN", format: c.Format}
		add("per group, once it is in the table", own.removeStatement([]string{"…"}))
		add("afterwards", own.listStatement(own.folder+"/"))
	}
	return all
}

// explainedAccess is what is known of a store without asking anybody.
func explainedAccess(via loader.Target) objstore.Access {
	p := via.Params
	return objstore.Access{
		Bucket: via.Hosts[0], Prefix: via.Database, Region: p.Get("region"),
		Endpoint: cmp.Or(p.Get("server_endpoint"), p.Get("endpoint")), PathStyle: p.Get("path_style") == "true",
	}
}
