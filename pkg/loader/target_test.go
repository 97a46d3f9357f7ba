package loader_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

func parse(t *testing.T, text string) loader.Target {
	t.Helper()
	target, err := loader.ParseTarget(text)
	require.NoError(t, err, text)
	return target
}

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]struct {
		target    loader.Target
		addresses []string // of hosts 0, 1 … with 5432 where none is given
		shown     string   // "": as it was written
	}{
		"postgres://u@h/db": {
			target: loader.Target{Scheme: "postgres", Hosts: []string{"h"}, User: "u", Database: "db"}, addresses: []string{"h:5432", "h:5432"},
		},
		"postgres://u:50%2541%25zz:/?#@@h/db": { // as the README says: of a password % alone is escaped
			target: loader.Target{Scheme: "postgres", Hosts: []string{"h"}, User: "u", Password: "50%41%zz:/?#@", Database: "db"}, addresses: []string{"h:5432"},
			shown: "postgres://u@h/db",
		},
		"POSTGRES://h:1": {
			target: loader.Target{Scheme: "postgres", Hosts: []string{"h:1"}}, addresses: []string{"h:1"}, shown: "postgres://h:1/",
		},
		"mysql://u:pw@h1:3306,h2,h3:1/db": {
			target:    loader.Target{Scheme: "mysql", Hosts: []string{"h1:3306", "h2", "h3:1"}, User: "u", Password: "pw", Database: "db"},
			addresses: []string{"h1:3306", "h2:5432", "h3:1", "h1:3306"}, shown: "mysql://u@h1:3306,h2,h3:1/db",
		},
		"postgres://[::1]:99,[fe80::1%25eth0]/db": {
			target:    loader.Target{Scheme: "postgres", Hosts: []string{"[::1]:99", "[fe80::1%eth0]"}, Database: "db"},
			addresses: []string{"[::1]:99", "[fe80::1%eth0]:5432"},
		},
		"postgres:///db?host=/tmp&password=hunter2&sslmode=disable": {
			target:    loader.Target{Scheme: "postgres", Database: "db", Params: url.Values{"host": {"/tmp"}, "password": {"hunter2"}, "sslmode": {"disable"}}},
			addresses: []string{"127.0.0.1:5432"}, shown: "postgres:///db?host=%2Ftmp&sslmode=disable",
		},
		"mysql://u@%2Frun%2Fmysqld.sock/a%2Fb": {
			shown:  "mysql://u@%2Frun%2Fmysqld.sock/a/b",
			target: loader.Target{Scheme: "mysql", Hosts: []string{"/run/mysqld.sock"}, User: "u", Database: "a/b"},
		},
		"discard://": {target: loader.Target{Scheme: "discard"}, addresses: []string{"127.0.0.1:5432"}, shown: "discard:///"},
		"postgres://user@tenant:p@ss:w/rd?#@h/db": {
			target:    loader.Target{Scheme: "postgres", Hosts: []string{"h"}, User: "user@tenant", Password: "p@ss:w/rd?#", Database: "db"},
			addresses: []string{"h:5432"}, shown: "postgres://user%40tenant@h/db",
		},
		// Without a password before the host, an '@' behind it ends none.
		"postgres://h/db?password=p@ss": {
			target:    loader.Target{Scheme: "postgres", Hosts: []string{"h"}, Database: "db", Params: url.Values{"password": {"p@ss"}}},
			addresses: []string{"h:5432"}, shown: "postgres://h/db",
		},
		"postgres:///db?host=/tmp&user=me@corp": {
			target:    loader.Target{Scheme: "postgres", Database: "db", Params: url.Values{"host": {"/tmp"}, "user": {"me@corp"}}},
			addresses: []string{"127.0.0.1:5432"}, shown: "postgres:///db?host=%2Ftmp&user=me%40corp",
		},
		"s3://bucket/a/b%3Fc?endpoint=http%3A%2F%2Fh%3A9000&path_style=true&secret=s3cr3t": {
			shown: "s3://bucket/a/b%3Fc?endpoint=http%3A%2F%2Fh%3A9000&path_style=true",
			target: loader.Target{Scheme: "s3", Hosts: []string{"bucket"}, Database: "a/b?c", Params: url.Values{
				"endpoint": {"http://h:9000"}, "path_style": {"true"}, "secret": {"s3cr3t"},
			}},
		},
		"postgres://u@t@h/a@b": {
			target:    loader.Target{Scheme: "postgres", Hosts: []string{"h"}, User: "u@t", Database: "a@b"},
			addresses: []string{"h:5432"}, shown: "postgres://u%40t@h/a%40b",
		},
		"postgres://h1:,[::1]:/db": {
			target:    loader.Target{Scheme: "postgres", Hosts: []string{"h1:", "[::1]:"}, Database: "db"},
			addresses: []string{"h1:5432", "[::1]:5432"},
		},
	} {
		if want.target.Params == nil {
			want.target.Params = url.Values{}
		}
		got := parse(t, text)
		require.Equal(t, want.target, got, text)
		for i, address := range want.addresses {
			require.Equal(t, address, got.Address(i, "5432"), "host %d of %s", i, text)
		}
		if want.shown == "" {
			want.shown = text
		}
		require.Equal(t, want.shown, got.String())
		// What is shown can be given again: it is what a stopped run prints.
		again := parse(t, got.String())
		got.Password, got.Params, again.Params = "", nil, nil
		require.Equal(t, got, again, text)
	}
}

