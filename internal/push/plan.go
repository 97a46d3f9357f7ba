package push

import (
	"math"
	"runtime"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// plan is made of the user's options, the back-end's capabilities and this machine's resources.
type plan struct {
	config.Plan // the contract is valid after negotiate, the numbers after fix

	config  *config.Push
	notes   *notes
	data    dataset.Dataset
	encoder encode.Encoder
	method  string
	workers int
}

// configure makes the dataset and checks the format. linkBits returns the speed of the link to the target, and is
// called only if the number of workers depends on it.
func (p *plan) configure(method string, caps loader.Caps, linkBits func() int64) error {
	c := p.config
	p.method = method
	var err error
	p.data, err = dataset.New(c.Dataset, dataset.Options{
		Seed: c.Seed, PayloadBytes: c.PayloadBytes, PayloadKind: dataset.Kind(c.PayloadKind),
	})
	if err != nil {
		return err
	}
	p.chooseWorkers(caps, linkBits)
	// Formats depend on the method alone; delivery and sizes are negotiated once the server is known.
	w := p.want()
	w.Delivery, w.BatchRows, w.BatchBytes, w.GroupBatches = loader.DeliveryAuto, 0, 0, 0
	_, _, err = loader.Negotiate(caps, w)
	return err
}

func (p *plan) chooseWorkers(caps loader.Caps, linkBits func() int64) {
	if p.workers = p.config.Workers; p.workers == 0 {
		p.workers = config.DefaultWorkers(runtime.GOMAXPROCS(0), linkBits(), caps)
	}
}

// adjustWorkers lowers the workers to the loads that the server runs at a time. Those of a staged method run no loads.
func (p *plan) adjustWorkers(caps loader.Caps) {
	most, was := caps.MaxInFlight, p.workers
	if most <= 0 || was <= most || caps.Staged {
		return
	}
	p.workers = most
	p.notes.warnf("%d workers are lowered to %d, the number of loads that the server runs at a time: "+
		"more would only wait in its queue", was, most)
}

// negotiate agrees on method, format, guarantee and batch size.
func (p *plan) negotiate(caps loader.Caps) error {
	contract, warnings, err := loader.Negotiate(caps, p.want())
	if err != nil && p.config.Delivery == string(loader.ExactlyOnce) && caps.Delivery() != loader.ExactlyOnce {
		return err // because of the server or the table, not the command line
	}
	if err != nil {
		return failed(Usage, err)
	}
	p.Contract = contract
	p.notes.warnAll(warnings)
	return nil
}

// want returns what the configuration asks of a method. Workers and rows affect the batch size only.
func (p *plan) want() loader.Want {
	c, schema := p.config, p.data.Schema()
	return loader.Want{
		Method: p.method, Format: batch.Format(c.Format), Delivery: loader.Delivery(c.Delivery),
		BatchRows: c.BatchRows, BatchBytes: int64(c.BatchBytes), GroupBatches: c.CommitBatches,
		Rows: p.rows(), Workers: p.batchWorkers(),
		Carries: func(f batch.Format) error { return encode.Carries(f, schema) },
		RowBytes: func(f batch.Format) int64 {
			e, err := encode.New(f, schema, encode.Options{})
			if err != nil {
				return 1 // Carries has refused the format already
			}
			return int64(e.MaxRow())
		},
	}
}

// batchWorkers returns for how many workers the default size of a batch is made. Every machine of a named run has to make
// the same batches.
func (p *plan) batchWorkers() int {
	if p.config.RunID != "" {
		return namedWorkers
	}
	return p.workers
}

const namedWorkers = 64

// rows returns the rows of a run that has no plan yet; of a run by duration, the most it can have.
func (p *plan) rows() int64 { return p.config.RowCount(p.data.Schema().RowBytes()) }

// fix sets the run's numbers.
func (p *plan) fix(firstKey int64) error {
	var warnings []string
	var err error
	p.Plan, p.encoder, warnings, err = p.from(firstKey)
	p.notes.warnAll(warnings)
	return failed(Usage, err)
}

// from returns the plan of a run that begins with a key. It does not change p.
func (p *plan) from(firstKey int64) (config.Plan, encode.Encoder, []string, error) {
	c, schema := p.config, p.data.Schema()
	made := config.Plan{
		Contract: p.Contract, Dataset: c.Dataset, Seed: c.Seed, PayloadBytes: c.PayloadBytes, PayloadKind: c.PayloadKind,
		FirstKey: firstKey, Rows: p.rows(), ByDuration: c.Duration > 0, RowBytes: schema.RowBytes(), Shard: c.Shard,
	}
	distinct := int64(c.DistinctBytes.Bytes)
	if c.DistinctBytes.All {
		distinct = 0
	}
	e, err := source.NewEncoder(p.Format, p.data, firstKey, made.Rows)
	if err != nil {
		return made, nil, nil, err
	}
	made.EncodedRowBytes = int64(e.MaxRow())
	warnings, err := made.Fix(schema.MaxNumber(), distinct, p.resources(e))
	return made, e, warnings, err
}

// refit fits an earlier process's plan to this machine, with at most as many workers and buffers as batches are left.
func (p *plan) refit(left int64) error {
	var err error
	// KeyRows, since a batch that is sent again must keep its length.
	if p.encoder, err = source.NewEncoder(p.Format, p.data, p.FirstKey, p.KeyRows); err != nil {
		return err
	}
	warnings, err := p.Fit(p.resources(p.encoder))
	p.notes.warnAll(warnings)
	most := int(min(max(left, 1), math.MaxInt))
	p.Workers, p.Buffers = min(p.Workers, most), min(p.Buffers, most)
	return err
}

// resources returns what this machine has for a run.
func (p *plan) resources(e encode.Encoder) config.Resources {
	return config.Resources{
		Workers: p.workers, Default: p.config.Workers == 0, Memory: memory(p.config),
		BufferMemory: func(batchRows int64) int64 {
			one := source.Spans{BatchRows: batchRows}
			return source.Memory(source.Config{Spans: one, Dataset: p.data, Encoder: e, Buffers: 1})
		},
	}
}

// memory returns the budget of all buffers.
func memory(c *config.Push) int64 {
	if c.Memory > 0 {
		return int64(c.Memory)
	}
	if m := host.Memory(); m > 0 {
		return m / 4
	}
	return 1 << 30
}
