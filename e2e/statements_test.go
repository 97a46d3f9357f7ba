package e2e_test

import (
	"bufio"
	"bytes"
	bigendian "encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/internal/standin/doris"
)

// go test ./e2e -run StatementsSent -update

// TestStatementsSent holds what sessions really send, where a dry run shows what they mean to: every statement of a
// push of two batches by one worker, with full verification.
func TestStatementsSent(t *testing.T) {
	t.Parallel()
	onServers(t, sqlServers(), func(t *testing.T, d *database) {
		plain := "tls=false"
		if d.kind == postgres {
			plain = "sslmode=disable"
		}
		var sent []string // the claim table is made once
		for _, method := range d.methods() {
			w := newWiretap(t, d)
			l := small(40)
			l.batchRows, l.table = 20, strings.ReplaceAll(method, "-", "_")
			target := d.target(through(w.Addr().String()), func(u *url.URL) { u.RawQuery = plain })
			flags := l.flags("--method", method, "--workers", "1", "--verify", "full")
			explained := d.pushTo(target, append(flags, "--dry-run")...).run(t).ends(t, 0).stdout
			d.pushTo(target, flags...).run(t).ends(t, 0)
			isSent(t, string(d.kind)+"-"+method, w.all())
			sent = append(sent, w.all()...)
			showsWhatIsSent(t, explained, sent)
		}
	})
	for _, method := range databendMethods() {
		t.Run("databend-"+method, func(t *testing.T) {
			f := newFront(t, func(asked) {}, func(asked) {})
			flags := methodFlags(peopleLoad(40, 20), method, "--workers", "1")
			if method == "insert" {
				flags = append(flags, "--stage", f.stage(t, newFolder(t)))
			}
			f.push(flags...).run(t).ends(t, 0)
			var lines []string
			for _, r := range f.requests() {
				loads := r.label != "" || r.route == "upload_to_stage" || strings.HasPrefix(r.sql, "PRESIGN")
				// What is asked beside the loads is the same for all methods. An answer may have pages, and an end.
				if loads || method == databendMethods()[0] && (r.route == "query" || r.route == "streaming_load") {
					words := strings.Fields(fmt.Sprintln(r.route, r.label, r.folder, r.sql))
					lines = append(lines, strings.Join(words, " "))
				}
			}
			isSent(t, "databend-"+method, lines)
		})
	}
	for _, method := range []string{"stream-load", "insert"} {
		c := newCluster(t, doris.Options{})
		c.push(peopleLoad(40, 20).flags("--method", method, "--workers", "1", "--verify", "full")...).run(t).ends(t, 0)
		var lines []string
		for _, r := range c.Requests() {
			lines = append(lines, strings.TrimSpace(fmt.Sprintln(r.Kind, r.Label, r.Header, short([]byte(r.SQL)))))
		}
		isSent(t, "doris-"+method, lines)
	}
}

// ofOneRun is what differs from run to run, and what stands for it.
var ofOneRun = [][2]string{
	{`\d{8}[-_]\d{6}[-_][a-z2-7]{6}`, "RUN"}, {`\be2e_[a-z2-7]{10}\b`, "DB"},
	{`\bpresigned_[a-z2-7]{10}\b`, "STAGE"}, {`\bterapush-[A-Z2-7]{26}\b`, "NAME"}, {`\b[0-9a-f]{32}\b`, "QUERY"},
	{`\b\d+-[a-z2-7]{10}\b`, "EPOCH"}, {`'[^']*@[^']*, process \d+'`, "'OWNER'"}, {`(changed = )\d+`, "${1}TIME"},
	{`('OWNER', \d, \d+, \d+, -?\d+, )\d+\)`, "${1}TIME)"}, {`(, connection\) SELECT '[^']*'(?:, -?\d+){3}, )\d+`, "${1}ID"}, {`(attrelid = )\d+`, "${1}OID"}, {`(host:127.0.0.\d:)\d+`, "${1}PORT"},
}

func ofAnyRun(text string) string {
	for _, r := range ofOneRun {
		text = regexp.MustCompile(r[0]).ReplaceAllString(text, r[1])
	}
	return text
}

