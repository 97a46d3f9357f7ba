package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sink"
)

func TestRun(t *testing.T) {
	stdin, parent := io.Pipe()
	output, stdout := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(context.Background(), []string{"-stdin", "-tcp=127.0.0.1:0", "-mysql=127.0.0.1:0"}, stdin, stdout)
	}()
	out := json.NewDecoder(output)
	addresses, taken := map[string]string{}, map[string]sink.Stats{}
	require.NoError(t, out.Decode(&addresses))
	require.Len(t, addresses, 2)

	c, err := net.Dial("tcp", addresses["tcp"])
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write([]byte("\x00\x00\x00\x00\x00\x00\x00\x03a\nb"))
	require.NoError(t, err)
	answer := make([]byte, 8)
	_, err = io.ReadFull(c, answer)
	require.NoError(t, err)
	assert.EqualValues(t, 2, answer[7])

	parent.Close()
	require.NoError(t, out.Decode(&taken))
	assert.Equal(t, sink.Stats{Connections: 1, Statements: 1, Bytes: 3, Rows: 2}, taken["tcp"])
	assert.NoError(t, <-ended)
}

func TestRunFails(t *testing.T) {
	for _, arg := range []string{"-tcp=127.0.0.1:99999", "-postgres=nowhere", "-what"} {
		assert.Error(t, run(context.Background(), []string{arg}, strings.NewReader(""), io.Discard), arg)
	}
}
