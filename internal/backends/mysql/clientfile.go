package mysql

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// complete fills in what the target leaves open as MySQL's own clients do: MYSQL_PWD, then the [client] group of
// ~/.my.cnf, and the login name for the user. A password belongs to a user, so the file's is not sent for another one.
func complete(t loader.Target) (loader.Target, error) {
	file, err := readClientFile()
	if err != nil {
		return t, err
	}
	if len(t.Hosts) == 0 && t.Params.Get("socket") == "" {
		t = atHostOf(t, file)
	}
	if t.User == "" {
		t.User = file["user"]
	}
	if t.User == "" {
		if login, err := user.Current(); err == nil {
			t.User = login.Username
		}
	}
	if t.Password == "" {
		t.Password = loader.Secret(os.Getenv("MYSQL_PWD"))
	}
	if t.Password == "" && (file["user"] == "" || file["user"] == t.User) {
		t.Password = loader.Secret(file["password"])
	}
	return t, nil
}

func atHostOf(t loader.Target, file map[string]string) loader.Target {
	switch {
	case file["host"] != "" && file["port"] != "":
		t.Hosts = []string{file["host"] + ":" + file["port"]}
	case file["host"] != "":
		t.Hosts = []string{file["host"]}
	case file["socket"] != "":
		params := map[string][]string{"socket": {file["socket"]}}
		for name, values := range t.Params {
			params[name] = values
		}
		t.Params = params
	case file["port"] != "":
		t.Hosts = []string{"127.0.0.1:" + file["port"]}
	}
	return t
}

func readClientFile() (map[string]string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, nil // no home, no file: a service account
	}
	path := filepath.Join(home, ".my.cnf")
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading MySQL's client settings: %w", err)
	}
	defer func() { _ = f.Close() }()
	settings, err := parseClientFile(f)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return settings, nil
}

// parseClientFile reads the [client] group by the rules of the MySQL manual, "Using Option Files". Later lines win.
// !include is not followed.
func parseClientFile(r io.Reader) (map[string]string, error) {
	settings := make(map[string]string)
	group := ""
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if line[0] == '[' {
			group = strings.TrimSpace(strings.Trim(line, "[]"))
			continue
		}
		if group != "client" {
			continue
		}
		name, value, _ := strings.Cut(line, "=")
		name = strings.ReplaceAll(strings.TrimSpace(name), "_", "-")
		settings[name] = clientValue(strings.TrimSpace(value))
	}
	return settings, lines.Err()
}

// clientValue undoes quotes and escapes. Outside quotes a # begins a comment, which is why MySQL's manual wants
// passwords with one in quotes.
func clientValue(text string) string {
	if len(text) > 1 && (text[0] == '\'' || text[0] == '"') {
		if end := strings.LastIndexByte(text, text[0]); end > 0 {
			text = text[1:end]
		}
	} else if at := strings.Index(text, "#"); at >= 0 {
		text = strings.TrimSpace(text[:at])
	}
	return strings.NewReplacer(`\\`, `\`, `\b`, "\b", `\t`, "\t", `\n`, "\n", `\r`, "\r", `\s`, " ").Replace(text)
}
