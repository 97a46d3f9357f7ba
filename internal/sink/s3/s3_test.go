package s3_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	client "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/s3"
)

func listen(t testing.TB, o sink.Options) *sink.Server {
	s, err := s3.Listen("127.0.0.1:0", o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// sdk returns what one gets who follows the SDK's manual, checksums included.
func sdk(t *testing.T, s *sink.Server, secret string, change ...func(*client.Options)) *client.Client {
	transport := awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) {
		tr.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the sink signs for itself
	})
	return client.New(client.Options{
		BaseEndpoint: aws.String("http://" + s.Addr()), UsePathStyle: true, Region: "us-east-1", HTTPClient: transport,
		Credentials:                credentials.NewStaticCredentialsProvider("anybody", secret, ""),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported,
		Retryer:                    retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Millisecond }),
	}, change...)
}

func overTLS(s *sink.Server) func(*client.Options) {
	return func(o *client.Options) { o.BaseEndpoint = aws.String("https://" + s.Addr()) }
}

func certificate(t *testing.T) *tls.Config {
	c, err := sink.SelfSigned()
	require.NoError(t, err)
	return c
}

func codeOf(t *testing.T, err error) string {
	var said smithy.APIError
	require.ErrorAs(t, err, &said)
	return said.ErrorCode()
}

func lines(n int) []byte { return bytes.Repeat([]byte("123456789\n"), n) }

// onlyReader is a body that cannot be read twice, so that its checksum comes behind it.
type onlyReader struct{ io.Reader }

func TestPutBySDK(t *testing.T) {
	body := lines(500_000)
	for name, c := range map[string]struct {
		options   sink.Options
		encrypted bool
		algorithm types.ChecksumAlgorithm
		stream    bool
		rows      int64
	}{
		"default checksum":            {rows: 500_000},
		"checked":                     {options: sink.Options{CRC: true}, rows: 500_000},
		"trailing checksum":           {options: sink.Options{CRC: true}, encrypted: true, stream: true, rows: 500_000},
		"over TLS":                    {options: sink.Options{CRC: true}, encrypted: true, rows: 500_000},
		"crc32c":                      {options: sink.Options{CRC: true}, algorithm: types.ChecksumAlgorithmCrc32c, rows: 500_000},
		"crc64nvme":                   {options: sink.Options{CRC: true}, encrypted: true, algorithm: types.ChecksumAlgorithmCrc64nvme, rows: 500_000},
		"sha1":                        {options: sink.Options{CRC: true}, algorithm: types.ChecksumAlgorithmSha1, rows: 500_000},
		"sha256":                      {options: sink.Options{CRC: true}, encrypted: true, algorithm: types.ChecksumAlgorithmSha256, rows: 500_000},
		"dropped":                     {options: sink.Options{NoCount: true}},
		"dropped, size of a row":      {options: sink.Options{NoCount: true, RowBytes: 10}, rows: 500_000},
		"dropped, trailing, over TLS": {options: sink.Options{NoCount: true, RowBytes: 10}, encrypted: true, rows: 500_000},
		"password":                    {options: sink.Options{Password: "secret"}, encrypted: true, rows: 500_000},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.TLS = certificate(t)
			s := listen(t, c.options)
			sdk := sdk(t, s, "secret")
			if c.encrypted {
				sdk = sdk2(sdk, overTLS(s))
			}
			in := &client.PutObjectInput{Bucket: aws.String("b"), Key: aws.String("a folder/ü+1.csv"), Body: bytes.NewReader(body),
				ChecksumAlgorithm: c.algorithm, Metadata: map[string]string{"terapush": "rows=1"}}
			if c.stream {
				in.Body, in.ContentLength = onlyReader{bytes.NewReader(body)}, aws.Int64(int64(len(body)))
			}
			for range 2 {
				if seeker, is := in.Body.(io.Seeker); is {
					_, err := seeker.Seek(0, io.SeekStart)
					require.NoError(t, err)
				} else {
					in.Body = onlyReader{bytes.NewReader(body)}
				}
				_, err := sdk.PutObject(t.Context(), in)
				require.NoError(t, err)
			}
			stats := s.Stats()
			require.Equal(t, 2*c.rows, stats.Rows)
			require.Equal(t, 2*int64(len(body)), stats.Bytes)

			head, err := sdk.HeadObject(t.Context(), &client.HeadObjectInput{Bucket: in.Bucket, Key: in.Key})
			require.NoError(t, err)
			require.Equal(t, int64(len(body)), aws.ToInt64(head.ContentLength))
			require.Equal(t, in.Metadata, head.Metadata)
		})
	}
}

func sdk2(c *client.Client, change func(*client.Options)) *client.Client {
	return client.New(c.Options(), change)
}

