package files_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/files"
	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/pkg/batch"
)

// write writes a file into a folder of the test's.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// config is one for a small source of the files.
func config(t *testing.T, format files.Format, paths ...string) files.Config {
	t.Helper()
	spec := files.NewSpec(format)
	var err error
	spec.Files, err = files.Find(paths)
	require.NoError(t, err)
	wire := batch.PGText
	if format == files.CSV {
		wire = batch.CSV
	}
	return files.Config{
		Spec: spec, Run: "r", Wire: wire, Fields: 1,
		BatchBytes: 64, Buffers: 3, Workers: 1, BufferBytes: 4096, Parallel: 1,
	}
}

// open opens a source that the test closes.
func open(t *testing.T, c files.Config) *files.Source {
	t.Helper()
	s, err := files.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// drain calls each with all batches from a number on, and returns the error that ended them, nil at the end.
func drain(s *files.Source, from int64, each func(*batch.Batch)) error {
	for n := from; ; n++ {
		b, err := s.Batch(context.Background(), n)
		if end := (*files.EndError)(nil); errors.As(err, &end) && end.Batches == n {
			return nil
		}
		if err != nil {
			return err
		}
		each(b)
		b.Release()
	}
}

// sent returns what all batches hold.
func sent(t *testing.T, s *files.Source) string {
	var out strings.Builder
	require.NoError(t, drain(s, 0, func(b *batch.Batch) { out.Write(b.Encoded) }))
	return out.String()
}

// lines returns n records of csv: some quoted, some of several lines.
func lines(n int, mark string) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "%s%d,\"x\n%s\"\n", mark, i, strings.Repeat("y", i%50))
	}
	return out.String()
}

// stored compresses a text in several members or frames, as tools that compress in parallel do.
func stored(t *testing.T, how files.Compression, text string) string {
	var out bytes.Buffer
	for part := range slices.Chunk([]byte(text), 1000) {
		var w io.WriteCloser
		switch how {
		case files.Plain:
			return text
		case files.Gzip:
			w = gzip.NewWriter(&out)
		case files.Zstd:
			var err error
			w, err = zstd.NewWriter(&out)
			require.NoError(t, err)
		}
		_, err := w.Write(part)
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	return out.String()
}

func compressions() []files.Compression {
	return []files.Compression{files.Plain, files.Gzip, files.Zstd}
}

// A run of several files is killed again and again: whichever ranges were kept, and whichever of their batches are in, the
// batches of all processes together are the files, each with the same bytes in every process.
func TestEveryRecordOnceAcrossRestarts(t *testing.T) {
	var paths []string
	whole := map[string]bool{}
	for i := range 7 {
		text := lines(50*i, fmt.Sprint("f", i, "-"))
		paths = append(paths, write(t, "f", stored(t, compressions()[i%3], text)))
		for _, record := range strings.SplitAfter(text, "\"\n") {
			whole[record] = true
		}
	}
	delete(whole, "")

	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		c := config(t, files.CSV, paths...)
		c.BatchBytes, c.Parallel = 1+r.Int64N(500), 1+r.IntN(3)
		c.Workers = 1 + r.IntN(3)
		c.Buffers = c.Workers + 1 + r.IntN(3)
		sent := map[int64]string{} // in any process
		in := map[int64]bool{}
		var kept []files.Range
		c.Ahead = func(more []files.Range) error {
			for _, m := range more {
				require.EqualValues(t, len(kept), m.Batch)
				kept = append(kept, m)
			}
			return nil
		}
		c.Done = func(n int64) bool { return in[n] }

		for ended := false; !ended; {
			c.Known = slices.Clone(kept)
			r.Shuffle(len(c.Known), func(i, j int) { c.Known[i], c.Known[j] = c.Known[j], c.Known[i] })
			s, err := files.New(c)
			require.NoError(t, err)
			left := r.IntN(100) // batches in this process's life
			for n := int64(0); left > 0 && !ended; n++ {
				if in[n] {
					continue
				}
				b, err := s.Batch(t.Context(), n)
				if end := (*files.EndError)(nil); errors.As(err, &end) {
					ended = true
					_, records, known := s.End()
					require.True(t, known)
					require.EqualValues(t, len(whole), records)
					read, all := s.Progress()
					require.Equal(t, all, read)
					break
				}
				require.NoError(t, err)
				if before, again := sent[n]; again {
					require.Equal(t, before, string(b.Encoded))
				}
				sent[n] = string(b.Encoded)
				in[n] = r.IntN(3) > 0 // or else its answer was lost
				b.Release()
				left--
			}
			require.NoError(t, s.Close())
		}

		got := map[string]bool{}
		for _, text := range sent {
			for _, record := range strings.SplitAfter(text, "\"\n") {
				require.False(t, record != "" && got[record], "%q is in two batches", record)
				got[record] = true
			}
		}
		delete(got, "")
		require.Equal(t, whole, got)
	}
}

