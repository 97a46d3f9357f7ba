package dataset

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// withColumn is a file with a key on line 4 and a column c on line 5.
func withColumn(c string) string {
	return "version: 1\nname: t\ncolumns:\n  id: {type: bigint, sequence: {}}\n  c: " + c + "\n"
}

// What people write who know another tool, or have not read the page, gets what to write instead.
func TestWordsOfOtherTools(t *testing.T) {
	for column, want := range map[string]string{
		"{type: int, uniform: {min: 1, max: 9}, null: 30%}":           "null is no key: for NULLs write nulls: 30% beside the generator",
		"{type: int, uniform: {min: 1, max: 9}, nulls: 0.3}":          "nulls: 0.3 is no share: write 30%, or 0.3%",
		"{type: int, uniform: {min: 1, max: 9}, nullable: true}":      "key nullable: did you mean nulls, as in nulls: 30%?",
		"{type: int, uniform: {min: 1, max: 9}, Nulls: 3%}":           "key Nulls: did you mean nulls, as in nulls: 30%?",
		"{typ: int, type: int, uniform: {min: 1, max: 9}}":            "key typ: did you mean type?",
		"{type: int, uniform: {min: 1, max: 9, nulls: 3%}}":           "uniform: nulls stands beside uniform, not in it: uniform: {…}, nulls: …",
		"{type: int, uniform: {minimum: 1, max: 9}}":                  "uniform: key minimum: did you mean min?",
		"{type: int, uniform: 1..9}":                                  "uniform: keys and values belong here, as uniform: {min: 1, max: 100}",
		"{type: int, random: {min: 1, max: 9}}":                       "generator random: did you mean uniform, as in uniform: {min: 1, max: 100}?",
		"{type: int, uniform: {min: 1}, max: 9}":                      "max stands in uniform: {…}, not beside it",
		"{type: int, uniform: {min: 1, max: 9}, distinct: 5%}":        "distinct: 5% is no whole number below 2^63: write digits, as 1_000_000",
		"{type: int, uniform: {min: 1, max: 9}, default: 5}":          "leave column c out, and the table's default fills it",
		"{type: int, uniform: {min: 1, max: 9}, unique: true}":        "derive the column (sequence, uuid, scatter), and list it behind the columns, as unique: [[c]]",
		"{type: int, ref: {table: t, column: a, rows: 9}, zipf: 1.2}": "zipf: keys and values belong here, as zipf: {s: 1.2} beside ref, or {s: 1.2, min: 1, max: 100}",
		"{type: int, ref: {table: t, column: a, rows: 9, zipf: 1.2}}": "ref: zipf stands beside ref, not in it: ref: {…}, zipf: …",
		"{type: text, choice: [a, b]}":                                "generator choice: did you mean values, as in values: {a: 70%, b: 30%}?",
		"{type: text, words: {min: 1}}":                               "words: key min: did you mean length?",
		"{type: decimal(9,2), constant: 1}":                           `a type with a comma needs quotes: type: "decimal(9,2)"`,
		"{type: 'numeric(9,2)', constant: 1}":                         "type numeric(9,2): write decimal(9,2)",
		"{type: varchar(20), constant: a}":                            "type varchar(20): write text(20)",
		"{type: date, constant: 01/02/2025}":                          "constant: 01/02/2025 is no date: write 2026-01-31",
		"{type: timestamptz, constant: now}":                          "constant: now is no date or time: write 2026-01-31, or 2026-01-31 23:59:59.5Z",
		"int":                                                         "keys and values belong here, as {type: int, uniform: {min: 1, max: 100}}",
	} {
		_, err := ParseSpec("t.yaml", []byte(withColumn(column)), nil)
		assert.EqualError(t, err, "t.yaml:5: column c: "+want, column)
	}
}

// What messages show as an example is right for a column of some type.
func TestExamplesOfMessages(t *testing.T) {
	types := []string{"int", "text", "timestamp", "bytes", "json", "uuid", "vector(3)", "'int[]'"}
	for _, row := range generators() {
		if row.name == "sample" { // whose file is the user's
			continue
		}
		example, _ := behindLast(row.example, ", or ")
		isRight := slices.ContainsFunc(types, func(kind string) bool {
			column := "{type: " + kind + ", " + row.name + ": " + example + "}\n" +
				"  ordered_at: {type: timestamp, constant: 2026-01-31}\n  billing_id: {type: int, constant: 1}"
			_, err := ParseSpec("t.yaml", []byte("key: [id]\n"+withColumn(column)), nil)
			return err == nil
		})
		assert.True(t, isRight, "%s: %s", row.name, example)
	}
}

