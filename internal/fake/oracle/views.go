package oracle

import (
	"strings"
)

// view is what the dictionary answers. known reports whether there is a view of that name.
func (s *session) view(name string) (columns []string, rows [][]value, known bool, err error) {
	v, known := views[name]
	if !known {
		v, known = instanceViews[name]
	}
	if !known {
		if v, known = views["ALL_"+strings.TrimPrefix(name, "USER_")]; !known || !strings.HasPrefix(name, "USER_") {
			return nil, nil, false, nil
		}
	}
	if err := s.server.denied(name); err != nil {
		return nil, nil, true, err
	}
	if other, is := s.server.options.Views[name]; is {
		for _, row := range other {
			rows = append(rows, valuesOf(row))
		}
		return strings.Fields(v.columns), rows, true, nil
	}
	return strings.Fields(v.columns), v.rows(s), true, nil
}

func valuesOf(row []any) []value {
	all := make([]value, len(row))
	for i, v := range row {
		all[i] = v
	}
	return all
}

// dictionaryView is one view's columns, and how its rows come about.
type dictionaryView struct {
	columns string
	rows    func(s *session) [][]value
}

// views are those that a loader asks. A USER_ view that is not among them is the ALL_ one: there is one user.
var views = map[string]dictionaryView{
	"DUAL": {"DUMMY", func(*session) [][]value { return [][]value{{"X"}} }},
	"ALL_OBJECTS": {"OWNER OBJECT_NAME SUBOBJECT_NAME OBJECT_ID DATA_OBJECT_ID OBJECT_TYPE STATUS", func(s *session) (all [][]value) {
		for _, t := range s.server.sorted() {
			all = append(all, []value{s.server.options.Owner, t.name, nil, t.object, t.data, "TABLE", "VALID"})
			for i, p := range t.partitions {
				all = append(all, []value{s.server.options.Owner, t.name, p.name, t.object + int64(i) + 1, t.data, "TABLE PARTITION", "VALID"})
			}
		}
		for name, kind := range s.server.options.Taken {
			if kind != "" {
				all = append(all, []value{s.server.options.Owner, name, nil, int64(30000), nil, kind, "VALID"})
			}
		}
		if s.server.denied("DBMS_CLOUD") == nil {
			all = append(all, []value{"C##CLOUD$SERVICE", "DBMS_CLOUD", nil, int64(20000), nil, "PACKAGE", "VALID"})
		}
		return all
	}},
	"ALL_TABLES": {
		"OWNER TABLE_NAME TEMPORARY IOT_TYPE CLUSTER_NAME COMPRESSION COMPRESS_FOR LOGGING PARTITIONED EXTERNAL MEMOPTIMIZE_WRITE STATUS",
		func(s *session) (all [][]value) {
			for _, t := range s.server.sorted() {
				all = append(all, []value{
					s.server.options.Owner, t.name, "N", nil, nil, enabled(t.compressed), nil, "YES",
					yes(t.partitions != nil), yes(t.external != nil), enabled(t.memoptimized), "VALID",
				})
			}
			return all
		},
	},
	"ALL_EXTERNAL_TABLES": {"OWNER TABLE_NAME", func(s *session) (all [][]value) {
		for _, t := range s.server.sorted() {
			if t.external != nil {
				all = append(all, []value{s.server.options.Owner, t.name})
			}
		}
		return all
	}},
	"ALL_TAB_COMMENTS": {"OWNER TABLE_NAME TABLE_TYPE COMMENTS", func(s *session) (all [][]value) {
		for _, t := range s.server.sorted() {
			all = append(all, []value{s.server.options.Owner, t.name, "TABLE", emptyIsNull(t.comment)})
		}
		return all
	}},
	"ALL_TAB_COLUMNS": {
		"OWNER TABLE_NAME COLUMN_NAME COLUMN_ID DATA_TYPE DATA_LENGTH DATA_PRECISION DATA_SCALE NULLABLE DEFAULT_LENGTH CHAR_LENGTH CHAR_USED",
		columnsOf,
	},
	"ALL_TAB_PARTITIONS": {"TABLE_OWNER TABLE_NAME PARTITION_NAME COMPRESSION", func(s *session) (all [][]value) {
		for _, t := range s.server.sorted() {
			for _, p := range t.partitions {
				all = append(all, []value{s.server.options.Owner, t.name, p.name, enabled(t.compressed)})
			}
		}
		return all
	}},
	"ALL_TRIGGERS": {"OWNER TRIGGER_NAME TABLE_OWNER TABLE_NAME STATUS", func(*session) [][]value { return nil }},
	"ALL_CONSTRAINTS": {
		"OWNER CONSTRAINT_NAME CONSTRAINT_TYPE TABLE_NAME STATUS DEFERRABLE VALIDATED INDEX_NAME SEARCH_CONDITION_VC", constraintsOf,
	},
	"ALL_CONS_COLUMNS": {"OWNER CONSTRAINT_NAME TABLE_NAME COLUMN_NAME POSITION", keyColumnsOf},
	"ALL_INDEXES": {"OWNER INDEX_NAME TABLE_OWNER TABLE_NAME UNIQUENESS STATUS INDEX_TYPE", func(s *session) (all [][]value) {
		s.eachKey(func(t *table, u *uniqueKey) {
			status := "VALID"
			if u.local {
				status = "N/A"
			}
			all = append(all, []value{s.server.options.Owner, u.name, s.server.options.Owner, t.name, "UNIQUE", status, "NORMAL"})
		})
		return all
	}},
	"ALL_IND_COLUMNS": {"INDEX_OWNER INDEX_NAME TABLE_NAME COLUMN_NAME COLUMN_POSITION TABLE_OWNER", func(s *session) (all [][]value) {
		for _, row := range keyColumnsOf(s) {
			all = append(all, append(row, s.server.options.Owner))
		}
		return all
	}},
	"USER_SEGMENTS": {"SEGMENT_NAME PARTITION_NAME SEGMENT_TYPE BYTES BLOCKS", segments},
	"V$STATNAME": {"STATISTIC# NAME", func(s *session) (all [][]value) {
		for i, stat := range s.statistics() {
			all = append(all, []value{int64(i), stat.name})
		}
		return all
	}},
	"V$MYSTAT": {"SID STATISTIC# VALUE", func(s *session) (all [][]value) {
		for i, stat := range s.statistics() {
			all = append(all, []value{int64(s.number), int64(i), stat.value})
		}
		return all
	}},
	"NLS_DATABASE_PARAMETERS": {"PARAMETER VALUE", func(s *session) [][]value {
		return [][]value{{"NLS_CHARACTERSET", s.server.options.CharacterSet}, {"NLS_NCHAR_CHARACTERSET", "AL16UTF16"}, {"NLS_LENGTH_SEMANTICS", "BYTE"}}
	}},
	"PRODUCT_COMPONENT_VERSION": {"PRODUCT VERSION VERSION_FULL STATUS", func(s *session) [][]value {
		return [][]value{{"Oracle Database Free", s.server.options.Version, s.server.options.Version, "Production"}}
	}},
	"V$VERSION": {"BANNER BANNER_FULL CON_ID", func(s *session) [][]value {
		banner := "Oracle Database Free Release " + s.server.options.Version + " - Production"
		return [][]value{{banner, banner, int64(0)}}
	}},
	"V$PARAMETER": {"NAME VALUE", func(s *session) [][]value {
		size := "EXTENDED"
		if s.server.options.Standard {
			size = "STANDARD"
		}
		return [][]value{
			{"max_string_size", size}, {"commit_logging", nil}, {"commit_wait", nil}, {"memoptimize_pool_size", "0"},
			{"undo_tablespace", "UNDOTBS1"},
			{"optimizer_ignore_hints", s.settings["OPTIMIZER_IGNORE_HINTS"]},
		}
	}},
	"V$MEMOPTIMIZE_WRITE_AREA": {"TOTAL_SIZE USED_SPACE FREE_SPACE NUM_WRITES NUM_WRITERS CON_ID", func(s *session) [][]value {
		return [][]value{{int64(2 << 30), int64(0), int64(2 << 30), int64(len(s.server.pool)), int64(len(s.server.sessions)), int64(0)}}
	}},
}

