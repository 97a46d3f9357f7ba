package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/config"
)

func TestServerMetrics(t *testing.T) {
	c, f, err := parse(t, "--server-metrics http://u:s3cr3t@h:9100/metrics?token=s3cr3t --server-metrics https://be/metrics", nil, "")
	require.NoError(t, err)
	require.NoError(t, c.Validate())
	require.Equal(t, "[http://h:9100/metrics,https://be/metrics]", c.ServerMetrics.String(), "nothing secret is shown")
	urls := c.ServerMetrics.URLs()
	require.Len(t, urls, 2)
	require.Equal(t, "http://u:s3cr3t@h:9100/metrics?token=s3cr3t", urls[0].String())
	require.NotContains(t, config.Given(f), "server-metrics", "it is of one process, and may hold a password")

	c, _, err = parse(t, "", nil, "server-metrics: [http://a/metrics, http://b/metrics]")
	require.NoError(t, err)
	require.Len(t, c.ServerMetrics.URLs(), 2)

	for _, text := range []string{"s3cr3t", "h:9100", "ftp://h/s3cr3t", "http:///s3cr3t", "http://h:s3cr3t/", "http://%zzs3cr3t"} {
		c, _, err := parse(t, "--server-metrics "+text, nil, "")
		require.NoError(t, err)
		err = c.Validate()
		require.ErrorContains(t, err, "--server-metrics: write it as http://host:9100/metrics", text)
		require.NotContains(t, err.Error(), "s3cr3t")
	}
}
