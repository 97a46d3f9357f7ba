// Package datasettest makes specs at random, for the tests of all that takes the rows of any dataset.
package datasettest

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
)

// keys are the ways to number rows. In all texts %d is a number from 10 to 27.
var keys = []string{
	"[k]\ncolumns:\n  k: {type: bigint, sequence: {start: %d}}\n",
	"[k]\ncolumns:\n  k: {type: int, sequence: {start: %d}}\n",
	"[k]\ncolumns:\n  k: {type: text, sequence: {start: %d, format: '{:017}'}}\n",
	"[k]\ncolumns:\n  k: {type: char(17), sequence: {start: %d, format: '{:017}'}}\n",
	"[k]\ncolumns:\n  k: {type: char(40), uuid: v4}\n",
	"[k]\ncolumns:\n  k: {type: timestamp, sequence: {start: 2026-01-%d, step: 1us}}\n",
	"[k]\ncolumns:\n  k: {type: timestamptz, sequence: {start: '1999-12-31 23:59:%d', step: 1us}}\n",
	"[k]\ncolumns:\n  k: {type: uuid, uuid: v4}\n",
	"[k]\ncolumns:\n  k: {type: uuid, uuid: {version: v7, start: 2026-02-%d, step: 1ms}}\n",
	"[k]\ncolumns:\n  k: {type: text, uuid: v4}\n",
	"[k]\ncolumns:\n  k: {type: bigint, scatter: {start: %d, stride: 77}}\n",
	"[k, j]\ncolumns:\n  k: {type: bigint, sequence: {every: %d}}\n  j: {type: smallint, sequence: {start: 5, cycle: %d}}\n",
	"[k, j]\ncolumns:\n  j: {type: int, sequence: {cycle: %d}}\n  k: {type: timestamp, sequence: {start: 2026-01-01, step: 1us, every: %d}}\n",
}

