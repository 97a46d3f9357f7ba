package inspect

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

func to(table, column, of string) loader.Reference {
	return loader.Reference{Name: "f_" + column, Columns: []string{column}, Schema: "s", Table: table, Of: []string{of}}
}

func described(name string, rows int64, keys []loader.Key, columns []loader.Column, references ...loader.Reference) *loader.Description {
	return &loader.Description{Schema: "s", Table: name, Rows: rows, Columns: columns, Keys: keys, References: references}
}

// What references become: they follow the parent's key wherever that can be computed, and nothing refers to what is
// left out.
func TestWriteSchema(t *testing.T) {
	key := func(columns ...string) []loader.Key { return []loader.Key{primary(columns...)} }
	id := []loader.Column{bigint("id")}
	uuid := loader.Column{Name: "id", Type: "uuid", Values: &rows.Column{Type: rows.UUID}}
	odd := loader.Column{Name: "odd", Type: "odd"}
	all := []*loader.Description{
		described("profiles", 900, key("user_id"), []loader.Column{{Name: "user_id", Values: uuid.Values}}, to("users", "user_id", "id")),
		described("users", 500, key("id"), []loader.Column{uuid, null(bigint("team")), null(loader.Column{Name: "boss", Values: uuid.Values})},
			to("teams", "team", "id"), to("users", "boss", "id")),
		described("teams", 0, key("id"), []loader.Column{bigint("id"), {Name: "lead", Values: uuid.Values}}, to("users", "lead", "id")),
		described("pairs", 9000, key("team", "tag"), []loader.Column{bigint("team"), bigint("tag")}, to("teams", "team", "id"), to("tags", "tag", "id")),
		described("lines", 70, key("team", "no"), []loader.Column{bigint("team"), bigint("no")}, to("teams", "team", "id")),
		described("tags", 4, key("id"), id),
		described("odds", 4, key("id"), []loader.Column{bigint("id"), odd}),
		described("of_odds", 4, key("id"), []loader.Column{bigint("id"), bigint("a"), null(bigint("b"))}, to("odds", "a", "id"), to("odds", "b", "id")),
		described("may", 4, key("id"), []loader.Column{bigint("id"), null(bigint("a"))}, to("odds", "a", "id")),
		described("ring", 4, key("id"), []loader.Column{bigint("id"), bigint("next")}, to("ring", "next", "id")),
	}
	file, err := WriteSchema(all, "s", "s.", "Server 1", false)
	require.NoError(t, err)
	text := string(file)
	for _, line := range []string{
		"  s.profiles:\n    rows: 500\n    key: [user_id]\n    columns:\n      user_id: {type: uuid, sequence: {of: s.users.id}}\n",
		"      team: {type: bigint, ref: s.teams.id, nulls: 10%}\n      boss: {type: uuid, ref: s.users.id, nulls: 10%}\n",
		"  # The server does not know how many rows it has.\n  s.teams:\n    rows: 1000\n",
		"      lead: {type: uuid, ref: s.users.id}\n",
		"  s.pairs:\n    rows: 4000\n    key: [team, tag]\n    columns:\n" +
			"      team: {type: bigint, sequence: {of: s.teams.id, every: \"${s.tags.rows}\"}}\n" +
			"      tag: {type: bigint, sequence: {of: s.tags.id, cycle: \"${s.tags.rows}\"}}\n",
		"      \"no\": {type: bigint, sequence: {start: 1, every: \"${s.teams.rows}\"}}\n",
		"  # \"odds\" is left out: column \"odd\": there is no type of ours for odd yet, it takes no NULL and has no default",
		"  # \"of_odds\" is left out: column \"a\": it refers to table odds, which is left out: " +
			"once that has rows, inspect --table s.of_odds describes this one alone\n",
		"      # \"a\" bigint is left out: it refers to table odds, which is left out: NULL\n",
		"      next: {type: bigint, ref: s.ring.id}\n",
	} {
		require.Contains(t, text, line)
	}

	for _, scale := range []dataset.Scale{{}, {Rows: 300}, {Times: 3}} {
		read, err := dataset.ParseTables("s.yaml", file, nil, scale)
		require.NoError(t, err)
		require.Len(t, read.Tables, 8)
	}

	_, err = WriteSchema(all[6:7], "s", "", "Server 1", false)
	require.ErrorContains(t, err, "no dataset can be made for any table of schema s")
	require.True(t, strings.HasPrefix(text, "# Schema s of Server 1, as terapush inspect has read it."))
}

