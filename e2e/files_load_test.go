package e2e_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/faultproxy"
	"github.com/terapush/terapush/internal/report"
)

// record is one of a user's file, as text; nil is NULL.
type record []*string

const recordColumns = "id,name,total,placed,note"

// records makes records with all that csv can hold: quotes, delimiters and line ends within quotes, NULL and empty.
func records(n int) []record {
	draw := rand.New(rand.NewPCG(1, 2))
	words := []string{"plain", "comma, here", `"quoted"`, "two\nlines", "tab\there", `back\slash`, "ünï 日本", "NULL", `\N`, " "}
	all := make([]record, n)
	text := func(format string, args ...any) *string { s := fmt.Sprintf(format, args...); return &s }
	for i := range all {
		name := ""
		for range draw.IntN(4) {
			name += words[draw.IntN(len(words))]
		}
		all[i] = record{
			text("%d", i), &name, text("%d.%02d", draw.IntN(100_000)-50_000, draw.IntN(100)),
			text("2026-%02d-%02d 03:04:05.%06d", 1+i%12, 1+i%28, draw.IntN(1_000_000)), text("%s", strings.Repeat("x", draw.IntN(60))),
		}
		for c := 1; c < len(all[i]); c++ {
			if draw.IntN(10) == 0 {
				all[i][c] = nil
			}
		}
	}
	return all
}

