package push

import (
	"context"

	"github.com/terapush/terapush/internal/engine"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/run"
	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/batch"
)

// input is where the rows of a run come from: a dataset, or the user's files. Everything in which the two differ for a
// run is here, chosen once; what they do not say of themselves is in the plan. A run calls its methods in this order;
// one that is resumed has its spec, and neither spec nor choose is called.
type input interface {
	// spec returns that of a run that begins.
	spec(ctx context.Context) (run.Spec, error)
	// openRejects opens the file of --rejects, once the run is known and before a server is asked.
	openRejects(asked facts) error
	// connected is called once the target is open, and before its table is looked at.
	connected(ctx context.Context) error
	// choose returns the spec of a run whose table is known: its first key follows from what that holds.
	choose(ctx context.Context) (run.Spec, error)
	// probeBatch makes a batch that is only tried, of some rows of the run. free releases the memory once no driver
	// reads it.
	probeBatch(ctx context.Context, rows []int64) (one *batch.Batch, free func(), err error)
	// recall reads what earlier processes of the run have left of it on disk.
	recall() error

	// open makes the run's source, which has no memory before it is filled.
	open(ctx context.Context) (rowSource, error)
	// setTotals says to the meters how much there is.
	setTotals(o *stats.Options)
	// rejects takes rows that the server refuses; nil if the first ends the run.
	rejects() engine.Rejects
	// sent is called when the engine has ended; result and err are its.
	sent(result engine.Result, err error) (engine.Result, error)

	// verify compares what arrived with the rows, into push.verified.
	verify(ctx context.Context) error
	// leftOut returns an error if the run has ended with rows left out.
	leftOut() error
	// close releases what is open, but the source.
	close() error
	// explain returns what else is to be said of a run that has failed.
	explain(err error) error
	// report adds what the plan is of to a report, however far the run came.
	report(r *report.Plan)

	// command is the one that the run is resumed with, at any time.
	command() string
}

// rowSource is the source of a run, with what the meters show of it.
type rowSource interface {
	source.Source
	Fill(ctx context.Context, parallel int, progress func(bytes int64)) error
	Buffers() int
	Free() int
	Refills() int64
}

// takeInput chooses the input, once, when it is known what the run is and before its target is open.
func (p *push) takeInput(files bool) {
	if files {
		p.input, p.target.OfFiles = &fromFiles{p: p}, true
		return
	}
	p.input = fromDataset{p}
}
