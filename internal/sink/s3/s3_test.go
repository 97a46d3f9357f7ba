package s3_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
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
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/s3"
	"github.com/terapush/terapush/internal/sink/sinktest"
)

func listen(t testing.TB, o sink.Options) *sink.Server { return sinktest.Open(t, s3.Listen, o) }

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

func codeOf(t *testing.T, err error) string {
	var said smithy.APIError
	require.ErrorAs(t, err, &said)
	return said.ErrorCode()
}

func lines(n int) []byte { return bytes.Repeat([]byte("123456789\n"), n) }

// onlyReader is a body that cannot be read twice, so that its checksum comes behind it.
type onlyReader struct{ io.Reader }

func TestPutBySDK(t *testing.T) {
	body := lines(100_000)
	counted, dropped := sink.Options{CRC: true}, sink.Options{NoCount: true, RowBytes: 10}
	for name, c := range map[string]struct {
		options   sink.Options
		encrypted bool
		algorithm types.ChecksumAlgorithm
		stream    bool
		rows      int64
	}{
		"default checksum":            {options: counted, rows: 100_000},
		"trailing checksum, over TLS": {options: counted, encrypted: true, stream: true, rows: 100_000},
		"crc64nvme":                   {options: counted, algorithm: types.ChecksumAlgorithmCrc64nvme, rows: 100_000},
		"sha256, over TLS":            {options: counted, encrypted: true, algorithm: types.ChecksumAlgorithmSha256, rows: 100_000},
		"dropped":                     {options: sink.Options{NoCount: true}},
		"dropped, size of a row":      {options: dropped, rows: 100_000},
		"dropped, trailing, over TLS": {options: dropped, encrypted: true, stream: true, rows: 100_000},
		"over TLS":                    {encrypted: true, rows: 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.TLS = sinktest.TLS(t)
			s := listen(t, c.options)
			sdk := sdk(t, s, "secret", func(o *client.Options) {
				if c.encrypted {
					o.BaseEndpoint = aws.String("https://" + s.Addr())
				}
			})
			in := &client.PutObjectInput{
				Bucket: aws.String("b"), Key: aws.String("a folder/ü+1.csv"), ContentLength: aws.Int64(int64(len(body))),
				ChecksumAlgorithm: c.algorithm, Metadata: map[string]string{"terapush": "rows=1"},
			}
			for range 2 {
				in.Body = bytes.NewReader(body)
				if c.stream {
					in.Body = onlyReader{in.Body}
				}
				_, err := sdk.PutObject(t.Context(), in)
				require.NoError(t, err)
			}
			require.Equal(t, []int64{2 * c.rows, 2 * int64(len(body))}, []int64{s.Stats().Rows, s.Stats().Bytes})
			head, err := sdk.HeadObject(t.Context(), &client.HeadObjectInput{Bucket: in.Bucket, Key: in.Key})
			require.NoError(t, err)
			require.Equal(t, int64(len(body)), aws.ToInt64(head.ContentLength))
			require.Equal(t, in.Metadata, head.Metadata)
		})
	}
}

