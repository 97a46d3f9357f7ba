package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/all"
	"github.com/terapush/terapush/internal/config"
)

// A run's target is recognized however it is written.
func TestPlaceOf(t *testing.T) {
	drivers, err := all.Drivers()
	require.NoError(t, err)
	seen := map[config.Place]string{}
	for _, same := range [][]string{
		{"postgres://u:p@Db/x", "postgresql://v@db:5432/x?sslmode=disable", "postgres://db,db:5432/x"},
		{"postgres://a,b:6543/x", "postgres://b:6543,a:5432/x"},
		{"postgres://a/y", "postgres://a/?dbname=y"},
		{"postgres://127.0.0.1/x", "postgres://localhost/x", "postgres://[::1]:5432/x", "postgres:///x"},
		{"postgres:///x?host=/run/pg", "postgres:///x?host=/run/pg&port=5432"},
		{"postgres:///x?host=/run/other"},
		{"postgres://a:5433/x", "yugabyte://a/x"},
		{"postgres://a/x"}, {"postgres://a:1/x"}, {"postgres://a/z"}, {"redshift://a/x"},
		{"mysql://a/x", "mariadb://a:3306/x", "mysql://u@a/x?tls=true"},
		{"mysql:///x?socket=/run/my"}, {"doris://a/x", "doris://a:9030/x"}, {"databend://a/x"}, {"oracle://a/x", "oracle://a:1521/x"},
		{"s3://a/p/q", "s3://a/p/q/?endpoint=http://other:1"}, {"s3://a/p"}, {"s3://b/p/q"},
		{"discard://"}, {"discard://h"},
	} {
		for _, text := range same {
			is, err := config.PlaceOf(text, drivers)
			require.NoError(t, err)
			other, known := seen[is]
			require.Equal(t, text != same[0], known, text)
			if !known {
				seen[is] = text
				continue
			}
			require.Equal(t, same[0], other, text)
		}
	}
	for _, text := range []string{"", "x", "nosql://h/d"} {
		_, err := config.PlaceOf(text, drivers)
		require.Error(t, err)
	}
}
