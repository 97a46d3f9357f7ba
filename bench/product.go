//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// product is the built terapush. What it costs is read from its report, without its start-up, the filling of the ring.
type product struct {
	binary string
	ring   int // bytes of column data in the ring
	extra  []string
}

// turns is how many times a push goes round the ring.
const turns = 4

// pushed is what the report of a push says.
type pushed struct {
	Result struct {
		Outcome      string
		Rows         int64
		EncodedBytes int64 `json:"encoded_bytes"`
		Seconds      float64
	}
	Client struct {
		LoadSeconds float64 `json:"cpu_load_seconds"`
	}
}

// cost is the client's CPU and wall time per encoded GiB.
func (p product) cost(ctx context.Context, target string, workers, sinkPID int) (cost, error) {
	sink := cpuTime(sinkPID)
	done, err := p.push(ctx, target, workers, turns*p.ring)
	if err != nil {
		return cost{}, err
	}
	gib := float64(done.Result.EncodedBytes) / (1 << 30)
	perGiB := func(seconds float64) time.Duration { return time.Duration(seconds / gib * float64(time.Second)) }
	return cost{
		client: perGiB(done.Client.LoadSeconds),
		sink:   perGiB((cpuTime(sinkPID) - sink).Seconds()),
		wall:   perGiB(done.Result.Seconds),
	}, nil
}

// push runs terapush and reads its report. The sinks know no tables and no claims, so nothing but the load is sent; and
// a sink that drops the data in the kernel can only guess the rows, so nobody compares them.
func (p product) push(ctx context.Context, target string, workers, bytes int) (pushed, error) {
	state, err := os.MkdirTemp("", "terapush-bench-")
	if err != nil {
		return pushed{}, err
	}
	defer os.RemoveAll(state)
	return report(ctx, p.binary, append([]string{
		"push", target, "--json", "--progress", "none", "--state-dir", state,
		"--create", "never", "--delivery", "at-least-once", "--verify", "none",
		"--bytes", fmt.Sprint(bytes), "--distinct-bytes", fmt.Sprint(p.ring), "--workers", fmt.Sprint(workers),
	}, p.extra...))
}

func report(ctx context.Context, binary string, args []string) (pushed, error) {
	c := exec.CommandContext(ctx, binary, args...)
	var said bytes.Buffer // a sink that drops what comes is warned of in every turn
	c.Stderr = &said
	text, err := c.Output()
	if err != nil {
		return pushed{}, fmt.Errorf("%s: %w: %s", c, err, said.Bytes())
	}
	var p pushed
	if err := json.Unmarshal(text, &p); err != nil {
		return p, err
	}
	if p.Result.Outcome != "ok" {
		return p, errors.New("the push ended " + p.Result.Outcome)
	}
	return p, nil
}
