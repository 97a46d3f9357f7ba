package inspect

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

func bigint(name string) loader.Column {
	return loader.Column{Name: name, Type: "bigint", Values: &rows.Column{Type: rows.Int64}}
}

func text(name string, n int) loader.Column {
	return loader.Column{Name: name, Type: fmt.Sprintf("varchar(%d)", n), Values: &rows.Column{Type: rows.Text, MaxBytes: n}}
}

func primary(columns ...string) loader.Key {
	return loader.Key{Name: "pk", Primary: true, Columns: columns}
}

func unique(columns ...string) loader.Key {
	return loader.Key{Name: "u_" + columns[0], Columns: columns}
}

func narrow(name string, t rows.Type, least, most int64) loader.Column {
	return loader.Column{Name: name, Type: "narrow", Values: &rows.Column{Type: t, Least: least, Most: most}}
}

func null(c loader.Column) loader.Column {
	c.Nullable = true
	return c
}

func written(t *testing.T, d *loader.Description) string {
	t.Helper()
	d.Schema, d.Table = "s", "t"
	text, err := Write(d, "Server 1", false)
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(text), "No value of its rows is in this file.\n")
	after = regexp.MustCompile(`(?m)^(# (Without --table|For (skew|NULLs|shares)) .*|rows: 1000000  #.*)\n`).ReplaceAllString(after, "")
	return strings.Replace(after, "version: 1\nname: t\n", "", 1)
}

// A file says first that no real server has been asked for its like.
func TestWriteOfAStandIn(t *testing.T) {
	d := &loader.Description{Schema: "s", Table: "t", Columns: []loader.Column{bigint("id")}, Keys: []loader.Key{primary("id")}}
	for _, is := range []bool{false, true} {
		d.StandIn = is
		table, err := Write(d, "Server 1", false)
		require.NoError(t, err)
		all, err := WriteSchema([]*loader.Description{d}, "s", "", "Server 1", false)
		require.NoError(t, err)
		for _, text := range []string{string(table), string(all)} {
			_, after, _ := strings.Cut(text, "in this file.\n")
			assert.Equal(t, is, strings.HasPrefix(after, triedOnStandIn), text)
		}
	}
}

// Types that a spec may derive or only draw, each with values that it holds.
func TestWriteTypes(t *testing.T) {
	column := func(name string, values rows.Column) loader.Column {
		return loader.Column{Name: name, Type: name, Values: &values}
	}
	require.Equal(t, `key: [id]
columns:
  id: {type: bigint unsigned, sequence: {start: 1}}
  n4: {type: int unsigned, uniform: {min: 1, max: 1000000}}
  n2: {type: smallint unsigned, uniform: {min: 1, max: 65535}}
  at: {type: time(3), uniform: {min: 00:00:00, max: 23:59:59, step: 1s}}
  w: {type: "decimal(38,20)", uniform: {min: 0.00000000000000, max: 999.99999999999999}}
`, written(t, &loader.Description{
		Keys: []loader.Key{primary("id")},
		Columns: []loader.Column{
			column("id", rows.Column{Type: rows.Uint64}), column("n4", rows.Column{Type: rows.Uint32}), column("n2", rows.Column{Type: rows.Uint16}),
			column("at", rows.Column{Type: rows.Time, Scale: 3}), column("w", rows.Column{Type: rows.Wide, Digits: 38, Scale: 20}),
		},
	}))
}

