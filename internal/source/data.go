package source

import (
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
)

// Data is a dataset, and what a plan asks of it.
type Data struct {
	Dataset dataset.Dataset
	own     bool // the user's: its longest rows may be rare
}

// NewData makes the dataset of a user's spec, or without one the built-in dataset of that name.
func NewData(name string, own *dataset.Spec, o dataset.Options) (d Data, err error) {
	if own != nil {
		d.Dataset, err = own.Compile(o.Seed)
		return Data{d.Dataset, true}, err
	}
	d.Dataset, err = dataset.New(name, o)
	return d, err
}

// Carries returns nil if a format can carry the columns, and else the reason.
func (d Data) Carries(f batch.Format) error { return encode.Carries(f, d.Dataset.Schema()) }

// RowBytes returns the length of an encoded row: at most, or on average if the dataset is the user's.
func (d Data) RowBytes(e encode.Encoder) int64 {
	if d.own {
		return SizesOf(d.Dataset, e).Mean
	}
	return int64(e.MaxRow())
}

// RowBytesIn is RowBytes in a format that carries the columns, for numbers of any run. longest asks for the most,
// whosever the dataset is.
func (d Data) RowBytesIn(f batch.Format, longest bool) int64 {
	e, err := encode.New(f, d.Dataset.Schema(), encode.Options{})
	switch {
	case err != nil:
		return 1 // Carries has refused the format already
	case longest:
		return int64(e.MaxRow())
	}
	return d.RowBytes(e)
}

// Wants lists the columns that are meant to have more different values than that.
func (d Data) Wants(distinct int64) (more []dataset.Want) {
	for _, want := range dataset.Wants(d.Dataset) {
		if want.Values > distinct {
			more = append(more, want)
		}
	}
	return more
}

// OwnParents is dataset.OwnParents.
func (d Data) OwnParents() (first int64, column string) { return dataset.OwnParents(d.Dataset) }
