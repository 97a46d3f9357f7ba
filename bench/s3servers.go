//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"github.com/terapush/terapush/pkg/loader"
)

// againstS3 lets everybody put the same bytes into a real store, where TERAPUSH_TEST_S3 names one.
func againstS3(ctx context.Context, o options, stdout io.Writer) error {
	text := os.Getenv("TERAPUSH_TEST_S3")
	if text == "" || !o.wants("s3") {
		return nil
	}
	t, err := loader.ParseTarget(text)
	if err != nil {
		return err
	}
	t.Database = strings.Trim(t.Database, "/") + fmt.Sprintf("/bench-%x", time.Now().UnixNano())
	put, _ := method("s3")
	r, err := newEncodedRing(ctx, put.Caps.Formats[0], o.loadBytes, o.bodyBytes, 0)
	if err != nil {
		return err
	}
	defer r.free()
	sdk, err := stockSDK(ctx, t.Params.Get("endpoint"), t.Params.Get("region"))
	if err != nil {
		return err
	}
	session, err := openSession(ctx, t.String(), put, loader.Preparation{Create: loader.CreateNever, Silent: true})
	if err != nil {
		return err
	}
	contenders := []contender{
		inParallel(r, "SDK's default client", func(ctx context.Context, i int) error {
			return putObject(ctx, sdk, t.Hosts[0], t.Database+"/sdk/"+fmt.Sprint(i), r.bodies[i])
		}),
		inParallel(r, "terapush's sessions", func(ctx context.Context, i int) error { return loadBatch(ctx, session, "bench", i, r) }),
	}
	if s5cmd, err := exec.LookPath("s5cmd"); err == nil {
		folder, err := writeFiles(r)
		if err != nil {
			return err
		}
		defer os.RemoveAll(folder)
		contenders = append(contenders, contender{name: "s5cmd", turn: func(ctx context.Context) (cost, error) {
			return copyFiles(ctx, s5cmd, folder, t, r)
		}})
	}
	costs, err := takeTurns(ctx, o.rounds, contenders)
	if err != nil {
		return errors.Join(err, removeAll(ctx, sdk, t))
	}
	fmt.Fprintf(stdout, "\n%s: to put a GiB as objects of %d bytes, %d at a time\n", t.Params.Get("endpoint"), len(r.bodies[0]), defaultWorkers)
	printTable(stdout, "seconds/GiB", contenders, costs, func(c cost) float64 { return c.wall.Seconds() })
	printTable(stdout, "client CPU s/GiB", contenders, costs, func(c cost) float64 { return c.client.Seconds() })
	return removeAll(ctx, sdk, t)
}

// inParallel does the same with every body of the ring, four at a time.
func inParallel(r *ring, name string, push func(ctx context.Context, i int) error) contender {
	return contender{name: name, turn: func(ctx context.Context) (cost, error) {
		spent, err := measure(ctx, func(ctx context.Context, r *ring) (int64, error) {
			all, ctx := errgroup.WithContext(ctx)
			all.SetLimit(defaultWorkers)
			for i := range r.bodies {
				all.Go(func() error { return push(ctx, i) })
			}
			return r.rows, all.Wait()
		}, r, 0)
		spent.sink = 0 // the server's CPU time is not ours to read
		return spent, err
	}}
}

// writeFiles makes a file of every body, for those who read files.
func writeFiles(r *ring) (folder string, err error) {
	if folder, err = os.MkdirTemp("", "terapush-bench-"); err != nil {
		return "", err
	}
	for i, b := range r.bodies {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprint(i)), b, 0o600); err != nil {
			return folder, err
		}
	}
	return folder, nil
}

func copyFiles(ctx context.Context, s5cmd, folder string, t loader.Target, r *ring) (cost, error) {
	c := exec.CommandContext(ctx, s5cmd, "--endpoint-url", t.Params.Get("endpoint"), "--log", "error", "--numworkers", fmt.Sprint(defaultWorkers),
		"cp", "--concurrency", "1", "--part-size", "5000", folder+"/", (&url.URL{Scheme: "s3", Host: t.Hosts[0], Path: "/" + t.Database + "/s5cmd/"}).String())
	start := time.Now()
	if out, err := c.CombinedOutput(); err != nil {
		return cost{}, fmt.Errorf("s5cmd: %w: %s", err, out)
	}
	perGiB := func(d time.Duration) time.Duration { return time.Duration(float64(d) / float64(r.bytes()) * (1 << 30)) }
	return cost{client: perGiB(c.ProcessState.UserTime() + c.ProcessState.SystemTime()), wall: perGiB(time.Since(start))}, nil
}

// removeAll removes what this bench has put, and nothing else.
func removeAll(ctx context.Context, client *s3.Client, t loader.Target) error {
	prefix := t.Database + "/"
	pages := s3.NewListObjectsV2Paginator(client, &s3.ListObjectsV2Input{Bucket: &t.Hosts[0], Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, found := range page.Contents {
			if _, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &t.Hosts[0], Key: found.Key}); err != nil {
				return err
			}
		}
	}
	return nil
}
