package sqlload_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/pkg/sqlload"
)

func TestCheckTable(t *testing.T) {
	const claims = "it is where terapush keeps what all runs have loaded"
	for name, says := range map[string]string{
		"documents":                      "",
		"public.my table":                "",
		"größe":                          "",
		strings.Repeat("a", 63):          "",
		strings.Repeat("a", 64):          "has 64 bytes, and the server takes 63",
		strings.Repeat("a", 64) + ".t":   "has 64 bytes, and the server takes 63",
		" t":                             "cannot begin or end with a blank",
		"s. t":                           "cannot begin or end with a blank",
		"t\u00a0":                        "cannot begin or end with a blank",
		"a\nb":                           "cannot have line ends",
		"a\x00b":                         "cannot have line ends",
		"terapush_claims":                claims,
		"Terapush_Claims":                claims,
		"s.TERAPUSH_CLAIMS_UNLOGGED":     claims,
		`"terapush_claims"`:              "leave the quotation marks out",
		`"My Schema".documents`:          "leave the quotation marks out",
		"`s`.`terapush_claims_unlogged`": "leave the quotation marks out",
		"[t]":                            "leave the quotation marks out",
		`"`:                              "",
		`5" disks`:                       "",
		"terapush_claims.documents":      "",
		"terapush_claims_2":              "",
	} {
		err := sqlload.CheckTable(sqlload.Bytes(63), strings.Split(name, ".")...)
		if says == "" {
			assert.NoError(t, err, name)
		} else {
			assert.ErrorContains(t, err, says, name)
		}
	}
	assert.NoError(t, sqlload.CheckTable(sqlload.Length{}, strings.Repeat("a", 300)))
}

func TestEscapedLiteralAndBacktick(t *testing.T) {
	assert.Equal(t, `'it\'s \\ and \0'`, sqlload.EscapedLiteral("it's \\ and \x00"))
	assert.Equal(t, "`a.b``c`", sqlload.Backtick("a.b`c"))
}

func TestQualified(t *testing.T) {
	for want, names := range map[string][2]string{
		`"t"`: {"", "t"}, `"s"."t"`: {"s", "t"}, `"a.b"."c.d"`: {"a.b", "c.d"},
		`"a""b"."c"""`: {`a"b`, `c"`}, `"c.""d"`: {"", `c."d`},
	} {
		assert.Equal(t, want, sqlload.Qualified(names[0], names[1]))
		schema, name := sqlload.Unquoted(want)
		assert.Equal(t, names, [2]string{schema, name}, want)
	}
}
