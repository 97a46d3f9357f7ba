package loader_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/terapush/terapush/pkg/loader"
)

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
		"postgres:///db?host=%2Ftmp": {
			target:    loader.Target{Scheme: "postgres", Database: "db", Params: url.Values{"host": {"/tmp"}}},
			addresses: []string{"127.0.0.1:5432"},
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
		got, err := loader.ParseTarget(text)
		if want.target.Params == nil {
			want.target.Params = url.Values{}
		}
		if err != nil || !reflect.DeepEqual(got, want.target) {
			t.Errorf("%s: %#v, %v, want %#v", text, got, err, want.target)
		}
		for i, address := range want.addresses {
			if a := got.Address(i, "5432"); a != address {
				t.Errorf("%s: host %d is %s, want %s", text, i, a, address)
			}
		}
		if want.shown == "" {
			want.shown = text
		}
		if got.String() != want.shown {
			t.Errorf("%s is shown as %s, want %s", text, got, want.shown)
		}
		// What is shown can be given again: it is what a stopped run prints.
		again, err := loader.ParseTarget(got.String())
		got.Password, got.Params, again.Params = "", nil, nil
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%s: what is shown reads as %#v, %v", text, again, err)
		}
	}
}

func TestTargetsThatAreNone(t *testing.T) {
	for _, text := range []string{"", "h/db", "u:hunter2@h/db", "://u:hunter2@h", "postgres:/u:hunter2@h", "u:hunter2@h/db?a=http://b", "u:hunt://hunter2@h", "postgres://u:hunter2@h/db?a=%zz", "postgres://u:hunter2@h/db?a;b"} {
		_, err := loader.ParseTarget(text)
		if err == nil {
			t.Errorf("%q was taken", text)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error shows the password: %v", text, err)
		}
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
			got, err := loader.ParseTarget(text)
			if err != nil || got.Password.Reveal() != password || got.User != "u" || got.Database != "db" || got.Hosts[0] != "h:1" {
				t.Fatalf("%q: password %q, %v", text, got.Password.Reveal(), err)
			}
		}
	}
	for c := byte(' '); c <= '~'; c++ {
		check("a" + string(c) + "b")
		check(string(c))
	}
	dice := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
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
	for range 2000 {
		target := loader.Target{
			Scheme: "postgres", Hosts: []string{word(), "[::1]:1"}, User: word(), Password: "hunter2", Database: word(),
			Params: url.Values{"host": {word()}, "password": {"hunter2"}},
		}
		got, err := loader.ParseTarget(target.String())
		target.Password = ""
		target.Params.Del("password")
		if err != nil || !reflect.DeepEqual(got, target) {
			t.Fatalf("%q is shown as %s and read as %q, %v", target.Hosts, target, got.Hosts, err)
		}
	}
}

func TestSecretsAreNeverShown(t *testing.T) {
	const secret = "hunter2"
	target, err := loader.ParseTarget("postgres://u:" + secret + "@h/db?password=" + secret + "&sslpassword=" + secret)
	if err != nil {
		t.Fatal(err)
	}
	if !target.ShowsPassword() {
		t.Error("the password in the URL is not seen")
	}
	for _, value := range []any{target, &target, target.Password, []any{target, target.Password}, map[string]any{"t": target}, struct{ S loader.Secret }{target.Password}} {
		asJSON, err := json.Marshal(value)
		if err != nil {
			t.Error(err)
		}
		var logged bytes.Buffer
		slog.New(slog.NewTextHandler(&logged, nil)).Info("m", "value", value)
		slog.New(slog.NewJSONHandler(&logged, nil)).Info("m", "value", value)
		shown := fmt.Sprintf("%v %+v %#v %s %q", value, value, value, value, value) + string(asJSON) + logged.String()
		if strings.Contains(shown, secret) {
			t.Errorf("%T is shown as %s", value, shown)
		}
	}
	if s := loader.Secret(""); s.String() != "" || target.Password.String() != "***" {
		t.Errorf("no password is shown as %q, one as %q", s, target.Password)
	}
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
			target, err := loader.ParseTarget("s3://bucket/p?region=r&" + url.Values{name: {endpoint}}.Encode())
			if err != nil {
				t.Fatal(err)
			}
			shown := "s3://bucket/p?" + url.Values{"region": {"r"}}.Encode()
			if want != "" {
				shown = "s3://bucket/p?" + url.Values{name: {want}, "region": {"r"}}.Encode()
			}
			if got := target.String(); got != shown {
				t.Errorf("%s=%s is shown as %s, want %s", name, endpoint, got, shown)
			}
			if has := strings.Contains(endpoint, "@"); target.ShowsPassword() != has {
				t.Errorf("%s=%s: shows a password: %v", name, endpoint, !has)
			}
		}
	}
	// As it is written on a command line, without escapes, and given twice.
	target, err := loader.ParseTarget("s3://bucket/p?endpoint=http://AKIA:S3CR3T@h:9&endpoint=http://S3CR3T@g")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%v %#v", target, target); strings.Contains(got, "S3CR3T") || !strings.Contains(got, "endpoint=http%3A%2F%2Fh%3A9&endpoint=http%3A%2F%2Fg") {
		t.Errorf("shown as %s", got)
	}
}

func TestShowsPassword(t *testing.T) {
	for text, want := range map[string]bool{
		"postgres://u@h/db": false, "postgres://u:p@h/db": true, "postgres://u@h/db?password=p": true, "postgres://u:@h/db": false,
	} {
		if target, err := loader.ParseTarget(text); err != nil || target.ShowsPassword() != want {
			t.Errorf("%s: %v, %v", text, target.ShowsPassword(), err)
		}
	}
}

// A resume runs with the settings of its run, and what is no secret is what a stopped run prints.
func TestParametersOfTheURL(t *testing.T) {
	const written = "postgres://u@h/db?application_name=a&connect_timeout=3&host=%2Ftmp&options=-c+search_path%3Dx&passfile=%2Fp" +
		"&synchronous_commit=off&target_session_attrs=read-write"
	target, err := loader.ParseTarget(written + "&password=hunter2&sslpassword=hunter2&access_key_id=hunter2&session_token=hunter2" +
		"&app.secret=hunter2&pwd=hunter2&pass=hunter2&key=hunter2&options=-c+app.key%3Dhunter2")
	if err != nil || target.String() != written {
		t.Errorf("shown as %s, %v", target, err)
	}
	other, err := loader.ParseTarget("postgres://u@h2/db?synchronous_commit=on&port=7")
	if err != nil {
		t.Fatal(err)
	}
	if earlier, err := loader.ParseTarget(target.String()); err != nil {
		t.Error(err)
	} else {
		other.Inherit(earlier)
	}
	if want := "postgres://u@h2/db?application_name=a&connect_timeout=3&options=-c+search_path%3Dx&passfile=%2Fp&port=7" +
		"&synchronous_commit=on&target_session_attrs=read-write"; other.String() != want {
		t.Errorf("goes on with %s, want %s", other, want)
	}
}