// What each kind of key, reference and constraint becomes.
func TestWrite(t *testing.T) {
	parent := func(column string, keys *loader.ParentKeys) loader.Reference {
		return loader.Reference{Name: "f", Columns: []string{column}, Schema: "s", Table: "p", Of: []string{"id"}, Keys: keys}
	}
	for name, c := range map[string]struct {
		table loader.Description
		want  string
	}{
		"a table without any key": {
			loader.Description{Columns: []loader.Column{text("msg", 40), bigint("n")}},
			"key: [\"n\"]\nprimary: []\ncolumns:\n" +
				"  msg: {type: text(40), words: {length: 1..40}}\n" +
				"  \"n\": {type: bigint, sequence: {start: 1}}  # no key of the table does: this column numbers the rows, so that the proof finds them\n",
		},
		"a key of two, and the parent of one": {
			loader.Description{
				Columns: []loader.Column{bigint("tenant"), bigint("no")}, Keys: []loader.Key{primary("tenant", "no")},
				References: []loader.Reference{parent("tenant", &loader.ParentKeys{Min: 3, Max: 12, Count: 10})},
			},
			"key: [\"no\", tenant]\nprimary: [tenant, \"no\"]\ncolumns:\n" +
				"  tenant: {type: bigint, sequence: {start: 3, cycle: 10}}  # REFERENCES s.p (id), 10 keys\n" +
				"  \"no\": {type: bigint, sequence: {start: 1, every: 10}}\n",
		},
		"a key of three": {
			loader.Description{
				Columns: []loader.Column{text("a", 9), bigint("b"), bigint("c")}, Keys: []loader.Key{primary("a", "b", "c")},
			},
			"key: [b]\nprimary: [a, b, c]\ncolumns:\n" +
				"  a: {type: text(9), text: {length: 1..9}}\n" +
				"  b: {type: bigint, sequence: {start: 1}}\n" +
				"  c: {type: bigint, uniform: {min: 1, max: 1000000}}\n",
		},
		"unique columns": {
			loader.Description{
				Columns: []loader.Column{bigint("id"), text("mail", 80), bigint("a"), text("b", 5), {
					Name: "day", Type: "date", Values: &rows.Column{Type: rows.Date},
				}},
				Keys: []loader.Key{
					primary("id"), unique("mail"), unique("a", "b"), unique("id", "a"), unique("day"),
					{Name: "e", Only: "an expression"}, {Name: "lower", Columns: []string{"mail"}, Only: "an expression of mail"},
				},
			},
			"# Not understood: UNIQUE e, of an expression. A row that breaks it stops the run before it begins.\n" +
				"key: [id]\ncolumns:\n" +
				"  id: {type: bigint, sequence: {start: 1}}\n" +
				"  mail: {type: text(80), sequence: {format: \"{:012}\"}}\n" +
				"  a: {type: bigint, sequence: {start: 1}}\n" +
				"  b: {type: text(5), text: {length: 1..5}}\n" +
				"  day: {type: date, sequence: {start: 2025-01-01, step: 1d}}\n" +
				"unique:\n  - [mail]\n  - [a, b]\n  - [id, a]\n  - [day]\n",
		},
		"unique columns where a condition holds, and in their first characters": {
			loader.Description{
				Columns: []loader.Column{bigint("id"), text("mail", 80), text("name", 80), null(text("gone", 9)), bigint("n")},
				Keys: []loader.Key{
					primary("id"), unique("name"), {Name: "m", Columns: []string{"mail"}, Only: "where gone is null"},
					{Name: "p", Columns: []string{"name"}, Only: "the first 5 characters of name", Prefix: 5},
					{Name: "i", Columns: []string{"id"}, Only: "where n > 5"},
				},
			},
			"key: [id]\ncolumns:\n" +
				"  id: {type: bigint, sequence: {start: 1}}\n" +
				"  mail: {type: text(80), sequence: {format: \"{:012}\"}}\n" +
				"  name: {type: text(80), sequence: {format: \"{:05}\"}}\n" +
				"  gone: {type: text(9), text: {length: 1..9}, nulls: 0%}\n" +
				"  \"n\": {type: bigint, uniform: {min: 1, max: 1000000}}\n" +
				"unique:\n  - [name]\n",
		},
		"references with gaps, without keys, and of several columns": {
			loader.Description{
				Columns: []loader.Column{bigint("id"), bigint("gaps"), null(bigint("none")), null(bigint("x")), bigint("y")},
				Keys:    []loader.Key{primary("id")},
				References: []loader.Reference{
					parent("gaps", &loader.ParentKeys{Min: 1, Max: 9000, Count: 8000}), parent("none", &loader.ParentKeys{}),
					{Name: "two", Columns: []string{"x", "y"}, Schema: "s", Table: "q", Of: []string{"a", "b"}},
				},
			},
			"key: [id]\ncolumns:\n" +
				"  id: {type: bigint, sequence: {start: 1}}\n" +
				"  gaps: {type: bigint, uniform: {min: 1, max: 9000}}  # REFERENCES s.p (id), 8,000 keys from 1 to 9000: with gaps, in which no row may point\n" +
				"  # \"none\" bigint is left out: REFERENCES s.p (id), which is empty: fill it first: NULL\n" +
				"  # \"x\" bigint is left out: one of a foreign key's columns, which are NULL together: FOREIGN KEY (x, y) REFERENCES s.q (a, b)\n" +
				"  \"y\": {type: bigint, uniform: {min: 1, max: 1000000}}\n",
		},
		"a reference of two columns, of whose parent every pair is there, beside that of one of them": {
			loader.Description{
				Columns: []loader.Column{bigint("id"), bigint("x"), null(bigint("y"))}, Keys: []loader.Key{primary("id")},
				References: []loader.Reference{parent("x", &loader.ParentKeys{Min: 1, Max: 99, Count: 99}), {
					Name: "two", Columns: []string{"x", "y"}, Schema: "s", Table: "q", Of: []string{"a", "b"},
					Grid: []loader.ParentKeys{{Min: 1, Max: 10, Count: 10}, {Min: 5, Max: 7, Count: 3}},
				}},
			},
			"key: [id]\ncolumns:\n" +
				"  id: {type: bigint, sequence: {start: 1}}\n" +
				"  x: {type: bigint, ref: {table: q, column: a, rows: 10, start: 1}}  # REFERENCES s.q (a), 10 keys, of which s.q has every combination\n" +
				"  \"y\": {type: bigint, ref: {table: q, column: b, rows: 3, start: 5}, nulls: 0%}  # REFERENCES s.q (b), 3 keys, of which s.q has every combination\n",
		},
		"CHECKs": {
			loader.Description{
				Columns: []loader.Column{
					bigint("id"), bigint("n"), text("s", 9), text("w", 30), bigint("up"), bigint("down"),
					{Name: "d", Type: "decimal(6,2)", Values: &rows.Column{Type: rows.Decimal, Digits: 6, Scale: 2}},
					{Name: "t", Type: "date", Values: &rows.Column{Type: rows.Date}},
				},
				Keys: []loader.Key{primary("id")},
				Checks: []string{
					"id > 100", "n between 5 and 7", "s in ('null', '1', '${x}')", "length(w) >= 3", "n < d", "d < 0.005", "d > -1",
					"t > '2030-05-01'", "up >= 2000000", "down < 0", "s <> 'abc'",
				},
			},
			"# Not understood: n < d. A row that breaks it stops the run before it begins.\n" +
				"# Not understood: s <> 'abc'. A row that breaks it stops the run before it begins.\n" +
				"key: [id]\ncolumns:\n" +
				"  id: {type: bigint, sequence: {start: 101}}\n" +
				"  \"n\": {type: bigint, uniform: {min: 5, max: 7}}\n" +
				"  s: {type: text(9), values: [\"null\", 1, \"$${x}\"]}\n" +
				"  w: {type: text(30), words: {length: 3..30}}\n" +
				"  up: {type: bigint, uniform: {min: 2000000, max: 2999999}}\n" +
				"  down: {type: bigint, uniform: {min: -1000000, max: -1}}\n" +
				"  d: {type: \"decimal(6,2)\", uniform: {min: -0.99, max: 0.00}}\n" +
				"  t: {type: date, uniform: {min: 2030-05-02, max: 2031-05-02}}\n",
		},
		"what a column is not, and floats": {
			loader.Description{
				Columns: []loader.Column{
					bigint("id"), bigint("n"), bigint("low"),
					{Name: "yes", Type: "boolean", Values: &rows.Column{Type: rows.Bool}},
					{Name: "no", Type: "boolean", Values: &rows.Column{Type: rows.Bool}},
					{Name: "one", Type: "tinyint(1)", Values: &rows.Column{Type: rows.Bool}},
					{Name: "mood", Type: "mood", Values: &rows.Column{Type: rows.Enum, Labels: []string{"sad", "ok", "good"}}},
					{Name: "f", Type: "real", Values: &rows.Column{Type: rows.Float32}},
					{Name: "fine", Type: "double", Values: &rows.Column{Type: rows.Float64}},
					{Name: "rate", Type: "double", Values: &rows.Column{Type: rows.Float64}},
					{Name: "serial", Type: "integer", Values: &rows.Column{Type: rows.Int32}, Default: "nextval('s'::regclass)"},
					{Name: "code", Type: "character(8)", Values: &rows.Column{Type: rows.Char, MaxBytes: 8}},
					{Name: "public", Type: "char(36)", Values: &rows.Column{Type: rows.Char, MaxBytes: 36}},
				},
				Keys: []loader.Key{primary("id"), unique("code"), unique("public")},
				Checks: []string{
					"id <> 1", "n <> 500", "n between 1 and 600", "low <> -3 and low < 0 and low >= -5", "yes", "NOT no", "one = 1",
					"mood <> 'sad' and mood <> 'good'", "f > 0 and f < 1", "fine > 0.01 and fine < 0.05", "rate <> 0",
				},
			},
			"key: [id]\ncolumns:\n" +
				"  id: {type: bigint, sequence: {start: 2}}\n" +
				"  \"n\": {type: bigint, uniform: {min: 1, max: 499}}\n" +
				"  low: {type: bigint, uniform: {min: -2, max: -1}}\n" +
				"  \"yes\": {type: boolean, values: [true]}\n" +
				"  \"no\": {type: boolean, values: [false]}\n" +
				"  one: {type: boolean, values: [true]}\n" +
				"  mood: {type: enum, values: [ok]}\n" +
				"  f: {type: real, uniform: {min: 0.0625, max: 0.9375, step: 0.0625}}\n" +
				"  fine: {type: double, uniform: {min: 0.0107421875, max: 0.0498046875, step: 0.0009765625}}\n" +
				"  rate: {type: double, uniform: {min: 0.0625, max: 1000, step: 0.0625}}\n" +
				"  serial: {type: int, sequence: {start: 1}}  # DEFAULT nextval('s'::regclass)\n" +
				"  code: {type: char(8), sequence: {format: \"{:08}\"}}\n" +
				"  public: {type: char(36), uuid: v4}\n" +
				"unique:\n  - [code]\n  - [public]\n",
		},
		"what the server does by itself": {
			loader.Description{
				Columns: []loader.Column{
					{Name: "id", Type: "bigint", Values: &rows.Column{Type: rows.Int64}, Numbered: loader.IdentityAlways},
					{Name: "g", Type: "bigint", Values: &rows.Column{Type: rows.Int64}, Generated: "id * 2"},
					{Name: "at", Type: "timestamp", Values: &rows.Column{Type: rows.Timestamp}, Default: "now()", OnUpdate: "now()", Invisible: true},
					null(loader.Column{Name: "p", Type: "point"}),
				},
				Keys: []loader.Key{primary("id")}, Costs: []string{"index i", "trigger t"}, Partitions: "RANGE (id)", Hidden: []string{"CHECKs"},
			},
			"# The server did not show this user its CHECKs.\n" +
				"# Every row pays for index i, trigger t.\n" +
				"# Partitioned by RANGE (id): a row without a partition stops the run.\n" +
				"key: [id]\ncolumns:\n" +
				"  id: {type: bigint, sequence: {start: 1}}  # identity always\n" +
				"  # \"g\" bigint is left out: generated as id * 2\n" +
				"  at: {type: timestamp, uniform: {min: 2025-01-01, max: 2025-12-31}}  # DEFAULT now(); ON UPDATE now(); INVISIBLE\n" +
				"  # \"p\" point is left out: there is no type of ours for point yet; to fill it write p: {type: text, sql: \"point\", values: [\"(0,0)\", \"(1,2)\"], nulls: 0%}\n",
		},
		"integers narrower than ours": {
			loader.Description{
				Columns: []loader.Column{
					narrow("id", rows.Int32, -8388608, 8388607), narrow("tiny", rows.Int16, -128, 127), narrow("low", rows.Int16, -128, 127),
					narrow("up", rows.Int16, 0, 255), narrow("medium", rows.Int32, 0, 16777215),
				},
				Keys: []loader.Key{primary("id")}, Checks: []string{"low < 0", "up >= 100"},
			},
			"key: [id]\ncolumns:\n" +
				"  id: {type: smallint, sequence: {start: 1}}\n" +
				"  tiny: {type: smallint, uniform: {min: 1, max: 127}}\n" +
				"  low: {type: smallint, uniform: {min: -127, max: -1}}\n" +
				"  up: {type: smallint, uniform: {min: 100, max: 255}}\n" +
				"  medium: {type: int, uniform: {min: 1, max: 1000000}}\n",
		},
		"a key with a narrow column": {
			loader.Description{
				Columns: []loader.Column{narrow("shop", rows.Int16, -128, 127), bigint("no")}, Keys: []loader.Key{primary("no", "shop")},
			},
			"key: [\"no\", shop]\ncolumns:\n" +
				"  shop: {type: smallint, sequence: {start: 1, cycle: 100}}\n" +
				"  \"no\": {type: bigint, sequence: {start: 1, every: 100}}\n",
		},
		"times with fewer digits": {
			loader.Description{
				Columns: []loader.Column{
					{Name: "at", Type: "datetime", Values: &rows.Column{Type: rows.Timestamp, Scale: 6}}, bigint("id"),
					{Name: "seen", Type: "timestamp(3)", Values: &rows.Column{Type: rows.TimestampTZ, Scale: 3}},
				},
				Keys: []loader.Key{primary("at"), unique("seen")},
			},
			"key: [id]\nprimary: [at]\ncolumns:\n" +
				"  at: {type: timestamp(0), sequence: {start: 2025-01-01, step: 1s}}\n" +
				"  id: {type: bigint, sequence: {start: 1}}  # no key of the table does: this column numbers the rows, so that the proof finds them\n" +
				"  seen: {type: timestamptz(3), sequence: {start: 2025-01-01, step: 1s}}\n" +
				"unique:\n  - [seen]\n",
		},
		"words of YAML": {
			loader.Description{Columns: []loader.Column{bigint("yes"), bigint("null"), bigint("a: b"), text("#x", 5)}, Keys: []loader.Key{primary("yes")}},
			"key: [\"yes\"]\ncolumns:\n" +
				"  \"yes\": {type: bigint, sequence: {start: 1}}\n" +
				"  \"null\": {type: bigint, uniform: {min: 1, max: 1000000}}\n" +
				"  \"a: b\": {type: bigint, uniform: {min: 1, max: 1000000}}\n" +
				"  \"#x\": {type: text(5), text: {length: 1..5}}\n",
		},
		"a unique key with a parent": {
			loader.Description{
				Columns: []loader.Column{bigint("id"), bigint("parent"), bigint("${n}")}, Keys: []loader.Key{primary("id"), unique("parent", "${n}")},
				References: []loader.Reference{{
					Name: "f", Columns: []string{"parent"}, Schema: "s", Table: "p", Of: []string{"id"}, Keys: &loader.ParentKeys{Min: 1, Max: 9, Count: 9},
				}},
			},
			"key: [id]\ncolumns:\n" +
				"  id: {type: bigint, sequence: {start: 1}}\n" +
				"  parent: {type: bigint, ref: {table: p, column: id, rows: 9, start: 1}}  # REFERENCES s.p (id), 9 keys\n" +
				"  \"${n}\": {type: bigint, sequence: {start: 1}}\n" +
				"unique:\n  - [parent, \"$${n}\"]\n",
		},
		"more rows than its key has values for": {
			loader.Description{Columns: []loader.Column{text("id", 3)}, Keys: []loader.Key{primary("id")}, Rows: 900},
			"key: [id]\ncolumns:\n  id: {type: text(3), sequence: {format: \"{:03}\"}}\n",
		},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, written(t, &c.table)) })
	}
}

