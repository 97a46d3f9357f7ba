package dataset

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/terapush/terapush/pkg/rows"
)

// readParquet reads a file whose columns are not nested. Values become the texts that people write in a spec.
func (f *sampleFile) readParquet(in *os.File) error {
	file, err := parquet.OpenFile(in, f.size)
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	fields := file.Schema().Fields()
	for _, field := range fields {
		if !field.Leaf() || field.Repeated() {
			return fmt.Errorf("%s: column %s is nested: a sample has columns of single values", f.path, quoted(field.Name()))
		}
		f.names = append(f.names, field.Name())
	}
	if file.NumRows() == 0 {
		return fmt.Errorf("%s has no rows", f.path)
	}
	f.columns, f.unit = make([]sampleColumn, len(fields)), "row"

	for _, group := range file.RowGroups() {
		if err := f.readGroup(group, fields); err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
	}
	return nil
}

func (f *sampleFile) readGroup(group parquet.RowGroup, fields []parquet.Field) error {
	in := group.Rows()
	defer in.Close()
	some := make([]parquet.Row, 256)
	for {
		n, err := in.ReadRows(some)
		for _, row := range some[:n] {
			f.lines = append(f.lines, len(f.lines)+1)
			for i, v := range row {
				if v.IsNull() {
					f.columns[i].add("", true)
					continue
				}
				text, err := parquetText(v, fields[i].Type())
				if err != nil {
					return fmt.Errorf("column %s: %w", quoted(fields[i].Name()), err)
				}
				f.columns[i].add(text, false)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// parquetText writes a value by its logical type.
func parquetText(v parquet.Value, t parquet.Type) (string, error) {
	var logical format.LogicalTypeValue
	if of := t.LogicalType(); of != nil {
		logical = of.Value
	}
	switch of := logical.(type) {
	case nil, *format.IntType:
	case *format.StringType, *format.EnumType, *format.JsonType:
		return string(v.ByteArray()), nil
	case *format.DecimalType:
		n := unscaled(v)
		if digits := len(strings.TrimPrefix(n.String(), "-")); max(digits, int(of.Precision)) > rows.WideDigits {
			return "", fmt.Errorf("decimals have at most %d digits: write it as text", rows.WideDigits)
		}
		if of.Scale < 0 || of.Scale > of.Precision {
			return "", fmt.Errorf("its type %s makes no sense: write it as text", t)
		}
		return string(rows.AppendWideText(nil, rows.FromBig(n), int(of.Scale))), nil
	case *format.DateType:
		return time.Unix(int64(v.Int32())*24*60*60, 0).UTC().Format(time.DateOnly), nil
	case *format.TimestampType:
		return timestampText(v.Int64(), of.Unit)
	case *format.UUIDType:
		return UUIDText(v.ByteArray()), nil
	default:
		return "", fmt.Errorf("its type %s is not there yet for samples: write it as text", t)
	}

	switch v.Kind() {
	case parquet.ByteArray, parquet.FixedLenByteArray: // raw bytes, which a spec writes in hex
		return fmt.Sprintf("%x", v.ByteArray()), nil
	case parquet.Float:
		return strconv.FormatFloat(float64(v.Float()), 'f', -1, 32), nil
	case parquet.Double:
		return strconv.FormatFloat(v.Double(), 'f', -1, 64), nil
	case parquet.Boolean, parquet.Int32, parquet.Int64:
		return v.String(), nil
	}
	return "", fmt.Errorf("its type %s is not there yet for samples: write it as text", t)
}

// unscaled returns the digits of a decimal as a number.
func unscaled(v parquet.Value) *big.Int {
	switch v.Kind() {
	case parquet.Int32:
		return big.NewInt(int64(v.Int32()))
	case parquet.Int64:
		return big.NewInt(v.Int64())
	}
	digits := v.ByteArray() // two's complement, the highest byte first
	n := new(big.Int).SetBytes(digits)
	if len(digits) > 0 && digits[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(digits))))
	}
	return n
}

func timestampText(v int64, unit format.TimeUnit) (string, error) {
	var at time.Time
	switch each := unit.Value.Duration(); each {
	case time.Millisecond:
		at = time.UnixMilli(v)
	case time.Microsecond:
		at = time.UnixMicro(v)
	default:
		at = time.Unix(0, v)
	}
	if at.Nanosecond()%1000 != 0 {
		return "", fmt.Errorf("%s has nanoseconds, and times here have microseconds", at.UTC().Format(time.RFC3339Nano))
	}
	return at.UTC().Format("2006-01-02 15:04:05.999999"), nil
}
