package postgres

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/loader"
)

func accessTo(t *testing.T, text string) access {
	t.Helper()
	to, err := loader.ParseTarget(text)
	require.NoError(t, err)
	return access{target: to, deps: loader.Deps{Dial: new(netio.Dialer).DialContext, TLS: netio.Trust{}.TLS}}
}

// noClientFiles hides the environment and the home of whoever runs the tests.
func noClientFiles(t *testing.T) {
	for _, line := range os.Environ() {
		if name, _, _ := strings.Cut(line, "="); strings.HasPrefix(name, "PG") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("HOME", t.TempDir())
}

func TestEndpoints(t *testing.T) {
	for text, want := range map[string][]string{
		"postgres://u@h/d":                            {"h:5432"},
		"postgres://u@h1:1,h2,[::1]:3/d":              {"h1:1", "h2:5432", "[::1]:3"},
		"yugabyte://u@h/d":                            {"h:5433"},
		"redshift://u@h/d":                            {"h:5439"},
		"redshift://u@/d?host=h":                      {"h:5439"},
		"yugabyte://u@/d?host=h":                      {"h:5433"},
		"postgres:///d?host=/tmp":                     {"/tmp/.s.PGSQL.5432"},
		"postgres:///d?host=/tmp&port=1":              {"/tmp/.s.PGSQL.1"},
		"postgres:///d?host=h1,h2&port=7":             {"h1:7", "h2:7"},
		"postgres://u@h/d?sslmode=disable&host=other": {"h:5432"},
		"postgres:///d":                               {"a:77", "b:77"}, // of libpq's environment
	} {
		t.Run(text, func(t *testing.T) {
			noClientFiles(t)
			if text == "postgres:///d" {
				t.Setenv("PGHOST", "a,b")
				t.Setenv("PGPORT", "77")
			}
			got, err := accessTo(t, text).endpoints()
			require.NoError(t, err)
			var shown []string
			for _, e := range got {
				shown = append(shown, e.String())
			}
			assert.Equal(t, want, shown)
		})
	}
}

func TestConfig(t *testing.T) {
	noClientFiles(t)
	t.Setenv("PGUSER", "env-user")
	t.Setenv("PGDATABASE", "env-database")
	c, err := accessTo(t, "postgres://h?search_path=a,b&connect_timeout=3").config(endpoint{"h", "5432"})
	require.NoError(t, err)
	assert.Equal(t, "env-user", c.User)
	assert.Equal(t, "env-database", c.Database)
	assert.Equal(t, "a,b", c.RuntimeParams["search_path"])
	assert.Equal(t, "UTF8", c.RuntimeParams["client_encoding"])
	assert.Equal(t, 3.0, c.ConnectTimeout.Seconds())

	c, err = accessTo(t, `postgres://o'b\rien@h/it's a db`).config(endpoint{"h", "5432"})
	require.NoError(t, err)
	assert.Equal(t, `o'b\rien`, c.User)
	assert.Equal(t, "it's a db", c.Database)
}

// nasty holds every printable character, and ends in what escapes the end of a quoted word.
func nasty() string {
	var b strings.Builder
	for c := byte(' '); c <= '~'; c++ {
		b.WriteByte(c)
	}
	return b.String() + `'\`
}

func TestPassword(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, a *access){
		"target":    func(_ *testing.T, a *access) { a.target.Password = loader.Secret(nasty()) },
		"parameter": func(_ *testing.T, a *access) { a.target.Params = url.Values{"password": {nasty()}} },
		"target before everything": func(t *testing.T, a *access) {
			t.Setenv("PGPASSWORD", "other")
			a.target.Params = url.Values{"password": {"another"}}
			a.target.Password = loader.Secret(nasty())
		},
		"PGPASSWORD": func(t *testing.T, _ *access) { t.Setenv("PGPASSWORD", nasty()) },
		".pgpass": func(t *testing.T, _ *access) {
			line := "h:5432:d:u:" + strings.NewReplacer(`\`, `\\`, `:`, `\:`).Replace(nasty()) + "\n"
			file := filepath.Join(t.TempDir(), "pgpass")
			require.NoError(t, os.WriteFile(file, []byte("other:5432:d:u:wrong\n"+line), 0o600))
			t.Setenv("PGPASSFILE", file)
		},
	} {
		t.Run(name, func(t *testing.T) {
			noClientFiles(t)
			a := accessTo(t, "postgres://u@h/d")
			prepare(t, &a)
			c, err := a.config(endpoint{"h", "5432"})
			require.NoError(t, err)
			assert.Equal(t, nasty(), c.Password)
		})
	}
}

// Whatever goes wrong before and while connecting, neither the password is in any error nor a parameter, which may be
// secret as well.
func TestErrorsKeepSecrets(t *testing.T) {
	noClientFiles(t)
	const secret = `hush'\ hush`
	for _, text := range []string{
		"postgres://u@127.0.0.1:1/d",
		"postgres://u@127.0.0.1:1/d?connect_timeout=soon",
		"postgres://u@127.0.0.1:1/d?target_session_attrs=fast",
		"postgres://u@127.0.0.1:1/d?sslmode=maybe",
		"postgres://u@127.0.0.1:1/d?service=none",
		"postgres://u@h:port/d",
		"postgres://u@no.such.host.invalid/d",
		"postgres://u@h:99999/db?options=-c%20app.key%3Dhush",
	} {
		for _, where := range []string{"target", "parameter", "environment"} {
			a := accessTo(t, text)
			switch where {
			case "target":
				a.target.Password = secret
			case "parameter":
				a.target.Params.Set("password", secret)
			default:
				t.Setenv("PGPASSWORD", secret)
			}
			_, err := Driver{}.Open(t.Context(), a.target, a.deps)
			require.Error(t, err, text)
			assert.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), "hush", text)
		}
	}
}

