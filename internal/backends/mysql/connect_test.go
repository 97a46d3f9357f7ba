package mysql

import (
	"context"
	"errors"
	"net"
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

func TestEndpoints(t *testing.T) {
	target, err := loader.ParseTarget("mysql://u:p@db1,db2:3307,[::1]/shop")
	require.NoError(t, err)
	all, err := endpoints(target, backendtest.Deps())
	require.NoError(t, err)
	require.Len(t, all, 3)
	for i, address := range []string{"db1:3306", "db2:3307", "[::1]:3306"} {
		assert.Equal(t, address, all[i].config.Addr)
		assert.Equal(t, "tcp", all[i].config.Net)
		assert.Equal(t, "shop", all[i].config.DBName)
	}
	assert.False(t, all[0].config.TLS.InsecureSkipVerify, "another machine is verified")
	assert.False(t, all[0].config.AllowFallbackToPlaintext)
	assert.True(t, all[2].config.AllowFallbackToPlaintext, "loopback prefers TLS")

	target.Params = url.Values{"socket": {"/run/mysqld.sock"}}
	all, err = endpoints(target, backendtest.Deps())
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, "unix", all[0].config.Net)
	assert.Equal(t, "/run/mysqld.sock", all[0].config.Addr)

	assert.NoError(t, checkParams(target))
	target.Params = url.Values{"sql_mode": {"ANSI"}}
	assert.ErrorContains(t, checkParams(target), `parameter "sql_mode" of the target is not known; there are: socket, tls`)
}

func TestTargetTable(t *testing.T) {
	for _, c := range []struct{ database, table, want, wrong string }{
		{"shop", "documents", "`shop`.`documents`", ""},
		{"shop", "other.documents", "`other`.`documents`", ""},
		{"", "other.documents", "`other`.`documents`", ""},
		{"sh`op", "docu`ments", "`sh``op`.`docu``ments`", ""},
		{"", "documents", "", "the target names no database: write it into the URL, as in mysql://user@host/database"},
		{"shop", "a,b", "", `table "a,b": one run fills one table; push into several with a run each`},
		{"shop", "a.b.c", "", `table "a.b.c": write it as table or as database.table`},
		{"shop", "a.", "", `table "a.": write it as table or as database.table`},
	} {
		name, err := targetTable(loader.Target{Scheme: "mysql", Database: c.database, Table: c.table})
		if c.wrong != "" {
			assert.EqualError(t, err, c.wrong)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, c.want, name.quoted())
	}
}

func TestSettings(t *testing.T) {
	for value, want := range map[string]string{
		"0": "0", "-1": "-1", "0.5": "0.5", "DEFAULT": "DEFAULT", "ON": "'ON'", "READ-COMMITTED": "'READ-COMMITTED'",
		"": "''", "1; DROP TABLE t": "'1; DROP TABLE t'", `it's \ `: `'it\'s \\ '`,
	} {
		assert.Equal(t, []string{"SET SESSION x = " + want}, sessionSettings([]loader.Setting{{Name: "x", Value: value}}))
	}
	for name, wrong := range map[string]string{
		"unique_checks":         "",
		"a b":                   "--set a b: not the name of a session variable",
		"Character_Set_Results": "--set Character_Set_Results is refused: all that is sent and read is UTF-8",
		"Autocommit":            "--set autocommit is refused: where a transaction ends follows from --delivery",
	} {
		err := checkSettings([]loader.Setting{{Name: name, Value: "1"}})
		if wrong == "" {
			assert.NoError(t, err)
		} else {
			assert.EqualError(t, err, wrong)
		}
	}
	assert.Error(t, checkSettings([]loader.Setting{{Name: "sql_mode", Value: "ANSI,no_backslash_escapes"}}))
}

func TestLocksEmptyTable(t *testing.T) {
	both := []loader.Setting{{Name: "unique_checks", Value: "0"}, {Name: "FOREIGN_KEY_CHECKS", Value: "off"}}
	assert.True(t, mariaDB.locksEmptyTable(both))
	assert.False(t, mySQL.locksEmptyTable(both))
	assert.False(t, mariaDB.locksEmptyTable(both[:1]))
}

func TestClientFile(t *testing.T) {
	settings := parseClientFile(`
[mysqld]
user = mysql
; a comment
[client]
# another
user=alice   # her
password = "p#a'ss\\w\sd"
host=db.example.org
port = 3310
quick
ssl_ca=/x
[mysqldump]
user=bob
`)
	assert.Equal(t, map[string]string{
		"user": "alice", "password": `p#a'ss\w d`, "host": "db.example.org", "port": "3310", "quick": "", "ssl-ca": "/x",
	}, settings)
}