// csv writes records as the user's file.
func csv(all []record) string {
	var b strings.Builder
	b.WriteString(recordColumns + "\n")
	for _, r := range all {
		for i, v := range r {
			if i > 0 {
				b.WriteByte(',')
			}
			switch {
			case v == nil:
			case *v == "" || strings.ContainsAny(*v, "\",\n"):
				b.WriteString(`"` + strings.ReplaceAll(*v, `"`, `""`) + `"`)
			default:
				b.WriteString(*v)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// makeRecordTable makes the table for them.
func (d *database) makeRecordTable(t *testing.T) {
	at, text := "timestamp", "text"
	switch d.kind {
	case postgres:
	case databend:
		at, text = "timestamp NULL", "varchar NULL"
	default:
		at, text = "datetime(6)", "varchar(200) CHARACTER SET utf8mb4"
	}
	d.must(t, fmt.Sprintf("CREATE TABLE orders (id bigint NOT NULL, name %s, total decimal(12,2) NULL, placed %s, note %s)", text, at, text))
}

// holdsRecords asserts that the table has these records, each once, and nothing else, by the server's own client
// library.
func (d *database) holdsRecords(t *testing.T, want []record) {
	t.Helper()
	query := "SELECT id::text, name, total::text, to_char(placed, 'YYYY-MM-DD HH24:MI:SS.US'), note FROM orders ORDER BY orders.id"
	switch d.kind {
	case postgres:
	case databend:
		query = "SELECT CAST(id AS VARCHAR), name, CAST(total AS VARCHAR), CAST(placed AS VARCHAR), note FROM orders ORDER BY orders.id"
	default:
		query = "SELECT CAST(id AS CHAR), name, CAST(total AS CHAR), DATE_FORMAT(placed, '%Y-%m-%d %H:%i:%s.%f'), note FROM orders ORDER BY orders.id"
	}
	n := 0
	require.NoError(t, d.query(query, func(scan func(...any) error) error {
		got := make(record, 5)
		err := scan(&got[0], &got[1], &got[2], &got[3], &got[4])
		if n < len(want) {
			require.Equal(t, want[n], got, "record %d", n)
		}
		n++
		return err
	}))
	require.Equal(t, len(want), n)
}

func (d *database) loads(target string, flags ...string) invocation {
	args := []string{"load", target, "--state-dir", d.state, "--json", "--progress", "none"}
	return invocation{args: append(args, flags...)}
}

// A load that is killed again and again goes on with the same batches, and ends with every record in once.
func TestFilesExactlyOnce(t *testing.T) {
	t.Parallel()
	onServers(t, append(sqlServers(), databend), func(t *testing.T, d *database) {
		want := records(scaled(6000, 400_000))
		d.makeRecordTable(t)
		half := len(want) / 2
		dir := t.TempDir()
		plain, packed := filepath.Join(dir, "a.csv"), filepath.Join(dir, "b.csv.gz")
		require.NoError(t, os.WriteFile(plain, []byte(csv(want[:half])), 0o600))
		require.NoError(t, os.WriteFile(packed, []byte(gzipped(t, csv(want[half:]))), 0o600))
		d.killedAndResumed(t, want, plain, packed, "--header", "--batch-bytes", "8KiB")
	})
}

// Files whose data name their columns do so where the database parses them.
func TestNamedFilesExactlyOnce(t *testing.T) {
	t.Parallel()
	onServers(t, []kind{databend}, func(t *testing.T, d *database) {
		want := records(scaled(4000, 100_000))
		d.makeRecordTable(t)
		half := len(want) / 2
		dir := t.TempDir()
		plain, packed := filepath.Join(dir, "a.ndjson"), filepath.Join(dir, "b.jsonl.gz")
		require.NoError(t, os.WriteFile(plain, []byte(ndjson(t, want[:half])), 0o600))
		require.NoError(t, os.WriteFile(packed, []byte(gzipped(t, ndjson(t, want[half:]))), 0o600))
		d.killedAndResumed(t, want, plain, packed, "--columns", recordColumns, "--batch-bytes", "8KiB")
	})
}

// A Parquet file is a batch, and its names may be in another order.
func TestParquetExactlyOnce(t *testing.T) {
	t.Parallel()
	onServers(t, []kind{databend}, func(t *testing.T, d *database) {
		want := records(4000)
		d.makeRecordTable(t)
		folder := t.TempDir()
		type row struct {
			Total  *string `parquet:"total"`
			ID     string  `parquet:"id"`
			Name   *string `parquet:"name"`
			Note   *string `parquet:"note"`
			Placed *string `parquet:"placed"`
		}
		for i, part := range slices.Collect(slices.Chunk(want, 100)) {
			var all []row
			for _, r := range part {
				all = append(all, row{ID: *r[0], Name: r[1], Total: r[2], Placed: r[3], Note: r[4]})
			}
			require.NoError(t, parquet.WriteFile(filepath.Join(folder, fmt.Sprintf("%03d.parquet", i)), all, parquet.MaxRowsPerRowGroup(37)))
		}
		d.killedAndResumed(t, want, folder)
	})
}

// ndjson writes records as objects with ids and totals as numbers, without the names of those that are NULL.
func ndjson(t *testing.T, all []record) string {
	var b strings.Builder
	for _, r := range all {
		object := map[string]any{}
		for i, name := range strings.Split(recordColumns, ",") {
			switch {
			case r[i] == nil:
			case name == "id", name == "total":
				object[name] = json.Number(*r[i])
			default:
				object[name] = *r[i]
			}
		}
		line, err := json.Marshal(object)
		require.NoError(t, err)
		b.Write(append(line, '\n'))
	}
	return b.String()
}

// killedAndResumed loads records into an empty table by processes that are killed, and a last one.
func (d *database) killedAndResumed(t *testing.T, want []record, args ...string) {
	t.Helper()
	flags := []string{"--table", "orders", "--workers", "3", "--max-rate", "150KiB/s"}
	i := d.loads(d.target(), append(args, flags...)...)
	for range scaled(3, 5) {
		p := i.start(t)
		d.untilClaims(t, p, max(d.claims(), 0)+1+rand.Int64N(6))
		p.kill(t)
		i = d.loads(d.target(), "--resume", "last")
	}
	is := reportOf(t, d.loads(d.target(), "--resume", "last", "--max-rate", "1GiB/s").run(t).ends(t, 0))
	assert.True(t, is.Run.Resumed && is.Verify.OK)
	assert.Positive(t, is.Run.ResumedRows)
	all := int64(len(want))
	found := &report.VerifiedFiles{Records: all, Acknowledged: all, Claimed: all, RowsAfter: all}
	if d.kind == databend {
		found.Claimed, found.Labels = 0, true
	}
	assert.Equal(t, found, is.Verify.Files)
	d.holdsRecords(t, want)
}

// Files in a bucket are found again by a process that knows their URLs from the record alone.
func TestFilesInBucketsExactlyOnce(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		want := records(scaled(12_000, 400_000))
		d.makeRecordTable(t)
		store := newFolder(t)
		half := len(want) / 2
		store.put(t, store.prefix+"/in/a.csv", csv(want[:half]))
		store.put(t, store.prefix+"/in/b c.csv.gz", gzipped(t, csv(want[half:])))
		store.put(t, store.prefix+"/input.csv", "no,header,of,this,table\n")

		d.killedAndResumed(t, want, store.target(below("in/")), "--header", "--batch-bytes", "8KiB")
		d.keepsSecrets(t)
	})
}

// The shards of a load have every record once between them, of a few files and of many, whichever of them is killed,
// and their reports become one.
func TestFilesInShards(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		want := records(scaled(6000, 400_000))
		d.makeRecordTable(t)
		const shards = 3
		half, dir := len(want)/2, t.TempDir()
		few, many := filepath.Join(dir, "few.csv"), filepath.Join(dir, "many")
		require.NoError(t, os.WriteFile(few, []byte(csv(want[:half])), 0o600))
		require.NoError(t, os.Mkdir(many, 0o700))
		for i := range 16 {
			part := want[half+half*i/16 : half+half*(i+1)/16]
			require.NoError(t, os.WriteFile(filepath.Join(many, fmt.Sprintf("%d.csv.gz", i)), []byte(gzipped(t, csv(part))), 0o600))
		}

		for _, path := range []string{few, many} {
			reports := t.TempDir()
			var running [shards]*process
			state := func(i int) string { return filepath.Join(d.state, fmt.Sprintf("%s-%d", filepath.Base(path), i)) }
			load := func(i int, flags ...string) invocation {
				return invocation{args: append([]string{"load", d.target(), "--state-dir", state(i), "--progress", "none", "--report-to", reports}, flags...)}
			}
			for i := range shards {
				running[i] = load(i, path, "--table", "orders", "--header", "--batch-bytes", "8KiB", "--workers", "2", "--max-rate", "100KiB/s",
					"--shard", fmt.Sprintf("%d/%d", i, shards)).start(t)
			}
			killed := rand.IntN(shards)
			require.Eventually(t, func() bool {
				cut, err := filepath.Glob(filepath.Join(state(killed), "*", "ranges.jsonl"))
				return err == nil && len(cut) == 1
			}, time.Minute, 20*time.Millisecond)
			running[killed].kill(t)
			load(killed, "--resume", "last", "--shard", fmt.Sprintf("%d/%d", (killed+1)%shards, shards)).run(t).ends(t, 2).
				says(t, "--shard cannot change in a resumed load")
			running[killed] = load(killed, "--resume", "last").start(t)
			for _, p := range running {
				p.wait(t).ends(t, 0)
			}

			kept, err := filepath.Glob(filepath.Join(reports, "*.json"))
			require.NoError(t, err)
			require.Len(t, kept, shards)
			whole := reportOf(t, invocation{args: append([]string{"report", "merge", "--json"}, kept...)}.run(t).ends(t, 0))
			all := int64(half)
			assert.Equal(t, &report.VerifiedFiles{Records: all, Acknowledged: all, Claimed: all}, whole.Verify.Files)
			invocation{args: append([]string{"report", "merge"}, kept[1:]...)}.run(t).ends(t, 2).says(t, "is missing: give one report of each")
		}
		d.holdsRecords(t, want)
	})
}

