package dataset

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/terapush/terapush/pkg/rows"
)

// SpecUUID makes a derived UUID that is different in every row: its last 15 hexadecimal digits are the row's number,
// which SQL can read from it. All other bits but those of version and variant are a hash of the number (v4), or, of the
// first 48, a time in milliseconds (v7).
type SpecUUID struct {
	Version string `json:"version"`         // v4 or v7
	Start   string `json:"start,omitempty"` // of a v7: the time of row 0
	Step    string `json:"step,omitempty"`  // and how much later the next row is
	// Of is the column of another table whose values these are, row by row; "" is this one. ParseTables sets it.
	Of string `json:"of,omitempty"`
}

func readUUID(r *specReader, c *SpecColumn, e entry, where string) Generator {
	if _, mapping := e.value.(*ast.MappingNode); !mapping {
		return &SpecUUID{Version: r.scalar(e.value, where)}
	}
	f := r.fields(c, e, where, "version", "start", "step")
	return &SpecUUID{Version: f.text("version"), Start: f.text("start"), Step: f.text("step")}
}

// uuidText is the length of a UUID's text.
const uuidText = 36

// numberBits is how many bits of a UUID are the row's number.
const numberBits = 60

func (u *SpecUUID) plan(p *columnPlanner) (plan columnPlan) {
	if p.t.Variable() {
		plan.column.MaxBytes, plan.column.Plain, plan.column.ASCII = uuidText, true, true
	}
	s := &uuids{start: nameStart(cmp.Or(u.Of, p.c.Name)), version: 4}
	p.endAt(1<<numberBits - 1)
	plan.derived, plan.numbering = s, numbering{every: 1}
	plan.term = &rows.Term{Times: 1, Hex: true}

	switch u.Version {
	case "v4":
		if u.Start+u.Step != "" {
			p.wrong([]string{"uuid"}, "uuid: v4 has no time: start and step are for v7")
		}
		return plan
	case "v7":
	default:
		return p.refuse([]string{"uuid"},
			"uuid: %s: there is v4 and v7, as in uuid: v7 or uuid: {version: v7, start: 2026-01-01, step: 1ms}",
			quoted(u.Version))
	}

	time := *p // whose numbers are times
	time.t = specType{Type: rows.Timestamp, name: "timestamp"}
	s.version = 7
	s.first = time.number(&u.Start, defaultStart, "uuid", "start")
	s.step = time.step(&u.Step, 1000, "uuid", "step")
	if p.hasProblem() {
		return plan
	}
	if s.first < 0 {
		return p.refuse([]string{"uuid", "start"}, "uuid: start %s is before 1970, where a v7 begins", u.Start)
	}
	p.endAt((latestMicros - s.first) / s.step)
	return plan
}

// defaultStart is 2026-01-01.
const defaultStart = 20_454 * dayMicros

// uuids derives UUIDs.
type uuids struct {
	start       uint64 // of the stream of the hashes
	version     uint64
	first, step int64 // of a v7, in microseconds
}

// words returns the two halves of a row's UUID.
func (u *uuids) words(row int64) (high, low uint64) {
	hash := mix(at(u.start, row, 1) + gamma)
	high = hash >> 16
	if u.version == 7 {
		high = uint64(u.first+row*u.step) / 1000
	}
	high = high<<16 | u.version<<12 | hash>>4&0xFFF
	low = 1<<63 | hash>>2&3<<numberBits | uint64(row)
	return high, low
}

func (u *uuids) derive(v *rows.Vector, first int64, n int) {
	if v.Type.Variable() {
		v.Data, v.Ends = slices.Grow(v.Data[:0], n*uuidText), slices.Grow(v.Ends[:0], n)
	}
	for i := range n {
		u.put(v, i, first+int64(i))
	}
}

// put writes a row's UUID as value i of a vector: that is the next one, of a text.
func (u *uuids) put(v *rows.Vector, i int, row int64) {
	var value [rows.UUIDBytes]byte
	high, low := u.words(row)
	binary.BigEndian.PutUint64(value[:], high)
	binary.BigEndian.PutUint64(value[8:], low)
	if v.Type == rows.UUID {
		copy(v.UUID(i), value[:])
		return
	}
	v.Data = rows.AppendUUID(v.Data, value[:])
	v.Ends = append(v.Ends, uint32(len(v.Data)))
}

// UUIDText returns the text of a UUID of 16 bytes.
func UUIDText(value []byte) string { return string(rows.AppendUUID(nil, value)) }

// UUIDOf returns what writes the text of the key in the row with a number, for any goroutine; nil if the dataset's key
// is no UUID.
func UUIDOf(d Dataset) func(number int64) string {
	schema := d.Schema()
	key := schema.Number[0]
	if !key.Hex {
		return nil
	}

	return func(number int64) string {
		row := rows.NewBlock(schema)
		row.Reset(1)
		d.Derive(row, number)
		v := &row.Columns[key.Column]
		if v.Type == rows.UUID {
			return UUIDText(v.UUID(0))
		}
		return string(v.Value(0))
	}
}

func (u *uuids) largest(int64) int64 { return 0 } // it is no number

// UUIDKey reports whether rows are numbered by a UUID.
func (s *Spec) UUIDKey() bool {
	return slices.ContainsFunc(s.Columns, func(c SpecColumn) bool {
		_, is := c.Generator.(*SpecUUID)
		return is && slices.Contains(s.Key, c.Name)
	})
}
