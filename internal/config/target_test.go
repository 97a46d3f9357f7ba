package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/pkg/loader"
)

func TestMethodOptions(t *testing.T) {
	for args, want := range map[string]map[string]string{
		"":                            {},
		"--unlogged":                  {"unlogged": "true"},
		"--unlogged=0":                {"unlogged": "false"},
		"--rows-per-transaction 0100": {"rows-per-transaction": "100"},
		"--rows-per-transaction 10k":  {"rows-per-transaction": "10000"},
		"--method insert --hint x":    {"hint": "x"},
	} {
		c, _, err := parse(t, args, nil, "")
		require.NoError(t, err)
		c.Target = "base://h/d"
		_, target, err := c.LoaderTarget(drivers(t), config.Earlier{})
		require.NoError(t, err, args)
		require.Equal(t, want, target.Options)
	}

	c, _, err := parse(t, "--hint x --rows-per-transaction 1", nil, "")
	require.NoError(t, err)
	c.Target = "base://h/d"
	_, _, err = c.LoaderTarget(drivers(t), config.Earlier{})
	require.EqualError(t, err, "--hint is not an option of method copy")

	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(config.Push).Flags(f, drivers(t))
	require.ErrorContains(t, f.Set("unlogged", "perhaps"), `"perhaps" is not a valid bool`)
	require.ErrorContains(t, f.Set("rows-per-transaction", "many"), `"many" is not a valid int`)
	require.ErrorContains(t, f.Set("rows-per-transaction", "-1"), `"-1" is not a valid int: 0 or more`)
	require.ErrorContains(t, f.Set("rows-per-transaction", "-1k"), `"-1k" is not a valid int: 0 or more`)
}

func TestLoaderTarget(t *testing.T) {
	for _, c := range []struct{ target, args, err string }{
		{"", "", "a target is needed"},
		{"bas://h/d", "", `target scheme "bas" does not exist; did you mean "base"? Available: base, database`},
		{"base://h/d", "--method cop", `method "cop" does not exist; did you mean "copy"?`},
		{"base://h/d", "--method stage", `method "stage" does not exist; available: copy, insert`},
		{"base://h/d", "--method s3-import", "--method s3-import was removed: use copy"},
		{"base://h/d", "--method cloud-copy", "--method cloud-copy was removed: use array"},
		{"base://h/d", "--password-file /does/not/exist", "--password-file: open /does/not/exist"},
	} {
		p, _, err := parse(t, c.args, nil, "")
		require.NoError(t, err)
		p.Target = c.target
		_, _, err = p.LoaderTarget(drivers(t), config.Earlier{})
		require.ErrorContains(t, err, c.err)
	}

	p, _, err := parse(t, "--set a=1 --set b=x=y --tls verify", nil, "")
	require.NoError(t, err)
	p.Target = "database://u@h/d"
	_, target, err := p.LoaderTarget(drivers(t), config.Earlier{})
	require.NoError(t, err)
	require.Equal(t, "copy", target.Method)
	require.Equal(t, "documents", target.Table)
	require.Equal(t, loader.TLSVerify, target.TLS)
	require.Equal(t, []loader.Setting{{Name: "a", Value: "1"}, {Name: "b", Value: "x=y"}}, target.Settings)
}

func TestPassword(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte(" from file \n\r\n"), 0o600))
	inEnv := env{"TERAPUSH_PASSWORD": "from env"}
	for _, c := range []struct {
		connect config.Connect
		want    string
	}{
		{config.Connect{}, "from-url"},
		{config.Connect{LookupEnv: env{}.lookup}, "from-url"},
		{config.Connect{LookupEnv: env{"TERAPUSH_PASSWORD": ""}.lookup}, "from-url"},
		{config.Connect{LookupEnv: inEnv.lookup}, "from env"},
		{config.Connect{LookupEnv: inEnv.lookup, PasswordFile: file}, " from file \n"},
	} {
		_, target, err := config.FindTarget("base://u:from-url@h/d", c.connect, drivers(t))
		require.NoError(t, err)
		require.Equal(t, c.want, target.Password.Reveal())
	}
	_, _, err := config.FindTarget("base://u@h/d", config.Connect{PasswordFile: "/dev/zero"}, drivers(t))
	require.ErrorContains(t, err, "--password-file: /dev/zero has more than 1.0 MiB")
	require.True(t, config.PasswordInArguments("base://u:p@h/d"))
	require.False(t, config.PasswordInArguments("base://u@h/d"))
}

// Neither an error nor the run's record may hold a key that somebody put into the URL.
func TestViaShowsNoSecret(t *testing.T) {
	for text, want := range map[string]string{
		"s3://AKIA:s3cr3t@bucket/p":     "leave the keys out of the URL",
		"s3://bucket/p?password=s3cr3t": "leave the keys out of the URL",

		"s3://bucket/p?endpoint=http://AKIA:s3cr3t@h:9":        "leave the keys out of the URL",
		"s3://bucket/p?server_endpoint=https://AKIA:s3cr3t@h":  "leave the keys out of the URL",
		"s3://bucket/p?endpoint=http%3A%2F%2FAKIA:s3cr3t%40h":  "leave the keys out of the URL",
		"s3://bucket/p?endpoint=http://h&endpoint=//s3cr3t@h2": "leave the keys out of the URL",

		"gs://bucket/s3cr3t":               "--staging: write it as s3://bucket/prefix",
		"s3://a,b/s3cr3t":                  "--staging: write it as s3://bucket/prefix",
		"s3://bucket/p?endpoint=%zzs3cr3t": "--staging: write it as s3://bucket/prefix",
	} {
		c, f, err := parse(t, "--staging "+text, nil, "")
		require.NoError(t, err)
		err = c.Validate()
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "s3cr3t")
		require.NotContains(t, config.Given(f)["staging"][0], "s3cr3t")
	}
	_, f, err := parse(t, "--staging s3://bucket/p?secret=s3cr3t&endpoint=http://h?s3cr3t", nil, "")
	require.NoError(t, err)
	require.Equal(t, []string{"s3://bucket/p"}, config.Given(f)["staging"])
}

func TestSameStore(t *testing.T) {
	for b, same := range map[string]bool{
		"s3://b/p?endpoint=http://x": true, "s3://b/p": true, "s3://b/q": false, "s3://c/p": false, "": false, "gs://b/p": false,
	} {
		require.Equal(t, same, config.SameStore("s3://b/p?region=r", b), b)
	}
	require.False(t, config.SameStore("", ""))
}

func TestViaIsForStagedMethods(t *testing.T) {
	c, _, err := parse(t, "--staging s3://b/p --method insert", nil, "")
	require.NoError(t, err)
	c.Target = "base://h/d"
	_, target, err := c.LoaderTarget(drivers(t), config.Earlier{})
	require.NoError(t, err)
	require.Equal(t, "s3://b/p", target.Via.String())

	c.Method = "copy"
	_, _, err = c.LoaderTarget(drivers(t), config.Earlier{})
	require.EqualError(t, err, "method copy stages no objects: leave out --staging")
}
