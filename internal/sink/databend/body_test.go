package databend

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func read(text string, n int) (question, *body, error) {
	b := newBody(false)
	for p := []byte(text); len(p) > 0; p = p[min(n, len(p)):] {
		b.Write(p[:min(n, len(p))])
	}
	q, err := b.question()
	return q, b, err
}

// What is kept of a COPY is long, for it names its files, and of everything else it is not.
func TestTextIsBounded(t *testing.T) {
	for verb, kept := range map[string]int{"INSERT": longestHead, "COPY": longestCopy, "SELECT": longestHead} {
		sql := verb + " INTO t " + strings.Repeat("x", 5<<20)
		text, err := json.Marshal(map[string]string{"sql": sql})
		require.NoError(t, err)
		q, b, err := read(string(text), 10_000)
		require.NoError(t, err)
		require.Equal(t, sql[:kept], q.SQL)
		require.EqualValues(t, len(sql), b.bytes)
		require.Less(t, len(b.rest), 100)
	}
}

// The statement has to be the one that encoding/json reads, however the text is cut.
func FuzzBody(f *testing.F) {
	f.Add(`{"sql":"SELECT '\u00e9\ud834\udd1e\"\\\n'","session":{"sql":"no","a":["]}\"",1]},"stage_attachment":{"location":"@~/x"}}`, 3)
	f.Add(`{"s\u0071l":"x"}`, 1)
	f.Add(`{"sql":"\ud834x\ud834\u0041\udd1e"}`, 2)
	f.Add(`{"sqlx":"a","sq":"b"} `, 2)
	f.Fuzz(func(t *testing.T, text string, n int) {
		got, _, err := read(text, max(1, n))
		var want question
		if json.Unmarshal([]byte(text), &want) != nil || statements(text) > 1 || !utf8.ValidString(text) {
			return // of several statements the last one wins there, and nobody sends them
		}
		if err == nil && got.SQL != want.SQL {
			t.Errorf("%q is read as %q, want %q", text, got.SQL, want.SQL)
		}
		if err != nil && want.SQL != "" {
			t.Errorf("%q: %v", text, err)
		}
	})
}

// statements counts the object's keys that encoding/json takes for the statement's.
func statements(text string) (n int) {
	d := json.NewDecoder(strings.NewReader(text))
	for depth, key := 0, true; ; {
		token, err := d.Token()
		if err != nil {
			return n
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth, key = depth+1, true
			continue
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth != 1 {
			continue
		}
		if name, is := token.(string); is && key && strings.EqualFold(name, "sql") {
			n++
			key = false
			continue
		}
		key = !key
	}
}
