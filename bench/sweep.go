//go:build linux

package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed sweep.yaml
var sweepPlan []byte

// sweepServers has terapush compare its own ways into every server that the environment names, as a user would.
func sweepServers(ctx context.Context, o options, stdout io.Writer) error {
	for _, s := range []struct{ family, variable string }{
		{"postgres", "TERAPUSH_TEST_POSTGRES"}, {"mysql", "TERAPUSH_TEST_MARIADB"}, {"mysql", "TERAPUSH_TEST_MYSQL"},
		{"databend", "TERAPUSH_TEST_DATABEND"},
	} {
		target := os.Getenv(s.variable)
		if target == "" || !o.wants(s.family) {
			continue
		}
		fmt.Fprintln(stdout)
		if err := sweep(ctx, o, target, stdout); err != nil {
			return fmt.Errorf("sweep of %s: %w", s.variable, err)
		}
	}
	return nil
}

func sweep(ctx context.Context, o options, target string, stdout io.Writer) error {
	dir, err := os.MkdirTemp("", "terapush-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	plan := filepath.Join(dir, "bench.yaml")
	if err := os.WriteFile(plan, sweepPlan, 0o600); err != nil {
		return err
	}
	c := exec.CommandContext(ctx, o.terapush, "sweep", target, "--plan", plan, "--table", benchTable,
		"--record", filepath.Join(dir, "bench.sweep.jsonl"), "--state-dir", filepath.Join(dir, "state"))
	c.Stdout, c.Stderr = stdout, os.Stderr
	return c.Run()
}
