package push_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/push"
)

// Check, a dry run and the preflight refuse the same. None of these has asked a server.
func TestCheck(t *testing.T) {
	for args, want := range map[string][]string{
		small: nil,
		small + " --set x --rows 5 --bytes 1MB --dataset nothing --verify full": {
			"--rows, --bytes and --duration exclude each other", `--set "x": write it as name=value`, `dataset "nothing" does not exist`,
		},
		small + " --method gone --workers 5000":     {"--workers 5000: 1 to 4096", `method "gone" does not exist`},
		small + " --set unfit=1 --retries -1":       {"--retries -1: 0 or more", "--set unfit: memory has no such variable"},
		small + " --memory 1KiB":                    {"more than --memory 1.0 KiB: raise --memory"},
		small + " --format values":                  {`method keep does not take format "values"`},
		small + " --commit-batches 4":               {"method keep loads every batch by itself"},
		small + " --first-key 4611686018427387904":  {"keys of documents run from 0 to"},
		small + " --via s3://bucket/prefix":         {"--via is for methods that do"},
		small + " --payload-bytes 0 --batch-rows 0": {"--payload-bytes 0: a payload has 1 to"},
	} {
		p := newPlace(t)
		p.failOn("open", errors.New("somebody connects"))
		j := p.job(strings.ReplaceAll(args, " --batch-rows 0", ""))
		before := j.Config
		err := push.Check(&j.Config, j.Drivers)
		require.Equal(t, before, j.Config, "it is the caller's")
		explained := push.Explain(io.Discard, &j.Config, j.Drivers)
		if want == nil {
			require.NoError(t, err)
			require.NoError(t, explained)
			continue
		}
		require.Error(t, err, args)
		require.EqualError(t, explained, err.Error())
		lines := strings.Split(err.Error(), "\n")
		require.Len(t, lines, len(want), err.Error())
		for _, text := range want {
			require.ErrorContains(t, err, text)
		}
	}
}

// What a table gives to a configuration need not have gone through flags.
func TestCheckOfWhatNoFlagLetsThrough(t *testing.T) {
	p := newPlace(t)
	j := p.job(small)
	j.Config.Verify, j.Config.Retries = "sometimes", -1
	err := push.Check(&j.Config, j.Drivers)
	require.ErrorContains(t, err, `verify mode "sometimes" does not exist`)
	require.ErrorContains(t, err, "--retries -1")
}
