package source

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/internal/recent"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// ratioSample is what CompressionRatio compresses at most, in bytes, or one row if that is longer. The ratio of four
// times as much, which would take a tenth of a second, differs by 1 %, and by 5 % for columns with dictionaries.
const ratioSample = 2 << 20

// compressor is made once, since its tables take longer to make than a few thousand rows to compress. Without the
// second option this library does not compress data without repetitions, while the original zstd still uses that text
// has 90 of 256 symbols.
var compressor = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithAllLitEntropyCompression(true))
})

// ratios is what was measured last: the pushes of a sweep's case have the same rows.
var ratios = recent.Results[ratioOf, float64]{Most: 1}

type ratioOf struct {
	dataset dataset.Dataset
	format  batch.Format
	rows    int64
}

// CompressionRatio returns the size of encoded rows over their size after zstd at its default level: 1 means
// incompressible, 3 that a third remains. It takes the first n rows of the dataset in a format, or the first two MiB
// if that is less, in some twenty milliseconds, unless it was asked for the same just before. Of a compressed format it is
// that of the bytes before.
func CompressionRatio(d dataset.Dataset, f batch.Format, n int64) (float64, error) {
	f, _ = f.Compression()
	n = max(1, min(n, ratioSample/d.Schema().RowBytes()))
	if dataset.SampleMemory(d) > 0 { // its files would stay in memory with it
		return compressionRatio(d, f, n)
	}
	return ratios.Get(ratioOf{d, f, n}, func() (float64, error) { return compressionRatio(d, f, n) })
}

func compressionRatio(d dataset.Dataset, f batch.Format, n int64) (float64, error) {
	e, err := NewEncoder(f, d, 0, n)
	if err != nil {
		return 0, err
	}
	if p, ok := e.(encode.PerBatch); ok {
		e = p.ForBatch(int(n))
	}

	block, out := rows.NewBlock(d.Schema()), e.AppendHead(make([]byte, 0, 2*n*d.Schema().RowBytes()))
	var at encode.Offsets
	piece := max(min(pieceRows, pieceBytes/d.Schema().MaxRowBytes()), 1)
	for first := int64(0); first < n; first += piece {
		d.Fill(block, first, int(min(piece, n-first)))
		d.Derive(block, first)
		out = e.AppendRows(out, block, &at)
	}
	out = e.AppendTail(out)
	w, err := compressor()
	if err != nil {
		return 0, fmt.Errorf("start zstd: %w", err)
	}
	return float64(len(out)) / float64(len(w.EncodeAll(out, nil))), nil
}