// A column that needs a value which no generator makes is named, with all others of its kind.
func TestWriteRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		table loader.Description
		want  []string
	}{
		"types": {
			loader.Description{Columns: []loader.Column{bigint("id"), {Name: "p", Type: "geometry"}, {Name: "q", Type: "widget"}}},
			[]string{`column "p": there is no type of ours for geometry yet, it takes no NULL and has no default: give it one, or write its line by hand, with type: text, sql and values`, `column "q": there is no type of ours for widget yet`},
		},
		"a name":       {loader.Description{Columns: []loader.Column{bigint("id"), bigint("a\\b")}}, []string{"and no backslash"}},
		"no key":       {loader.Description{Columns: []loader.Column{{Name: "d", Type: "date", Values: &rows.Column{Type: rows.Date}}}}, []string{"no column by which a row is found again"}},
		"unique flags": {loader.Description{Columns: []loader.Column{bigint("id"), {Name: "d", Type: "decimal(3,1)", Values: &rows.Column{Type: rows.Decimal, Digits: 3, Scale: 1}}}, Keys: []loader.Key{primary("id"), unique("d")}}, []string{"as UNIQUE u_d wants"}},
	} {
		_, err := Write(&c.table, "Server 1", false)
		for _, want := range c.want {
			assert.ErrorContains(t, err, want, name)
		}
	}
}

