package encode

import (
	"slices"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/terapush/terapush/pkg/rows"
)

// pageHeader returns the header of a page of n values, or NULLs, and size bytes.
func pageHeader(n, size int) []byte {
	return compact(&format.PageHeader{
		Type:                 format.DataPage,
		UncompressedPageSize: int32(size),
		CompressedPageSize:   int32(size),
		DataPageHeader: thrift.New(format.DataPageHeader{
			NumValues: int32(n),
			Encoding:  format.Plain,
			// Required columns have no levels, and only lists repeat; these fields are mandatory.
			DefinitionLevelEncoding: format.RLE,
			RepetitionLevelEncoding: format.RLE,
		}),
	})
}

// parquetFooter returns the metadata of a file of n rows. Without chunks its numbers have the maximum length.
func parquetFooter(columns []rows.Column, chunks []chunk, n int64) []byte {
	if chunks == nil {
		chunks = slices.Repeat([]chunk{{start: 1 << 32, end: 2 << 32}}, len(columns))
	}
	file := format.FileMetaData{
		Version:   1,
		Schema:    []format.SchemaElement{{Name: "schema", NumChildren: thrift.New(int32(len(columns)))}},
		NumRows:   n,
		CreatedBy: "terapush",
	}
	group := format.RowGroup{NumRows: n, FileOffset: int64(len(parquetMagic))}
	for i, c := range columns {
		size := int64(chunks[i].end - chunks[i].start)
		group.TotalByteSize += size
		encodings := []format.Encoding{format.Plain}
		if c.Nullable || c.Type.IsList() {
			encodings = append(encodings, format.RLE) // of the levels that say which values are NULL
		}
		schema, path := []format.SchemaElement{schemaElement(c)}, []string{c.Name}
		entries, leaf := n, c
		if c.Type.IsList() {
			leaf = elementOf(c)
			schema, path = listSchema(c, leaf)
			if chunks[i].lists != nil {
				entries = chunks[i].lists.all
			}
		}
		file.Schema = append(file.Schema, schema...)
		group.Columns = append(group.Columns, format.ColumnChunk{
			MetaData: format.ColumnMetaData{
				Type:                  physicalType(leaf.Type),
				Encoding:              encodings,
				PathInSchema:          path,
				Codec:                 format.Uncompressed,
				NumValues:             entries,
				TotalUncompressedSize: size,
				TotalCompressedSize:   size,
				DataPageOffset:        int64(chunks[i].start),
			},
		})
	}
	group.TotalCompressedSize = group.TotalByteSize
	file.RowGroups = []format.RowGroup{group}
	return compact(&file)
}

func physicalType(t rows.Type) format.Type {
	switch t {
	case rows.Date, rows.Int32, rows.Int16, rows.Uint32, rows.Uint16:
		return format.Int32
	case rows.Int64, rows.Timestamp, rows.TimestampTZ, rows.Decimal, rows.Time, rows.Uint64:
		return format.Int64
	case rows.Wide:
		return format.FixedLenByteArray
	case rows.Bool:
		return format.Boolean
	case rows.Float32:
		return format.Float
	case rows.Float64:
		return format.Double
	default:
		return format.ByteArray
	}
}

// listSchema describes a list as LogicalTypes.md of parquet-format wants it, and returns the path of its elements.
func listSchema(c, of rows.Column) (schema []format.SchemaElement, path []string) {
	const repeated, element = "list", "element"
	list := format.SchemaElement{
		Name: c.Name, RepetitionType: repetition(c), NumChildren: thrift.New(int32(1)),
		ConvertedType: thrift.New(deprecated.List), LogicalType: format.LogicalType{Value: new(format.ListType)},
	}
	group := format.SchemaElement{
		Name: repeated, RepetitionType: thrift.New(format.Repeated), NumChildren: thrift.New(int32(1)),
	}
	of.Name = element
	return []format.SchemaElement{list, group, schemaElement(of)}, []string{c.Name, repeated, element}
}

// repetition says whether some values of a column are NULL.
func repetition(c rows.Column) thrift.Null[format.FieldRepetitionType] {
	if c.Nullable {
		return thrift.New(format.Optional)
	}
	return thrift.New(format.Required)
}

// schemaElement describes a column. Converted types are for older readers; a timestamp without a time zone has none, since
// TIMESTAMP_MICROS means UTC.
func schemaElement(c rows.Column) format.SchemaElement {
	e := format.SchemaElement{
		Name:           c.Name,
		Type:           thrift.New(physicalType(c.Type)),
		RepetitionType: repetition(c),
	}
	switch c.Type {
	case rows.Text, rows.Char, rows.Enum, rows.JSON, rows.UUID:
		e.ConvertedType = thrift.New(deprecated.UTF8)
		e.LogicalType = format.LogicalType{Value: new(format.StringType)}
	case rows.Date:
		e.ConvertedType = thrift.New(deprecated.Date)
		e.LogicalType = format.LogicalType{Value: new(format.DateType)}
	case rows.Int16:
		e.ConvertedType = thrift.New(deprecated.Int16)
		e.LogicalType = format.LogicalType{Value: &format.IntType{BitWidth: 16, IsSigned: true}}
	case rows.TimestampTZ:
		e.ConvertedType = thrift.New(deprecated.TimestampMicros)
		e.LogicalType = format.LogicalType{Value: &format.TimestampType{
			IsAdjustedToUTC: true, Unit: format.TimeUnit{Value: new(format.MicroSeconds)},
		}}
	case rows.Timestamp:
		e.LogicalType = format.LogicalType{Value: &format.TimestampType{
			Unit: format.TimeUnit{Value: new(format.MicroSeconds)},
		}}
	case rows.Uint16, rows.Uint32, rows.Uint64:
		converted := map[rows.Type]deprecated.ConvertedType{
			rows.Uint16: deprecated.Uint16, rows.Uint32: deprecated.Uint32, rows.Uint64: deprecated.Uint64,
		}
		e.ConvertedType = thrift.New(converted[c.Type])
		e.LogicalType = format.LogicalType{Value: &format.IntType{BitWidth: int8(8 * c.Type.Size())}}
	case rows.Time:
		// No converted type: TIME_MICROS means UTC.
		e.LogicalType = format.LogicalType{Value: &format.TimeType{Unit: format.TimeUnit{Value: new(format.MicroSeconds)}}}
	case rows.Decimal, rows.Wide:
		if c.Type == rows.Wide {
			e.TypeLength = thrift.New(int32(rows.UUIDBytes))
		}
		scale, precision := int32(c.Scale), int32(c.Digits)
		e.ConvertedType, e.Scale, e.Precision = thrift.New(deprecated.Decimal), thrift.New(scale), thrift.New(precision)
		e.LogicalType = format.LogicalType{Value: &format.DecimalType{Scale: scale, Precision: precision}}
	}
	return e
}

// compact writes a structure in Thrift's compact protocol.
func compact(v any) []byte {
	b, err := thrift.Marshal(new(thrift.CompactProtocol), v)
	if err != nil {
		panic("encode: parquet metadata: " + err.Error()) // only a structure without an encoding fails
	}
	return b
}
