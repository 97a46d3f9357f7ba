package dataset

import (
	"math/bits"
	"slices"
	"strconv"

	"github.com/terapush/terapush/pkg/rows"
)

const httplogsName = "httplogs"

// httplogs is the log of a web server: a time, an address, a request, its status and the size of the answer. A row has
// some 90 bytes of column data, half of them the request. The time is the key and advances by a microsecond a row, so it is
// unique and sorted. Tables of logs are partitioned and searched by it.
//
// The texts are composed from lists, so they compress as those of logs do.
type httplogs struct {
	schema   rows.Schema
	start    uint64     // state of the stream at row 0
	octets   []text     // of an address in decimal, with a point at the end
	parts    [4][]text  // of a request, in this order; of each a power of two
	end      text       // of every request
	statuses [128]int64 // drawn uniformly; common ones are repeated
}

// The columns, by their position in the schema.
const (
	httplogsTime    = 0
	httplogsIP      = 1
	httplogsRequest = 2
	httplogsStatus  = 3
	httplogsSize    = 4
)

const (
	httplogsBase = 20_454 * dayMicros // 2026-01-01 00:00:00, the time of row 0, in microseconds since 1970

	httplogsID     = 8 // hexadecimal digits of a request's id
	httplogsEnd    = " HTTP/1.1"
	notModified    = 304
	smallestAnswer = 8 // bits of its size; the largest has twice as many
)

func newHTTPLogs(o Options) Dataset {
	d := &httplogs{start: mix(o.Seed), end: newTexts(httplogsEnd)[0], parts: [...][]text{
		newTexts("GET /", "GET /", "GET /", "GET /", "GET /", "GET /", "POST /", "HEAD /"),
		newTexts(
			"api/v1/orders/", "api/v1/users/", "api/v2/products/", "assets/css/", "assets/fonts/", "assets/js/", "blog/2025/",
			"blog/2026/", "cart/items/", "docs/guides/", "docs/reference/", "download/", "images/icons/", "images/products/",
			"news/", "search/",
		),
		newTexts("details", "index", "list", "overview", "reviews", "summary", "thumbnail", "update"),
		newTexts(".html?id=", ".json?page=", ".png?v=", "?session="),
	}}
	longest := httplogsID + len(httplogsEnd)
	for _, texts := range d.parts {
		longest += slices.MaxFunc(texts, func(a, b text) int { return a.length - b.length }).length
	}
	for i := range 256 {
		d.octets = append(d.octets, newTexts(strconv.Itoa(i)+".")...)
	}
	var statuses []int64
	for _, s := range []struct {
		status int64
		times  int
	}{{200, 100}, {notModified, 9}, {301, 3}, {302, 3}, {404, 7}, {403, 2}, {500, 2}, {503, 2}} {
		statuses = append(statuses, slices.Repeat([]int64{s.status}, s.times)...)
	}
	copy(d.statuses[:], statuses)
	d.schema = rows.Schema{
		Dataset: httplogsName,
		Columns: []rows.Column{
			{Name: "ts", Type: rows.Timestamp, Derived: true},
			{Name: "client_ip", Type: rows.Text, MaxBytes: len("255.255.255.255"), Plain: true},
			{Name: "request", Type: rows.Text, MaxBytes: longest, Plain: true},
			{Name: "status", Type: rows.Int64},
			{Name: "size", Type: rows.Int64},
		},
		Number:       []rows.Term{{Column: httplogsTime, Minus: httplogsBase, Times: 1}},
		MeanRowBytes: 86,
	}
	return d
}

func (d *httplogs) Schema() rows.Schema { return d.schema }

// Fill draws three words of the stream for each row.
func (d *httplogs) Fill(dst *rows.Block, first int64, n int) {
	dst.Reset(n)
	addresses, requests := longTexts(&dst.Columns[httplogsIP], n, d.schema.Columns[httplogsIP].MaxBytes),
		longTexts(&dst.Columns[httplogsRequest], n, d.schema.Columns[httplogsRequest].MaxBytes)
	status, size := dst.Columns[httplogsStatus].Ints, dst.Columns[httplogsSize].Ints
	state := d.start + uint64(first)*3*gamma
	for i := range n {
		state += gamma
		d.address(&addresses, mix(state))
		state += gamma
		d.request(&requests, mix(state))
		state += gamma
		status[i], size[i] = d.answer(mix(state))
		addresses.end(i)
		requests.end(i)
	}
	addresses.done()
	requests.done()
}

// address writes one of a private network in every second row, else one outside of them.
func (d *httplogs) address(t *texts, x uint64) {
	octets := [4]byte{byte(x), byte(x >> 8), byte(x >> 16), byte(x >> 24)}
	switch x >> 61 {
	case 0, 1:
		octets[0] = 10
	case 2:
		octets[0], octets[1] = 172, 16+octets[1]%16
	case 3:
		octets[0], octets[1] = 192, 168
	default:
		octets[0] = 11 + octets[0]%100 // 11 … 110
	}
	for _, o := range octets {
		t.append(d.octets[o])
	}
	t.used-- // the last point
}

// request writes a path with a random id.
func (d *httplogs) request(t *texts, x uint64) {
	for _, texts := range &d.parts {
		t.append(texts[x&uint64(len(texts)-1)])
		x = bits.RotateLeft64(x, 60)
	}
	to := t.data[t.used:][:httplogsID]
	for k := range to {
		to[k] = "0123456789abcdef"[x&15]
		x >>= 4
	}
	t.used += httplogsID
	t.append(d.end)
}

// answer returns a status and a size. Sizes of 8 to 15 bits are equally frequent, so few answers are large.
func (d *httplogs) answer(x uint64) (status, size int64) {
	status = d.statuses[x>>57]
	if status == notModified {
		return status, 0
	}
	width := smallestAnswer + x%smallestAnswer
	return status, int64(1<<(width-1) | x>>8&(1<<(width-1)-1))
}

// Derive counts microseconds.
func (d *httplogs) Derive(dst *rows.Block, first int64) {
	count(dst.Columns[httplogsTime].Ints, httplogsBase+first)
}