// columns are generators of all kinds, on the types that they are for.
var columns = []string{
	// Derived.
	"{type: uuid, uuid: v7}", "{type: text, uuid: v4}",
	"{type: bigint, scatter: {start: %d, stride: 77}}",
	"{type: int, hash: {min: 0, max: 9%d}}",
	"{type: timestamptz(3), hash: {min: 2026-01-%d, max: 2026-12-31, step: 1ms}}",
	"{type: bigint, sequence: {start: %d, step: 3, every: 2}}",
	"{type: smallint, sequence: {start: %d, step: 3, cycle: 7}}",
	"{type: text, sequence: {start: %d, format: 'é-{:012}'}}",
	"{type: char(30), sequence: {start: %d, format: 'é-{:015}'}}", "{type: char(36), uuid: v7}",
	"{type: date, sequence: {start: 2020-02-%d, every: 10, cycle: 3000}}",
	"{type: timestamp(0), sequence: {start: 2020-02-%d, step: 1s, cycle: 100000}}",
	// Numbers.
	"{type: bigint, uniform: {min: -9223372036854775808, max: 9223372036854775807}}",
	"{type: bigint, zipf: {s: 1.%d, scatter: true, min: 1, max: 1000000}}",
	"{type: smallint, uniform: {min: -9%d, max: 9}}",
	"{type: smallint, normal: {mean: %d, stddev: 2}}",
	"{type: int, zipf: {s: 0.9, min: -%d, max: 3000}}",
	"{type: int, values: {7: %d%%, -2000000000: rest%%}}",
	"{type: 'decimal(9,3)', lognormal: {median: 50, sigma: 0.%d1, min: 0.001, max: 99999}}",
	"{type: 'decimal(18,18)', uniform: {min: -0.999999999999999999, max: 0.%d}}",
	"{type: 'decimal(18,0)', uniform: {min: -%d, max: 999999999999999999}}",
	"{type: int, exponential: {mean: %d}}",
	"{type: timestamp(3), exponential: {mean: 2026-02-01, min: 2026-01-%d, max: 2027-01-01}}",
	"{type: 'decimal(9,2)', histogram: [-1.50, 0, 0, %d.25], common: {0: %d%%, 99: 1%%}}",
	"{type: double, histogram: [0, 0.5, %d], common: {-0.25: %d%%}}",
	"{type: bigint, histogram: [-9223372036854775808, %d, 9223372036854775807]}",
	"{type: real, normal: {mean: %d, stddev: 2, min: -100, max: 200}}",
	"{type: double, uniform: {min: 0, max: %d, step: 0.5}}",
	"{type: double, values: [-%d, 0.5, 1048576.000000953674316406250]}",
	"{type: bigint unsigned, uniform: {min: %d, max: 18446744073709551615}}", "{type: bigint unsigned, zipf: {s: 1.1, min: 0, max: 9%d}}",
	"{type: bigint unsigned, values: [0, %d, 18446744073709551615]}", "{type: int unsigned, uniform: {min: 0, max: 4294967295}}",
	"{type: smallint unsigned, normal: {mean: 4%d, stddev: 99}}",
	"{type: 'decimal(38,10)', uniform: {min: -9999999999999999999999999999, max: 9999999999999999999999999999.9999999999}}",
	"{type: 'decimal(20,0)', uniform: {min: 0, max: 99999999999999999999, step: %d}}",
	"{type: 'decimal(30,30)', values: {-0.%d: 40%%, 0: 60%%}}",
	"{type: boolean, values: {true: %d%%, false: rest%%}}",
	"{type: boolean, constant: true}",
	// Times.
	"{type: date, uniform: {min: 2020-01-01, max: 2026-01-%d}}",
	"{type: time, uniform: {min: 00:00, max: 23:59:59.999999}}", "{type: time(2), values: ['00:00', '12:30:%d.25']}",
	"{type: date, values: [0001-01-01, 9999-12-%d]}",
	"{type: timestamp, uniform: {min: 1000-01-%d, max: 9999-12-31}}",
	"{type: timestamptz, uniform: {min: 2020-01-01, max: 2026-02-01}}",
	"{type: timestamptz(2), uniform: {min: 1970-02-01, max: 2026-02-%d}}",
	// What differs in length.
	"{type: char(%d), text: {length: 1..10}}",
	"{type: char(40), values: [' a', \"b\\t\", '', \"'\", %d]}",
	"{type: text, text: {length: 0..%d, alphabet: ascii}}",
	"{type: text(200), text: {length: %d..150, alphabet: hex}}",
	"{type: text, words: {length: 1..%d}}",
	"{type: text, histogram: [1, 5, 5, %d, 300], common: {v1: %d%%, '\\N': 1%%}}",
	"{type: char(40), pattern: '([A-Z]{2}|é)-[0-9]{4,%d}x?', common: {v1: %d%%}}",
	`{type: text, pattern: '("?, ?[a-c]{1,%d}){0,3}z'}`,
	"{type: text, constant: '%d'}",
	"{type: text, values: {'': %d%%, '\\N': 10%%, \"\\t\\n\\r\\\\'\\\"\": 15%%, 'NULL': 10%%, 'ä€😀': 10%%, ',': half%%}}",
	"{type: enum, zipf: {s: 0.%d1, values: [a, bb, 'c, \"c']}}",
	"{type: enum, values: [' x', 'it''s', '%d']}",
	"{type: bytes, bytes: {length: 0..%d}}",
	"{type: bytes(9), values: ['', 00, 5c4e, 0d0a, '%d']}",
	"{type: json, json: {a: {uniform: {min: 0, max: %d}}, b: {text: {length: 3}, absent: 10%%, nulls: 20%%}, c: {values: ['\"', '\\', \"\\n\"]}}}",
	"{type: json, json: {d: {type: 'decimal(9,2)', uniform: {min: 0, max: %d}}, e: {json: {f: {values: [true, false]}}, absent: 50%%}}}",
	"{type: json, json: {a: {uniform: {min: 0, max: %d}, items: 0..3}, b: {json: {c: {values: [x, '\\'], items: 2, nulls: 9%%}}, items: 1..2}}}",
	"{type: json, values: ['[1, {\"ä\": null}]', '\"x\"', '%d', '{}']}",
	// Lists.
	"{type: vector(%d), vector: {}}", "{type: vector(1), vector: {clusters: %d, normalised: true}}",
	"{type: 'int[]', array: {length: 0..%d, of: {uniform: {min: -5, max: 5}}}}",
	"{type: 'boolean[]', array: {length: 0..%d, of: {values: [true, false], nulls: %d%%}}}",
	"{type: 'text(9)[]', array: {length: 1, of: {values: ['', 'NULL', \"\\\\'\\\"\\t\", 'ä€😀', ',', '{}'], nulls: %d%%}}}",
	"{type: 'uuid[]', array: {length: 0..2, of: {ref: {table: t, column: c, uuid: v4, rows: 9}, nulls: 50%%}}}",
	"{type: 'real[]', array: {length: %d, of: {normal: {mean: 0, stddev: 2}}}}",
	"{type: 'decimal(9,2)[]', array: {length: 0..3, of: {uniform: {min: -%d, max: 9}, nulls: 99%%}}}",
	"{type: 'date[]', array: {length: 0..%d, of: {values: [0001-01-01, 9999-12-31]}}}",
	"{type: 'timestamptz[]', array: {length: 0..9, of: {uniform: {min: 2020-01-01, max: 2026-02-%d}, nulls: 1%%}}}",
	// Keys of other tables.
	"{type: bigint, ref: {table: t, column: c, rows: 1%d, start: 5}}",
	"{type: uuid, ref: {table: t, column: c, uuid: v4, rows: 1%d}}",
	"{type: int, ref: {table: t, column: c, stride: 9, rows: %d}}",
	"{type: text, ref: {table: t, column: c, format: 'x{:05}', rows: %d}, zipf: {s: 1}}",
}