func enabled(is bool) value {
	if is {
		return "ENABLED"
	}
	return "DISABLED"
}

func yes(is bool) value {
	if is {
		return "YES"
	}
	return "NO"
}

func columnsOf(s *session) (all [][]value) {
	for _, t := range s.server.sorted() {
		for i, c := range t.columns {
			var precision, scale, characters, used value
			switch {
			case c.kind.name == "NUMBER" && !c.kind.absolute:
				precision, scale = int64(c.kind.length), int64(c.kind.scale)
			case c.kind.name == "TIMESTAMP":
				scale = int64(c.kind.length)
			case c.kind.name == "VARCHAR2":
				characters, used = int64(c.kind.length), "B"
			}
			nullable := "Y"
			if c.notNull {
				nullable = "N"
			}
			all = append(all, []value{
				s.server.options.Owner, t.name, c.name, int64(i) + 1, c.kind.String(), c.kind.bytes(), precision, scale, nullable, nil,
				characters, used,
			})
		}
	}
	return all
}

func (s *session) eachKey(f func(*table, *uniqueKey)) {
	for _, t := range s.server.sorted() {
		for _, u := range t.unique {
			f(t, u)
		}
	}
}

func constraintsOf(s *session) (all [][]value) {
	for _, t := range s.server.sorted() {
		for _, c := range t.checks {
			all = append(all, []value{s.server.options.Owner, c.name, "C", t.name, "ENABLED", "NOT DEFERRABLE", "VALIDATED", nil, nil})
		}
	}
	s.eachKey(func(t *table, u *uniqueKey) {
		kind := "U"
		if u.primary {
			kind = "P"
		}
		all = append(all, []value{s.server.options.Owner, u.name, kind, t.name, "ENABLED", "NOT DEFERRABLE", "VALIDATED", u.name, nil})
	})
	return all
}

