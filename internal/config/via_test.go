package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/config"
)

func TestVia(t *testing.T) {
	c, f, err := parse(t, "--via s3://bucket/a/prefix?endpoint=https://h:9000&path_style=true", nil, "")
	require.NoError(t, err)
	require.NoError(t, c.Validate())
	require.Equal(t, []string{"bucket"}, c.Via.Target().Hosts)
	require.Equal(t, "a/prefix", c.Via.Target().Database)
	require.Equal(t, []string{"s3://bucket/a/prefix?endpoint=https%3A%2F%2Fh%3A9000&path_style=true"}, config.Given(f)["via"])

	c, _, err = parse(t, "", nil, "")
	require.NoError(t, err)
	require.Nil(t, c.Via.Target())
	require.Empty(t, c.Via.String())
}

// Neither an error nor the run's record may hold a key that somebody put into the URL.
func TestViaShowsNoSecret(t *testing.T) {
	for text, want := range map[string]string{
		"s3://AKIA:s3cr3t@bucket/p":     "keys do not belong into the URL",
		"s3://AKIA@bucket/p":            "keys do not belong into the URL",
		"s3://bucket/p?password=s3cr3t": "keys do not belong into the URL",

		"s3://bucket/p?endpoint=http://AKIA:s3cr3t@h:9":        "keys do not belong into the URL",
		"s3://bucket/p?server_endpoint=https://AKIA:s3cr3t@h":  "keys do not belong into the URL",
		"s3://bucket/p?endpoint=AKIA:s3cr3t@h:9":               "keys do not belong into the URL",
		"s3://bucket/p?endpoint=http%3A%2F%2FAKIA:s3cr3t%40h":  "keys do not belong into the URL",
		"s3://bucket/p?endpoint=http://h&endpoint=//s3cr3t@h2": "keys do not belong into the URL",

		"gs://bucket/s3cr3t":               "--via: write it as s3://bucket/prefix",
		"s3cr3t":                           "--via: write it as s3://bucket/prefix",
		"s3:///s3cr3t":                     "--via: write it as s3://bucket/prefix",
		"s3://a,b/s3cr3t":                  "--via: write it as s3://bucket/prefix",
		"s3://bucket/p?endpoint=%zzs3cr3t": "--via: write it as s3://bucket/prefix",
	} {
		c, f, err := parse(t, "--via "+text, nil, "")
		require.NoError(t, err)
		err = c.Validate()
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "s3cr3t")
		require.NotContains(t, config.Given(f)["via"][0], "s3cr3t")
	}
	_, f, err := parse(t, "--via s3://bucket/p?secret=s3cr3t&endpoint=http://h?s3cr3t", nil, "")
	require.NoError(t, err)
	require.Equal(t, []string{"s3://bucket/p"}, config.Given(f)["via"])
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
	c, _, err := parse(t, "--via s3://b/p --method insert", nil, "")
	require.NoError(t, err)
	c.Target = "base://h/d"
	_, _, target, err := c.LoaderTarget(drivers(t))
	require.NoError(t, err)
	require.Equal(t, "s3://b/p", target.Via.String())

	c.Method = "copy"
	_, _, _, err = c.LoaderTarget(drivers(t))
	require.EqualError(t, err, "method copy stores no objects: --via is for methods that do")
}
