//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// product is the built terapush. Its CPU time cannot be read from outside without its start-up, the filling of the
// ring; so two pushes over the same ring are run, a short and a long one, and their difference is what pushing costs.
type product struct {
	binary string
	ring   int // bytes of column data in the ring
}

// extra is how many rings more the long push sends.
const extra = 4

// pushed is what the report of a push says.
type pushed struct {
	Result struct {
		Outcome      string
		Rows         int64
		EncodedBytes int64 `json:"encoded_bytes"`
		Seconds      float64
	}
	Client struct {
		User   float64 `json:"cpu_user_seconds"`
		System float64 `json:"cpu_system_seconds"`
	}
}

func (p pushed) cpu() time.Duration {
	return time.Duration((p.Client.User + p.Client.System) * float64(time.Second))
}

// cost is the client's CPU and wall time per encoded GiB, start-up excluded.
func (p product) cost(ctx context.Context, target string, workers, sinkPID int) (cost, error) {
	short, err := p.push(ctx, target, workers, p.ring)
	if err != nil {
		return cost{}, err
	}
	sink := cpuTime(sinkPID)
	long, err := p.push(ctx, target, workers, (1+extra)*p.ring)
	if err != nil {
		return cost{}, err
	}
	gib := float64(long.Result.EncodedBytes) / (1 << 30)
	more := float64(long.Result.EncodedBytes-short.Result.EncodedBytes) / (1 << 30)
	return cost{
		client: time.Duration(float64(long.cpu()-short.cpu()) / more),
		sink:   time.Duration(float64(cpuTime(sinkPID)-sink) / gib),
		wall:   time.Duration(long.Result.Seconds * float64(time.Second) / gib),
	}, nil
}

// push runs terapush and reads its report. The sinks know no tables and no claims, so nothing but the load is sent.
func (p product) push(ctx context.Context, target string, workers, bytes int) (pushed, error) {
	state, err := os.MkdirTemp("", "terapush-bench-")
	if err != nil {
		return pushed{}, err
	}
	defer os.RemoveAll(state)
	return report(ctx, p.binary, []string{
		"push", target, "--json", "--progress", "none", "--state-dir", state,
		"--create", "never", "--delivery", "at-least-once", "--verify", "ack",
		"--bytes", fmt.Sprint(bytes), "--distinct-bytes", fmt.Sprint(p.ring), "--workers", fmt.Sprint(workers),
	})
}

func report(ctx context.Context, binary string, args []string) (pushed, error) {
	c := exec.CommandContext(ctx, binary, args...)
	c.Stderr = os.Stderr
	text, err := c.Output()
	if err != nil {
		return pushed{}, fmt.Errorf("%s: %w", c, err)
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