// Whatever a server's names, comments and conditions are, they say nothing but what they are: the file has the table's columns
// and no others.
func FuzzWrite(f *testing.F) {
	f.Add("a", "b\nevil: {type: bigint}", "c in ('x')", "'\n# x", "yes")
	f.Add("null", "\u2028x: y", "a = 'it''s' \n", "\"\\", "a: b")
	f.Add("- a", "\r\n\t", "a in ('\x00')", "${x}", "{}")
	f.Fuzz(func(t *testing.T, name, comment, check, fallback, other string) {
		d := &loader.Description{Schema: comment, Table: name, Checks: []string{check, "q in ('" + fallback + "')"}, Partitions: comment, Costs: []string{comment}}
		d.Columns = []loader.Column{bigint("id"), null(text(name, 20)), null(text("q", 200)), null(text(other, 0))}
		d.Columns[1].Comment, d.Columns[2].Default = comment, fallback
		d.Columns[3].Generated = comment
		d.Keys = []loader.Key{primary("id")}
		written, err := Write(d, comment, false)
		if err != nil {
			return
		}
		s, err := dataset.ParseSpec("x.yaml", written, nil)
		require.NoError(t, err)
		for _, c := range s.Columns {
			assert.True(t, slices.ContainsFunc(d.Columns, func(h loader.Column) bool { return h.Name == c.Name }), "%q in\n%s", c.Name, written)
		}
	})
}

// What is usual to edit is said once, with the columns for which it is natural.
func TestWriteHints(t *testing.T) {
	status := null(text("status", 9))
	d := &loader.Description{
		Schema: "s", Table: "t", Keys: []loader.Key{primary("id")},
		Columns: []loader.Column{bigint("id"), null(bigint("p_id")), status},
		Checks:  []string{"status IN ('a', 'b')"},
		References: []loader.Reference{{
			Name: "f", Columns: []string{"p_id"}, Schema: "s", Table: "p", Of: []string{"id"},
			Keys: &loader.ParentKeys{Count: 9, Min: 1, Max: 9},
		}},
	}
	text, err := Write(d, "Server 1", false)
	require.NoError(t, err)
	require.Contains(t, string(text), `# Without --table a push fills table t: for a copy give the name of another.
# For skew add zipf: {s: 1.2} beside ref: p_id.
# For NULLs change nulls: 0%: p_id, status.
# For shares write values: {a: 70%, b: 30%}: status.
version: 1
name: t
rows: 1000000  # the table has none that the server has counted
`)
}
