package backendtest

import (
	"io"
	"net/http/httptest"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/terapush/terapush/pkg/loader"
)

// Store is an S3 server in memory with one bucket.
type Store struct {
	backend *s3mem.Backend
	url     string
}

// StartStore starts a store that ends with the test.
func StartStore(t testing.TB) Store {
	t.Helper()
	s := Store{backend: s3mem.New()}
	if err := s.backend.CreateBucket("bucket"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(s.backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// Target names the folder "in" of the bucket.
func (s Store) Target(t testing.TB) *loader.Target {
	t.Helper()
	via, err := loader.ParseTarget("s3://bucket/in?path_style=true&region=eu-central-1&endpoint=" + s.url)
	if err != nil {
		t.Fatal(err)
	}
	return &via
}

// Read returns an object of the bucket.
func (s Store) Read(key string) ([]byte, error) {
	o, err := s.backend.GetObject("bucket", key, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = o.Contents.Close() }()
	return io.ReadAll(o.Contents)
}
