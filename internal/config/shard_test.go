package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/config"
)

func TestShard(t *testing.T) {
	for text, want := range map[string]config.Shard{
		"": {}, "0/1": {}, "0/2": {Index: 0, Count: 2}, "9999/10000": {Index: 9999, Count: 10_000},
	} {
		var s config.Shard
		require.NoError(t, s.Set(text))
		require.Equal(t, want, s)
		require.Equal(t, want.Count == 0, s.Whole())
	}
	for _, text := range []string{"1", "2/2", "-1/2", "a/2", "0/0", "0/a", "0/10001", "auto/0", "auto/", "automatic"} {
		require.ErrorContains(t, new(config.Shard).Set(text), "write 0/8 to 7/8", text)
	}
}

// The variables are those that each platform documents for a process of an array.
func TestShardOfThePlatform(t *testing.T) {
	for _, c := range []struct {
		flag string
		env  env
		want string
		says string
	}{
		{flag: "auto/8", env: env{"JOB_COMPLETION_INDEX": "5"}, want: "5/8"},
		{flag: "auto", env: env{"JOB_COMPLETION_INDEX": "5"}, says: "write --shard auto/N"},
		{flag: "auto", env: env{"AWS_BATCH_CE_NAME": "a", "AWS_BATCH_JQ_NAME": "b", "AWS_BATCH_JOB_ID": "c:2", "AWS_BATCH_JOB_ATTEMPT": "1",
			"AWS_BATCH_JOB_ARRAY_INDEX": "2", "AWS_BATCH_JOB_ARRAY_SIZE": "4"}, want: "2/4"},
		{flag: "auto/4", env: env{"AWS_BATCH_JOB_ARRAY_INDEX": "2"}, want: "2/4"},
		{flag: "auto", env: env{"CLOUD_RUN_TASK_INDEX": "0", "CLOUD_RUN_TASK_COUNT": "1"}, want: ""},
		{flag: "auto", env: env{"SLURM_ARRAY_TASK_ID": "12", "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_MIN": "10"}, want: "2/3"},
		{flag: "auto", env: env{"SLURM_ARRAY_TASK_ID": "14", "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_MIN": "10"}, says: "by SLURM_ARRAY_TASK_ID"},
		{flag: "auto", says: "none of JOB_COMPLETION_INDEX, AWS_BATCH_JOB_ARRAY_INDEX, CLOUD_RUN_TASK_INDEX, SLURM_ARRAY_TASK_ID is set"},
		{flag: "1/3", env: env{"JOB_COMPLETION_INDEX": "5"}, want: "1/3"},
	} {
		var s config.Shard
		require.NoError(t, s.Set(c.flag))
		err := s.Resolve(c.env.lookup)
		if c.says != "" {
			require.ErrorContains(t, err, c.says)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, s.String())
	}
}