// Small tables that many refer to, as of countries or states, have few keys: they get as many rows as that, or are left
// out with the reason, and never take the rest with them without one.
func TestWriteSchemaOfSmallKeys(t *testing.T) {
	code := loader.Column{Name: "code", Type: "character(2)", Values: &rows.Column{Type: rows.Char, MaxBytes: 2}}
	tiny := loader.Column{Name: "code", Type: "tinyint", Values: &rows.Column{Type: rows.Int16, Most: 127}}
	key := []loader.Key{primary("id")}
	all := []*loader.Description{
		described("countries", 0, []loader.Key{primary("code")}, []loader.Column{code}),
		described("users", 0, key, []loader.Column{bigint("id"), code}, to("countries", "code", "code")),
		described("states", 0, []loader.Key{primary("code")}, []loader.Column{tiny}),
		described("orders", 0, key, []loader.Column{bigint("id"), tiny}, to("states", "code", "code")),
	}
	file, err := WriteSchema(all, "s", "s.", "Server 1", false)
	require.NoError(t, err)
	for _, line := range []string{
		"  s.countries:\n    most: 50  # whatever --rows and --times say: its keys have room for no more\n    rows: 50\n",
		"  s.users:\n    rows: 1000\n",
		"      code: {type: char(2), ref: s.countries.code}\n",
		"no more\n    rows: 64\n    key: [code]\n    columns:\n      code: {type: smallint, sequence: {start: 1, most: 127}}\n",
		"      code: {type: smallint, ref: s.states.code}\n",
	} {
		require.Contains(t, string(file), line)
	}

	scaled, err := dataset.ParseTables("s.yaml", file, nil, dataset.Scale{Times: 2})
	require.NoError(t, err)
	countries, err := scaled.Find("s.countries")
	require.NoError(t, err)
	require.EqualValues(t, 50, countries.Spec.Rows)
	without := strings.Replace(string(file), "    most: 50 ", "    #", 1)
	_, err = dataset.ParseTables("s.yaml", []byte(without), nil, dataset.Scale{Times: 2})
	require.ErrorContains(t, err, "rows: 100 are too many: the sequences have values for 50 rows, since half of them are for probes; "+
		"--rows and --times are for all tables: without them each has the rows that the file says")
}

// Of tables that need each other one does not wait, and the file says how it is pushed; one that a trigger fills is left
// to that.
func TestCirclesAndTriggers(t *testing.T) {
	key := []loader.Key{primary("id")}
	film := described("film", 9, key, []loader.Column{bigint("id")})
	film.Triggers = []loader.Trigger{{Name: "ins", Statement: "BEGIN INSERT IGNORE INTO `s`.`Film_text` (id) VALUES (new.id); END"}}
	all := []*loader.Description{
		described("staff", 9, key, []loader.Column{bigint("id"), bigint("store")}, to("store", "store", "id")),
		described("store", 9, []loader.Key{primary("id"), unique("manager")}, []loader.Column{bigint("id"), bigint("manager")}, to("staff", "manager", "id")),
		described("stock", 9, key, []loader.Column{bigint("id"), bigint("store")}, to("store", "store", "id")),
		film, described("film_text", 9, key, []loader.Column{bigint("id")}),
	}
	for range 20 { // in whatever order Go's maps are
		file, err := WriteSchema(all, "s", "", "Server 1", false)
		require.NoError(t, err)
		for _, line := range []string{
			"push it with --set session_replication_role=replica on PostgreSQL, or --set foreign_key_checks=0 in MySQL's family",
			"      store: {type: bigint, ref: {of: store.id, unchecked: true}}  # table store is filled later\n",
			"      manager: {type: bigint, sequence: {of: staff.id}}\n", "      store: {type: bigint, ref: store.id}\n",
			"  # \"film_text\" is left out: trigger ins of table film inserts into it\n",
		} {
			require.Contains(t, string(file), line)
		}
	}
}

// A reference of a table to itself needs no keys that are there: they are its own rows', however it is empty or full of
// gaps.
func TestReferencesToTheSameTable(t *testing.T) {
	table := described("staff", 0, []loader.Key{primary("id")},
		[]loader.Column{bigint("id"), null(bigint("boss")), bigint("founder")}, to("staff", "boss", "id"), to("staff", "founder", "id"))
	table.References[0].Keys = &loader.ParentKeys{Min: 1, Max: 90, Count: 3}
	text, err := Write(table, "Server 1", false)
	require.NoError(t, err)
	require.Contains(t, string(text), "  id: {type: bigint, sequence: {start: 1}}\n"+
		"  boss: {type: bigint, ref: {column: id}, nulls: 10%}\n  founder: {type: bigint, ref: {column: id}}\n")
}

