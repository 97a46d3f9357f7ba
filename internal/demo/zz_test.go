package demo
import ("testing";"time";"bytes";"fmt";"sync";"context";"os";"os/exec";"math/rand"
"github.com/jackc/pgx/v5"
"github.com/stretchr/testify/require")
func TestZZ(t *testing.T) {
	if asOrdinaryUser(t) { return }
	dir := t.TempDir()
	for _, what := range []string{"cold","warm","warm","warm"} {
		b := time.Now()
		s, err := Start(context.Background(), Options{Dir: dir, Log: os.Stdout}); require.NoError(t, err)
		fmt.Println(what, time.Since(b)); b = time.Now()
		require.NoError(t, s.Stop()); fmt.Println("stop", time.Since(b))
	}
	s, err := Start(context.Background(), Options{Dir: dir, Log: os.Stdout}); require.NoError(t, err)
	c := connect(t, s)
	_, err = c.Exec(t.Context(), "CREATE TABLE documents (document_id BIGINT NOT NULL, payload TEXT)"); require.NoError(t, err)
	const batch = 16384
	var buf bytes.Buffer
	pay := make([]byte, 512)
	for i := range batch { for j := range pay { pay[j] = byte('a'+rand.Intn(26)) }; fmt.Fprintf(&buf, "%010d\t%s\n", i, pay) }
	b := time.Now()
	var wg sync.WaitGroup
	for range 4 { wg.Add(1); go func(){ defer wg.Done()
		c, err := pgx.Connect(t.Context(), s.URL()); require.NoError(t, err); defer c.Close(t.Context())
		for range 32 { _, err := c.PgConn().CopyFrom(t.Context(), bytes.NewReader(buf.Bytes()), "COPY documents FROM STDIN"); require.NoError(t, err) }
	}() }
	wg.Wait()
	fmt.Println("1 GiB", time.Since(b))
	b = time.Now(); var n int64
	require.NoError(t, c.QueryRow(t.Context(), "SELECT sum(octet_length(payload)) FROM documents").Scan(&n)); fmt.Println("scan", time.Since(b), n)
	out, _ := exec.Command("du","-sh",dir).Output(); fmt.Println(string(out))
	fmt.Println(s.Log(1000))
	b = time.Now()
	require.NoError(t, s.Stop()); fmt.Println("stop", time.Since(b))
}
