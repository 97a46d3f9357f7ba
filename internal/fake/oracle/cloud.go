package oracle

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
)

// external is where an external table's rows come from.
type external struct {
	uris   []string
	fields []field
	format map[string]string
}

// field is one of FIELD_LIST.
type field struct {
	name   string
	length int    // with quotation marks
	mask   string // of a date or a timestamp
}

// createExternal is DBMS_CLOUD.CREATE_EXTERNAL_TABLE, for CSV. It is DDL.
func (s *session) createExternal(args map[string]value) error {
	s.commit()
	for name := range args {
		if !slices.Contains([]string{"TABLE_NAME", "CREDENTIAL_NAME", "FILE_URI_LIST", "COLUMN_LIST", "FIELD_LIST", "FORMAT"}, name) {
			return ora(6550, "line 1, column 7:\nPLS-00306: wrong number or types of arguments in call to 'CREATE_EXTERNAL_TABLE' (%s)", name)
		}
	}
	name := strings.ToUpper(strings.Trim(text(args["TABLE_NAME"]), `"`))
	if s.server.tables[name] != nil {
		return ora(955, "name is already used by an existing object")
	}
	x := &external{}
	for uri := range strings.SplitSeq(text(args["FILE_URI_LIST"]), ",") {
		if uri = strings.TrimSpace(uri); !strings.Contains(uri, "://") {
			return ora(20006, "Unsupported object store URI - %s", uri)
		}
		x.uris = append(x.uris, uri)
	}
	if err := json.Unmarshal([]byte(text(args["FORMAT"])), &x.format); err != nil {
		return ora(20000, "invalid format parameter: %v", err)
	}
	if kind := x.format["type"]; !slices.Contains([]string{"csv", "csv with embedded", "csv without embedded"}, kind) {
		return ora(20000, "the stand-in reads CSV only, not %q", kind)
	}
	t := &table{name: name, external: x, object: s.server.newObject()}
	p := newParser("(" + text(args["COLUMN_LIST"]) + ")")
	p.List(func() { p.columnOrConstraint(t) })
	if err := p.End(); err != nil {
		return err
	}
	if p = newParser("(" + text(args["FIELD_LIST"]) + ")"); args["FIELD_LIST"] != nil {
		p.List(func() { x.fields = append(x.fields, p.field()) })
		if err := p.End(); err != nil {
			return err
		}
	}
	s.server.tables[name] = t
	return nil
}

// field reads name CHAR(n) [DATE_FORMAT DATE|TIMESTAMP MASK "…"].
func (p *parser) field() field {
	f := field{name: p.Identifier(), length: 255}
	if p.Take("CHAR") && p.Take("(") {
		f.length = int(p.Integer())
		p.Expect(")")
	}
	if p.Take("DATE_FORMAT") {
		if !p.Take("DATE") {
			p.Expect("TIMESTAMP")
		}
		p.Expect("MASK")
		f.mask = p.Identifier() // in quotation marks
	}
	return f
}

// readExternal reads the objects. A record that does not fit fails all of it: the reject limit is 0.
func (s *session) readExternal(t *table) (all [][]value, err error) {
	for _, uri := range t.external.uris {
		if s.server.options.Objects == nil {
			return nil, ora(29913, "error while processing ODCIEXTTABLEOPEN routine: no object store")
		}
		data, err := s.server.options.Objects(uri)
		if err != nil {
			return nil, ora(29913, "error while processing ODCIEXTTABLEOPEN routine\nORA-20404: Object not found - %s: %v", uri, err)
		}
		r := csv.NewReader(strings.NewReader(string(data)))
		for {
			record, err := r.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil || len(record) != len(t.columns) {
				return nil, ora(30653, "reject limit reached: %d fields, %v", len(record), err)
			}
			row, err := s.record(t, record)
			if err != nil {
				return nil, ora(30653, "reject limit reached: %v", err)
			}
			all = append(all, row)
		}
	}
	return all, nil
}

func (s *session) record(t *table, record []string) ([]value, error) {
	row := make([]value, len(record))
	for i, c := range t.columns {
		f := field{name: c.name, length: 255}
		if t.external.fields != nil {
			at := slices.IndexFunc(t.external.fields, func(f field) bool { return f.name == c.name })
			if at != i {
				return nil, ora(29913, "KUP-04043: table column not found in external source: %s", c.name)
			}
			f = t.external.fields[i]
		}
		text := record[i]
		if quotes := strings.Count(text, `"`); len(text)+quotes > f.length {
			return nil, ora(29913, "KUP-04091: field %s is too long", c.name)
		}
		if strings.Contains(text, "\n") && t.external.format["type"] != "csv with embedded" {
			return nil, ora(29913, "KUP-04101: a record ends within quotation marks")
		}
		v := emptyIsNull(text)
		var err error
		if v != nil && f.mask != "" {
			if v, err = parseTime(text, f.mask); err != nil {
				return nil, err
			}
		}
		if row[i], err = c.kind.fit(v, s.columnName(t, c)); err != nil {
			return nil, err
		}
	}
	return row, nil
}