// Where a record begins is what an editor says, and what a batch says of itself is true.
func TestRangesSayWhere(t *testing.T) {
	all := "\xef\xbb\xbfname,\"te\nxt\"\n" + lines(300, "r")
	for _, how := range compressions() {
		c := config(t, files.CSV, write(t, "f", stored(t, how, all)))
		c.Spec.Header = true
		require.NoError(t, c.Spec.ReadHeaders(t.Context()))
		require.Equal(t, []string{"name", "te\nxt"}, c.Spec.Files[0].Header)
		s := open(t, c)
		var records int64
		require.NoError(t, drain(s, 0, func(b *batch.Batch) {
			r, _ := s.Range(b.ID.Number)
			raw := all[r.From:r.To]
			require.Equal(t, raw, string(b.Encoded))
			require.Equal(t, raw, string(s.Raw(b.ID.Number)))
			require.EqualValues(t, strings.Count(all[:r.From], "\n")+1, r.FirstLine)
			require.EqualValues(t, strings.Count(raw, "\n"), r.Lines)
			require.EqualValues(t, strings.Count(raw, "\"\n"), r.Records)
			require.Equal(t, records, r.FirstRecord)

			first, rows := s.Span(b.ID.Number)
			require.Equal(t, []int64{records, r.Records}, []int64{first, rows})
			require.Equal(t, []int64{records, r.Records}, []int64{b.First, b.Rows})

			n := r.FirstRecord
			for before, record := range c.Spec.Records(b.Encoded) {
				require.True(t, strings.HasPrefix(string(record), fmt.Sprintf("r%d,", n)))
				require.Equal(t, 2*(n-r.FirstRecord), before)
				n++
			}
			records += r.Records
		}))
		require.EqualValues(t, 300, records)
	}
}

func TestRecordsThatCannotBeRead(t *testing.T) {
	long := strings.Repeat("z", 2000)
	for _, c := range []struct{ text, problem string }{
		{"a,b\n\"c\nd\",\"e\nf,g\n", `line 2: the quote that opens in line 3 is never closed`},
		{"a\n\"b\"\"c\nd", `line 2: the quote that opens in line 2 is never closed`},
		{"a\n\"b\nc\"d\"e\nf", `line 2: the quote that opens in line 3 is never closed`},
		{"a\nb\n" + long + "\n", "line 3: the record has more than the 1.5 KiB that fit a buffer: raise --memory"},
		{"a\nb\"\n" + long + "\n", "line 2: the record has more than the 1.5 KiB that fit a buffer: raise --memory, unless a quote is " +
			"missing: the one in line 2 does not close in these bytes"},
	} {
		s := open(t, config(t, files.CSV, write(t, "f", c.text)))
		require.ErrorContains(t, drain(s, 0, func(*batch.Batch) {}), c.problem, "%q", c.text)
	}
	s := open(t, config(t, files.Text, write(t, "f", "a\nb\\")))
	require.ErrorContains(t, drain(s, 0, func(*batch.Batch) {}), "line 2: the file ends with a backslash")

	fits := strings.Repeat("z", 1503) + "\n"
	require.Equal(t, "a\n"+fits+"b\n", sent(t, open(t, config(t, files.CSV, write(t, "f", "a\n"+fits+"b")))))
}