// Messages have the file, the line and the way out.
func TestMistakesInAColumn(t *testing.T) {
	all, types := strings.Join(generatorNames(), ", "), strings.Join(shapes(), ", ")
	for column, want := range map[string]string{
		"{type: bigint, unifrom: {min: 1, max: 2}}":                                                   "generator unifrom: did you mean uniform?",
		"{type: bigint, faked: email}":                                                                "generator faked: there is " + all,
		"{type: bigint}":                                                                              "a generator is missing: one of " + all,
		"{type: timestamp, after: {column: id, by: 1h}}":                                              "after needs a drawn column, and id is derived",
		"{type: timestamp, after: {column: c, by: 1h}}":                                               "after: columns c and c depend on each other",
		"{type: timestamp, after: {column: d, by: 1h}}":                                               "after: column d: did you mean id?",
		"{type: timestamp, after: {by: 1h}}":                                                          "after needs column and by, as in {column: ordered_at, by: 1h..30d}",
		"{type: bigint, same: id}":                                                                    "same needs a drawn column, and id is derived",
		"{type: bigint, ref: {table: t, column: id}}":                                                 "ref needs table, column and rows, as in {table: customers, column: id, rows: 10000}",
		"{type: bigint, ref: {table: t, columns: [a, b], rows: 9}}":                                   "ref: write a reference of two columns as two, the second beside with: and the name of the first",
		"{type: bigint, ref: {table: t, column: id, with: id}}":                                       "ref needs a drawn column, and id is derived",
		"{type: bigint, ref: {table: t, column: id, rows: 9, uuid: v4, every: 2}}":                    "ref: the parent's column is a sequence, perhaps with format, every and cycle, or a uuid, or a scatter: one of them",
		"{type: smallint, ref: {table: t, column: id, rows: 99999}}":                                  "ref: rows 99999: the parent's column id has values for 32767 rows",
		"{type: bigint, ref: {table: t, column: id, uuid: v4, rows: 9}}":                              "generator ref is for text(n), char(n), uuid, not for bigint",
		"{type: json, json: {a: {sequence: {}}}}":                                                     "json: a: a document is drawn, and cannot hold what follows from the row's number",
		"{type: json, json: {a: {array: {length: 3}}}}":                                               "json: a: generator array is for type[], not for text",
		"{type: json, json: {}}":                                                                      "json: 0 fields: an object has 1 to 256",
		"{type: json, json: {a: {uniform: {min: 3, max: 1}}}}":                                        "json: a: uniform: max 1 is less than min 3",
		"{type: json, json: {a: {constant: 1, absent: 0%}}}":                                          "json: a: absent: 0% is no share: write it as 12.5%, more than 0% and at most 100%",
		"{type: json, constant: '{\"a\": 1234567890.1234567}'}":                                       "constant: number 1234567890.1234567 has more than 15 digits, or is beyond 64 bits: some servers change it; write a text",
		"{type: json, json: {a: {type: double, uniform: {min: 0, max: 100000000000, step: 0.0625}}}}": "json: a: 100000000000 has more than 15 digits, of which servers that keep numbers of JSON as floating point lose some: write fewer, a larger step, or text",
		"{type: json, values: ['[1, 9223372036854775808]']}":                                          "values: number 9223372036854775808 has more than 15 digits, or is beyond 64 bits: some servers change it; write a text",
		"{type: json, constant: 1e400}":                                                               "constant: number 1e400 has more than 15 digits, or is beyond 64 bits: some servers change it; write a text",
		"{type: json, json: {a: {type: 'decimal(18,4)', uniform: {min: 0, max: 100000000000}}}}":      "json: a: 100000000000.0000 has more than 15 digits, of which servers that keep numbers of JSON as floating point lose some: write fewer, a larger step, or text",
		"{type: json, json: {a: {values: [-999999999999.9999, 1]}}}":                                  "json: a: 999999999999.9999 has more than 15 digits, of which servers that keep numbers of JSON as floating point lose some: write fewer, a larger step, or text",
		"{type: json, constant: '{'}":                                                                 "constant: { is no JSON document: unexpected end of JSON input",
		"{type: text, constant: a, sql: 'text); DROP TABLE x; --'}":                                   `sql: "text); DROP TABLE x; --" is no type, as inet, tsvector or numeric(20, 4)`,
		"{type: text, constant: a, sql: text REFERENCES x}":                                           `sql: "text REFERENCES x" is no type, as inet, tsvector or numeric(20, 4)`,
		"{type: enum, values: ['a ', b]}":                                                             `values: "a ": a label of an enum ends in no blank: MySQL cuts them off`,
		"{type: bigint, constant: 1, sql: inet}":                                                      "sql is for text and json, which the server parses; leave it out, or make the type text",
		"{type: real, constant: 0.1}":                                                                 "constant: 0.1 is no multiple of 1/1048576, which every server would print and read exactly: write 0.125, or take decimal(p,s)",
		"{type: real, uniform: {min: 0, max: 9999999}}":                                               "uniform: max: 9999999 has more digits than real holds exactly in steps of 1/16",
		"{type: smallint, constant: 40000}":                                                           "constant: 40000 is no whole number of 16 bits",
		"{type: time, values: [12:30:00]}":                                                            `values: in a list YAML reads 12:30:00 as a key with a value: quote it, as "12:30:00"`,
		"{type: time, histogram: [12:30]}":                                                            `histogram: in a list YAML reads 12:30 as a key with a value: quote it, as "12:30"`,
		"{type: boolean, constant: maybe}":                                                            "constant: maybe is neither true nor false",
		"{type: char(3), constant: 'a '}":                                                             `constant: "a ": a char(n) ends in no blank: servers cut them off`,
		"{type: text, text: {length: 3}, distinct: 0}":                                                "distinct is a whole number of 1 or more",
		"{type: bigint, sequence: {}, distinct: 5}":                                                   "distinct is for columns that are drawn by themselves",
		"{type: bigint, lognormal: {median: 5, min: 1, max: 9}}":                                      "lognormal needs median and sigma, as in {median: 48, sigma: 0.9, min: 1, max: 20000}",
		"{type: bigint, lognormal: {median: 5, sigma: 1, min: 0, max: 9}}":                            "lognormal: min is more than 0, not 0",
		"{type: enum(mood), values: [a]}":                                                             `type enum(mood): write enum, whose labels are those of values, or text with sql: and the name of the server's type`,
		"{type: bigint, histogram: 1}":                                                                "histogram: 1 bounds: 2 to 4096 belong here, as in [0, 10, 25, 100]",
		"{type: bigint, histogram: [1, 3, 2]}":                                                        "histogram: 3 before 2: no bound is less than the one before it",
		"{type: bigint, histogram: [-9223372036854775808, 9223372036854775807]}":                      "histogram: 2^64 values between two bounds: write uniform",
		"{type: text, histogram: [0, 5]}":                                                             "histogram: 0 is no length of a text: 1 to 1048576 bytes",
		"{type: boolean, histogram: [0, 1]}":                                                          "generator histogram is for bigint, int, smallint, bigint unsigned, int unsigned, smallint unsigned, decimal(p,s), real, double, text(n), char(n), date, time, timestamp, timestamptz, not for boolean",
		"{type: bigint, exponential: {max: 9}}":                                                       "exponential needs mean, as in {mean: 86400, max: 31536000}",
		"{type: bigint, exponential: {mean: 5, min: 5}}":                                              "exponential: mean 5 is not between min 5 and max 5",
		"{type: date, exponential: {mean: 2026-01-31}}":                                               "exponential needs min and max",
		"{type: int, uniform: {min: 0, max: 9}, common: [1, 2]}":                                      "common: each value needs a share, as {a: 20%, b: 5%}",
		"{type: int, uniform: {min: 0, max: 9}, common: {1: 50%, 2: 50%}}":                            "common: the shares add up to 100%: more than 0% and less than 100%; without a rest, write values",
		"{type: bigint, sequence: {}, common: {1: 50%}}":                                              "common is for columns that are drawn by themselves",
		"{type: bigint unsigned, histogram: [0, 18446744073709551615]}":                               "histogram: 18446744073709551615: bounds go up to 9223372036854775807",
		"{type: boolean, values: [true], common: {true: 50%}}":                                        "generator common is for bigint, int, smallint, bigint unsigned, int unsigned, smallint unsigned, decimal(p,s), real, double, text(n), char(n), bytes(n), date, time, timestamp, timestamptz, not for boolean",
		"{type: smallint, uniform: {min: 0, max: 9}, common: {40000: 5%}}":                            "common: 40000 is no whole number of 16 bits",
		"{type: text(3), text: {length: 3}, common: {abcd: 5%}}":                                      "text(3) is too short: its values have up to 4 bytes",
		"{type: text, pattern: 'a*'}":                                                                 "pattern: * has no end: write {0,20}",
		"{type: text, pattern: '[0-9]+'}":                                                             "pattern: + has no end: write {1,20}",
		"{type: text, pattern: 'a{3,}'}":                                                              "pattern: {3,} has no end: write {3,23}",
		"{type: text, pattern: 'a.c'}":                                                                `pattern: . is any character at all: write those that you mean, as [a-z0-9], or \. for a point`,
		"{type: text, pattern: 'a(^b|c)'}":                                                            `pattern: ^, $ and \b are places, and no characters: leave them out, since a value is the whole pattern`,
		"{type: text, pattern: 'a\\bc'}":                                                              `pattern: ^, $ and \b are places, and no characters: leave them out, since a value is the whole pattern`,
		"{type: text, pattern: '(?i)abc'}":                                                            "pattern: (?i) is not there: write both cases, as [Aa]",
		"{type: text, pattern: '[^a]'}":                                                               "pattern: [^a] is too many characters: write those that you mean, as [a-z0-9]",
		"{type: text, pattern: 'a(?=b)'}":                                                             "pattern: invalid or unsupported Perl syntax: `(?=`: write characters, classes as [A-Z0-9], (a|b), ? and {n,m}",
		"{type: text, pattern: '(a)\\1'}":                                                             "pattern: invalid escape sequence: `\\1`: write characters, classes as [A-Z0-9], (a|b), ? and {n,m}",
		"{type: text, pattern: 'a{1001}'}":                                                            "pattern: invalid repeat count: `{1001}`: write characters, classes as [A-Z0-9], (a|b), ? and {n,m}",
		"{type: text, pattern: '(|)'}":                                                                "all of its values are empty",
		"{type: char(9), pattern: 'ab ?'}":                                                            "pattern: a value may end in a blank: servers cut them off from a char(n)",
		"{type: char(9), pattern: 'a [b ]{0,2}'}":                                                     "pattern: a value may end in a blank: servers cut them off from a char(n)",
		"{type: text, pattern: '[ab](c|dd?)', distinct: 7}":                                           "distinct: 7: the pattern has 6 values",
		"{type: text, pattern: '[ab]{0,3}', distinct: 16}":                                            "distinct: 16: the pattern has 15 values",
		"{type: text(36), uuid: v5}":                                                                  "uuid: v5: there is v4 and v7, as in uuid: v7 or uuid: {version: v7, start: 2026-01-01, step: 1ms}",
		"{type: text(35), uuid: v4}":                                                                  "text(35) is too short: its values have up to 36 bytes",
		"{type: bigint, uuid: v4}":                                                                    "generator uuid is for text(n), char(n), uuid, not for bigint",
		"{type: text, uuid: {version: v4, step: 1s}}":                                                 "uuid: v4 has no time: start and step are for v7",
		"{type: text, uuid: {version: v7, start: 1969-12-31}}":                                        "uuid: start 1969-12-31 00:00:00.000000 is before 1970, where a v7 begins",
		"{type: bigint, scatter: {start: 1}}":                                                         "scatter needs stride, as stride: 1000 for neighbors that are 1,000 apart, in blocks of 1,000 × 1,000 rows: from 2 to 2147483648",
		"{type: bigint, scatter: {start: -1, stride: 9}}":                                             "scatter: numbers start at 0 or above, not at -1",
		"{type: bigint, hash: {min: -1, max: 9}}":                                                     "hash: a derived number is 0 or above, not -1",
		"{type: bigint, constant: 1, nulls: 3}":                                                       "nulls: 3 is no share: write 3%",
		"{type: bigint, sequence: {}, nulls: 3%}":                                                     "a derived column has one width and no NULL; draw it, or leave nulls out",
		"{type: bigint, constant: 1, uniform: {min: 1, max: 2}}":                                      "one generator belongs here, and these are 2: constant, uniform",
		"{type: text(9), values: [a], zipf: {s: 1}}":                                                  "the values belong into zipf: {s: …, values: […]}",
		"{type: bigint, uniform: {min: 1, max: 2, mean: 3}}":                                          "uniform: key mean: did you mean min?",
		"{type: bigint, uniform: {min: 1}}":                                                           "uniform needs min and max",
		"{type: bigint, uniform: {min: 3, max: 2}}":                                                   "uniform: max 2 is less than min 3",
		"{type: bigint, uniform: {min: 0x10, max: 20}}":                                               "uniform: min: 0x10 is no whole number of 64 bits",
		"{type: bigint, uniform: {min: 1, max: 9, step: 0}}":                                          "uniform: step: 0: a step is more than 0",
		"{type: bigint, uniform: {min: 1, max: 2.5}}":                                                 "uniform: max: 2.5 is no whole number of 64 bits",
		"{type: text(5), uniform: {min: 1, max: 2}}":                                                  "generator uniform is for bigint, int, smallint, bigint unsigned, int unsigned, smallint unsigned, decimal(p,s), real, double, date, time, timestamp, timestamptz, not for text(5)",
		"{type: 'decimal(4,2)', uniform: {min: 0, max: 100}}":                                         "uniform: max: 100 has more than 2 digits before the point",
		"{type: 'decimal(4,2)', uniform: {min: 0, max: 0.005}}":                                       "uniform: max: 0.005 has more than 2 digits after the point",
		"{type: 'decimal(39,2)', constant: 1}":                                                        "type decimal(39,2): decimal(p,s) has p digits, 1 to 38, and s of them, perhaps 0, after the point",
		"{type: 'decimal(19,2)', constant: 1.234}":                                                    "constant: 1.234 has more than 2 digits after the point",
		"{type: 'decimal(19,2)', uniform: {min: 2, max: 1}}":                                          "uniform: max 1.00 is less than min 2.00",
		"{type: 'decimal(19,2)', uniform: {min: 2, max: 3, step: 0}}":                                 "uniform: step 0.00: a step is more than 0",
		"{type: 'decimal(19,2)', values: [1, 1.0]}":                                                   "values: 1.0 is here twice",
		"{type: 'decimal(19,2)', values: [1, 2], distinct: 5}":                                        "distinct is not for decimals of more than 18 digits: write values, or a larger step",
		"{type: json, json: {a: {type: 'decimal(19,2)', constant: 1}}}":                               "json: a: numbers of JSON have 15 digits: write a decimal of fewer, or text",
		"{type: json, json: {a: {constant: 1, items: 5..2}}}":                                         "json: a: items: 5..2: write 3, or 0..5, up to 1024",
		"{type: json, json: {a: {words: {length: 99}, items: 1024}}}":                                 "json: a document has up to 104457 bytes: 65536 at most",
		"{type: json, json: {a: {type: bigint unsigned, constant: 9223372036854775808}}}":             "json: a: 9223372036854775808 has more than 15 digits, of which servers that keep numbers of JSON as floating point lose some: write fewer, a larger step, or text",
		"{type: bigint unsigned, uniform: {min: -1, max: 9}}":                                         "uniform: min: -1 is no whole number of 64 bits, from 0 on",
		"{type: bigint unsigned, zipf: {s: 1, min: 0, max: 9223372036854775808}}":                     "zipf: 9223372036854775808 is beyond 9223372036854775807, where only uniform, values and constant go",
		"{type: int unsigned, constant: 4294967296}":                                                  "constant: 4294967296 is no whole number of 32 bits",
		"{type: unsigned, constant: 1}":                                                               "type unsigned: write bigint unsigned",
		"{type: time, constant: 24:00}":                                                               "constant: 24:00 is no time of day: write 23:59:59.000001",
		"{type: time(0), constant: 23:00:00.5}":                                                       "constant: 23:00:00.5 has more digits after its seconds than time(0)",
		"{type: 'decimal(9,0)', constant: 1.5}":                                                       "constant: 1.5 has more than 0 digits after the point",
		"{type: 'int[]', array: {length: 3}}":                                                         "array needs length and of, as in {length: 0..8, of: {uniform: {min: 1, max: 9}}}",
		"{type: 'int[]', array: {length: 0..2000, of: {constant: 1}}}":                                "array: length 0..2000: up to 1024 elements, and the second is not less than the first",
		"{type: 'int[]', array: {length: 3, of: {type: bigint, constant: 1}}}":                        "array: of: type bigint: leave it out: the column's type says what the elements are",
		"{type: 'int[]', array: {length: 3, of: {sequence: {}}}}":                                     "array: of: elements are drawn, and cannot be what follows from the row's number",
		"{type: 'int[]', array: {length: 3, of: {constant: x}}}":                                      "array: of: constant: x is no whole number of 32 bits",
		"{type: 'int[]', uniform: {min: 1, max: 2}}":                                                  "generator uniform is for " + strings.Join(shapes(numbers...), ", ") + ", not for int[]",
		"{type: 'int[][]', array: {length: 3}}":                                                       "type int[][]: an array has numbers of up to 18 digits, texts, bytes, dates, timestamps, uuids or booleans",
		"{type: vector, vector: {}}":                                                                  "type vector: write how many numbers a vector has, 1 to 16000, as vector(768)",
		"{type: vector(16001), vector: {}}":                                                           "type vector(16001): write how many numbers a vector has, 1 to 16000, as vector(768)",
		"{type: vector(3), vector: {clusters: 99999}}":                                                "vector: clusters: 99999: 1 to 65536",
		"{type: vector(3), vector: {spread: 0.00001}}":                                                "vector: spread: 0.00001: more than 0, at most 1, with up to 4 digits after the point",
		"{type: vector(3), vector: {spread: 1.5}}":                                                    "vector: spread: 1.5: more than 0, at most 1, with up to 4 digits after the point",
		"{type: bigint, vector: {}}":                                                                  "generator vector is for vector(n), not for bigint",
		"{type: vector(3), uniform: {min: 0, max: 1}}":                                                "generator uniform is for " + strings.Join(shapes(numbers...), ", ") + ", not for vector(3)",
		"{type: json, json: {a: {type: vector(3), vector: {}}}}":                                      "json: a: a vector or an array is a column of its own, and not a part of a document",
		"{type: decimal, constant: 1}":                                                                "type decimal: write its digits and those after the point, as decimal(12,2)",
		"{type: 'json[]', constant: 1}":                                                               "type json[]: an array has numbers of up to 18 digits, texts, bytes, dates, timestamps, uuids or booleans",
		"{type: bigit, constant: 1}":                                                                  "type bigit: did you mean bigint?",
		"{type: text(0), constant: a}":                                                                "type text(0): a length is a whole number from 1 to 1048576 bytes",
		"{type: text(99999999999999999999), text: {}}":                                                "type text(99999999999999999999): a length is a whole number from 1 to 1048576 bytes",
		"{constant: 1}":                                     "type is missing: one of " + types,
		"{type: date, constant: 2026-02-30}":                "constant: 2026-02-30 is no date: write 2026-01-31",
		"{type: timestamp, constant: 2026-02-01T00:00:00Z}": "constant: 2026-02-01T00:00:00Z: a timestamp has no time zone: leave it out",
		"{type: timestamp, constant: 2026-02-01 00:00:00.0000001}": `constant: "2026-02-01 00:00:00.0000001" is no timestamp: ` +
			"write 2026-01-31 23:59:59.000001",
		"{type: timestamp, sequence: {start: 2026-01-01, step: 5}}":    "sequence: step: 5 is no duration: write 250us, 10ms, 1s, 5m, 1h or 1d",
		"{type: timestamp, sequence: {start: 2026-01-01, step: 5ns}}":  "sequence: step: 5ns is no duration: write 250us, 10ms, 1s, 5m, 1h or 1d",
		"{type: timestamp, sequence: {start: 2026-01-01, step: .5us}}": "sequence: step: .5us is no duration: write 250us, 10ms, 1s, 5m, 1h or 1d",
		"{type: timestamp, sequence: {start: 2026-01-01, step: 0.5us}}": "sequence: step: 0.5us is no number of whole microseconds " +
			"below 10,000 years",
		"{type: timestamp(7), constant: 2026-02-01}":                                      "type timestamp(7): write timestamp for microseconds, or timestamp(0) to timestamp(6) for so many digits after the seconds",
		"{type: 'timestamptz(1,2)', constant: 2026-02-01}":                                "type timestamptz(1,2): write timestamptz for microseconds, or timestamptz(0) to timestamptz(6) for so many digits after the seconds",
		"{type: timestamp(2), constant: 2026-02-01 00:00:00.125}":                         `constant: "2026-02-01 00:00:00.125" has more digits after its seconds than timestamp(2)`,
		"{type: timestamptz(0), uniform: {min: 2026-01-01, max: 2026-01-02T00:00:00.5Z}}": "uniform: max: 2026-01-02T00:00:00.5Z has more digits after its seconds than timestamptz(0)",
		"{type: timestamp(3), sequence: {start: 2026-01-01, step: 250us}}":                "sequence: step: 250us is no multiple of 1ms, as the values of timestamp(3) are",
		"{type: timestamp(0), hash: {min: 2026-01-01, max: 2026-01-02, step: 1.5s}}":      "hash: step: 1.5s is no multiple of 1s, as the values of timestamp(0) are",
		"{type: timestamp(4), normal: {mean: 2026-01-01, stddev: 10us}}":                  "normal: stddev: 10us is no multiple of 100us, as the values of timestamp(4) are",
		"{type: date, sequence: {start: 2026-01-01, step: 36h}}":                          "sequence: step: 36h is no number of whole days: write 1d",
		"{type: date, sequence: {}}":                                                      "sequence needs start, as start: 2026-01-01",
		"{type: bigint, sequence: {start: -1}}":                                           "a sequence starts at 0 or above, not at -1",
		"{type: bigint, sequence: {step: -1}}":                                            "sequence: step: -1: a step is more than 0",
		"{type: bigint, sequence: {every: 0}}":                                            "sequence: every is a whole number of 1 or more",
		"{type: bigint, sequence: {start: 9223372036854775807}}":                          "",
		"{type: bigint, sequence: {cycle: 9223372036854775807, step: 2}}":                 "sequence: the last of 9223372036854775807 numbers from 1 in steps of 2 is too large",
		"{type: smallint, sequence: {start: 9, most: 9}}":                                 "sequence: most 9 is not above its start, 9",
		"{type: bigint, ref: {table: t, column: id, rows: 9, unchecked: true}}":           "ref: unchecked is for a table of the same file: write {of: table.column, unchecked: true}",
		"{type: text(9), sequence: {}}":                                                   `sequence of a text needs format, as format: "TK-{:011}" for TK- and 11 digits`,
		"{type: text(9), sequence: {format: 'x{:3}'}}":                                    `sequence: format x{:3}: write the digits as {:0N}, N from 1 to 20, once, as in "TK-{:011}"`,
		"{type: text(9), sequence: {format: '{:021}'}}":                                   `sequence: format {:021}: write the digits as {:0N}, N from 1 to 20, once, as in "TK-{:011}"`,
		"{type: text(9), sequence: {format: 'a,{:03}'}}":                                  "sequence: format a,{:03}: around the digits there is no quote, comma, backslash or control character",
		"{type: char(9), sequence: {format: '{:03} '}}":                                   "sequence: format \"{:03} \": a char(n) ends in no blank: servers cut them off",
		"{type: text(9), sequence: {start: 1000, format: '{:03}'}}":                       "sequence: start 1000 has more than the 3 digits of its format",
		"{type: text(3), sequence: {format: 'TK-{:03}'}}":                                 "text(3) is too short: its values have up to 6 bytes",
		"{type: bigint, zipf: {min: 1, max: 9}}":                                          "zipf needs s, as s: 1.07",
		"{type: bigint, zipf: {s: 0, min: 1, max: 9}}":                                    "zipf: s is more than 0 and at most 20",
		"{type: bigint, zipf: {s: 1}}":                                                    "zipf needs min and max",
		"{type: bigint, zipf: {s: 1, values: [1], max: 3}}":                               "zipf: max and values exclude each other",
		"{type: bigint, zipf: {s: 1, min: -9223372036854775808, max: 9}}":                 "zipf: more than 2^62 values",
		"{type: bigint, normal: {mean: 3}}":                                               "normal needs mean and stddev",
		"{type: bigint, normal: {mean: 3, stddev: 0}}":                                    "normal: stddev is more than 0",
		"{type: bigint, normal: {mean: 3, stddev: 1, min: 4, max: 9}}":                    "normal: mean 3 is not between min 4 and max 9",
		"{type: bigint, values: []}":                                                      "values: 0 values: 1 to 4096 belong here",
		"{type: bigint, values: [1, 1]}":                                                  "values: 1 is here twice",
		"{type: bigint, values: [1, ~]}":                                                  "values: a value is missing, as values: {a: 70%, b: 30%}; for NULLs write nulls: 30% beside the generator",
		"{type: bigint, values: {1: 50%, 2: 49.5%}}":                                      "values: the shares add up to 99.5%, not to 100%",
		"{type: bigint, values: {1: 50}}":                                                 "values: 1: 50 is no share: write 50%",
		"{type: text(3), values: [long, tiny]}":                                           "text(3) is too short: its values have up to 4 bytes",
		"{type: text(3), values: ['']}":                                                   "all of its values are empty",
		`{type: text(3), values: ["a\0"]}`:                                                `values: "a\x00": a text is UTF-8 without NUL`,
		"{type: bytes(3), values: [abc]}":                                                 "values: abc are no bytes: write them in hex, as 00ff",
		"{type: text, text: {}}":                                                          "text needs length, as length: 20 or length: 20..200",
		"{type: text(9), text: {length: 5..3}}":                                           "text: length 5..3: the second is not less than the first",
		"{type: text(9), text: {length: 99999999999999999999}}":                           "text: 99999999999999999999 is no length: write 20, or 20..200",
		"{type: text, text: {length: 2000000}}":                                           "text: length 2000000: 1 to 1048576 bytes",
		"{type: text(9), text: {alphabet: ascci}}":                                        "text: alphabet ascci: did you mean ascii?",
		"{type: text(9), words: {length: 0..9}}":                                          "words: a piece of text has at least 1 byte",
		"{type: bigint, words: {length: 9}}":                                              "generator words is for text(n), char(n), not for bigint",
		"{type: bigint, constant: \"${x}\"}":                                              "${x}: there is no such parameter: add it under parameters",
		"{type: bigint, uniform: {min: 1, max: 2}, type: bigint}":                         "",
	} {
		_, err := ParseSpec("t.yaml", []byte(withColumn(column)), nil)
		if want == "" {
			assert.Error(t, err, column)
			continue
		}
		if strings.HasPrefix(want, "${") {
			assert.EqualError(t, err, "t.yaml:5: "+want, column)
			continue
		}
		assert.EqualError(t, err, "t.yaml:5: column c: "+want, column)
	}
}