// below names what lies below a URL's path.
func below(name string) func(*url.URL) { return func(u *url.URL) { u.Path += "/" + name } }

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	zip := gzip.NewWriter(&b)
	_, err := zip.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	return b.String()
}

// Commits whose answer is lost are looked up, and bad records stay out once.
func TestFilesLostAnswers(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		want := records(3000)
		d.makeRecordTable(t)
		var given []record
		for i, r := range want {
			given = append(given, r)
			if i%500 == 250 {
				bad := append(record{}, r...)
				wrong := "not a number"
				bad[2] = &wrong
				given = append(given, bad)
			}
		}
		dir := t.TempDir()
		name, rejects := filepath.Join(dir, "a.csv"), filepath.Join(dir, "refused.jsonl")
		require.NoError(t, os.WriteFile(name, []byte(csv(given)), 0o600))
		commit := "\x07\x00\x00\x00\x03COMMIT"
		if d.kind == postgres {
			commit = "Q\x00\x00\x00\x0bCOMMIT\x00"
		}
		lost := &faultproxy.Fault{Action: faultproxy.CutAfterAnswer, Match: []byte(commit), Every: 3}
		p := d.proxy(t, lost)

		i := d.loads(d.target(through(p.Addr())), name, "--table", "orders", "--header", "--batch-bytes", "16KiB", "--workers", "2", "--tls", "off",
			"--rejects", rejects, "--max-rejects", "10")
		is := reportOf(t, i.run(t).ends(t, 3))
		assert.Positive(t, lost.Injected())
		assert.Equal(t, lost.Injected(), is.Result.Duplicates)
		assert.True(t, is.Verify.OK)
		assert.Equal(t, int64(6), is.Verify.Files.Rejected)
		text, err := os.ReadFile(rejects)
		require.NoError(t, err)
		assert.Equal(t, 6, strings.Count(string(text), `"record":`))
		d.holdsRecords(t, want)
	})
}

