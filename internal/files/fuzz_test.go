package files

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/batch"
)

// scanBytes is the scanner byte by byte, as COPY's source has it.
func scanBytes(d dialect, p []byte) (s scanner) {
	s.how = d
	s.seen.look(p)
	for i, c := range p {
		data := s.inQuote || s.escaped
		switch {
		case s.escaped:
			s.escaped = false
		case d.format != CSV:
			s.escaped = c == '\\'
		case s.inQuote && c == d.escape && d.escape != d.quote:
			s.escaped = true
		case c == d.quote:
			s.inQuote = !s.inQuote
		}
		if c == '\n' {
			s.lines++
			s.open++
		}
		if c == '\n' && !data {
			s.records++
			s.end, s.open = int64(i)+1, 0
		}
	}
	s.at = int64(len(p))
	return s
}

// The scanner finds the same record ends whatever the pieces in which it gets the bytes, by words and by lines.
func FuzzScan(f *testing.F) {
	for seed := range uint64(20) {
		f.Add("a,\"b\nc\"\n\\\n\\\\\nd\"\"\"\n", seed)
		f.Add("\\\\\\\n\"\\\"\n", seed)
		f.Add("a\r\n", seed)
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		all := []byte(strings.Repeat(text, 1+r.IntN(2*chunk)/(len(text)+1)))
		escaped := NewSpec(CSV)
		escaped.Escape = `\`
		marks := hasMarks
		defer func() { hasMarks = marks }()
		for i, spec := range []Spec{NewSpec(CSV), NewSpec(TSV), NewSpec(CSV), NewSpec(TSV), escaped} {
			hasMarks = marks && i < 2
			s := scanner{how: spec.dialect()}
			for p := all; len(p) > 0; {
				n := 1 + r.IntN(len(p))
				s.scan(p[:n])
				p = p[n:]
			}
			require.Equal(t, scanBytes(s.how, all), s)

			s = scanner{how: s.how}
			for i := range len(text) {
				s.scan([]byte(text[i : i+1]))
			}
			require.Equal(t, scanBytes(s.how, []byte(text)), s)
		}
	})
}

// noNull and more are fields of columns that take no NULL.
const noNull = 128

// The two ways to rewrite csv agree on every byte, and on what is bad.
func FuzzRewrite(f *testing.F) {
	f.Add("a,\"b\nc\"\n\\N,\"\"\n,\r\nx\ry,z\n\"\"\"\t\",\x00\\\n", uint8(2), false)
	f.Add("1,\n2,\"\"\n,\rx\n,,3\n,4\n\n", uint8(1+noNull), false)
	f.Add("\"a\\\"b\",c\\\"\"\n", uint8(2), true)
	f.Fuzz(func(t *testing.T, text string, fields uint8, escape bool) {
		spec := NewSpec(CSV)
		if escape {
			spec.Escape = `\`
		}
		how := spec.dialect()
		s := scanner{how: how}
		s.scan([]byte(text))
		fast := rewriter{how: how, wire: batch.TSV, fields: 1 + int(fields%4), from: []byte(text[:s.end]), line: 1}
		if fields >= noNull {
			fast.columns = []Field{{Column: "a"}, {Column: "b", NoNull: true}, {Column: "c", NoNull: true}}
		}
		slow := fast
		out := fast.csvToTSV(nil)
		require.Equal(t, string(slow.rewrite(nil)), string(out))
		require.Equal(t, slow.bad, fast.bad)
		require.LessOrEqual(t, len(out), 3*int(s.end))
	})
}

// Records of random csv, written by another author and by hand, are those that another author reads, whatever the size
// of batches, and in whichever pieces of time. As LOAD DATA's they have the same fields.
func FuzzCSV(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, uint16(seed*7))
	}
	folder := f.TempDir()
	f.Fuzz(func(t *testing.T, seed uint64, batchBytes uint16) {
		r := rand.New(rand.NewPCG(seed, 1))
		delimiter := []string{",", ";", "\t", "|"}[r.IntN(4)]
		text, fields := randomCSV(t, r, delimiter[0])
		want := readCSV(t, text, delimiter[0])
		path := filepath.Join(folder, "file.csv")
		require.NoError(t, os.WriteFile(path, text, 0o600))

		spec := NewSpec(CSV)
		spec.Delimiter = delimiter
		var err error
		spec.Files, err = Find([]string{path})
		require.NoError(t, err)
		for _, as := range []Config{{Wire: batch.CSV}, {Wire: batch.CSV, Rewrite: true}, {Wire: batch.TSV}} {
			c := Config{
				Spec: spec, Wire: as.Wire, Rewrite: as.Rewrite, Fields: fields, BatchBytes: 1 + int64(batchBytes), Buffers: 2, Workers: 1,
				BufferBytes: 1 << 20, Parallel: 1,
			}
			s, err := New(c)
			require.NoError(t, err)
			var got [][]string
			for n := int64(0); ; n++ {
				b, err := s.Batch(context.Background(), n)
				if end := (*EndError)(nil); errors.As(err, &end) {
					break
				}
				require.NoError(t, err)
				var rows [][]string
				switch {
				case c.Rewrite:
					rows = readCSV(t, b.Encoded, ',')
					for _, row := range rows {
						for i := range row {
							if row[i] == `\N` { // the files have no such text
								row[i] = ""
							}
						}
					}
				case c.Wire == batch.CSV:
					rows = readCSV(t, b.Encoded, delimiter[0])
				default:
					rows = readTSV(b.Encoded)
				}
				require.Len(t, rows, int(b.Rows))
				got = append(got, rows...)
				b.Release()
			}
			require.NoError(t, s.Close())
			require.Equal(t, want, got, "%q as %v", text, as)
		}
	})
}

// randomCSV returns csv that encoding/csv reads with the same meaning: it skips empty lines and makes CRLF within quotes
// LF, so there are none.
func randomCSV(t *testing.T, r *rand.Rand, delimiter byte) (text []byte, fields int) {
	fields = 1 + r.IntN(5)
	field := func() string {
		parts := []string{"a", "b", " ", "\n", `"`, ",", ";", "\t", "|", `\`, "é", "\x00", `\.`, "NULL", strings.Repeat("x", 70)}
		var out strings.Builder
		for range r.IntN(6) {
			out.WriteString(parts[r.IntN(len(parts))])
		}
		return out.String()
	}
	end := []string{"\n", "\r\n"}[r.IntN(2)]
	var out bytes.Buffer
	for range r.IntN(200) {
		record := make([]string, fields)
		for i := range record {
			record[i] = field()
		}
		if r.IntN(2) == 0 {
			w := csv.NewWriter(&out)
			w.Comma = rune(delimiter)
			if record[0] == "" && fields == 1 {
				record[0] = "x"
			}
			require.NoError(t, w.Write(record))
			w.Flush()
			continue
		}
		for i, text := range record {
			if i > 0 {
				out.WriteByte(delimiter)
			}
			if r.IntN(2) == 0 || strings.ContainsAny(text, "\n\""+string(delimiter)) || fields == 1 {
				text = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
			}
			out.WriteString(text)
		}
		out.WriteString(end)
	}
	text = out.Bytes()
	if r.IntN(2) == 0 {
		text = bytes.TrimSuffix(text, []byte(end))
	}
	return text, fields
}

func readCSV(t *testing.T, text []byte, delimiter byte) [][]string {
	in := csv.NewReader(bytes.NewReader(text))
	in.Comma = rune(delimiter)
	rows, err := in.ReadAll()
	require.NoError(t, err, "%q", text)
	return rows
}

// readTSV reads LOAD DATA's tsv. NULL is empty, as encoding/csv has it.
func readTSV(text []byte) (rows [][]string) {
	for in := bytes.NewBuffer(text); in.Len() > 0; {
		line, err := in.ReadString('\n')
		if err == io.EOF {
			panic("a record without its end")
		}
		var row []string
		for _, raw := range strings.Split(strings.TrimSuffix(line, "\n"), "\t") {
			if raw == `\N` {
				raw = ""
			}
			row = append(row, strings.NewReplacer(`\\`, `\`, `\t`, "\t", `\n`, "\n", `\r`, "\r", `\0`, "\x00").Replace(raw))
		}
		rows = append(rows, row)
	}
	return rows
}
