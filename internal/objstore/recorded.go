package objstore

import (
	"cmp"
	"net/http"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/pkg/loader"
)

// Recorded returns a store for loader.Driver.Explain. It is empty, and write gets a line for each request. Nothing is
// read but the target: REGION and *** stand for what else a run finds out.
func Recorded(t loader.Target, write func(request string)) *Store {
	p, _ := placeOf(t) // Check returns the error
	p.region = cmp.Or(p.region, "REGION")
	s := &Store{place: p}

	put := http.Header{}
	s.http = httpload.Recorded(func(r *http.Request) httpload.Response {
		name, answer := "s3:/"+r.URL.Path, httpload.Response{Status: http.StatusOK}
		switch r.Method {
		case http.MethodGet:
			write("LIST s3://" + p.bucket + "/" + r.URL.Query().Get("prefix"))
			answer.Body = []byte("<ListBucketResult/>")
		case http.MethodPut:
			write("PUT " + name)
			put = r.Header.Clone()
			put.Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
		case http.MethodHead:
			write("HEAD " + name)
			answer.Header = put // every object is as the one batch
		case http.MethodPost:
			write("POST " + name + "?delete")
		default:
			write(r.Method + " " + name)
		}
		return answer
	})
	s.client = s3.New(s3.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://store"), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider("***", "***", ""), HTTPClient: &sender{http: s.http},
	}, sendOnce)
	return s
}