func TestUploadInParts(t *testing.T) {
	var table bytes.Buffer
	w := parquet.NewGenericWriter[struct{ ID int64 }](&table)
	_, err := w.Write(make([]struct{ ID int64 }, 777))
	require.NoError(t, err)
	require.NoError(t, w.Close())

	for name, c := range map[string]struct {
		key   string
		parts []string
		rows  int64
	}{
		"lines across parts": {"a.csv", []string{"1\n2", "2\n3", "3"}, 3},
		"lines":              {"a.csv", []string{"1\n", "2\n"}, 2},
		"an empty last part": {"a.csv", []string{"1\n2", ""}, 2},
		"parquet":            {"a.parquet", []string{table.String()[:50], table.String()[50:]}, 777},
		"parquet, one part":  {"a", []string{table.String()}, 777},
		"broken parquet":     {"a.parquet", []string{"PAR1\n\n", "\n\n"}, 0},
	} {
		for _, dropped := range []bool{false, true} {
			t.Run(fmt.Sprint(name, dropped), func(t *testing.T) {
				s := listen(t, sink.Options{NoCount: dropped, RowBytes: 1, CRC: !dropped})
				sdk := sdk(t, s, "x")
				begun, err := sdk.CreateMultipartUpload(t.Context(), &client.CreateMultipartUploadInput{Bucket: aws.String("b"), Key: &c.key})
				require.NoError(t, err)
				done := make([]types.CompletedPart, len(c.parts))
				size := int64(0)
				for i := len(c.parts) - 1; i >= 0; i-- { // in any order
					number := aws.Int32(int32(i + 1))
					p, err := sdk.UploadPart(t.Context(), &client.UploadPartInput{
						Bucket: begun.Bucket, Key: &c.key, UploadId: begun.UploadId, PartNumber: number, Body: strings.NewReader(c.parts[i]),
					})
					require.NoError(t, err)
					done[i] = types.CompletedPart{PartNumber: number, ETag: p.ETag}
					size += int64(len(c.parts[i]))
				}
				require.Zero(t, s.Stats().Rows, "rows are acknowledged with the object")
				_, err = sdk.CompleteMultipartUpload(t.Context(), &client.CompleteMultipartUploadInput{
					Bucket: begun.Bucket, Key: &c.key, UploadId: begun.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: done},
				})
				require.NoError(t, err)
				if want := c.rows; !dropped {
					require.Equal(t, want, s.Stats().Rows)
				} else {
					require.Equal(t, size, s.Stats().Rows)
				}
				require.Equal(t, size, s.Stats().Bytes)
				head, err := sdk.HeadObject(t.Context(), &client.HeadObjectInput{Bucket: begun.Bucket, Key: &c.key})
				require.NoError(t, err)
				require.Equal(t, size, aws.ToInt64(head.ContentLength))

				_, err = sdk.CompleteMultipartUpload(t.Context(), &client.CompleteMultipartUploadInput{
					Bucket: begun.Bucket, Key: &c.key, UploadId: begun.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: done},
				})
				require.Equal(t, "NoSuchUpload", codeOf(t, err))
			})
		}
	}
}

func TestUploadThatIsNot(t *testing.T) {
	s := listen(t, sink.Options{})
	sdk := sdk(t, s, "x")
	bucket, key := aws.String("b"), aws.String("k")
	begun, err := sdk.CreateMultipartUpload(t.Context(), &client.CreateMultipartUploadInput{Bucket: bucket, Key: key})
	require.NoError(t, err)
	complete := func(parts ...types.CompletedPart) error {
		_, err := sdk.CompleteMultipartUpload(t.Context(), &client.CompleteMultipartUploadInput{
			Bucket: bucket, Key: key, UploadId: begun.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts}})
		return err
	}
	put := func(number int32) *string {
		p, err := sdk.UploadPart(t.Context(), &client.UploadPartInput{Bucket: bucket, Key: key, UploadId: begun.UploadId,
			PartNumber: &number, Body: strings.NewReader("1\n")})
		require.NoError(t, err)
		return p.ETag
	}
	one, two := put(1), put(2)
	require.Equal(t, "InvalidPart", codeOf(t, complete(types.CompletedPart{PartNumber: aws.Int32(3), ETag: one})))
	require.Equal(t, "InvalidPart", codeOf(t, complete(types.CompletedPart{PartNumber: aws.Int32(1), ETag: two})))
	require.Equal(t, "InvalidPartOrder", codeOf(t, complete(
		types.CompletedPart{PartNumber: aws.Int32(2), ETag: two}, types.CompletedPart{PartNumber: aws.Int32(1), ETag: one})))
	require.Equal(t, "MalformedXML", codeOf(t, complete()))
	_, err = sdk.UploadPart(t.Context(), &client.UploadPartInput{Bucket: bucket, Key: aws.String("other"), UploadId: begun.UploadId,
		PartNumber: aws.Int32(1), Body: strings.NewReader("1\n")})
	require.Equal(t, "NoSuchUpload", codeOf(t, err))
	_, err = sdk.AbortMultipartUpload(t.Context(), &client.AbortMultipartUploadInput{Bucket: bucket, Key: key, UploadId: begun.UploadId})
	require.NoError(t, err)
	require.Equal(t, "NoSuchUpload", codeOf(t, complete(types.CompletedPart{PartNumber: aws.Int32(1), ETag: one})))
	require.Zero(t, s.Stats().Rows)
}

