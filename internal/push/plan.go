package push

import (
	"fmt"
	"math"
	"runtime"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/internal/feed"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// plan is what the run is to be: the user's options, agreed with the back-end and with this machine.
type plan struct {
	config.Plan // its Contract counts from negotiate on, its numbers from fix on

	config  *config.Push
	notes   *notes
	data    dataset.Dataset
	encoder encode.Encoder
	prices  host.Prices
	method  string
	workers int
	asked   bool // for so many workers
}

// configure finds the dataset and refuses what no server could serve. linkBits is the speed of the link to the target, and
// is asked only where it decides the number of workers.
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
	// Formats are the method's; about delivery and sizes the server has its say.
	w := p.want()
	w.Delivery, w.BatchRows, w.BatchBytes, w.GroupBatches = loader.DeliveryAuto, 0, 0, 0
	_, _, err = loader.Negotiate(caps, w)
	return err
}

func (p *plan) chooseWorkers(caps loader.Caps, linkBits func() int64) {
	p.workers, p.asked = p.config.Workers, p.config.Workers > 0
	if !p.asked {
		p.workers = config.DefaultWorkers(runtime.GOMAXPROCS(0), linkBits(), caps)
	}
}

// adjustWorkers lowers the number of workers to the loads that the server runs at a time. Workers of a staged method take
// no load's place.
func (p *plan) adjustWorkers(caps loader.Caps) {
	most, was := caps.MaxInFlight, p.workers
	if most <= 0 || was <= most || caps.Staged {
		return
	}
	p.workers = most
	loads := fmt.Sprintf("the %d loads", most)
	if most == 1 {
		loads = "the one load"
	}
	p.notes.warnf("%d workers are lowered to %s that the server runs at a time: more would only wait in its queue", was, loads)
}

// negotiate agrees on method, format, guarantee and batch size.
func (p *plan) negotiate(caps loader.Caps) error {
	contract, warnings, err := loader.Negotiate(caps, p.want())
	if err != nil && p.config.Delivery == string(loader.ExactlyOnce) && caps.Delivery() != loader.ExactlyOnce {
		return err // the server's fault, or the table's
	}
	if err != nil {
		return failed(Usage, err)
	}
	p.Contract = contract
	p.notes.warnAll(warnings)
	return nil
}

// want is what the configuration asks of a method. Workers and rows have an effect on the batch size only.
func (p *plan) want() loader.Want {
	c, schema := p.config, p.data.Schema()
	return loader.Want{
		Method: p.method, Format: batch.Format(c.Format), Delivery: loader.Delivery(c.Delivery),
		BatchRows: c.BatchRows, BatchBytes: int64(c.BatchBytes), GroupBatches: c.CommitBatches,
		Rows: p.rows(), Workers: p.workers,
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

// rows is the size of a run that has no plan yet; of one by duration, the most it can have.
func (p *plan) rows() int64 { return p.config.RowCount(p.data.Schema().RowBytes()) }

// fix makes the run's numbers final.
func (p *plan) fix(firstKey int64) error {
	var warnings []string
	var err error
	p.Plan, p.encoder, warnings, err = p.from(firstKey)
	p.notes.warnAll(warnings)
	return failed(Usage, err)
}

// from returns the plan of a run with a first key, and changes nothing.
func (p *plan) from(firstKey int64) (config.Plan, encode.Encoder, []string, error) {
	c, schema := p.config, p.data.Schema()
	made := config.Plan{
		Contract: p.Contract, Dataset: c.Dataset, Seed: c.Seed, PayloadBytes: c.PayloadBytes, PayloadKind: c.PayloadKind,
		FirstKey: firstKey, Rows: p.rows(), ByDuration: c.Duration > 0, RowBytes: schema.RowBytes(),
	}
	distinct := int64(c.DistinctBytes.Bytes)
	if c.DistinctBytes.All {
		distinct = 0
	}
	e, err := feed.NewEncoder(p.Format, p.data, firstKey, made.Rows)
	if err != nil {
		return made, nil, nil, err
	}
	made.EncodedRowBytes = int64(e.MaxRow())
	warnings, err := made.Fix(schema.MaxNumber(), distinct, p.resources(e))
	return made, e, warnings, err
}

// refit fits the plan of an earlier process to this machine, with no more workers and buffers than there are batches left.
func (p *plan) refit(left int64) error {
	var err error
	// What is sent again must have the length that it had, whatever became of the number of rows.
	if p.encoder, err = feed.NewEncoder(p.Format, p.data, p.FirstKey, p.KeyRows); err != nil {
		return err
	}
	warnings, err := p.Fit(p.resources(p.encoder))
	p.notes.warnAll(warnings)
	most := int(min(max(left, 1), math.MaxInt))
	p.Workers, p.Buffers = min(p.Workers, most), min(p.Buffers, most)
	return err
}

// resources is what this machine gives a run.
func (p *plan) resources(e encode.Encoder) config.Resources {
	return config.Resources{
		Workers: p.workers, Default: !p.asked, Memory: memory(p.config),
		BufferMemory: func(batchRows int64) int64 {
			return feed.Memory(feed.Config{Dataset: p.data, Encoder: e, BatchRows: batchRows, Buffers: 1})
		},
	}
}

// memory is the budget of all buffers.
func memory(c *config.Push) int64 {
	if c.Memory > 0 {
		return int64(c.Memory)
	}
	if m := host.Memory(); m > 0 {
		return m / 4
	}
	return 1 << 30
}