func TestSecure(t *testing.T) {
	noClientFiles(t)
	a := accessTo(t, "postgres://u@h/d")
	c, err := a.config(endpoint{"h", "5432"})
	require.NoError(t, err)
	assert.False(t, c.TLSConfig.InsecureSkipVerify, "another machine is verified")
	assert.Empty(t, c.Fallbacks)

	c, err = a.config(endpoint{"127.0.0.1", "5432"})
	require.NoError(t, err)
	assert.True(t, c.TLSConfig.InsecureSkipVerify)
	require.Len(t, c.Fallbacks, 1, "on loopback TLS is preferred, not needed")
	assert.Nil(t, c.Fallbacks[0].TLSConfig)

	c, err = a.config(endpoint{"/tmp", "5432"})
	require.NoError(t, err)
	assert.Nil(t, c.TLSConfig, "a Unix socket has none")
}

func TestOptions(t *testing.T) {
	for text, problem := range map[string]string{
		"postgres://h/d?sslrootcert=x":                    "",
		"yugabyte://h:5433/d?load_balance=true":           "",
		"postgres://h/d?application_name=x&search_path=a": "",
	} {
		to, err := loader.ParseTarget(text)
		require.NoError(t, err)
		_, _, err = planOf(to)
		if problem == "" {
			assert.NoError(t, err, text)
		} else {
			assert.ErrorContains(t, err, problem, text)
		}
	}
	_, _, err := planOf(loader.Target{
		Method: methodS3Copy, Table: "d.s.t", Options: map[string]string{"iam-role": "x", "s3-keys": "true"},
	})
	assert.ErrorContains(t, err, `table "d.s.t": write it as table or schema.table`)
	assert.ErrorContains(t, err, "options iam-role and s3-keys exclude each other")
	_, _, err = planOf(loader.Target{Method: "copy", Options: map[string]string{"iam-role": "x", "unlogged": "perhaps"}})
	assert.ErrorContains(t, err, "--iam-role is not an option of method copy")
	assert.ErrorContains(t, err, `--unlogged: "perhaps" is not a valid bool`)
	_, _, err = planOf(loader.Target{Method: "copy", Settings: []loader.Setting{{Name: "client_encoding", Value: "latin1"}}})
	assert.ErrorContains(t, err, "--set client_encoding is refused")
	_, _, err = planOf(loader.Target{Method: "load-data"})
	assert.ErrorContains(t, err, "does not exist")
}

// What scheme, method and options assert of the product.
func TestCheckFlavour(t *testing.T) {
	unlogged := options{tableOptions: tableOptions{Unlogged: true}}
	pieces := options{copyOptions: copyOptions{RowsPerTransaction: 5}}
	direct := options{copyOptions: copyOptions{NonTransactional: true}}
	for _, c := range []struct {
		scheme, method string
		options        options
		is             flavour
		says           string
	}{
		{"postgres", methodCopy, unlogged, postgreSQL, ""},
		{"postgres", methodCopy, pieces, yugabyteDB, ""},
		{"postgres", methodS3Copy, options{}, redshift, ""},
		{"yugabyte", methodCopy, options{}, postgreSQL, "not YugabyteDB (write the target as postgres://…)"},
		{"redshift", methodS3Copy, options{}, postgreSQL, "not Redshift (write the target as postgres://…)"},
		{"postgres", methodCopy, options{}, redshift, "takes bulk rows through S3 only: it has no COPY … FROM STDIN (add --method s3-copy"},
		{"postgres", methodS3Copy, options{}, postgreSQL, "method s3-copy is for Redshift"},
		{"postgres", methodCopy, pieces, postgreSQL, "rows-per-transaction is for YugabyteDB"},
		{"postgres", methodCopy, direct, postgreSQL, "disable-transactional-writes is for YugabyteDB"},
		{"postgres", methodCopy, unlogged, yugabyteDB, "unlogged is for PostgreSQL"},
	} {
		err := checkFlavour(loader.Target{Scheme: c.scheme}, c.method, c.options, c.is, loader.Server{})
		if c.says == "" {
			assert.NoError(t, err, "%+v", c)
		} else {
			assert.Contains(t, loader.Explain(err), c.says)
		}
	}
}

func TestNoHostAnswers(t *testing.T) {
	noClientFiles(t)
	a := accessTo(t, "postgres://u@127.0.0.1:1,127.0.0.1:2/d")
	_, err := Driver{}.Open(context.Background(), a.target, a.deps)
	assert.Equal(t, `connect to 127.0.0.1:1 as user "u", database "d": dial tcp 127.0.0.1:1: connect: connection refused (is the server up, and is this its port?)
connect to 127.0.0.1:2 as user "u", database "d": dial tcp 127.0.0.1:2: connect: connection refused (is the server up, and is this its port?)`,
		loader.Explain(err))
}

// PostgreSQL lists a session for a while after its client closed the connection.
func TestClosedConnectionsAreGone(t *testing.T) {
	a := accessTo(t, backendtest.Server(t, "TERAPUSH_TEST_POSTGRES"))
	hosts, err := a.endpoints()
	require.NoError(t, err)
	watcher, err := a.connect(t.Context(), hosts[0], nil)
	require.NoError(t, err)
	defer func() { _ = closeConn(watcher) }()
	for range 50 {
		c, err := a.connect(t.Context(), hosts[0], nil)
		require.NoError(t, err)
		require.NoError(t, closeConn(c))
		rows, err := rowsOf(t.Context(), watcher, fmt.Sprintf("SELECT FROM pg_stat_activity WHERE pid = %d", c.PID()))
		require.NoError(t, err)
		require.Empty(t, rows)
	}
}