func TestApplySettings(t *testing.T) {
	said := map[string]string{"sql_mode": "ANSI", "log_bin": "ON"}
	loader.ApplySettings(said, []loader.Setting{{Name: "SQL_MODE", Value: "''"}, {Name: "sql_mode", Value: "STRICT"}})
	require.Equal(t, map[string]string{"sql_mode": "STRICT", "log_bin": "ON"}, said)
}

func TestInvalidTargets(t *testing.T) {
	for _, text := range []string{
		"", "h/db", "u:hunter2@h/db", "://u:hunter2@h", "postgres:/u:hunter2@h", "u:hunter2@h/db?a=http://b", "u:hunt://hunter2@h",
		"postgres://u:hunter2@h/db?a=%zz", "postgres://u:hunter2@h/db?a;b",
	} {
		_, err := loader.ParseTarget(text)
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

// Every printable password comes back, escaped or not; unescaped ones must not look like an escape.
func TestPasswordsComeBack(t *testing.T) {
	check := func(password string) {
		t.Helper()
		texts := []string{
			"postgres://u:" + url.PathEscape(password) + "@h:1/db",
			"postgres://" + url.UserPassword("u", password).String() + "@h:1/db",
		}
		if unescaped, err := url.PathUnescape(password); err != nil || unescaped == password {
			texts = append(texts, "postgres://u:"+password+"@h:1/db")
		}
		for _, text := range texts {
			got := parse(t, text)
			require.Equal(t, []string{"u", password, "h:1", "db"}, []string{got.User, got.Password.Reveal(), got.Hosts[0], got.Database}, text)
		}
	}
	for c := byte(' '); c <= '~'; c++ {
		check("a" + string(c) + "b")
		check(string(c))
	}
	dice := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		password := make([]byte, 1+dice.IntN(20))
		for i := range password {
			password[i] = byte(' ' + dice.IntN('~'-' '+1))
		}
		check(string(password))
	}
}

// A stopped run prints its target to be given again, whatever the names in it are made of.
func TestShownTargetsComeBack(t *testing.T) {
	dice := rand.New(rand.NewPCG(3, 4))
	word := func() string {
		text := make([]byte, 1+dice.IntN(8))
		for i := range text {
			text[i] = byte('!' + dice.IntN('~'-'!'+1))
		}
		return string(text)
	}
	for range 500 {
		target := loader.Target{
			Scheme: "postgres", Hosts: []string{word(), "[::1]:1"}, User: word(), Password: "hunter2", Database: word(),
			Params: url.Values{"host": {word()}, "password": {"hunter2"}},
		}
		got := parse(t, target.String())
		target.Password = ""
		target.Params.Del("password")
		require.Equal(t, target, got, "shown as %s", target)
	}
}

func TestSecretsAreNeverShown(t *testing.T) {
	const secret = "hunter2"
	target := parse(t, "postgres://u:"+secret+"@h/db?password="+secret+"&sslpassword="+secret)
	for _, value := range []any{
		target, &target, target.Password, []any{target, target.Password}, map[string]any{"t": target}, struct{ S loader.Secret }{target.Password},
	} {
		asJSON, err := json.Marshal(value)
		require.NoError(t, err)
		var logged bytes.Buffer
		slog.New(slog.NewTextHandler(&logged, nil)).Info("m", "value", value)
		slog.New(slog.NewJSONHandler(&logged, nil)).Info("m", "value", value)
		shown := fmt.Sprintf("%v %+v %#v %s %q", value, value, value, value, value) + string(asJSON) + logged.String()
		require.NotContains(t, shown, secret, "%T", value)
	}
	require.Empty(t, loader.Secret("").String())
	require.Equal(t, "***", target.Password.String())
}

// Some clients take keys from the endpoint's URL. Whatever one looks like, nothing of them is shown.
func TestKeysInEndpointsAreNeverShown(t *testing.T) {
	for endpoint, want := range map[string]string{
		"http://h:9000": "http://h:9000", "https://h/path/": "https://h/path/", "http://[::1]:9000": "http://[::1]:9000",

		"http://AKIA:S3CR3T@h:9": "http://h:9", "http://S3CR3T@h": "http://h", "https://:S3CR3T@h/p": "https://h/p",
		"http://AKIA:S3CR3T@:9": "http://:9", "http://AKIA:a@S3CR3T@h:9": "http://h:9",

		"AKIA:S3CR3T@h:9": "", "//AKIA:S3CR3T@h:9": "", "ftp://AKIA:S3CR3T@h:9": "", "http:AKIA:S3CR3T@h": "", "http:///S3CR3T@h": "",
		"http://AKIA:1/S3CR3T@h": "", "http://AKIA:1%2FS3CR3T@h": "http://h", "http://h/S3CR3T%40h": "", "http://AKIA:x/S3CR3T@h": "",
		"http://h?key=S3CR3T": "", "http://AKIA:1?S3CR3T@h": "", "http://h#S3CR3T": "", "http://AKIA:%zzS3CR3T@h": "", "S3CR3T": "",
		"http://AKIA:S3C R3T@h": "", "http://AKIA:S3CR3T\x7f@h": "",
	} {
		for _, name := range []string{"endpoint", "server_endpoint"} {
			target := parse(t, "s3://bucket/p?region=r&"+url.Values{name: {endpoint}}.Encode())
			shown := url.Values{"region": {"r"}}
			if want != "" {
				shown.Set(name, want)
			}
			require.Equal(t, "s3://bucket/p?"+shown.Encode(), target.String())
			require.Equal(t, strings.Contains(endpoint, "@"), target.ShowsPassword(), endpoint)
		}
	}
	// As it is written on a command line, without escapes, and given twice.
	target := parse(t, "s3://bucket/p?endpoint=http://AKIA:S3CR3T@h:9&endpoint=http://S3CR3T@g")
	require.Equal(t, "s3://bucket/p?endpoint=http%3A%2F%2Fh%3A9&endpoint=http%3A%2F%2Fg", target.String())
}

func TestShowsPassword(t *testing.T) {
	for text, want := range map[string]bool{
		"postgres://u@h/db": false, "postgres://u:p@h/db": true, "postgres://u@h/db?password=p": true, "postgres://u:@h/db": false,
	} {
		require.Equal(t, want, parse(t, text).ShowsPassword(), text)
	}
}

// A resume runs with the settings of its run, and what is no secret is what a stopped run prints.
func TestParametersOfTheURL(t *testing.T) {
	const written = "postgres://u@h/db?application_name=a&connect_timeout=3&host=%2Ftmp&options=-c+search_path%3Dx&passfile=%2Fp" +
		"&synchronous_commit=off&target_session_attrs=read-write"
	target := parse(t, written+"&password=hunter2&sslpassword=hunter2&access_key_id=hunter2&session_token=hunter2"+
		"&app.secret=hunter2&pwd=hunter2&pass=hunter2&key=hunter2&options=-c+app.key%3Dhunter2")
	require.Equal(t, written, target.String())
	other := parse(t, "postgres://u@h2/db?synchronous_commit=on&port=7")
	target.Params.Set("useSSL", "true")
	target.Params.Set("channel_binding", "require")
	other.Inherit(parse(t, target.String()))
	require.Equal(t, "postgres://u@h2/db?application_name=a&connect_timeout=3&options=-c+search_path%3Dx&passfile=%2Fp&port=7"+
		"&synchronous_commit=on&target_session_attrs=read-write", other.String())
}
