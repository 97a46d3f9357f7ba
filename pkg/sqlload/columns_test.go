package sqlload

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/pkg/loader"
)

// As servers write what they say of a column besides its type and default.
func TestReadColumn(t *testing.T) {
	null := "\x00"
	for name, c := range map[string]struct {
		row  []string
		want loader.Column
		fits bool // a load may leave it out
	}{
		"nothing more":         {[]string{"a", "bigint", "NO", null, ""}, loader.Column{}, false},
		"a short row":          {[]string{"a", "bigint", "t"}, loader.Column{Nullable: true}, true},
		"an empty default":     {[]string{"a", "bigint", "NO", "", ""}, loader.Column{Default: "''"}, true},
		"a default":            {[]string{"a", "bigint", "f", "7", ""}, loader.Column{Default: "7"}, true},
		"MySQL's expression":   {[]string{"a", "bigint", "NO", "uuid()", "DEFAULT_GENERATED"}, loader.Column{Default: "uuid()"}, true},
		"counted":              {[]string{"a", "bigint", "NO", null, "auto_increment"}, loader.Column{Numbered: loader.AutoIncrement}, true},
		"identity":             {[]string{"a", "bigint", "f", null, "identity always"}, loader.Column{Numbered: loader.IdentityAlways}, true},
		"generated":            {[]string{"a", "bigint", "NO", null, "VIRTUAL GENERATED", "`x` + 1"}, loader.Column{Generated: "`x` + 1"}, true},
		"SingleStore's":        {[]string{"a", "bigint", "NO", null, "computed"}, loader.Column{Generated: "computed"}, true},
		"invisible":            {[]string{"a", "bigint", "NO", null, "INVISIBLE"}, loader.Column{Invisible: true}, false},
		"updated":              {[]string{"a", "bigint", "NO", null, "on update CURRENT_TIMESTAMP(6)"}, loader.Column{OnUpdate: "current_timestamp(6)"}, false},
		"a comment":            {[]string{"a", "bigint", "NO", null, "", null, "why"}, loader.Column{Comment: "why"}, false},
		"a word in the middle": {[]string{"a", "bigint", "NO", null, "upstored"}, loader.Column{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			row := make([][]byte, len(c.row))
			for i, text := range c.row {
				if text != null {
					row[i] = []byte(text)
				}
			}
			c.want.Name, c.want.Type = "a", "bigint"
			got := readColumn(row, nil)
			assert.Equal(t, Column{c.want, ServerType{Name: "bigint"}}, got)
			assert.Equal(t, c.fits, got.Optional())
		})
	}
}