func TestOfBucketsAndObjects(t *testing.T) {
	s := listen(t, sink.Options{})
	sdk := sdk(t, s, "x")
	ctx, bucket := t.Context(), aws.String("b")
	_, err := sdk.CreateBucket(ctx, &client.CreateBucketInput{Bucket: bucket})
	require.NoError(t, err)
	_, err = sdk.CreateBucket(ctx, &client.CreateBucketInput{Bucket: bucket, CreateBucketConfiguration: &types.CreateBucketConfiguration{LocationConstraint: "eu-west-1"}})
	require.NoError(t, err)
	_, err = sdk.HeadBucket(ctx, &client.HeadBucketInput{Bucket: bucket})
	require.NoError(t, err)
	_, err = sdk.GetBucketLocation(ctx, &client.GetBucketLocationInput{Bucket: bucket})
	require.NoError(t, err)
	put := func(key string) {
		_, err := sdk.PutObject(ctx, &client.PutObjectInput{Bucket: bucket, Key: &key, Body: strings.NewReader("1\n2\n")})
		require.NoError(t, err)
	}
	say(t, s, puts("b/run/", 2500))
	put("other/1")
	put("top")

	var keys []string
	pages := client.NewListObjectsV2Paginator(sdk, &client.ListObjectsV2Input{Bucket: bucket, Prefix: aws.String("run/")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		require.NoError(t, err)
		for _, o := range page.Contents {
			keys = append(keys, *o.Key)
			require.EqualValues(t, 4, *o.Size)
		}
	}
	require.Len(t, keys, 2500)
	require.IsIncreasing(t, keys)

	for _, most := range []int32{1, 2, 1000} { // folders are one entry each, also where a page ends behind one
		var seen []string
		pages = client.NewListObjectsV2Paginator(sdk, &client.ListObjectsV2Input{Bucket: bucket, Delimiter: aws.String("/"), MaxKeys: &most})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			require.NoError(t, err)
			for _, p := range page.CommonPrefixes {
				seen = append(seen, *p.Prefix)
			}
			for _, o := range page.Contents {
				seen = append(seen, *o.Key)
			}
		}
		require.Equal(t, []string{"other/", "run/", "top"}, seen)
	}
	old, err := sdk.ListObjects(ctx, &client.ListObjectsInput{Bucket: bucket, MaxKeys: aws.Int32(1)})
	require.NoError(t, err)
	require.True(t, *old.IsTruncated)
	require.Equal(t, "other/1", *old.NextMarker)

	_, err = sdk.DeleteObject(ctx, &client.DeleteObjectInput{Bucket: bucket, Key: aws.String("top")})
	require.NoError(t, err)
	_, err = sdk.DeleteObjects(ctx, &client.DeleteObjectsInput{Bucket: bucket, Delete: &types.Delete{Objects: []types.ObjectIdentifier{{Key: aws.String("other/1")}}}})
	require.NoError(t, err)
	for _, key := range []string{"top", "other/1"} {
		_, err = sdk.HeadObject(ctx, &client.HeadObjectInput{Bucket: bucket, Key: &key})
		require.Equal(t, "NotFound", codeOf(t, err))
	}
	require.EqualValues(t, 2502*2, s.Stats().Rows)

	_, err = sdk.GetObject(ctx, &client.GetObjectInput{Bucket: bucket, Key: aws.String("run/00000.csv")})
	require.Equal(t, "NotImplemented", codeOf(t, err))
	_, err = sdk.GetObject(ctx, &client.GetObjectInput{Bucket: bucket, Key: aws.String("top")})
	require.Equal(t, "NoSuchKey", codeOf(t, err))
	_, err = sdk.CopyObject(ctx, &client.CopyObjectInput{Bucket: bucket, Key: aws.String("copy"), CopySource: aws.String("b/run/00000.csv")})
	require.Equal(t, "NotImplemented", codeOf(t, err))
	_, err = sdk.PutObjectTagging(ctx, &client.PutObjectTaggingInput{Bucket: bucket, Key: aws.String("run/00000.csv"), Tagging: &types.Tagging{TagSet: []types.Tag{}}})
	require.Equal(t, "NotImplemented", codeOf(t, err))
	require.EqualValues(t, 2502*2, s.Stats().Rows)
}