// Records that are bad wherever they are sent are left out, and kept with their lines.
func TestBadRecords(t *testing.T) {
	all := "1,a\n2\n3,\"b\nc\"\n4,d,e\r\n\n5,f\n\"6\",x\ry\n7,g"
	for _, batchBytes := range []int64{1, 10, 1000} {
		c := config(t, files.CSV, write(t, "f", all))
		c.Wire, c.Fields, c.Skip, c.BatchBytes = batch.TSV, 2, true, batchBytes
		s := open(t, c)
		var good strings.Builder
		var bad []string
		require.NoError(t, drain(s, 0, func(b *batch.Batch) {
			good.Write(b.Encoded)
			require.EqualValues(t, bytes.Count(b.Encoded, []byte("\n")), b.Rows)
			for _, e := range s.Bad(b.ID.Number) {
				bad = append(bad, fmt.Sprintf("%d %s %q", e.Line, e.Why, e.Record))
			}
		}))
		require.Equal(t, "1\ta\n3\tb\\nc\n5\tf\n7\tg\n", good.String())
		require.Equal(t, []string{
			`2 1 field, and 2 are needed: is the delimiter another one? "2\n"`,
			`5 3 fields, and 2 are needed "4,d,e\r\n"`,
			`6 the line is empty, which is one field, and 2 are needed "\n"`,
			`8 a carriage return that is not before a newline, which databases read in different ways: ` +
				`put the field in quotes, or write the lines anew if all end so: tr '\r' '\n' "\"6\",x\ry\n"`,
		}, bad)

		c.Skip = false
		strict := open(t, c)
		err := drain(strict, 0, func(*batch.Batch) {})
		record := (*files.RecordError)(nil)
		require.ErrorAs(t, err, &record)
		require.EqualValues(t, 2, record.Line)
	}
}

// A record that the end of its file cuts off is one, and no others are lost; a resumed run finds it in the same place.
func TestIncompleteRecords(t *testing.T) {
	for _, c := range []struct {
		format         files.Format
		text, good, is string
	}{
		{
			files.CSV, "1,a\n2,\"b\nc\",\"d\"\"\n3,e\n", "1,a\n",
			`2 the quote that opens in line 3 is never closed "2,\"b\nc\",\"d\"\"\n3,e\n"`,
		},
		{files.CSV, "\"1", "", `1 the quote that opens in line 1 is never closed "\"1"`},
		{files.Text, "1\ta\n2\tb\\", "1\ta\n", `2 the file ends with a backslash, and the record is incomplete "2\tb\\"`},
	} {
		for _, batchBytes := range []int64{1, 1000} {
			config := config(t, c.format, write(t, "f", c.text))
			config.Skip, config.BatchBytes = true, batchBytes
			config.Ahead = func(more []files.Range) error { config.Known = append(config.Known, more...); return nil }
			for range 2 {
				s := open(t, config)
				var good, bad strings.Builder
				rows := int64(0)
				require.NoError(t, drain(s, 0, func(b *batch.Batch) {
					good.Write(b.Encoded)
					rows += b.Rows
					for _, e := range s.Bad(b.ID.Number) {
						fmt.Fprintf(&bad, "%d %s %q", e.Line, e.Why, e.Record)
					}
				}))
				require.Equal(t, c.good, good.String())
				require.EqualValues(t, strings.Count(c.good, "\n"), rows)
				require.Equal(t, c.is, bad.String())
				config.Ahead = nil
			}
		}
	}
}

// A file that is not the one that the run began with is refused by its name, whenever that shows.
func TestChangedFiles(t *testing.T) {
	before := lines(5000, "r") // more than its ends are
	other := before[:100_000] + "Y" + before[100_001:]
	for _, how := range compressions() {
		old := stored(t, how, before)
		for name, now := range map[string]string{
			"longer":        stored(t, how, before+"more,\"x\n\"\n"),
			"shorter":       stored(t, how, before[:len(before)/2]),
			"other bytes":   stored(t, how, other),
			"its other end": stored(t, how, before[:len(before)-3]+"z\"\n"),
		} {
			t.Run(fmt.Sprint(how, " ", name), func(t *testing.T) {
				path := write(t, "f", old)
				c := config(t, files.CSV, path)
				c.BatchBytes, c.BufferBytes, c.Done = 8000, 1<<16, func(n int64) bool { return n != 12 }
				c.Ahead = func(more []files.Range) error { c.Known = append(c.Known, more...); return nil }
				require.Equal(t, before, sent(t, open(t, c)))
				c.Ahead = nil

				require.NoError(t, os.WriteFile(path, []byte(now), 0o600))
				s, err := files.New(c)
				if err == nil {
					_, err = s.Batch(t.Context(), 12)
					require.NoError(t, s.Close())
				}
				changed := (*files.ChangedError)(nil)
				require.ErrorAs(t, err, &changed)
				require.Equal(t, path, changed.Path)
				require.ErrorContains(t, err, path+" has changed: ")
			})
		}
	}

	for name, change := range map[string]func(f *os.File) error{
		"appended to": func(f *os.File) error { _, err := f.WriteString(strings.Repeat("more\n", 10_000)); return err },
		"cut":         func(f *os.File) error { return f.Truncate(100_000) },
		"removed":     func(f *os.File) error { return os.Remove(f.Name()) },
	} {
		t.Run(name+" during the run", func(t *testing.T) {
			path := write(t, "f", before)
			s := open(t, config(t, files.CSV, path))
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			require.NoError(t, err)
			require.NoError(t, change(f))
			require.NoError(t, f.Close())
			changed := (*files.ChangedError)(nil)
			require.ErrorAs(t, drain(s, 0, func(b *batch.Batch) {
				require.NotContains(t, string(b.Encoded), "more")
			}), &changed)
		})
	}
}

