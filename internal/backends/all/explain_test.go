package all_test

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/all"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// A dry run runs what logs in and what signs, and shows neither password nor key, in whatever form one travels.
func TestExplainHidesSecrets(t *testing.T) {
	const user, secret = "u", `s3+cr/t'q"z\&`
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"} {
		t.Setenv(name, secret)
	}
	forms := []string{
		url.QueryEscape(secret), url.PathEscape(secret), strings.ReplaceAll(secret, "'", "''"), strconv.Quote(secret),
		hex.EncodeToString([]byte(secret)), secret, "X-Amz-", "Authorization",
	}
	for _, plain := range []string{secret, user + ":" + secret} {
		forms = append(forms, base64.StdEncoding.EncodeToString([]byte(plain)), base64.URLEncoding.EncodeToString([]byte(plain)))
	}

	registry, err := all.Drivers()
	require.NoError(t, err)
	for _, driver := range registry.Drivers() {
		for _, m := range driver.Methods() {
			target := loader.Target{
				Scheme: driver.Schemes()[0], Hosts: []string{"host"}, User: user, Password: secret, Database: "d", Table: "t", Method: m.Name,
			}
			contract := loader.Contract{Method: m.Name, Format: m.Caps.Formats[0], Dedup: m.Caps.Dedup, BatchRows: 10}
			if m.Caps.Staged {
				target.Via = &loader.Target{Scheme: "s3", Hosts: []string{"bucket"}}
				contract.GroupBatches = 3
			}
			schema := rows.Schema{
				Dataset: "t", Number: []rows.Term{{Times: 1}}, Columns: []rows.Column{{Name: "id", Type: rows.Int64, Derived: true}},
			}
			shown := driver.Explain(target, loader.Preparation{Schema: schema, Contract: contract, Create: loader.CreateIfMissing})

			var text strings.Builder
			for _, s := range shown {
				text.WriteString(s.When + ": " + s.Text + "\n")
			}
			if driver.Name() != "discard" { // which sends nothing
				assert.Regexp(t, `\nper (batch|row|group): `, text.String(), m.Name)
			}
			for _, form := range forms {
				assert.NotContains(t, text.String(), form, m.Name)
			}
		}
	}
}