func TestOfBucketsAndObjects(t *testing.T) {
	s := listen(t, sink.Options{})
	sdk := sdk(t, s, "x")
	ctx, bucket := t.Context(), aws.String("b")
	_, err := sdk.HeadBucket(ctx, &client.HeadBucketInput{Bucket: bucket})
	require.NoError(t, err)
	sinktest.Say(t, s, puts("b/run/", 2500)+put("b/other/1")+put("b/top")+put("bb/top"))
	list := func(in *client.ListObjectsV2Input) (seen []string) {
		in.Bucket = bucket
		for pages := client.NewListObjectsV2Paginator(sdk, in); pages.HasMorePages(); {
			page, err := pages.NextPage(ctx)
			require.NoError(t, err)
			for _, o := range page.Contents {
				seen = append(seen, *o.Key)
				require.EqualValues(t, 4, *o.Size)
			}
		}
		return seen
	}
	keys := list(&client.ListObjectsV2Input{Prefix: aws.String("run/")})
	require.Len(t, keys, 2500)
	require.IsIncreasing(t, keys)
	require.Equal(t, keys[2400:], list(&client.ListObjectsV2Input{Prefix: aws.String("run/"), StartAfter: &keys[2399], MaxKeys: aws.Int32(7)}))
	require.Equal(t, "other/1", list(&client.ListObjectsV2Input{})[0])

	_, err = sdk.DeleteObject(ctx, &client.DeleteObjectInput{Bucket: bucket, Key: aws.String("top")})
	require.NoError(t, err)
	_, err = sdk.DeleteObjects(ctx, &client.DeleteObjectsInput{Bucket: bucket, Delete: &types.Delete{Objects: []types.ObjectIdentifier{{Key: aws.String("other/1")}}}})
	require.ErrorContains(t, err, "there is no POST ?delete", "where a push deletes one by one")
	_, err = sdk.HeadObject(ctx, &client.HeadObjectInput{Bucket: bucket, Key: aws.String("top")})
	require.Equal(t, "NotFound", codeOf(t, err))
	require.EqualValues(t, 2503*2, s.Stats().Rows)

	_, err = sdk.GetObject(ctx, &client.GetObjectInput{Bucket: bucket, Key: aws.String("run/00000.csv")})
	require.Equal(t, "NotImplemented", codeOf(t, err))
	_, err = sdk.CreateMultipartUpload(ctx, &client.CreateMultipartUploadInput{Bucket: bucket, Key: aws.String("parts")})
	require.ErrorContains(t, err, "objects are put whole, counted and forgotten: there is no POST ?uploads")
	_, err = sdk.CreateBucket(ctx, &client.CreateBucketInput{Bucket: bucket})
	require.ErrorContains(t, err, "name it in the path")
	_, err = sdk.CopyObject(ctx, &client.CopyObjectInput{Bucket: bucket, Key: aws.String("copy"), CopySource: aws.String("b/run/00000.csv")})
	require.Equal(t, "NotImplemented", codeOf(t, err))
}

// put is a request for an object of two rows.
func put(name string) string {
	return "PUT /" + name + " HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n1\n2\n"
}

// puts are requests for n objects, one behind the other.
func puts(folder string, n int) string {
	var all strings.Builder
	for i := range n {
		all.WriteString(put(fmt.Sprintf("%s%05d.csv", folder, i)))
	}
	return all.String()
}

// The SDK sends again what was refused with SlowDown, and what was refused is not counted.
func TestToldToFail(t *testing.T) {
	s := listen(t, sink.Options{Fail: 2})
	put := func(sdk *client.Client) error {
		_, err := sdk.PutObject(t.Context(), &client.PutObjectInput{Bucket: aws.String("b"), Key: aws.String("k"), Body: bytes.NewReader(lines(10))})
		return err
	}
	for range 5 {
		require.NoError(t, put(sdk(t, s, "x")))
	}
	require.Equal(t, []int64{50, 4}, []int64{s.Stats().Rows, s.Stats().Failed})
	require.Equal(t, "SlowDown", codeOf(t, put(sdk(t, s, "x", func(o *client.Options) { o.Retryer = aws.NopRetryer{} }))))
}

func TestCurl(t *testing.T) {
	s := listen(t, sink.Options{TLS: sinktest.TLS(t)})
	for _, scheme := range []string{"http", "https"} {
		out := sinktest.Curl(t, string(lines(200_000)), "--aws-sigv4", "aws:amz:us-east-1:s3", "--user", "me:secret",
			"-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD", "-w", "%{http_code}", "-T", "-", scheme+"://"+s.Addr()+"/bucket/rows.csv")
		require.Equal(t, "200", out)
	}
	require.Equal(t, []int64{400_000, 4_000_000}, []int64{s.Stats().Rows, s.Stats().Bytes})
}
