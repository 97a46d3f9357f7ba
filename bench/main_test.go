//go:build linux

package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/pkg/batch"
)

// It says nothing of speed: every contender's rows have to arrive, counted and dropped, or run fails.
func TestRun(t *testing.T) {
	backendtest.Long(t)
	for _, name := range []string{"TERAPUSH_TEST_POSTGRES", "TERAPUSH_TEST_MARIADB", "TERAPUSH_TEST_MYSQL", "TERAPUSH_TEST_DATABEND", "TERAPUSH_TEST_S3"} {
		t.Setenv(name, "") // real servers are the bench's own business
	}
	terapush := built(t, "../cmd/terapush")
	for _, count := range []string{"-count=true", "-count=false"} {
		var table bytes.Buffer
		require.NoError(t, run(t.Context(), []string{
			"-terapush", terapush, "-rounds=1", "-workers=false", "-ring=4000000", "-body=1000000", count,
		}, &table))
		contenders := 3 + len(ways) + len(otherWays) // two write loops and iperf3
		contenders += 1 + len(ways)                  // over TLS
		contenders += 3                              // by hand: the write loop and two drivers
		contenders += 4*len(webFamilies) + 1         // and the SDK
		tables := 3 + len(webFamilies)
		assert.Equal(t, 2*tables+contenders, bytes.Count(table.Bytes(), []byte("\n|")), "%s", table.String())
	}
}

func built(t *testing.T, command string) string {
	path := filepath.Join(t.TempDir(), filepath.Base(command))
	out, err := exec.Command("go", "build", "-o", path, command).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

func TestRingRefusesNonsense(t *testing.T) {
	for _, sizes := range [][2]int{{1 << 20, 100}, {1000, 2000}, {0, 0}} {
		_, err := newRing(sizes[0], sizes[1], keyDigits+1+payloadBytes+1)
		assert.Error(t, err, sizes)
	}
}

// Rows of short keys are shorter than the schema says, and a ring has more of them: every body is full all the same.
func TestEncodedRing(t *testing.T) {
	for _, sizes := range [][2]int{{20680, 5170}, {103400, 1034}, {1 << 20, 1 << 20}, {4000000, 1000000}} {
		r, err := newEncodedRing(t.Context(), batch.CSV, sizes[0], sizes[1], 0)
		if assert.NoError(t, err, sizes) {
			assert.Len(t, r.bodies, sizes[0]/sizes[1])
			assert.Greater(t, len(r.bodies[0])+r.rowBytes(), sizes[1], "another row would fit")
			r.free()
		}
	}
	_, err := newEncodedRing(t.Context(), batch.CSV, 1<<20, 100, 0)
	assert.Error(t, err)
}
