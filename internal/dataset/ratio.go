package dataset

import (
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/terapush/terapush/pkg/rows"
)

// ratioSample is how many bytes of payload CompressionRatio looks at, or one row if that is longer: zstd's default
// window, so more would find little more.
const ratioSample = 8 << 20

// CompressionRatio is the size of the payload (the drawn variable columns' values, back to back) over its size after zstd at
// its default level, measured on the first n rows of the dataset, or the first few MiB if that is less: 1 means
// incompressible, 3 that a third is left. It takes tens of milliseconds.
func CompressionRatio(d Dataset, n int64) (float64, error) {
	s := d.Schema()
	b := rows.NewBlock(s)
	d.Fill(b, 0, int(max(1, min(n, ratioSample/s.MaxRowBytes()))))
	var payload []byte
	for _, v := range b.Columns {
		payload = append(payload, v.Data...)
	}
	if len(payload) == 0 {
		return 0, fmt.Errorf("dataset %s has no payload to compress", s.Dataset)
	}
	// Without the second option this library gives up on data without repetitions, where the original zstd still finds
	// that text uses 90 of 256 symbols.
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithAllLitEntropyCompression(true))
	if err != nil {
		return 0, fmt.Errorf("start zstd: %w", err)
	}
	defer func() { _ = w.Close() }() // nothing is written through it
	return float64(len(payload)) / float64(len(w.EncodeAll(payload, nil))), nil
}