// isSent compares with the golden file.
func isSent(t *testing.T, name string, statements []string) {
	t.Helper()
	golden.Equal(t, filepath.Join("sent", name+".txt"), ofAnyRun(strings.Join(statements, "\n")+"\n"))
}

// showsWhatIsSent holds a dry run to what is sent: every statement is, with the schema that the server knows, and a
// run's id. The proof's count is of all rows, and asks for lengths besides.
func showsWhatIsSent(t *testing.T, explained string, sent []string) {
	t.Helper()
	_, explained, _ = strings.Cut(explained, "-- once\n")
	explained, _, _ = strings.Cut(explained, "\n-- to verify")
	normal := func(text string) string {
		text = regexp.MustCompile("[\"`]\\w+[\"`][.]([\"`])").ReplaceAllString(ofAnyRun(text), "$1")
		return strings.Join(strings.Fields(text), " ")
	}
	all := normal(strings.Join(sent, "\n"))
	for statement := range strings.SplitSeq(explained, ";\n") {
		statement = regexp.MustCompile(`(?m)^-- .*$`).ReplaceAllString(statement, "")
		statement, _, _ = strings.Cut(normal(short([]byte(statement))), "(…)")
		require.Contains(t, all, strings.TrimSpace(statement))
	}
}

// wiretap forwards connections to a server and notes the statements on them.
type wiretap struct {
	net.Listener
	tasks sync.WaitGroup
	sent  []*[]string // by connection
}

func newWiretap(t *testing.T, d *database) *wiretap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := &wiretap{Listener: l}
	next := nextMySQL
	if d.kind == postgres {
		next = nextPostgres
	}
	w.tasks.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", d.url.Host)
			if err != nil {
				client.Close()
				continue
			}
			sent := new([]string)
			w.sent = append(w.sent, sent)
			copied, tap := io.Pipe()
			w.tasks.Go(func() {
				_, _ = io.Copy(client, server)
				client.Close()
			})
			w.tasks.Go(func() {
				_, err := io.Copy(server, io.TeeReader(client, tap))
				tap.CloseWithError(err)
				server.Close()
			})
			w.tasks.Go(func() {
				in := bufio.NewReader(copied)
				for first := true; ; first = false {
					statement, err := next(in, first)
					if err != nil {
						_, _ = io.Copy(io.Discard, copied)
						return
					}
					if statement != "" {
						*sent = append(*sent, statement)
					}
				}
			})
		}
	})
	return w
}

// all returns what was sent, when all connections have ended. One on which nothing was asked is left out: a busy machine may
// have one more of these.
func (w *wiretap) all() (all []string) {
	w.Close()
	w.tasks.Wait()
	n := 0
	for _, c := range w.sent {
		if len(*c) == 0 {
			continue
		}
		n++
		all = append(append(all, fmt.Sprintf("-- connection %d", n)), *c...)
	}
	return all
}

// nextPostgres reads one message and returns its statement, if it is a Query or a Parse.
func nextPostgres(in *bufio.Reader, first bool) (string, error) {
	var kind byte
	if !first { // which has no type
		kind, _ = in.ReadByte()
	}
	var length [4]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return "", err
	}
	body := make([]byte, max(4, bigendian.BigEndian.Uint32(length[:]))-4)
	_, err := io.ReadFull(in, body)
	switch parts := bytes.Split(body, []byte{0}); kind {
	case 'Q':
		return short(parts[0]), err
	case 'P':
		return short(parts[1]), err
	}
	return "", err
}

// nextMySQL reads one packet and returns its statement, if it begins a COM_QUERY or a COM_STMT_PREPARE.
func nextMySQL(in *bufio.Reader, _ bool) (string, error) {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return "", err
	}
	body := make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
	_, err := io.ReadFull(in, body)
	if head[3] == 0 && len(body) > 0 && (body[0] == 3 || body[0] == 22) {
		return short(body[1:]), err
	}
	return "", err
}

// short leaves rows out. Their claim may go before them.
func short(statement []byte) string {
	claim := max(0, bytes.Index(statement, []byte("); INSERT INTO ")))
	head, _, rows := bytes.Cut(statement[claim:], []byte(" VALUES ("))
	if !rows || bytes.Contains(head, []byte("terapush_claims")) {
		return string(statement)
	}
	return string(statement[:claim]) + string(head) + " VALUES (…), …"
}