func TestMistakesInAFile(t *testing.T) {
	id := "  id: {type: bigint, sequence: {}}\n"
	for _, c := range []struct{ text, want string }{
		{"", "t.yaml:1: a dataset is one document of keys and values"},
		{"[1]", "t.yaml:1: a dataset is one document of keys and values"},
		{"version: 1\n---\nversion: 1\n", "t.yaml:1: a dataset is one document of keys and values"},
		{"version: 1\nversion: 1\n", "t.yaml:2: mapping key \"version\" already defined at [1:1]"},
		{"columns:\n" + id, "t.yaml:1: version: 1 is missing: it fixes what the generators mean"},
		{"version: 1\ncolumns:\n" + id + "    c: {type: int, constant: 1}\n", "t.yaml:4: this is not YAML: value is not allowed in this context: " +
			"look here and above at indentation (blanks, no tabs), at brackets, and for a blank behind each colon"},
		{"version: 2\ncolumns:\n" + id, "t.yaml:1: version 2 is not there: this terapush knows version 1"},
		{"version: 1\nkeys: [id]\ncolumns:\n" + id, "t.yaml:2: the file: key keys: did you mean key?"},
		{"version: 1\nname: a.b\ncolumns:\n" + id, "t.yaml:2: name a.b: a dataset's name has 1 to 63 letters of ASCII, digits, _ and -: write name: …"},
		{"version: 1\nrows: -1\ncolumns:\n" + id, "t.yaml:2: rows is a whole number of 1 or more"},
		{"version: 1\nrows: 1001\ncolumns:\n" + id + "  c: {type: text, sequence: {start: 0, format: '{:03}x'}}\n",
			"t.yaml:2: rows: 1001 are too many: the sequences have values for 500 rows, since half of them are for probes"},
		{"version: 1\ncolumns:\n" + id + "  ID: {type: bigint, constant: 1}\n", "t.yaml:4: columns id and ID are one to databases that ignore case"},
		{"version: 1\ncolumns:\n" + id + "  \"a\\u001bb\": {type: bigint, constant: 1}\n",
			`t.yaml:4: column "a\x1bb": a name has characters that can be seen, and no backslash`},
		{"version: 1\ncolumns:\n" + id + "  " + strings.Repeat("a", 64) + ": {type: bigint, constant: 1}\n",
			"t.yaml:4: column " + `"` + strings.Repeat("a", 60) + `…": a name has 1 to 63 bytes`},
		{"version: 1\ncolumns: &a\n" + id, "t.yaml:2: anchors, aliases and tags (&, *, !) are not supported: write the value out"},
		{"version: 1\ncolumns:\n  c: {type: bigint, constant: 1}\n", "t.yaml:2: table t has no column by which a row is found again: " +
			"add one, as id: {type: bigint, sequence: {start: 1}}, and key: [id]; or write key: hidden, which adds one"},
		{"version: 1\ncolumns:\n" + id + "  no: {type: bigint, sequence: {}}\n",
			"t.yaml:2: columns id, no number the rows, each by itself: say which is the key, as key: [id]"},
		{"version: 1\nkey: [ix]\ncolumns:\n" + id, "t.yaml:2: key: column ix: did you mean id?"},
		{"version: 1\nkey: [c]\ncolumns:\n" + id + "  c: {type: bigint, uniform: {min: 1, max: 9}}\n",
			"t.yaml:2: key: column c is drawn, and drawn values repeat: a key needs a sequence, a uuid or a scatter"},
		{"version: 1\nkey: [c]\ncolumns:\n" + id + "  c: {type: date, sequence: {start: 2026-01-01}}\n",
			"t.yaml:2: key: column c is a date, which is not there yet as a key: use a bigint, a timestamp or a text"},
		{"version: 1\nkey: [c]\ncolumns:\n" + id + "  c: {type: text, sequence: {format: 'TK-{:09}'}}\n",
			"t.yaml:2: key: column c has text around its number, which is not there yet as a key: use another column, or format: \"{:09}\""},
		{"version: 1\nkey: [c]\ncolumns:\n" + id + "  c: {type: timestamp, sequence: {start: 2026-01-01, step: 1s}}\n",
			"t.yaml:2: key: column c has a step of 1000000 microseconds, which is not there yet in a key: write step: 1us, " +
				"or give the table a bigint column as its key"},
		{"version: 1\nkey: [c]\ncolumns:\n" + id + "  c: {type: timestamp(3), sequence: {start: 2026-01-01}}\n",
			"t.yaml:2: key: column c is a timestamp(3), which is not there yet as a key: write the type without digits and step: 1us, " +
				"or give the table a bigint column as its key"},
		{"version: 1\nkey: [id]\ncolumns:\n  id: {type: bigint, sequence: {step: 2}}\n",
			"t.yaml:2: key: column id has step 2, which is not there yet in a key: leave the step out, or give the table another column as its key"},
		{"version: 1\nkey: [id]\ncolumns:\n  id: {type: bigint, sequence: {every: 4}}\n",
			"t.yaml:2: key [id]: the column has every 4 and cycle 0, so rows share a key: leave both out, or make a key of two columns"},
		{"version: 1\nkey: [b, a]\ncolumns:\n  a: {type: bigint, sequence: {every: 4}}\n  b: {type: bigint, sequence: {cycle: 4}}\n",
			"t.yaml:2: key: the column with every comes first: write key: [a, b]"},
		{"version: 1\nkey: [a, b]\ncolumns:\n  a: {type: bigint, sequence: {every: 4}}\n  b: {type: bigint, sequence: {cycle: 5}}\n",
			"t.yaml:2: key [a, b]: the first needs every: n and no cycle, and the second cycle: n and no every; " +
				"here a has every 4 and cycle 0, and b has every 1 and cycle 5: rows would share a key, or keys be left out"},
		{"version: 1\ncolumns:\n" + id + "  c: {type: text, text: {length: 9}}\nunique: [[c]]\n",
			"t.yaml:5: column c is unique and drawn: drawn values repeat. Derive it: sequence, with format for a text, uuid or scatter"},
		{"version: 1\ncolumns:\n" + id + "  c: {type: bigint, sequence: {cycle: 9}}\n  d: {type: text, text: {length: 9}}\nunique: [[id], [c, d]]\n",
			"t.yaml:6: unique [c, d]: these columns do not decide the row: one of them must be a uuid, a scatter or a sequence without every and cycle, " +
				"or two together (every: n, and cycle: n)"},
		{"version: 1\nkey: [c]\ncolumns:\n" + id + "  c: {type: bigint, hash: {min: 1, max: 9}}\n",
			"t.yaml:2: key: column c is a hash, which repeats: a key needs a sequence, a uuid or a scatter"},
		{"version: 1\nkey: [id, c]\ncolumns:\n" + id + "  c: {type: text, uuid: v4}\n",
			"t.yaml:2: key [id, c]: a uuid and a scatter number the rows by themselves: make it a key of one column"},
		{"version: 1\ncolumns:\n" + id + "unique: [id]\n", "t.yaml:4: unique: a list of lists of columns belongs here, as [[a], [b, c]]"},
		{"version: 1\nparameters: {a: 1}\ncolumns:\n" + id, "t.yaml:2: parameter a is not used: write ${a} where its value belongs"},
		{"version: 1\nparameters: {rows: 1}\nrows: \"${row}\"\ncolumns:\n" + id, "t.yaml:2: parameter rows is not used: write ${rows} where its value belongs\n" +
			"t.yaml:3: parameter row: did you mean rows?\nt.yaml:3: rows: \"\" is no whole number below 2^63: write digits, as 1_000_000"},
	} {
		_, err := ParseSpec("t.yaml", []byte(c.text), nil)
		assert.EqualError(t, err, c.want, c.text)
	}

	_, err := ParseSpec("t.yaml", []byte("version: 1\ncolumns:\n"+id), map[string]string{"x": "1"})
	assert.EqualError(t, err, "t.yaml: parameter x: the file has no parameters")
	_, err = ParseSpec("t.yaml", []byte("version: 1\nparameters: {rows: 1}\nrows: \"${rows}\"\ncolumns:\n"+id), map[string]string{"row": "2"})
	assert.EqualError(t, err, "t.yaml: parameter row: did you mean rows?")
}

