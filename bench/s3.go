//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// anyKeys sets credentials, where the caller has none: the sink takes any.
func anyKeys() error {
	if os.Getenv("AWS_ACCESS_KEY_ID") != "" {
		return nil
	}
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench"} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

// stockSDK is what one gets who follows the SDK's manual.
func stockSDK(ctx context.Context, endpoint, region string) (*s3.Client, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(region))
	if err != nil {
		return nil, err
	}
	return s3.NewFromConfig(cfg, func(o *s3.Options) { o.BaseEndpoint, o.UsePathStyle = &endpoint, true }), nil
}

func putObjects(ctx context.Context, client *s3.Client, r *ring) (rows int64, err error) {
	for i, b := range r.bodies {
		if err := putObject(ctx, client, "bench", fmt.Sprint(i), b); err != nil {
			return 0, err
		}
		rows += r.bodyRows()
	}
	return rows, nil
}

func putObject(ctx context.Context, client *s3.Client, bucket, key string, b []byte) error {
	_, err := client.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(b)})
	return err
}