// Rows of no key of two can have parents in their own table: they are NULL, or each is its own.
func TestOwnReferencesOfSeveralColumns(t *testing.T) {
	own := func(columns ...string) loader.Reference {
		return loader.Reference{Columns: columns, Schema: "s", Table: "nodes", Of: []string{"tenant", "id"}}
	}
	nodes := described("nodes", 9, []loader.Key{primary("tenant", "id")},
		[]loader.Column{bigint("tenant"), bigint("id"), null(bigint("up")), bigint("root")}, own("tenant", "up"), own("tenant", "root"))
	file, err := WriteSchema([]*loader.Description{nodes}, "s", "", "Server 1", false)
	require.NoError(t, err)
	for _, line := range []string{"      # \"up\" bigint is left out: one of a foreign key's columns",
		"      root: {type: bigint, sequence: {start: 1, cycle: 100}}\n"} {
		require.Contains(t, string(file), line)
	}
}

// Numerics of whole numbers are keys, and refer to them, as integers that end where they do.
func TestNumericKeys(t *testing.T) {
	numeric := func(name, kind string) loader.Column {
		return loader.Column{Name: name, Type: kind, Values: &rows.Column{Type: rows.Decimal, Digits: 18, Scale: 2}}
	}
	for kind, want := range map[string]string{
		"numeric": "bigint unsigned, sequence: {start: 1}}", "numeric(38,0)": "bigint unsigned, sequence: {start: 1}}",
		"numeric(19)": "bigint unsigned, sequence: {start: 1, most: 9223372036854775807}}", "numeric(10,0)": "bigint unsigned, sequence: {start: 1, most: 9999999999}}",
		"decimal(8,0) unsigned": "bigint unsigned, sequence: {start: 1, most: 99999999}}",
	} {
		all := []*loader.Description{
			described("a", 9, []loader.Key{primary("id")}, []loader.Column{numeric("id", kind), numeric("price", "numeric")}),
			described("b", 9, []loader.Key{primary("id")}, []loader.Column{bigint("id"), numeric("a", kind)}, to("a", "a", "id")),
		}
		file, err := WriteSchema(all, "s", "", "Server 1", false)
		require.NoError(t, err)
		require.Contains(t, string(file), "      id: {type: "+want+"\n      price: {type: \"decimal(18,2)\"", kind)
		require.Contains(t, string(file), "      a: {type: bigint unsigned, ref: a.id}\n", kind)
	}
}

// What no push could fill, or no proof would find as it was filled, is left out with the reason.
func TestUnfitTables(t *testing.T) {
	key, id := []loader.Key{primary("id")}, []loader.Column{bigint("id")}
	view := &loader.Description{Schema: "s", Table: "v", Unfit: "it is a view"}
	file, err := WriteSchema([]*loader.Description{described("plain", 9, key, id), described("a.b", 9, key, id), view}, "s", "", "Server 1", false)
	require.NoError(t, err)
	require.Contains(t, string(file), "# \"a.b\" is left out: its name has a dot")
	require.Contains(t, string(file), "# \"v\" is left out: it is a view\n")
}

// A unique column that the server computes is kept by one of those that it is computed from; times are in the order of a
// CHECK, and what cannot be is said.
func TestComputedAndOrdered(t *testing.T) {
	day := func(name string) loader.Column {
		return loader.Column{Name: name, Type: "date", Values: &rows.Column{Type: rows.Date}}
	}
	text := loader.Column{Name: "mail", Type: "text", Values: &rows.Column{Type: rows.Text}}
	lower := loader.Column{Name: "low", Type: "text", Values: text.Values, Generated: "lower((mail)::text)"}
	d := loader.Description{
		Columns: []loader.Column{bigint("id"), text, lower, day("a"), day("b"), day("c"), bigint("until")},
		Keys:    []loader.Key{primary("id"), unique("low")}, Checks: []string{"CHECK ((c > b AND a < b))", "CHECK ((until > id))", "CHECK ((a > c))"},
	}
	file := written(t, &d)
	for _, line := range []string{"  mail: {type: text, sequence: {format: \"{:012}\"}}\n", "  b: {type: date, after: {column: a, by: 1d..30d}}\n",
		"  c: {type: date, after: {column: b, by: 1d..30d}}\n"} {
		require.Contains(t, file, line)
	}
	require.NotContains(t, file, "after: {column: c")
}