// What is remembered has a bound: the oldest is forgotten.
func TestObjectsAreForgotten(t *testing.T) {
	s := listen(t, sink.Options{})
	say(t, s, puts("b/", 10_001))
	for i, want := range map[int]int{0: http.StatusNotFound, 1: http.StatusOK, 10_000: http.StatusOK} {
		answer, err := http.Head(fmt.Sprintf("http://%s/b/%05d.csv", s.Addr(), i))
		require.NoError(t, err)
		_ = answer.Body.Close()
		require.Equal(t, want, answer.StatusCode, i)
	}
	require.EqualValues(t, 10_001*2, s.Stats().Rows)
}

// puts are requests for n objects of two rows, one behind the other.
func puts(folder string, n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, "PUT /%s%05d.csv HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n1\n2\n", folder, i)
	}
	return all.String()
}

func TestWrongPassword(t *testing.T) {
	s := listen(t, sink.Options{Password: "right"})
	_, err := sdk(t, s, "wrong").PutObject(t.Context(), &client.PutObjectInput{Bucket: aws.String("b"), Key: aws.String("k"), Body: strings.NewReader("1\n")})
	require.Equal(t, "SignatureDoesNotMatch", codeOf(t, err))
	answer, err := http.Get("http://" + s.Addr() + "/b/k")
	require.NoError(t, err)
	_ = answer.Body.Close()
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
	require.Zero(t, s.Stats().Bytes)
}

// The SDK sends again what was refused with SlowDown, and what was refused is not counted.
func TestToldToFail(t *testing.T) {
	s := listen(t, sink.Options{Fail: 2})
	sdk := sdk(t, s, "x")
	for range 5 {
		_, err := sdk.PutObject(t.Context(), &client.PutObjectInput{Bucket: aws.String("b"), Key: aws.String("k"), Body: bytes.NewReader(lines(10))})
		require.NoError(t, err)
	}
	require.EqualValues(t, 50, s.Stats().Rows)
	require.Positive(t, s.Stats().Failed)
	sdk = sdk2(sdk, func(o *client.Options) { o.Retryer = aws.NopRetryer{} })
	var err error
	for range 2 {
		if _, failed := sdk.PutObject(t.Context(), &client.PutObjectInput{Bucket: aws.String("b"), Key: aws.String("k"), Body: bytes.NewReader(lines(10))}); failed != nil {
			err = failed
		}
	}
	require.Equal(t, "SlowDown", codeOf(t, err))
}

func curl(t *testing.T, args ...string) string {
	path, err := exec.LookPath("curl")
	if err != nil && os.Getenv("CI") != "true" {
		t.Skip("curl is not installed")
	}
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, err := exec.CommandContext(ctx, path, append([]string{"--silent", "--show-error", "--insecure", "--max-time", "60"}, args...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func TestCurl(t *testing.T) {
	s := listen(t, sink.Options{TLS: certificate(t), Password: "secret"})
	file := filepath.Join(t.TempDir(), "rows.csv")
	require.NoError(t, os.WriteFile(file, lines(200_000), 0o600))
	for _, scheme := range []string{"http", "https"} {
		out := curl(t, "--aws-sigv4", "aws:amz:us-east-1:s3", "--user", "me:secret", "-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD",
			"-w", "%{http_code}", "-T", file, scheme+"://"+s.Addr()+"/bucket/rows.csv")
		require.Equal(t, "200", out)
	}
	require.EqualValues(t, 400_000, s.Stats().Rows)
	require.EqualValues(t, 4_000_000, s.Stats().Bytes)
}

func TestS5cmd(t *testing.T) {
	path, err := exec.LookPath("s5cmd")
	if err != nil {
		t.Skip("s5cmd is not installed")
	}
	s := listen(t, sink.Options{})
	file := filepath.Join(t.TempDir(), "rows.csv")
	require.NoError(t, os.WriteFile(file, lines(2_000_000), 0o600))
	for _, args := range [][]string{{"cp", file, "s3://b/one.csv"}, {"cp", "--part-size", "5", file, "s3://b/parts.csv"}, {"ls", "s3://b/"}} {
		c := exec.CommandContext(t.Context(), path, append([]string{"--endpoint-url", "http://" + s.Addr()}, args...)...)
		c.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "AWS_REGION=us-east-1")
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	require.EqualValues(t, 4_000_000, s.Stats().Rows)
}