// Another program adds rows to a table that was empty: the claims prove the load all the same, unless the user asked
// for the rows.
func TestFilesBesideOthers(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		d.makeRecordTable(t)
		name := filepath.Join(t.TempDir(), "a.csv")
		require.NoError(t, os.WriteFile(name, []byte(csv(records(1000))), 0o600))
		p := d.loads(d.target(), name, "--table", "orders", "--header", "--batch-bytes", "8KiB", "--workers", "1", "--max-rate", "60KiB/s").start(t)
		d.untilClaims(t, p, 1)
		d.must(t, "INSERT INTO orders (id) VALUES (-1)")
		is := reportOf(t, p.wait(t).ends(t, 0))
		assert.Equal(t, "ack", is.Verify.Mode)
		assert.Contains(t, strings.Join(is.Warnings, "\n"), "1 row more than the load has added")
		d.loads(d.target(), "--resume", "last", "--verify", "count").run(t).ends(t, 4)
	})
}

// The first Ctrl-C ends the batches on their way, and the load goes on from there, unless nothing can read it again.
func TestFilesInterrupted(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		want := records(3000)
		d.makeRecordTable(t)
		name := filepath.Join(t.TempDir(), "with space.csv")
		require.NoError(t, os.WriteFile(name, []byte(csv(want)), 0o600))
		flags := []string{"--table", "orders", "--header", "--batch-bytes", "8KiB", "--workers", "2"}
		p := d.loads(d.target(), append(flags, name, "--max-rate", "50KiB/s")...).start(t)
		d.untilClaims(t, p, 3)
		p.signal(t, syscall.SIGINT)
		is := reportOf(t, p.wait(t).ends(t, 130).says(t, "to resume: terapush load"))
		assert.Zero(t, is.Result.Unknown)
		assert.True(t, is.Run.Resumable)
		d.loads(d.target(), "--resume", "last", "--max-rate", "1GiB/s").run(t).ends(t, 0)
		d.holdsRecords(t, want)

		d.must(t, "DELETE FROM orders")
		from, to, err := os.Pipe()
		require.NoError(t, err)
		defer from.Close()
		defer to.Close()
		i := d.loads(d.target(), append(flags, "-", "--format", "csv")...)
		i.in = from
		before := d.claims()
		p = i.start(t)
		_, err = to.WriteString(csv(want[:1000]))
		require.NoError(t, err)
		d.untilClaims(t, p, max(before, 0)+3)
		p.signal(t, syscall.SIGINT) // while the pipe is open, and silent
		is = reportOf(t, p.wait(t).ends(t, 130).says(t, "cannot be resumed, since standard input is read once"))
		assert.False(t, is.Run.Resumable)
		assert.Equal(t, d.number(t, "SELECT COUNT(*) FROM orders"), is.Result.Rows)
	})
}