// A reference of several columns to what is unique, but no key of two of which every pair is there, takes them from one row.
func TestReferencesOfSeveralColumns(t *testing.T) {
	together := func(name, table string, columns ...string) loader.Reference {
		return loader.Reference{Name: name, Columns: columns, Schema: "s", Table: table, Of: []string{"tenant", "shelf", "slot"}[:len(columns)]}
	}
	id, key := bigint("id"), primary("id")
	tenant, shelf, slot := bigint("tenant"), bigint("shelf"), bigint("slot")
	all := []*loader.Description{
		described("tenants", 9, []loader.Key{key}, []loader.Column{id}),
		described("places", 50, []loader.Key{key, unique("tenant", "shelf", "slot"), unique("tenant", "shelf")},
			[]loader.Column{id, tenant, shelf, slot}, to("tenants", "tenant", "id")),
		described("items", 70, []loader.Key{key}, []loader.Column{id, null(tenant), shelf, slot},
			to("tenants", "tenant", "id"), together("f", "places", "tenant", "shelf", "slot")),
		described("labels", 70, []loader.Key{primary("shelf", "slot")}, []loader.Column{shelf, slot},
			loader.Reference{Name: "f", Columns: []string{"shelf", "slot"}, Schema: "s", Table: "places", Of: []string{"shelf", "slot"}}),
		described("moves", 70, []loader.Key{key}, []loader.Column{id, tenant, shelf, null(bigint("later"))},
			together("f", "places", "tenant", "shelf"), together("g", "places", "tenant", "later")),
	}
	file, err := WriteSchema(all, "s", "", "Server 1", false)
	require.NoError(t, err)
	for _, lines := range []string{
		"tenant: {type: bigint, sequence: {of: tenants.id, cycle: \"${tenants.rows}\"}}\n" +
			"      shelf: {type: bigint, sequence: {start: 1}}\n      slot: {type: bigint, sequence: {start: 1}}\n",
		"tenant: {type: bigint, ref: {of: places.tenant, with: shelf}, nulls: 0%}\n" +
			"      shelf: {type: bigint, ref: places.shelf}\n      slot: {type: bigint, ref: {of: places.slot, with: shelf}}\n",
		"shelf: {type: bigint, sequence: {of: places.shelf}}\n      slot: {type: bigint, sequence: {of: places.slot}}\n",
		"# \"later\" bigint is left out: one of a foreign key's columns, which are NULL together",
	} {
		require.Contains(t, string(file), lines)
	}
	_, err = dataset.ParseTables("s.yaml", file, nil, dataset.Scale{Rows: 40})
	require.NoError(t, err)
}

// A table's own reference is no part of what makes its rows unique, and no row is in an index of the one default.
func TestUniqueOfSomeRows(t *testing.T) {
	standard := loader.Column{Name: "standard", Type: "boolean", Values: &rows.Column{Type: rows.Bool}}
	table := described("roles", 30, []loader.Key{
		primary("id"), unique("parent", "list"), {Name: "one", Columns: []string{"standard"}, Only: "where (standard = true)"},
	}, []loader.Column{bigint("id"), null(bigint("parent")), null(bigint("list")), standard}, to("roles", "parent", "id"), to("lists", "list", "id"))
	lists := described("lists", 30, []loader.Key{primary("id")}, []loader.Column{bigint("id")})
	file, err := WriteSchema([]*loader.Description{table, lists}, "s", "", "Server 1", false)
	require.NoError(t, err)
	for _, line := range []string{"parent: {type: bigint, ref: roles.id, nulls: 10%}\n", "list: {type: bigint, sequence: {of: lists.id}, nulls: 0%}\n",
		"standard: {type: boolean, values: [false]}\n"} {
		require.Contains(t, string(file), line)
	}
}

// A parent whose pairs are drawn column by column has as many rows as one column has values before it starts over.
func TestPairsOfFewRows(t *testing.T) {
	both := []loader.Column{bigint("c"), bigint("no")}
	pair := loader.Reference{Name: "p", Columns: []string{"c", "no"}, Schema: "s", Table: "address", Of: []string{"c", "no"}}
	all := []*loader.Description{
		described("customer", 300, []loader.Key{primary("id")}, []loader.Column{bigint("id")}),
		described("address", 100, []loader.Key{primary("c", "no")}, both, to("customer", "c", "id")),
		described("node", 40, []loader.Key{primary("id", "version")}, []loader.Column{bigint("id"), bigint("version")}),
		described("tag", 50, []loader.Key{primary("k")}, []loader.Column{bigint("k"), bigint("node"), bigint("version")}, loader.Reference{
			Name: "n", Columns: []string{"node", "version"}, Schema: "s", Table: "node", Of: []string{"id", "version"},
		}),
		described("parcel", 50, []loader.Key{primary("id")}, append([]loader.Column{bigint("id")}, both...), pair),
	}
	file, err := WriteSchema(all, "s", "", "Server 1", false)
	require.NoError(t, err)
	require.Contains(t, string(file), "  address:\n    rows: 300\n")
	require.Contains(t, string(file), "  node:\n    rows: 100\n")
	require.Contains(t, string(file), "      node: {type: bigint, ref: node.id}\n      version: {type: bigint, ref: node.version}\n")
	require.Contains(t, string(file), "      c: {type: bigint, ref: address.c}\n      \"no\": {type: bigint, ref: address.no}\n")
}

