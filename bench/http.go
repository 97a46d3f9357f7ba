//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// request is what a body is put with by those who do it by hand. Its zero value but for the path is an object's.
type request struct {
	path       string // "%d" in it is the body's number
	header     map[string]string
	head, tail string // around the rows
	loaded     string // what an answer has to say, with "%d" for the rows; "" where it says nothing about them
}

// boundary is no row's: rows have no blanks.
const boundary = "-- a boundary --"

// requests are those of the families that are loaded over HTTP, against the sink: the least that each of them needs.
func requests(family string) request {
	switch family {
	case "databend":
		return streamingRequest()
	case "doris":
		return request{ // straight to the backend
			path: "/api/bench/terapush_bench/_stream_load", header: map[string]string{"line_delimiter": `\x02`},
			loaded: `"NumberLoadedRows":%d`,
		}
	default:
		return request{path: "/bench/%d"}
	}
}

func streamingRequest() request {
	return request{
		path:   "/v1/streaming_load",
		header: map[string]string{"Content-Type": `multipart/form-data; boundary="` + boundary + `"`},
		head: "--" + boundary + "\r\nContent-Disposition: form-data; name=\"upload\"; filename=\"bench.csv\"\r\n" +
			"Content-Type: application/octet-stream\r\n\r\n",
		tail:   "\r\n--" + boundary + "--\r\n",
		loaded: `"rows":%d`,
	}
}

func (q request) pathOf(i int) string { return strings.ReplaceAll(q.path, "%d", fmt.Sprint(i)) }

func (q request) size(b []byte) int { return len(q.head) + len(b) + len(q.tail) }

// webContenders push into the sink of a family. Those by hand use one connection, and send no password.
func webContenders(ctx context.Context, family string, s *sinkProcess, r *ring, m loader.Method) ([]contender, error) {
	raw, err := net.Dial("tcp", s.addresses["raw"])
	if err != nil {
		return nil, err
	}
	loop, err := net.Dial("tcp", s.addresses[family])
	if err != nil {
		return nil, err
	}
	answers := bufio.NewReader(loop)
	stock, q := &http.Client{Transport: &http.Transport{}}, requests(family)
	session, err := openSession(ctx, s.url(family), m, loader.Preparation{Create: loader.CreateNever, Silent: true})
	if err != nil {
		return nil, err
	}
	all := []contender{
		inProcess(loopName, s, r, func(_ context.Context, r *ring) (int64, error) {
			_, err := writeLoop(raw, r) // it is answered in lines, and Doris' rows are none
			return r.rows, err
		}),
		inProcess("PUT by hand, 256 KiB writes", s, r, func(_ context.Context, r *ring) (int64, error) { return putLoop(loop, answers, q, r) }),
		inProcess("PUT by net/http", s, r, func(ctx context.Context, r *ring) (int64, error) {
			return netHTTP(ctx, stock, "http://"+s.addresses[family], q, r)
		}),
	}
	if family == "s3" {
		sdk, err := stockSDK(ctx, "http://"+s.addresses[family], "us-east-1")
		if err != nil {
			return nil, err
		}
		all = append(all, inProcess("SDK's default client", s, r, func(ctx context.Context, r *ring) (int64, error) { return putObjects(ctx, sdk, r) }))
	}
	return append(all,
		inProcess("terapush's session alone", s, r, func(ctx context.Context, r *ring) (int64, error) { return loadBatches(ctx, session, r) })), nil
}

// putLoop is the least that HTTP asks for.
func putLoop(c net.Conn, answers *bufio.Reader, q request, r *ring) (rows int64, err error) {
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(q.header)) {
		fmt.Fprintf(&lines, "%s: %s\r\n", name, q.header[name])
	}
	for i, b := range r.bodies {
		head := fmt.Sprintf("PUT %s HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %d\r\n\r\n%s",
			q.pathOf(i), c.RemoteAddr(), lines.String(), q.size(b), q.head)
		if _, err := io.WriteString(c, head); err != nil {
			return 0, err
		}
		for len(b) > 0 {
			n := min(len(b), writeBytes)
			if _, err := c.Write(b[:n]); err != nil {
				return 0, err
			}
			b = b[n:]
		}
		if _, err := io.WriteString(c, q.tail); err != nil {
			return 0, err
		}
		answer, err := http.ReadResponse(answers, nil)
		if err := q.check(answer, err, r.bodyRows()); err != nil {
			return 0, err
		}
		rows += r.bodyRows()
	}
	return rows, nil
}

func netHTTP(ctx context.Context, client *http.Client, url string, q request, r *ring) (rows int64, err error) {
	for i, b := range r.bodies {
		var body io.Reader = bytes.NewReader(b)
		if q.head != "" {
			body = io.MultiReader(strings.NewReader(q.head), body, strings.NewReader(q.tail))
		}
		put, err := http.NewRequestWithContext(ctx, http.MethodPut, url+q.pathOf(i), body)
		if err != nil {
			return 0, err
		}
		put.ContentLength = int64(q.size(b))
		for name, value := range q.header {
			put.Header.Set(name, value)
		}
		answer, err := client.Do(put)
		if err := q.check(answer, err, r.bodyRows()); err != nil {
			return 0, err
		}
		rows += r.bodyRows()
	}
	return rows, nil
}

// check reads an answer.
func (q request) check(answer *http.Response, err error, rows int64) error {
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	want := strings.ReplaceAll(q.loaded, "%d", fmt.Sprint(rows))
	// Some write JSON with blanks and some without.
	said := strings.ReplaceAll(string(text), " ", "")
	if answer.StatusCode != http.StatusOK || want != "" && !strings.Contains(said, want+",") && !strings.Contains(said, want+"}") {
		return fmt.Errorf("put by hand: %s, %.300s; it should say %s", answer.Status, text, want)
	}
	return nil
}