// Parameters are values, whatever they hold.
func TestParametersAreNotYAML(t *testing.T) {
	text := "version: 1\nparameters: {x: a}\ncolumns:\n  id: {type: bigint, sequence: {}}\n  c: {type: text, constant: \"${x}/$${x}\"}\n"
	s, err := ParseSpec("t.yaml", []byte(text), map[string]string{"x": "b}, d: {type: bigint # ${x}"})
	require.NoError(t, err)
	require.Len(t, s.Columns, 2)
	require.Equal(t, "b}, d: {type: bigint # ${x}/${x}", string(*s.Columns[1].Generator.(*SpecConstant)))
}

// A record may have been changed by hand.
func TestCompileChecksTheSpec(t *testing.T) {
	for _, s := range []*Spec{
		{}, {Version: 1}, {Version: 1, Name: "t", Columns: []SpecColumn{{Name: "a", Type: "bigint"}}},
		{Version: 1, Name: "t", Columns: []SpecColumn{{Name: "a", Type: "bigint", Generator: &SpecSequence{}}}},
		{Version: 1, Name: "t", Columns: []SpecColumn{{Name: "a", Type: "text(5)", Generator: &SpecText{SpecLength{5, 6}, "hex"}}}},
		{Version: 1, Name: "t", Columns: []SpecColumn{{Name: "a", Type: "bigint", Generator: &SpecZipf{S: "1"}}}},
	} {
		_, err := s.Compile(1)
		assert.ErrorContains(t, err, "dataset "+s.Name+": ")
	}
}