// A file is read after those before it, and may have been replaced by then: no batch is made of it.
func TestFilesReplacedBeforeTheirTurn(t *testing.T) {
	for name, replace := range map[string]func(path string) error{
		"by another file": func(path string) error { return os.WriteFile(path, []byte(lines(1000, "z")), 0o600) },
		"by a folder":     func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			first, second := write(t, "f", lines(1000, "r")), write(t, "g", lines(1000, "s"))
			s := open(t, config(t, files.CSV, first, second))
			require.NoError(t, replace(second))
			changed := (*files.ChangedError)(nil)
			var got strings.Builder
			require.ErrorAs(t, drain(s, 0, func(b *batch.Batch) { got.Write(b.Encoded) }), &changed)
			require.Equal(t, second, changed.Path)
			require.True(t, strings.HasPrefix(lines(1000, "r"), got.String()))
		})
	}
}

func TestIncompleteCompressedFiles(t *testing.T) {
	for _, how := range []files.Compression{files.Gzip, files.Zstd} {
		all := stored(t, how, lines(100, "r"))
		for _, n := range []int{len(all) - 1, len(all) - 30, 40} {
			s := open(t, config(t, files.CSV, write(t, "f", all[:n])))
			require.ErrorContains(t, drain(s, 0, func(*batch.Batch) {}),
				fmt.Sprintf("f: the %s data break off after %d bytes", how, n))
		}
		s := open(t, config(t, files.CSV, write(t, "f", all[:100]+"garbage"+all[107:])))
		require.ErrorContains(t, drain(s, 0, func(*batch.Batch) {}), "reading ")
	}
	padded := stored(t, files.Gzip, lines(100, "r")) + strings.Repeat("\x00", 512)
	s := open(t, config(t, files.CSV, write(t, "f", padded)))
	require.ErrorContains(t, drain(s, 0, func(*batch.Batch) {}), "of gzip data (decompressed) there are others")
}

// Nothing is handed out of which the offsets are not kept.
func TestOffsetsThatCannotBeKept(t *testing.T) {
	full := errors.New("disk full")
	c := config(t, files.CSV, write(t, "f", lines(100, "r")))
	kept := 0
	c.Ahead = func(more []files.Range) error {
		if kept >= 5 {
			return full
		}
		kept += len(more)
		return nil
	}
	s := open(t, c)
	got := 0
	require.ErrorIs(t, drain(s, 0, func(*batch.Batch) { got++ }), full)
	require.Equal(t, kept, got)

	c.Known = []files.Range{{Batch: 1, From: 4, To: 8}}
	_, err := files.New(c)
	require.ErrorContains(t, err, "batch 0 is not where it should be")
}

// As many buffers are filled ahead as are not for workers, and no caller waits in vain for one.
func TestBuffers(t *testing.T) {
	var most int
	c := config(t, files.CSV, write(t, "f", lines(1000, "r")))
	c.Buffers, c.Workers = 5, 2
	c.Ahead = func(more []files.Range) error { most += len(more); return nil }
	s := open(t, c)
	a, err := s.Batch(t.Context(), 0)
	require.NoError(t, err)
	b, err := s.Batch(t.Context(), 1)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Batch(ctx, 100)
	require.ErrorIs(t, err, context.Canceled)
	a.Release()
	again, err := s.Batch(t.Context(), 0) // of a number that was handed out before
	require.NoError(t, err)
	require.EqualValues(t, 0, again.First)
	again.Release()
	b.Release()
	require.NoError(t, drain(s, 2, func(*batch.Batch) {}))
	require.NoError(t, s.Close())
	_, err = s.Batch(t.Context(), 0)
	require.ErrorIs(t, err, source.ErrClosed)
}

// Other shards read the other files.
func TestOnly(t *testing.T) {
	c := config(t, files.CSV, write(t, "a", "1\n"), write(t, "b", "2\n"), write(t, "c", "3\n"))
	c.Only = func(file int) bool { return file != 1 }
	s := open(t, c)
	require.Equal(t, "1\n3\n", sent(t, s))
	read, all := s.Progress()
	require.Equal(t, []int64{4, 4}, []int64{read, all})
}

