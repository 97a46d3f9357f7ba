package doris

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
)

// readParquet reads a file of flat columns: their names, and the rows in their order.
func readParquet(data []byte) ([]string, []record, error) {
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, nil, fmt.Errorf("[DATA_QUALITY_ERROR]Init parquet reader fail. reason: %w", err)
	}
	var names, kinds []string
	for _, path := range file.Schema().Columns() {
		leaf, _ := file.Schema().Lookup(path...)
		if len(path) != 1 || leaf.MaxRepetitionLevel > 0 {
			return nil, nil, fmt.Errorf("[NOT_IMPLEMENTED_ERROR]this stand-in reads flat Parquet files: column %s is none", strings.Join(path, "."))
		}
		names, kinds = append(names, path[0]), append(kinds, leaf.Node.Type().String())
	}
	var all []record
	for _, group := range file.RowGroups() {
		if all, err = appendGroup(all, group, kinds); err != nil {
			return nil, nil, fmt.Errorf("[DATA_QUALITY_ERROR]reading Parquet: %w", err)
		}
	}
	return names, all, nil
}

func appendGroup(all []record, group parquet.RowGroup, kinds []string) ([]record, error) {
	list := group.Rows()
	defer list.Close()
	buffer := make([]parquet.Row, 64)
	for {
		n, err := list.ReadRows(buffer)
		for _, row := range buffer[:n] {
			r := record{fields: make([]value, len(kinds))}
			for _, v := range row {
				field, err := parquetValue(v, kinds[v.Column()])
				if err != nil {
					return nil, err
				}
				r.fields[v.Column()] = field
			}
			all = append(all, r)
		}
		if errors.Is(err, io.EOF) || err == nil && n == 0 {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// parquetValue converts by the logical type, as its name says it: DATE, TIMESTAMP(isAdjustedToUTC=false,unit=MICROS),
// DECIMAL(15,2), whose integers are the numbers without their point.
func parquetValue(v parquet.Value, kind string) (value, error) {
	var digits, scale int
	_, notDecimal := fmt.Sscanf(kind, "DECIMAL(%d,%d)", &digits, &scale)
	switch {
	case v.IsNull():
		return nil, nil
	case notDecimal == nil && (v.Kind() == parquet.Int32 || v.Kind() == parquet.Int64):
		unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
		whole := v.Int64()
		if v.Kind() == parquet.Int32 {
			whole = int64(v.Int32())
		}
		return &decimal{new(big.Rat).SetFrac(big.NewInt(whole), unit), scale}, nil
	case notDecimal == nil:
		return nil, fmt.Errorf("this stand-in reads decimals in INT32 and INT64: a value of type %s", kind)
	case kind == "DATE":
		return time.Unix(int64(v.Int32())*86400, 0).UTC().Format(time.DateOnly), nil
	case strings.HasPrefix(kind, "TIMESTAMP"):
		at := time.UnixMicro(v.Int64())
		switch {
		case strings.Contains(kind, "MILLIS"):
			at = time.UnixMilli(v.Int64())
		case strings.Contains(kind, "NANOS"):
			at = time.Unix(0, v.Int64())
		}
		return at.UTC().Format("2006-01-02 15:04:05.999999"), nil
	}
	switch v.Kind() {
	case parquet.Boolean:
		return truth(v.Boolean()), nil
	case parquet.Int32:
		return int64(v.Int32()), nil
	case parquet.Int64:
		return v.Int64(), nil
	case parquet.Float:
		return float64(v.Float()), nil
	case parquet.Double:
		return v.Double(), nil
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return string(v.ByteArray()), nil
	}
	return nil, fmt.Errorf("a value of type %s", kind)
}

// pick puts a file's columns in the order of the names wanted; a name the file does not have is NULL.
func pick(names []string, records []record, wanted []string) []record {
	from := make([]int, len(wanted))
	for i, w := range wanted {
		from[i] = -1
		for j, n := range names {
			if strings.EqualFold(n, w) {
				from[i] = j
			}
		}
	}
	for r := range records {
		fields := make([]value, len(wanted))
		for i, j := range from {
			if j >= 0 {
				fields[i] = records[r].fields[j]
			}
		}
		records[r].fields = fields
	}
	return records
}