// Files of strangers end in a message, soon.
func TestHostileSpecs(t *testing.T) {
	head := "version: 1\ncolumns:\n  id: {type: bigint, sequence: {}}\n"
	for name, text := range map[string]string{
		"size":           head + strings.Repeat("# 10 MB\n", 10<<17),
		"brackets":       "a: " + strings.Repeat("[", 100_000),
		"bracket a line": "a:\n" + strings.Repeat(" [\n", 30_000),
		"braces":         strings.Repeat("{a: ", 20_000),
		"dashes":         strings.Repeat("- ", 50_000),
		"questions":      strings.Repeat("? ", 50_000),
		"anchors":        strings.Repeat("&a ", 30_000),
		"tags":           strings.Repeat("!a ", 30_000),
		"tag a line":     strings.Repeat("!a\n", 30_000),
		"anchor a line":  strings.Repeat("&a\n", 30_000),
		"quotes":         strings.Repeat(`"a" `, 30_000),
		"a long mapping": "version: 1\ncolumns:\n" + func() (text string) {
			for i := range 4_500 {
				text += fmt.Sprintf("  c%d: 1%%\n", i)
			}
			return text
		}(),
		"indentation": func() (text string) {
			for i := range 400 {
				text += strings.Repeat(" ", i) + "a:\n"
			}
			return text
		}(),
		"values":  head + "  c: {type: bigint, values: [" + strings.Repeat("1, ", 40_000) + "1]}\n",
		"columns": head + strings.Repeat("  c: {type: bigint, constant: 1}\n", 2000),
		"many columns": func() string {
			text := head
			for i := range 2500 {
				text += fmt.Sprintf("  c%d: {type: bigint, constant: 1}\n", i)
			}
			return text
		}(),
		"tables": func() string {
			text := head
			for i := range 900 {
				text += fmt.Sprintf("  c%d: {type: bigint, zipf: {s: 1, min: 1, max: 4%018d}}\n", i, i)
			}
			return text
		}(),
		"long row": func() string {
			text := head
			for i := range 20 {
				text += fmt.Sprintf("  c%d: {type: text, text: {length: 1048576}}\n", i)
			}
			return text
		}(),
		"unknown keys": "version: 1\n" + func() (text string) {
			for i := range 2000 {
				text += fmt.Sprintf("%0*d: 1\n", 60, i)
			}
			return text
		}(),
		"long parameters": "version: 1\nparameters:\n  a" + strings.Repeat("a", 60_000) + ": 1\nname: \"${" + strings.Repeat("b", 60_000) + "}\"\n",
		"unknown parameters": "version: 1\nparameters: {" + func() (text string) {
			for i := range 4000 {
				text += fmt.Sprintf("p%d: 1, ", i)
			}
			return text
		}() + "x: 1}\nkey: [" + func() (text string) {
			for i := range 4000 {
				text += fmt.Sprintf("'${q%d}',", i)
			}
			return text
		}() + "]\n",
		"distinct": func() string {
			text := head
			for i := range 500 {
				text += fmt.Sprintf("  c%d: {type: text, text: {length: 70}, distinct: 65536}\n", i)
			}
			return text
		}(),
		"nested json":     head + "  c: {type: json, json: " + strings.Repeat("{a: {json: ", 60) + "{b: {constant: 1}}" + strings.Repeat("}}", 60) + "}\n",
		"unique":          head + "unique: [" + strings.Repeat("[x, y], ", 10_000) + "[z]]\n",
		"no UTF-8":        head + "  \xff: {}\n",
		"aliases explode": "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n",
		"parameters":      "parameters: {a: " + strings.Repeat("x", 1000) + "}\nname: \"" + strings.Repeat("${a}", 30_000) + "\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			_, err := ParseSpec("t.yaml", []byte(text), nil)
			runtime.ReadMemStats(&after)
			require.Error(t, err)
			require.Less(t, len(err.Error()), 64<<10)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<30))
			t.Log(time.Since(began), (after.TotalAlloc-before.TotalAlloc)>>20, "MiB", strings.SplitN(err.Error(), "\n", 2)[0])
		})
	}
}