// A tenant's column goes through all tables: what refers to a row and to a user of the same tenant has that tenant.
func TestTenantsOfSeveralTables(t *testing.T) {
	joint := func(table, column, of string) loader.Reference {
		return loader.Reference{
			Name: "f_" + column, Columns: []string{"tenant", column}, Schema: "s", Table: table, Of: []string{"tenant", of},
		}
	}
	all := []*loader.Description{
		described("tenants", 7, []loader.Key{primary("id")}, []loader.Column{bigint("id")}),
		described("users", 90, []loader.Key{primary("tenant", "id")}, []loader.Column{bigint("tenant"), bigint("id")}, to("tenants", "tenant", "id")),
		described("docs", 50, []loader.Key{primary("tenant", "id")}, []loader.Column{bigint("tenant"), bigint("id"), bigint("owner")}, joint("users", "owner", "id")),
		described("shares", 50, []loader.Key{primary("tenant", "doc", "user")}, []loader.Column{bigint("tenant"), bigint("doc"), bigint("user")},
			joint("docs", "doc", "id"), joint("users", "user", "id")),
	}
	file, err := WriteSchema(all, "s", "", "Server 1", false)
	require.NoError(t, err)
	of, err := dataset.ParseTables("s.yaml", file, nil, dataset.Scale{Times: 3})
	require.NoError(t, err)

	type pair [2]int64
	seen := map[string]map[pair]bool{"users": {}, "docs": {}}
	for _, table := range of.Tables[1:] {
		made, err := table.Spec.Compile(1)
		require.NoError(t, err)
		block := rows.NewBlock(made.Schema())
		made.Fill(block, 0, int(table.Spec.Rows))
		made.Derive(block, 0)
		for i := range int(table.Spec.Rows) {
			tenant, second := block.Columns[0].Ints[i], block.Columns[1].Ints[i]
			switch table.Name {
			case "users":
				seen["users"][pair{tenant, second}] = true
				continue
			case "docs":
				seen["docs"][pair{tenant, second}] = true
			case "shares":
				require.True(t, seen["docs"][pair{tenant, second}])
			}
			require.True(t, seen["users"][pair{tenant, block.Columns[2].Ints[i]}], table.Name)
		}
	}
	require.Len(t, of.Tables, 4)
}

// Tables that need each other by keys of several columns are left out by name, and with them what must refer to them.
func TestCirclesOfKeys(t *testing.T) {
	pair := func(table, first, second string) loader.Reference {
		return loader.Reference{Name: "f_" + second, Columns: []string{first, second}, Schema: "s", Table: table, Of: []string{"t", "id"}}
	}
	key := []loader.Key{primary("t", "id")}
	points := loader.Column{Name: "points", Type: "numeric(3,1)", Values: &rows.Column{Type: rows.Decimal, Digits: 3, Scale: 1}}
	ticket := described("ticket", 9, []loader.Key{primary("no")}, []loader.Column{bigint("no"), bigint("a"), bigint("b")}, pair("staff", "a", "b"))
	free := described("free", 9, []loader.Key{primary("no")}, []loader.Column{bigint("no"), points})
	free.Checks = []string{"points >= 0.5"}
	all := []*loader.Description{
		described("dept", 9, key, []loader.Column{bigint("t"), bigint("id"), bigint("head")}, pair("staff", "t", "head")),
		described("staff", 9, key, []loader.Column{bigint("t"), bigint("id"), bigint("dept")}, pair("dept", "t", "dept")),
		ticket, free,
	}
	file, err := WriteSchema(all, "s", "", "Server 1", false)
	require.NoError(t, err)
	for _, line := range []string{
		`# "dept" is left out: dept, staff refer to each other by columns that take no NULL`,
		`# "ticket" is left out: columns a, b: they refer to table staff, which is left out`,
		`points: {type: "decimal(3,1)", uniform: {min: 0.5, max: 99.9}}`,
	} {
		require.Contains(t, string(file), line)
	}
}