var derived = regexp.MustCompile("sequence: |uuid: v[47]}$|scatter: {st|hash: ")

// Spec returns the YAML of a spec with a key of any kind and one to nine columns of any, some of them with NULLs, with
// few values, or following another.
func Spec(random *rand.Rand) string {
	n := 10 + random.IntN(18)
	text := "version: 1\nkey: " + number(keys[random.IntN(len(keys))], n)
	unique := ""
	for c := range 1 + random.IntN(9) {
		column := number(columns[random.IntN(len(columns))], n)
		if derived.MatchString(column) {
			text += fmt.Sprintf("  c%d: %s\n", c, column)
			if !regexp.MustCompile("every|cycle|hash").MatchString(column) {
				unique += fmt.Sprintf("  - [c%d]\n", c)
			}
			continue
		}

		wide := wideType.MatchString(column)
		if random.IntN(3) == 0 && !wide && !strings.Contains(column, "uuid") && !strings.Contains(column, "constant") {
			column = with(column, fmt.Sprintf("distinct: %d", 1+random.IntN(200_000)))
		}
		if random.IntN(3) == 0 {
			column = with(column, fmt.Sprintf("nulls: %d%%", 1+random.IntN(100)))
		}
		text += fmt.Sprintf("  c%d: %s\n", c, column)
		if random.IntN(4) == 0 {
			text += fmt.Sprintf("  s%d: %s\n", c, follower(column, c))
		}
	}
	if unique != "" {
		text += "unique:\n" + unique
	}
	return text
}

// number fills in numbers, and shares that make a whole.
func number(text string, n int) string {
	text = strings.ReplaceAll(text, "%d", fmt.Sprint(n))
	text = strings.ReplaceAll(text, "rest%%", fmt.Sprint(100-n)+"%%")
	text = strings.ReplaceAll(text, "half%%", fmt.Sprint(100-n-45)+"%%")
	return strings.ReplaceAll(text, "%%", "%")
}

// with adds a modifier to a column.
func with(column, modifier string) string {
	return strings.TrimSuffix(column, "}") + ", " + modifier + "}"
}

// wideType finds decimals of more than 18 digits, which distinct is not for.
var wideType = regexp.MustCompile(`decimal\((19|[23]\d),`)

var typeOf = regexp.MustCompile(`^{type: ('.*?'|[a-z ]+(?:\(\d+\))?)`)

// follower returns a column that has the values of another one, or later ones.
func follower(column string, c int) string {
	name := typeOf.FindStringSubmatch(column)[1]
	if strings.HasPrefix(name, "timestamp") && !strings.Contains(column, "9999") {
		return fmt.Sprintf("{type: %s, after: {column: c%d, by: 1s..4d}}", name, c)
	}
	return fmt.Sprintf("{type: %s, same: c%d, nulls: 5%%}", name, c)
}