// What is sent, where it is not the file: the servers of TestOneMeaning may not be there.
func TestWires(t *testing.T) {
	csv, tsv, text := files.CSV, files.TSV, files.Text
	for _, c := range []struct {
		format     files.Format
		wire       batch.Format
		rewrite    bool
		file, sent string
	}{
		{csv, batch.CSV, false, "a\n\\.\nb", "a\n\"\\.\"\nb\n"},
		{csv, batch.CSV, false, "\"x\n\\.\ny\"\r\n\"\r\"\r\n\\.", "\"x\n\\.\ny\"\n\"\r\"\n\"\\.\"\n"},
		{csv, batch.CSV, false, "\\.x,\\.\n", "\\.x,\\.\n"},
		{csv, batch.TSV, false, ",\"\"\n\\N,\"a\tb\"\n", "\\N\t\n\\\\N\ta\\tb\n"},
		{csv, batch.CSV, true, ",\"\"\n\\N,a\"b\"\"c\"\n", "\\N,\"\"\n\"\\N\",\"ab\"\"c\"\n"},
		{tsv, batch.TSV, false, "\\N\ta\\Z\r\n", "\\N\ta\x1a\n"},
		{tsv, batch.PGText, false, "\\N\ta\\Zx\\f\\.\n", "\\N\ta\x1axf.\n"},
		{tsv, batch.CSV, true, "\\N\t\n,\t\\N\n", "\\N,\"\"\n\",\",\\N\n"},
		{text, batch.PGText, false, "\\N\t\\101\n", "\\N\t\\101\n"},
		{text, batch.TSV, false, "\\N\t\\101\\x4a\\v\n", "\\N\tAJ\v\n"},
	} {
		config := config(t, c.format, write(t, "f", c.file))
		config.Wire, config.Rewrite, config.Fields, config.BatchBytes = c.wire, c.rewrite, 2, 1000
		if c.wire == batch.CSV && !c.rewrite {
			config.Fields = 1
		}
		require.Equal(t, c.sent, sent(t, open(t, config)), "%q as %s", c.file, c.wire)
	}
}

// A batch whose record lacks its line end in the file is read again as it was.
func TestLastRecordAgain(t *testing.T) {
	s := open(t, config(t, files.CSV, write(t, "f", "a\r\nb")))
	for range 2 {
		b, err := s.Batch(t.Context(), 0)
		require.NoError(t, err)
		require.Equal(t, "a\nb\n", string(b.Encoded))
		b.Release()
	}
}

// Shards that share a file have each of its ranges once, also when they are taken up again.
func TestShares(t *testing.T) {
	const shards = 3
	all := "name,\"te\nxt\"\n" + lines(400, "r")
	for _, how := range compressions() {
		path := write(t, "f", stored(t, how, all))
		byPlace := map[int64]string{}
		for shard := range int64(shards) {
			c := config(t, files.CSV, path)
			c.Spec.Header = true
			c.Share = func(file int, nth int64) bool { return (nth+int64(file))%shards == shard }
			c.Ahead = func(more []files.Range) error { c.Known = append(c.Known, more...); return nil }
			whole := sent(t, open(t, c))

			again := c
			again.Known, again.Ahead = c.Known[:len(c.Known)/2], nil
			s := open(t, again)
			var resumed strings.Builder
			require.NoError(t, drain(s, 0, func(b *batch.Batch) {
				r, _ := s.Range(b.ID.Number)
				require.NotContains(t, byPlace, r.From)
				byPlace[r.From] = string(b.Encoded)
				require.EqualValues(t, strings.Count(all[:r.From], "\n")+1, r.FirstLine)
				resumed.Write(b.Encoded)
			}))
			require.Equal(t, whole, resumed.String())
		}
		var got strings.Builder
		for _, from := range slices.Sorted(maps.Keys(byPlace)) {
			got.WriteString(byPlace[from])
		}
		require.Equal(t, all[len("name,\"te\nxt\"\n"):], got.String())
	}
}

func TestFilesWithoutRecords(t *testing.T) {
	c := config(t, files.CSV, write(t, "a", ""), write(t, "b", "\xef\xbb\xbf"), write(t, "c", "name\n"), write(t, "d", "name"))
	c.Spec.Header = true
	require.NoError(t, c.Spec.ReadHeaders(t.Context()))
	require.Empty(t, sent(t, open(t, c)))
}
