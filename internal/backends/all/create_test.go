package all_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/all"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

var sqlSchemes = []string{
	"postgres", "yugabyte", "redshift", "mysql", "mariadb", "tidb", "oceanbase", "singlestore", "databend", "doris", "oracle",
}

// made returns the statements that make a table of a schema, what they leave out, and why nothing is made.
func made(t *testing.T, scheme string, p loader.Preparation) (text string) {
	registry, err := all.Drivers()
	require.NoError(t, err)
	driver, known := registry.Lookup(scheme)
	require.True(t, known, scheme)
	target := loader.Target{Scheme: scheme, Hosts: []string{"h"}, User: "u", Database: "d", Table: "t"}
	m := driver.Methods()[0]
	if scheme == "redshift" { // a dry run of its other method is in the words of PostgreSQL
		m, _ = loader.FindMethod(driver, "s3-copy")
		target.Via = &loader.Target{Scheme: "s3", Hosts: []string{"bucket"}}
	}
	p.Contract = loader.Contract{Method: m.Name, Format: m.Caps.Formats[0], Dedup: m.Caps.Dedup, BatchRows: 10}
	p.Create = loader.CreateIfMissing

	target.Method = m.Name
	for _, s := range driver.Explain(target, p) {
		isTable := strings.HasPrefix(s.Text, "CREATE TABLE") && !strings.Contains(strings.ToLower(s.Text), "terapush_")
		switch {
		case isTable || s.When == "left out":
			text += s.When + ": " + s.Text + "\n"
		case s.Text == "":
			text += s.When + "\n"
		}
	}
	return text
}

func schemaOf(t *testing.T, text string) rows.Schema {
	s, err := dataset.ParseSpec("t.yaml", []byte("version: 1\nname: t\n"+text), nil)
	require.NoError(t, err)
	d, err := s.Compile(1)
	require.NoError(t, err)
	return d.Schema()
}

// A table that is made of a file has the file's NOT NULL and its keys, as far as the server has them; a built-in
// dataset's has columns alone, unless a primary key is asked for.
func TestCreateTable(t *testing.T) {
	own := schemaOf(t, `
key: [number]
primary: [tenant, number]
unique: [[code], [tenant, code], [tenant, number]]
columns:
  number: {type: bigint, sequence: {start: 1}}
  tenant: {type: bigint, uniform: {min: 1, max: 9}}
  code:   {type: text(40), sequence: {format: "{:012}"}}
  day:    {type: date, uniform: {min: 2026-01-01, max: 2026-12-31}, nulls: 0%}
  amount: {type: "decimal(9,2)", uniform: {min: 1, max: 500}, nulls: 5%}
`)
	built, err := dataset.New("lineitem", dataset.Options{Seed: 1})
	require.NoError(t, err)

	var text strings.Builder
	for _, scheme := range sqlSchemes {
		fmt.Fprintf(&text, "== %s\n%s", scheme, made(t, scheme, loader.Preparation{Schema: own}))
		assert.NotRegexp(t, "UNIQUE|left out", made(t, scheme, loader.Preparation{Schema: built.Schema()}), scheme)
	}
	golden.Equal(t, "create.txt", text.String())
}

// What MySQL cannot index as it would store it is a VARCHAR there, as long as its values if what is declared is too long,
// or is refused before a table is dropped for it.
func TestCreateTableOfLongKeys(t *testing.T) {
	keyed := func(line string) rows.Schema {
		return schemaOf(t, "key: [id]\nunique: [[id, a]]\ncolumns:\n  id: {type: bigint, sequence: {start: 1}}\n  a: "+line+"\n")
	}
	for line, want := range map[string]string{
		`{type: text(20), words: {length: 3..20}}`:          "`a` VARCHAR(20) CHARACTER SET utf8mb4 NOT NULL",
		`{type: text, words: {length: 3..30}}`:              "`a` VARCHAR(30) CHARACTER SET utf8mb4 NOT NULL",
		`{type: text(4000), words: {length: 3..400}}`:       "`a` VARCHAR(400) CHARACTER SET utf8mb4 NOT NULL",
		`{type: bytes(20), bytes: {length: 3}}`:             "`a` VARBINARY(20) NOT NULL",
		`{type: text, words: {length: 3..769}}`:             "refused: .*column a (text of at most 769 bytes) cannot be in a key there .*--primary-key=false",
		`{type: json, json: {n: {type: int, constant: 1}}}`: "refused: .*column a (json .*cannot be in a key there",
	} {
		assert.Regexp(t, strings.NewReplacer("(", `\(`, ")", `\)`).Replace(want), made(t, "mysql", loader.Preparation{Schema: keyed(line)}), line)
	}
	assert.Contains(t, made(t, "postgres", loader.Preparation{Schema: keyed(`{type: json, json: {n: {type: int, constant: 1}}}`)}), `UNIQUE ("id", "a")`)
}
