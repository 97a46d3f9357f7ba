package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime/multipart"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sink"
)

// rows counts data in pieces of n bytes.
func rows(c sink.RowCounter, data string, n int) (int64, error) {
	for p := []byte(data); len(p) > 0; p = p[min(n, len(p)):] {
		c.Write(p[:min(n, len(p))])
	}
	return c.Rows()
}

func TestDelimited(t *testing.T) {
	csv := Text{Quote: '"', Separator: ","}
	for _, c := range []struct {
		text Text
		data string
		want int64 // −1: an error
	}{
		{Text{}, "", 0},
		{Text{}, "a", 1},
		{Text{}, "a\nb\n", 2},
		{Text{}, "\n\n", 2},
		{Text{End: "\x02"}, "a\n\x02b", 2},
		{Text{End: "aab"}, "xaaab" + "yaab" + "aa", 3},
		{Text{End: "abab"}, "abaabab" + "ab", 2},
		{Text{Skip: 1}, "head\na\n", 1},
		{Text{Skip: 5}, "head\n", 0},
		{csv, "1,\"a\nb\"\n2,\"\"\"\n\"\"\"\n", 2},
		{csv, "\"\n\"\n\"\n\",x\n", 2},
		{csv, "1,5\" pipe\n2,x\n", 2},
		{csv, "1,\"a\n", -1},
		{csv, "1,\"a\"", 1},
	} {
		for n := 1; n <= 5; n++ {
			got, err := rows(NewDelimited(c.text), c.data, n)
			if c.want < 0 {
				require.Error(t, err)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got, "%q by %d", c.data, n)
		}
	}
}

// In however many pieces, rows are those that splitting the whole gives.
func FuzzDelimited(f *testing.F) {
	f.Add("xaaabyaabaa", "aab", 2)
	f.Add("a\n", "\n", 1)
	f.Fuzz(func(t *testing.T, data, end string, n int) {
		if end == "" {
			return
		}
		want := int64(strings.Count(data, end))
		if rest := data[strings.LastIndex(data, end)+1:]; !strings.HasSuffix(data, end) && rest != "" {
			want++
		} else if strings.HasSuffix(data, end) && int64(len(strings.Split(data, end))) > want && !endsWhole(data, end) {
			want++ // the last end overlaps one that was counted
		}
		got, _ := rows(NewDelimited(Text{End: end}), data, max(1, n))
		require.Equal(t, want, got)
	})
}

// endsWhole tells that the last thing in data, cut from its beginning, is an end.
func endsWhole(data, end string) bool {
	all := strings.Split(data, end)
	return all[len(all)-1] == ""
}

func FuzzJSON(f *testing.F) {
	for _, text := range []string{`[]`, `[1,"a]",{"b":[2,{}]} , null]`, `["\\\"",[[]]]`} {
		f.Add(text, 3)
	}
	f.Fuzz(func(t *testing.T, text string, n int) {
		got, err := rows(&JSON{Array: true}, text, max(1, n))
		var want []json.RawMessage
		if !strings.HasPrefix(text, "[") || json.Unmarshal([]byte(text), &want) != nil {
			return // of what is no JSON any number is as good
		}
		require.NoError(t, err)
		require.EqualValues(t, len(want), got, text)
	})
}

