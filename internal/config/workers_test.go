package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/pkg/loader"
)

func TestWorkers(t *testing.T) {
	const gbps = 1_000_000_000
	for _, c := range []struct {
		name            string
		cores           int
		link            int64
		database, store int
	}{
		{name: "a small machine", cores: 1, database: 4, store: 4},
		{name: "two a core", cores: 8, database: 16, store: 16},
		{name: "many cores", cores: 96, database: 64, store: 64},
		{name: "a slow link takes nothing away", cores: 8, link: gbps, database: 16, store: 16},
		{name: "10 Gbps", cores: 2, link: 10 * gbps, database: 8, store: 21},
		{name: "25 Gbps", cores: 4, link: 25 * gbps, database: 20, store: 53},
		{name: "50 Gbps", cores: 16, link: 50 * gbps, database: 40, store: 105},
		{name: "50 Gbps and many cores", cores: 64, link: 50 * gbps, database: 64, store: 105},
		{name: "100 Gbps", cores: 32, link: 100 * gbps, database: 64, store: 209},
		{name: "200 Gbps", cores: 32, link: 200 * gbps, database: 64, store: 256},
		{name: "more flows than the bound", cores: 4, link: 400 * gbps, database: 80, store: 256},
		{name: "3200 Gbps", cores: 4, link: 3200 * gbps, database: 640, store: 640},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.database, config.DefaultWorkers(c.cores, c.link, loader.Caps{}))
			require.Equal(t, c.store, config.DefaultWorkers(c.cores, c.link, loader.Caps{Objects: true}))
			require.Equal(t, c.store, config.DefaultWorkers(c.cores, c.link, loader.Caps{Staged: true}), "staged batches are objects")
		})
	}
}

// Workers by default are reduced to the batches that memory holds; those that were asked for are not, with a warning.
func TestWorkersFitIntoMemory(t *testing.T) {
	in := input()
	in.Resources.Workers, in.Resources.Memory = 40, 7_500 // seven buffers
	p, warnings, err := makePlan(in)
	require.NoError(t, err)
	require.Equal(t, []string{"--memory 7.3 KiB holds 7 batches of 1000 B, so only 7 of 40 workers can have one at a time"}, warnings)
	require.Equal(t, [2]int{40, 7}, [2]int{p.Workers, p.Buffers})

	in.Resources.Workers = 8
	_, warnings, err = makePlan(in)
	require.NoError(t, err)
	require.Len(t, warnings, 1, "one worker waits")

	in.Resources.Default = true
	p, warnings, err = makePlan(in)
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, [2]int{7, 7}, [2]int{p.Workers, p.Buffers})

	in.Resources.Memory = 999
	_, _, err = makePlan(in)
	require.ErrorContains(t, err, "raise --memory or lower --batch-rows", "not even one")
}
