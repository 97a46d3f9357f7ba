package mysql

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
)

// complete fills in what the target leaves open as MySQL's own clients do: MYSQL_PWD, then the [client] group of
// ~/.my.cnf, and the login name for the user. The file's password is not sent for another user than the file's.
func complete(t loader.Target) (loader.Target, error) {
	file, err := readClientFile()
	if err != nil {
		return t, err
	}
	if len(t.Hosts) == 0 && t.Params.Get("socket") == "" {
		switch host, port := file["host"], file["port"]; {
		case host == "" && file["socket"] != "":
			params := make(url.Values)
			maps.Copy(params, t.Params)
			params.Set("socket", file["socket"])
			t.Params = params
		case port != "":
			t.Hosts = []string{cmp.Or(host, "127.0.0.1") + ":" + port}
		case host != "":
			t.Hosts = []string{host}
		}
	}
	if t.Params, err = withTLS(t.Params, file); err != nil {
		return t, err
	}
	t.User = cmp.Or(t.User, file["user"])
	if t.User == "" {
		if login, err := user.Current(); err == nil {
			t.User = login.Username
		}
	}
	t.Password = cmp.Or(t.Password, loader.Secret(os.Getenv("MYSQL_PWD")))
	if file["user"] == "" || file["user"] == t.User {
		t.Password = cmp.Or(t.Password, loader.Secret(file["password"]))
	}
	return t, nil
}

// withTLS adds what the file says about TLS to what the URL leaves open.
func withTLS(params url.Values, file map[string]string) (url.Values, error) {
	given, err := mysqlconn.ReadParams(params)
	if err != nil {
		return nil, err
	}
	all := make(url.Values)
	maps.Copy(all, params)
	add := func(unless bool, names ...string) {
		for _, name := range names {
			if value, is := file[name]; is && !unless {
				all.Set(name, value)
			}
		}
	}
	on := func(value string) bool {
		return !slices.Contains([]string{"0", "off", "false"}, strings.ToLower(value))
	}
	ssl, asked := file["ssl"]
	_, skipped := file["skip-ssl"]
	verified, says := file["ssl-verify-server-cert"]
	switch {
	case given.Mode != loader.TLSAuto:
	case file["ssl-mode"] != "":
		all.Set("ssl-mode", file["ssl-mode"])
	case skipped, asked && !on(ssl):
		all.Set("ssl-mode", "DISABLED")
	case says && on(verified):
		all.Set("ssl-mode", "VERIFY_IDENTITY")
	case asked, says: // in a URL ssl asks for a verified server
		all.Set("ssl-mode", "REQUIRED")
	}
	add(given.Trust.CAFile != "", "ssl-ca", "ssl-capath", "ssl-crl", "ssl-crlpath", "ssl-fp", "ssl-fplist")
	add(given.Trust.CertFile+given.Trust.KeyFile != "", "ssl-cert", "ssl-key")
	add(false, "tls-version")
	return all, nil
}

func readClientFile() (map[string]string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, nil //nolint:nilerr // no home, no file: a service account
	}
	text, err := os.ReadFile(filepath.Join(home, ".my.cnf"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading MySQL's client settings: %w", err)
	}
	return parseClientFile(string(text)), nil
}

// parseClientFile reads the [client] group by the rules of the MySQL manual, "Using Option Files". Later lines win.
// !include is not followed.
func parseClientFile(text string) map[string]string {
	settings := make(map[string]string)
	group := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			group = strings.TrimSpace(strings.Trim(line, "[]"))
		case group == "client":
			name, value, _ := strings.Cut(line, "=")
			settings[strings.ReplaceAll(strings.TrimSpace(name), "_", "-")] = clientValue(strings.TrimSpace(value))
		}
	}
	return settings
}

// clientValue removes quotes and escapes. Outside quotes a # begins a comment.
func clientValue(text string) string {
	if len(text) > 1 && (text[0] == '\'' || text[0] == '"') {
		if end := strings.LastIndexByte(text, text[0]); end > 0 {
			text = text[1:end]
		}
	} else {
		text, _, _ = strings.Cut(text, "#")
		text = strings.TrimSpace(text)
	}
	return strings.NewReplacer(`\\`, `\`, `\b`, "\b", `\t`, "\t", `\n`, "\n", `\r`, "\r", `\s`, " ").Replace(text)
}
