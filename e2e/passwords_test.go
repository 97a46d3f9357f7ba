package e2e_test

import (
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A password of any printable characters works wherever it comes from, and is seen nowhere.
func TestPasswords(t *testing.T) {
	password := os.Getenv("TERAPUSH_TEST_PASSWORD")
	if password == "" {
		missing(t, `TERAPUSH_TEST_PASSWORD is not set: eval "$(scripts/servers env)"`)
	}
	eachServer(t, func(t *testing.T, d *database) {
		d.handOver(t)
		tera := as("tera", "")
		for name, i := range map[string]invocation{
			"url":         d.pushTo(d.target(as("tera", password))),
			"environment": d.pushTo(d.target(tera)),
			"file":        d.pushTo(d.target(tera), "--password-file", writeFile(t, password+"\n")),
		} {
			if name == "environment" {
				i.env = []string{"TERAPUSH_PASSWORD=" + password}
			}
			l := small(2000)
			l.table = "from_" + name
			address := "127.0.0.1:" + freePort(t)
			i.args = append(i.args, l.flags("--metrics-addr", address, "--metrics-linger", "1m", "--verify", "full")...)
			p := i.start(t)
			metrics := lastScrape(t, p, address)
			_ = p.Process.Signal(os.Interrupt) // ends the lingering
			r := p.wait(t).ends(t, 0)
			d.isExact(t, l)
			hides(t, password, r.all(), metrics, everythingIn(t, d.state))
		}
		wrong := d.pushTo(d.target(as("tera", password+"!"))).fails(t, "tera", "check user")
		hides(t, password, wrong.all())
	})
}

// handOver gives the database to user tera, who has the difficult password.
func (d *database) handOver(t *testing.T) {
	t.Helper()
	if d.kind == postgres {
		d.must(t, "ALTER DATABASE "+d.name()+" OWNER TO tera", "GRANT ALL ON SCHEMA public TO tera")
	} else {
		d.must(t, "GRANT ALL ON "+d.name()+".* TO tera@'%'")
		t.Cleanup(func() { _ = d.exec("REVOKE ALL ON " + d.name() + ".* FROM tera@'%'") })
	}
}

// hides looks for the password in every form that a URL, a shell or a program might give it.
func hides(t *testing.T, password string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		for _, form := range []string{
			password, url.QueryEscape(password), url.PathEscape(password), strings.TrimPrefix(url.UserPassword("", password).String(), ":"),
			strings.Trim(strings.ReplaceAll(password, `"`, `\"`), " "), "p@ss/w", "p%40ss",
		} {
			require.NotContains(t, text, form)
		}
	}
}
