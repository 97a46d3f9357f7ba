//go:build !unix

// Package demo runs a real PostgreSQL for a few minutes, on Unix.
package demo

import (
	"context"
	"errors"
	"io"
)

type Server struct{}

func Start(context.Context, string, io.Writer) (*Server, error) {
	return nil, errors.New("the demo runs on Unix: push to a PostgreSQL of your own: terapush push postgres://user@host/database")
}

func StopKept(context.Context, string) (int, error) { return 0, nil }

func (*Server) URL() string              { return "" }
func (*Server) Access() (string, string) { return "", "" }
func (*Server) Dir() string              { return "" }
func (*Server) Stop() error              { return nil }
func (*Server) Keep() error              { return nil }