func keyColumnsOf(s *session) (all [][]value) {
	s.eachKey(func(t *table, u *uniqueKey) {
		for i, c := range u.columns {
			all = append(all, []value{s.server.options.Owner, u.name, t.name, t.columns[c].name, int64(i) + 1})
		}
	})
	return all
}

// segments counts what is committed, in extents of 64 KiB.
func segments(s *session) (all [][]value) {
	const extent, block = 64 << 10, 8 << 10
	room := func(n int64) (bytes, blocks value) {
		n = (n/extent + 1) * extent
		return n, n / block
	}
	for _, t := range s.server.sorted() {
		if t.external != nil {
			continue
		}
		sizes := map[string]int64{}
		var keys int64
		for _, r := range t.rows {
			for _, v := range r.values {
				sizes[t.partitionOf(r.values)] += int64(len(text(v))) + 3
			}
			keys += 20
		}
		if t.partitions == nil {
			bytes, blocks := room(sizes[""])
			all = append(all, []value{t.name, nil, "TABLE", bytes, blocks})
		}
		for _, p := range t.partitions {
			bytes, blocks := room(sizes[p.name])
			all = append(all, []value{t.name, p.name, "TABLE PARTITION", bytes, blocks})
		}
		for _, u := range t.unique {
			bytes, blocks := room(keys)
			all = append(all, []value{u.name, nil, "INDEX", bytes, blocks})
		}
	}
	return all
}

type statistic struct {
	name  string
	value int64
}

func (s *session) statistics() []statistic {
	return []statistic{
		{"redo size", s.cost.redo},
		{"SQL*Net roundtrips to/from client", s.cost.trips / 2},
		{"bytes received via SQL*Net from client", s.net.received},
		{"CPU used by this session", s.cost.trips / 10},
		{"user commits", s.cost.commits},
		{"user rollbacks", 0},
	}
}
