//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// iperfReport is what iperf3 -J says when it is done.
type iperfReport struct {
	Error string
	End   struct {
		Sent struct {
			Bytes   int64
			Seconds float64
		} `json:"sum_sent"`
		CPU struct { // percent of one core, user and system
			Client float64 `json:"host_total"`
			Server float64 `json:"remote_total"`
		} `json:"cpu_utilization_percent"`
	}
}

// iperf3 is a contender that sends so many bytes with iperf3, in writes as large as everybody's. It sends one buffer of
// that size over and over, which the caches hold, and its server copies what comes. stop ends the server. Where there is
// no iperf3, the contender says so.
func iperf3(ctx context.Context, bytes int) (made contender, stop func(), err error) {
	made = contender{name: fmt.Sprintf("iperf3 -P %d", defaultWorkers)}
	binary, _ := exec.LookPath("iperf3") // "" where there is none
	if binary == "" {
		made.missing = "not installed: scripts/tools iperf3"
		return made, func() {}, nil
	}
	port, err := freePort()
	if err != nil {
		return contender{}, nil, err
	}
	server := exec.CommandContext(ctx, binary, "--server", "--bind", "127.0.0.1", "--port", port, "--forceflush")
	said, err := server.StdoutPipe()
	if err != nil {
		return contender{}, nil, err
	}
	if err := server.Start(); err != nil {
		return contender{}, nil, fmt.Errorf("starting iperf3's server: %w", err)
	}
	stop = func() {
		_ = server.Process.Kill() // it would go on for ever
		_ = server.Wait()
	}
	lines := bufio.NewReader(said)
	for line := ""; !strings.Contains(line, "listening"); {
		if line, err = lines.ReadString('\n'); err != nil {
			stop()
			return contender{}, nil, fmt.Errorf("iperf3's server does not listen: %w", err)
		}
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }() // or it stands still when the pipe is full
	made.turn = func(ctx context.Context) (cost, error) {
		return iperfTurn(exec.CommandContext(ctx, binary, "--client", "127.0.0.1", "--port", port, "--json",
			"--parallel", strconv.Itoa(defaultWorkers), "--length", strconv.Itoa(writeBytes), "--bytes", strconv.Itoa(bytes)))
	}
	return made, stop, nil
}

// iperfTurn runs the client and reads its report.
func iperfTurn(client *exec.Cmd) (cost, error) {
	text, failed := client.Output()
	var r iperfReport
	if err := json.Unmarshal(text, &r); err != nil {
		return cost{}, errors.Join(failed, fmt.Errorf("reading iperf3's report: %w", err))
	}
	if r.Error != "" || failed != nil || r.End.Sent.Bytes == 0 {
		return cost{}, errors.Join(failed, errors.New(r.Error))
	}
	perGiB := r.End.Sent.Seconds / float64(r.End.Sent.Bytes) * (1 << 30) * float64(time.Second)
	return cost{
		client: time.Duration(perGiB * r.End.CPU.Client / 100),
		sink:   time.Duration(perGiB * r.End.CPU.Server / 100),
		wall:   time.Duration(perGiB),
	}, nil
}

// freePort is one that nobody listens on: iperf3 cannot choose its own and tell it.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}