// FuzzParseSpec looks for panics, and for datasets that break a promise of their schema.
func FuzzParseSpec(f *testing.F) {
	for _, s := range specsForTests(f) {
		f.Add(specText(s))
	}
	more, err := os.ReadFile("testdata/more.yaml")
	require.NoError(f, err)
	for _, text := range []string{string(more), "", "{", "a: &b c", "? a\n: b", "version: 1\ncolumns: {id: {type: bigint, sequence: }}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 6<<10 {
			return
		}
		s, err := ParseSpec("t.yaml", []byte(text), nil)
		if err != nil {
			return
		}
		d, err := s.Compile(3)
		require.NoError(t, err)
		longest := make([]int, len(d.Schema().Columns))
		for _, row := range []int64{0, 1, d.Schema().MaxNumber() / 2, d.Schema().MaxNumber()} {
			requirePromises(t, d, row, longest)
		}
	})
}

// specText writes a spec as the fuzzer's first inputs.
func specText(s *Spec) string {
	var text strings.Builder
	fmt.Fprintf(&text, "version: 1\nkey: [%s]\ncolumns:\n", strings.Join(s.Key, ", "))
	for _, c := range s.Columns {
		fmt.Fprintf(&text, "  %s: {type: '%s', ", c.Name, c.Type)
		switch g := c.Generator.(type) {
		case *SpecUUID:
			fmt.Fprintf(&text, "uuid: {version: %s, start: '%s'}", g.Version, g.Start)
		case *SpecScatter:
			fmt.Fprintf(&text, "scatter: {start: %s, stride: %d}", g.Start, g.Stride)
		case *SpecHash:
			fmt.Fprintf(&text, "hash: {min: '%s', max: '%s', step: %s}", g.Min, g.Max, g.Step)
		case *SpecSequence:
			fmt.Fprintf(&text, "sequence: {start: '%s', step: %s, every: %d", g.Start, g.Step, g.Every)
			if g.Format != "" {
				fmt.Fprintf(&text, ", format: '%s'", g.Format)
			}
			if g.Cycle > 0 {
				fmt.Fprintf(&text, ", cycle: %d", g.Cycle)
			}
			text.WriteString("}")
		case *SpecRange:
			fmt.Fprintf(&text, "uniform: {min: '%s', max: '%s', step: %s}", g.Min, g.Max, g.Step)
		case *SpecZipf:
			if g.Range == nil {
				fmt.Fprintf(&text, "zipf: {s: %s, values: ['00', 'ff']}", g.S)
				break
			}
			fmt.Fprintf(&text, "zipf: {s: %s, min: '%s', max: '%s', scatter: %v}", g.S, g.Range.Min, g.Range.Max, g.Scatter)
		case *SpecNormal:
			fmt.Fprintf(&text, "normal: {mean: '%s', stddev: %s, min: '%s'}", g.Mean, g.Stddev, g.Range.Min)
		case *SpecWords:
			fmt.Fprintf(&text, "words: {length: %d..%d}", g.Min, g.Max)
		default:
			text.WriteString("values: {'00': 50.5%, 'ff': 49.5%}")
		}
		text.WriteString("}\n")
	}
	return text.String()
}