func TestComplete(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("MYSQL_PWD", "")
	file := func(text string) {
		require.NoError(t, os.WriteFile(filepath.Join(home, ".my.cnf"), []byte(text), 0o600))
	}
	try := func(url string) loader.Target {
		target, err := loader.ParseTarget(url)
		require.NoError(t, err)
		target, err = complete(target)
		require.NoError(t, err)
		return target
	}
	assert.NotEmpty(t, try("mysql://h/d").User, "the login name")

	file("[client]\nuser=alice\npassword=hers\nhost=db1\nport=3310\n")
	got := try("mysql:///d")
	assert.Equal(t, []any{"alice", "hers", []string{"db1:3310"}}, []any{got.User, got.Password.Reveal(), got.Hosts})
	got = try("mysql://h/d")
	assert.Equal(t, []string{"h"}, got.Hosts)
	assert.Empty(t, try("mysql://bob@h/d").Password, "alice's password is not bob's")
	assert.Equal(t, "his", try("mysql://bob:his@h/d").Password.Reveal())

	t.Setenv("MYSQL_PWD", "env")
	assert.Equal(t, "env", try("mysql://bob@h/d").Password.Reveal())
	assert.Equal(t, "env", try("mysql://h/d").Password.Reveal(), "the environment comes before the file")
	assert.Equal(t, "his", try("mysql://bob:his@h/d").Password.Reveal())

	file("[client]\nsocket=/run/x.sock\n")
	got = try("mysql:///d?tls=false")
	assert.Equal(t, url.Values{"socket": {"/run/x.sock"}, "tls": {"false"}}, got.Params)

	// TLS as mysql and mariadb read it there.
	for text, want := range map[string]string{
		"ssl-mode=VERIFY_IDENTITY\nssl=1\nssl_ca=/x": "ssl-ca=/x&ssl-mode=VERIFY_IDENTITY",
		"ssl":                     "ssl-mode=REQUIRED",
		"ssl=0":                   "ssl-mode=DISABLED",
		"skip-ssl":                "ssl-mode=DISABLED",
		"ssl-verify-server-cert":  "ssl-mode=VERIFY_IDENTITY",
		"ssl-cert=/c\nssl-key=/k": "ssl-cert=/c&ssl-key=/k",
		"ssl-cipher=x":            "",
		"ssl-crl=/x":              "ssl-crl=%2Fx",
	} {
		file("[client]\n" + text + "\n")
		assert.Equal(t, strings.ReplaceAll(want, "/", "%2F"), try("mysql://h/d").Params.Encode(), text)
	}
	file("[client]\nssl-mode=DISABLED\n")
	assert.Equal(t, "useSSL=true", try("mysql://h/d?useSSL=true").Params.Encode(), "the URL comes first")
}

// Only where a session can be found and ended from any server may it be on any.
func TestWhichSessionsTakeAnyServerOfAName(t *testing.T) {
	target, err := loader.ParseTarget("mysql://u:p@db/shop")
	require.NoError(t, err)
	deps := backendtest.Deps()
	deps.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("the one") }
	deps.Spread = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("any") }
	all, err := endpoints(target, deps)
	require.NoError(t, err)
	for f, want := range map[flavour]string{tiDB: "any", mySQL: "the one", mariaDB: "the one", singleStore: "the one"} {
		_, err := all[0].loadingConfig(f).DialFunc(t.Context(), "tcp", "db:3306")
		assert.EqualError(t, err, want, f)
	}
	_, err = all[0].config.DialFunc(t.Context(), "tcp", "db:3306")
	assert.EqualError(t, err, "the one", "what asks more than once")

	deps.Spread = nil
	all, err = endpoints(target, deps)
	require.NoError(t, err)
	_, err = all[0].loadingConfig(tiDB).DialFunc(t.Context(), "tcp", "db:3306")
	assert.EqualError(t, err, "the one", "where nobody spreads")
}

// MySQL makes an authority and a certificate by itself, with a common name only; MariaDB 10.11 has no TLS until it is
// set up.
func TestTLSOnServers(t *testing.T) {
	foreign := backendtest.NewAuthority(t).File
	eachServer(t, func(t *testing.T, s *testServer) {
		open := func(query string, mode loader.TLSMode, flag string) error {
			target := s.table("t")
			target.TLS = mode
			var err error
			target.Params, err = url.ParseQuery(query)
			require.NoError(t, err)
			deps := s.deps
			deps.TLS = netio.Trust{CAFile: flag}.TLS
			l, err := New().Open(t.Context(), target, deps)
			if err == nil {
				err = l.Close()
			}
			return err
		}
		require.NoError(t, open("ssl-mode=PREFERRED&serverTimezone=UTC", "", ""))
		var folder, file string
		require.NoError(t, s.db.QueryRowContext(t.Context(), "SELECT @@datadir, COALESCE(@@ssl_ca, '')").Scan(&folder, &file))
		if file == "" {
			const want = "the server offers no TLS; --tls off connects without"
			require.Contains(t, loader.Explain(open("ssl-mode=REQUIRED", "", "")), want)
			require.Contains(t, loader.Explain(open("", "", foreign)), want)
			return
		}
		authority := filepath.Join(folder, file)
		for _, c := range []struct {
			query string
			mode  loader.TLSMode
			flag  string
			want  string // "" if it connects
		}{
			{"useSSL=true", "", "", ""},
			{"ssl-mode=VERIFY_CA&ssl-ca=" + authority, "", "", ""},
			{"ssl-mode=VERIFY_IDENTITY&ssl-ca=" + authority, "", "", "subject alternative name (SAN)"},
			{"ssl-mode=REQUIRED&ssl-ca=" + foreign, "", "", "tls: failed to verify certificate"},
			{"", loader.TLSVerifyCA, authority, ""},
			{"", loader.TLSVerifyCA, foreign, "tls: failed to verify certificate"},
			{"", loader.TLSRequire, foreign, "tls: failed to verify certificate"},
			{"", loader.TLSAuto, foreign, "tls: failed to verify certificate"},
			{"", loader.TLSPrefer, foreign, "tls: failed to verify certificate"},
		} {
			if err := open(c.query, c.mode, c.flag); c.want == "" {
				assert.NoError(t, err, "%+v", c)
			} else {
				assert.Contains(t, loader.Explain(err), c.want, "%+v", c)
			}
		}
	})
}