func parquetFile(t testing.TB, n int) string {
	var b bytes.Buffer
	w := parquet.NewGenericWriter[struct {
		ID   int64
		Name string
		Tags map[string][]int32
	}](&b, parquet.KeyValueMetadata("who", "test"))
	_, err := w.Write(make([]struct {
		ID   int64
		Name string
		Tags map[string][]int32
	}, n))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

func TestParquet(t *testing.T) {
	for _, n := range []int{0, 1, 12_345} {
		file := parquetFile(t, n)
		for _, piece := range []int{1, 7, 100_000} {
			got, err := rows(&Parquet{}, file, piece)
			require.NoError(t, err)
			require.EqualValues(t, n, got)
			got, err = rows(&Parquet{}, strings.Repeat("\n", 2_000_000)+file, 300_000)
			require.NoError(t, err)
			require.EqualValues(t, n, got)
		}
		sniffed, err := rows(&Sniffed{}, file, 3)
		require.NoError(t, err)
		require.EqualValues(t, n, sniffed)
	}
	for _, none := range []string{"", "PAR1", "PAR1PAR1", "PAR1\xff\xff\xff\xffPAR1", "xxxx\x00\x00\x00\x00PAR1"} {
		_, err := rows(&Parquet{}, none, 3)
		require.ErrorIs(t, err, errFooter, "%q", none)
	}
}

func TestParquetIsBounded(t *testing.T) {
	c := &Parquet{}
	for range 50 {
		c.Write(make([]byte, 100_000))
	}
	require.LessOrEqual(t, cap(c.tail), 4*longestFooter)
}

// Whatever a footer says, reading it ends, and no number is below zero.
func FuzzFooter(f *testing.F) {
	file := parquetFile(f, 3)
	f.Add([]byte(file[len(file)-400 : len(file)-8]))
	f.Add([]byte{0x15, 2, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Add([]byte{0x1b, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x11})
	f.Fuzz(func(t *testing.T, footer []byte) {
		n := uint32(min(len(footer), math.MaxInt32))
		c := &Parquet{tail: append(append(footer[:len(footer):len(footer)], byte(n), byte(n>>8), byte(n>>16), byte(n>>24)), magic...)}
		if rows, err := c.Rows(); err == nil && rows < 0 {
			t.Errorf("%d rows", rows)
		}
	})
}

// A form is taken apart as mime/multipart does it, however it is cut.
func FuzzForm(f *testing.F) {
	part := "Content-Disposition: form-data; name=\"upload\"; filename=\"a\"\r\n\r\n"
	f.Add("--b\r\n"+part+"1\r\n--\r\n--b\r\n"+part+"\r\n--b--\r\n", 1)
	f.Add("preamble\r\n--b \t\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\nfield\r\n--b\r\n"+part+"\r\r\n--c\r\n--b--", 2)
	f.Add("--b--", 3)
	f.Add("--b\r\n\r\n\r\n--b--", 3)
	f.Fuzz(func(t *testing.T, text string, n int) {
		form := newForm("b", func() sink.RowCounter { return NewDelimited(Text{}) }, false)
		if _, err := rows(form, text, max(1, n)); err != nil {
			return // it is stricter: a form has to have an end
		}
		r := multipart.NewReader(strings.NewReader(text), "b")
		for _, file := range form.files {
			data, err := nextFile(r)
			if errors.Is(err, errOther) {
				return // it reads heads and ends of lines by other rules
			}
			require.NoError(t, err)
			require.EqualValues(t, len(data), file.Bytes)
		}
	})
}

var errOther = errors.New("read otherwise")

func nextFile(r *multipart.Reader) ([]byte, error) {
	for {
		p, err := r.NextRawPart()
		if err != nil {
			return nil, errOther
		}
		if p.FileName() == "" {
			continue
		}
		data, err := io.ReadAll(p)
		if err != nil {
			return nil, errOther
		}
		return data, nil
	}
}

func TestFormIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"head":     "--b\r\nX: " + strings.Repeat("x", 70_000),
		"line":     "--b" + strings.Repeat(" ", 5_000),
		"files":    strings.Repeat("--b\r\nContent-Disposition: form-data; name=\"u\"; filename=\"f\"\r\n\r\n\r\n", maxFiles+1),
		"no head":  "--b\r\nnonsense\r\n\r\n",
		"no end":   "--b\r\nContent-Disposition: form-data; name=\"u\"; filename=\"f\"\r\n\r\nx",
		"not this": "--c\r\n\r\n--c--\r\n",
		"nothing":  "",
	} {
		form := newForm("b", func() sink.RowCounter { return NewDelimited(Text{}) }, false)
		_, err := rows(form, text, 1000)
		require.ErrorIs(t, err, ErrForm, name)
		require.Less(t, cap(form.text), 2*longestHead)
	}
}
