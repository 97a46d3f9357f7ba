package inspect

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// As servers show the conditions that users write.
func TestUnderstand(t *testing.T) {
	in := func(all ...string) limits { return limits{in: all} }
	at, beyond := func(v string) *bound { return &bound{v, false} }, func(v string) *bound { return &bound{v, true} }
	for condition, want := range map[string]map[string]limits{
		// PostgreSQL
		`CHECK ((status = ANY (ARRAY['paid'::text, 'it''s'::text])))`:                                      {"status": in("paid", "it's")},
		`CHECK (((status)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[])))`: {"status": in("a", "b")},
		`CHECK ((code = ANY (ARRAY['a'::character(3), 'b'::character(3)])))`:                               {"code": in("a", "b")},
		`CHECK (((amount >= (0)::numeric) AND (amount <= 99.5)))`:                                          {"amount": {least: at("0"), most: at("99.5")}},
		`CHECK ((amount > '-5'::integer))`:                                                                 {"amount": {least: beyond("-5")}},
		`CHECK ((0 < qty))`:                                                                                {"qty": {least: beyond("0")}},
		`CHECK ((char_length((code)::text) <= 3))`:                                                         {"code": {maxLen: 3}},
		`CHECK (((length(code) > 1) AND (length(code) < 9)))`:                                              {"code": {minLen: 2, maxLen: 8}},
		`CHECK ((("Odd "" name")::text <> ''::text))`:                                                      {`Odd " name`: {minLen: 1}},
		`CHECK (((a = 'x'::mood) OR (a = 'y'::public.mood)))`:                                              {"a": in("x", "y")},
		`CHECK ((at >= '2020-01-01 00:00:00'::timestamp without time zone))`:                               {"at": {least: at("2020-01-01 00:00:00")}},
		`CHECK ((note = E'a\\b'::text))`:                                                                   {"note": in(`a\b`)},
		`CHECK ((note = 'a\b'::text))`:                                                                     {"note": in(`a\b`)},
		`CHECK (flag)`:                                                                                     {"flag": in("true")},
		`CHECK (((n > 1) AND (NOT flag)))`:                                                                 {"n": {least: beyond("1")}, "flag": {out: []string{"true"}}},
		`CHECK ((flag IS TRUE))`:                                                                           {"flag": in("true")},
		`CHECK ((NOT (n < 10)))`:                                                                           {"n": {least: at("10")}},
		`CHECK (NOT n >= 10)`:                                                                              {"n": {most: beyond("10")}},
		`CHECK (((n <> 5) AND (n <> 7)))`:                                                                  {"n": {out: []string{"5", "7"}}},
		`CHECK ((NOT (a = 1)))`:                                                                            {"a": {out: []string{"1"}}},
		`CHECK ((mood <> 'it''s'::mood))`:                                                                  {"mood": {out: []string{"it's"}}},
		`CHECK ((tags <> '{}'::character varying(3)[]))`:                                                   {"tags": {out: []string{"{}"}}},
		`CHECK (((code ~~ 'A.%'::text) AND (w ~ '^[A-Z]+-[^@]*$'::text)))`: {
			"code": {pattern: `A\.[0-9a-z]{0,8}`}, "w": {pattern: `[A-Z]{1,8}-[0-9A-Za-z]{0,8}`},
		},
		`CHECK (((z = ANY (ARRAY[1, 2])) OR (z IS NULL)))`: {"z": in("1", "2")},
		`CHECK (((z IS NULL) OR (z > 2)))`:                 {"z": {least: beyond("2")}},
		`CHECK (((b > a) AND (b <= c)))`:                   {"b": {after: "a"}, "c": {after: "b"}},
		`CHECK ((id IS NOT NULL))`:                         {},
		// MySQL, MariaDB, TiDB, OceanBase
		`(` + "`w`" + ` in (_utf8mb4\'a\',_utf8mb4\'it\\\'s\'))`: {"w": in("a", "it's")},
		"`w` in ('a','b')":                          {"w": in("a", "b")},
		"(`n` between 1 and -5)":                    {"n": {least: at("1"), most: at("-5")}},
		"((`n` >= 1) and (`n` < 10))":               {"n": {least: at("1"), most: beyond("10")}},
		"(char_length(`w`) between 3 and 10)":       {"w": {minLen: 3, maxLen: 10}},
		"(`b` = 1) or (`b` = true)":                 {"b": in("1", "true")},
		"(char_length(`w`) = 4)":                    {"w": {minLen: 4, maxLen: 4}},
		"(`w` like _utf8mb4\\'x_\\')":               {"w": {pattern: "x[0-9a-z]"}},
		"regexp_like(`w`,_utf8mb4\\'^[0-9]{3}$\\')": {"w": {pattern: `[0-9]{3}`}},
		"`id` < MAXVALUE":                           {},
		`"j" IS JSON`:                               {"j": {json: true}},
		"json_valid(`j`)":                           {"j": {json: true}},
		"(`w` = _utf8mb4'a') or (`w` in ('b','c'))": {"w": in("a", "b", "c")},
	} {
		got, all := understand(condition, false)
		assert.True(t, all, condition)
		assert.Equal(t, want, got, condition)
	}
	escaped, all := understand(`s = 'it\'s a\\b'`, true)
	assert.True(t, all)
	assert.Equal(t, in(`it's a\b`), escaped["s"])

	for _, condition := range []string{
		`CHECK ((a + 1) > 2)`, `CHECK ((f(a) > 2))`, `CHECK (NOT (a > 1 AND b > 1))`, `CHECK (NOT a ~ 'x')`, `CHECK (NOT (a > 1 AND a < 9))`, `CHECK ((a ~ '(?<x'::text))`,
		`CHECK ((a !~~ 'x'::text))`, `CHECK (((a IS NULL) <> (b IS NULL)))`, `CHECK ((a IS NULL))`, `CHECK (((a = 1) OR (b = 2)))`, `CHECK (((a = 1) OR (a > 5)))`, `CHECK (a = '`, `(`,
		`CHECK ((a > 1)) x`, `a in ()`, `a in (b)`, `CHECK ((lower(a) = a))`, `a between 1 or 2`, "",
	} {
		_, all := understand(condition, false)
		assert.False(t, all, condition)
	}
}

// What holds is what all of several CHECKs say.
func TestMerge(t *testing.T) {
	got, all := understand("a in (1, 2, 3) and a in (2, 3, 4) and length(b) <= 9 and length(b) <= 5 and length(b) > 1", false)
	assert.True(t, all)
	assert.Equal(t, map[string]limits{"a": {in: []string{"2", "3"}}, "b": {minLen: 2, maxLen: 5}}, got)

	for condition, want := range map[string]limits{
		"a >= 1 and a >= 0 and a < 100 and a < 900":        {least: &bound{"1", false}, most: &bound{"100", true}},
		"a >= 0 and a >= 1 and a < 900 and a < 100":        {least: &bound{"1", false}, most: &bound{"100", true}},
		"a > 9 and a >= 9 and a <= 10 and a < 10":          {least: &bound{"9", true}, most: &bound{"10", true}},
		"a >= '2020-01-01' and a >= '2019-12-31 00:00:00'": {least: &bound{"2020-01-01", false}},
	} {
		got, all := understand(condition, false)
		assert.True(t, all)
		assert.Equal(t, map[string]limits{"a": want}, got, condition)
	}
}
