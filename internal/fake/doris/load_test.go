package doris_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/fake/doris"
)

// put sends a load straight to a backend.
func put(t testing.TB, c *doris.Cluster, table, body string, h ...string) (answer, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+c.BackendAddresses()[0]+"/api/"+table+"/_stream_load", strings.NewReader(body))
	require.NoError(t, err)
	r.SetBasicAuth("root", "")
	for _, one := range h {
		name, value, _ := strings.Cut(one, ":")
		r.Header[name] = []string{value}
	}
	answered, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer answered.Body.Close()
	text, err := io.ReadAll(answered.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{Code: answered.StatusCode}
	return a, json.Unmarshal(text, &a)
}

func mustPut(t *testing.T, c *doris.Cluster, body string, h ...string) answer {
	t.Helper()
	a, err := put(t, c, "d/t", body, h...)
	require.NoError(t, err)
	return a
}

func TestSettings(t *testing.T) {
	c, db := start(t, doris.Options{})
	for name, want := range map[string]struct {
		headers []string
		body    string
		rows    string // as SELECT gives them
		fails   string
	}{
		"defaults":            {nil, "1\ta\n2\t\\N\n3\t\n", "1|a 2|NULL 3|", ""},
		"no last delimiter":   {nil, "1\ta\n2\tb", "1|a 2|b", ""},
		"control characters":  {[]string{`column_separator:\x01`, `line_delimiter:\x02`}, "1\x01a\tb\n\x022\x01\"c\"\x02", "1|a\tb\n 2|\"c\"", ""},
		"long separator":      {[]string{`column_separator:\x0102`}, "1\x01\x02a\n", "1|a", ""},
		"order of columns":    {[]string{"columns:body,id"}, "a\t1\n", "1|a", ""},
		"columns left out":    {[]string{"columns:id"}, "1\n", "1|NULL", ""},
		"columns unknown":     {[]string{"columns:id,`other`,body"}, "1\tx\ta\n", "1|a", ""},
		"quotes are data":     {[]string{"column_separator:,"}, "1,\"a\"\n", `1|"a"`, ""},
		"enclosed":            {[]string{"column_separator:,", `enclose:"`, "trim_double_quotes:true"}, "1,\"a,\nb\"\n2,\"c\"\"d\"\n", "1|a,\nb 2|c\"d", ""},
		"enclosed, kept":      {[]string{"column_separator:,", `enclose:"`}, "1,\"a\"\n", `1|"a"`, ""},
		"escaped":             {[]string{"column_separator:,", "enclose:'", `escape:\`}, "1,'a\\'b'\n", "1|a'b", ""},
		"empty is null":       {[]string{"empty_field_as_null:true"}, "1\t\n", "1|NULL", ""},
		"with names":          {[]string{"format:csv_with_names"}, "id\tbody\n1\ta\n", "1|a", ""},
		"json":                {[]string{"format:json"}, "{\"id\":  1, \"body\":\"a\\u00e9\\n\"}\n{\"body\":null,\"id\":2}\n", "1|aé\n 2|NULL", ""},
		"json array":          {[]string{"format:json", "strip_outer_array:true"}, `[{"id":1,"body":"a"},{"id":2}]`, "1|a 2|NULL", ""},
		"json in pieces":      {[]string{"format:json", "read_json_by_line:true", `line_delimiter:\x02`}, "{\"id\":1,\"body\":\"a\"}\x02", "1|a", ""},
		"lenient":             {nil, "1\ta\nx\tb\n", "", "too many filtered rows"},
		"strict":              {[]string{"strict_mode:true", "max_filter_ratio:0.5"}, "1\ta\nx\tb\n", "1|a", ""},
		"too long":            {nil, "1\t123456789012345678901\n", "", "too many filtered rows"},
		"too many fields":     {nil, "1\ta\tb\n", "", "too many filtered rows"},
		"no UTF-8":            {nil, "1\t\xff\n", "", "too many filtered rows"},
		"no UTF-8 in json":    {[]string{"format:json"}, "{\"id\":1,\"body\":\"\xff\"}\n", "", "too many filtered rows"},
		"NULL in a key":       {nil, "\\N\ta\n", "", "too many filtered rows"},
		"key left out":        {[]string{"columns:body"}, "a\n", "", "Column has no default value"},
		"unknown format":      {[]string{"format:xml"}, "", "", "unknown data format, format=xml"},
		"long enclose":        {[]string{"enclose:''"}, "1\ta\n", "", "enclose must be single-char"},
		"strict is a bool":    {[]string{"strict_mode:yes"}, "1\ta\n", "", "Invalid strict mode format"},
		"ratio":               {[]string{"max_filter_ratio:2"}, "1\ta\n", "", "max_filter_ratio must between"},
		"timeout":             {[]string{"timeout:0"}, "1\ta\n", "", "is not between 1 and 259200"},
		"odd separator":       {[]string{`column_separator:\x1`}, "1\ta\n", "", "hex str"},
		"computed column":     {[]string{"columns:id,body=upper(x)"}, "1\ta\n", "", "computes no columns"},
		"header not known":    {[]string{"where:id > 1"}, "1\ta\n", "", "does not know the header where"},
		"label":               {[]string{"label:a b"}, "1\ta\n", "", "Label format error"},
		"label too long":      {[]string{"label:" + strings.Repeat("x", 129)}, "1\ta\n", "", "Label format error"},
		"group":               {[]string{"group_commit:on"}, "1\ta\n", "", "group_commit can only be [async_mode, sync_mode, off_mode]"},
		"label in a group":    {[]string{"label:l", "group_commit:sync_mode"}, "1\ta\n", "", "label and group_commit can't be set at the same time"},
		"contradicting jsons": {[]string{"format:json", "strip_outer_array:true", "read_json_by_line:true"}, "{}", "", "only one of"},
	} {
		t.Run(name, func(t *testing.T) {
			exec1(t, db, "TRUNCATE TABLE d.t")
			a := mustPut(t, c, want.body, want.headers...)
			if want.fails != "" {
				assert.Equal(t, "Fail", a.Status)
				assert.Contains(t, a.Message, want.fails)
				assert.Zero(t, c.Rows("d.t"))
				return
			}
			assert.Equal(t, "Success", a.Status, a.Message+a.FirstErrorMsg)
			_, rows := table(t, db, "SELECT id, body FROM d.t ORDER BY id")
			assert.Equal(t, want.rows, flat(rows))
		})
	}
}

// Rejected rows can be read at the address in the answer.
func TestFilteredRows(t *testing.T) {
	c, _ := start(t, doris.Options{})
	a := mustPut(t, c, "1\ta\n2\n\\N\tc\n", "label:bad")
	assert.Equal(t, "Fail", a.Status)
	assert.Contains(t, a.Message, "[DATA_QUALITY_ERROR]too many filtered rows")
	assert.Equal(t, []int64{3, 1, 2}, []int64{a.NumberTotalRows, a.NumberLoadedRows, a.NumberFilteredRows})
	assert.Contains(t, a.FirstErrorMsg, "actual column number in csv file is  less than  schema column number.actual number: 1, schema column number: 2")
	_, text := curlRaw(t, a.ErrorURL)
	assert.Equal(t, 2, strings.Count(text, "Reason: "))
	assert.Contains(t, text, "column(id) values is null while columns is not nullable")
	assert.Equal(t, "ABORTED", c.State("d", "bad"))
	assert.Equal(t, "Success", mustPut(t, c, "1\ta\n", "label:bad").Status, "the label of an aborted load is free")
}

func TestParquet(t *testing.T) {
	c, db := start(t, doris.Options{})
	exec1(t, db, "CREATE TABLE d.p (id BIGINT NOT NULL, at DATETIME(6), body STRING) DISTRIBUTED BY RANDOM PROPERTIES ('replication_num'='1')")
	var file bytes.Buffer
	at := time.Date(2024, 2, 29, 1, 2, 3, 4000, time.UTC)
	w := parquet.NewGenericWriter[struct {
		Body string    `parquet:"body"`
		ID   int64     `parquet:"id"`
		At   time.Time `parquet:"at,timestamp(microsecond)"`
	}](&file)
	for i := range 1000 {
		w.Write([]struct {
			Body string    `parquet:"body"`
			ID   int64     `parquet:"id"`
			At   time.Time `parquet:"at,timestamp(microsecond)"`
		}{{"x", int64(i), at}})
	}
	require.NoError(t, w.Close())
	a, err := put(t, c, "d/p", file.String(), "format:parquet")
	require.NoError(t, err)
	assert.Equal(t, int64(1000), a.NumberLoadedRows, a.Message)
	_, rows := table(t, db, "SELECT * FROM d.p WHERE id = 999")
	assert.Equal(t, "999|2024-02-29 01:02:03.000004|x", flat(rows))
	a, err = put(t, c, "d/p", "PAR1 no", "format:parquet")
	require.NoError(t, err)
	assert.Equal(t, "Fail", a.Status)
}

// The life of a label: free, running, finished, forgotten.
func TestLabels(t *testing.T) {
	now := make(chan time.Time, 1)
	clock := time.Now()
	now <- clock
	outcome := make(chan bool)
	c, _ := start(t, doris.Options{
		LabelLife: time.Hour,
		Now: func() time.Time {
			at := <-now
			now <- at
			return at
		},
		Script: func(r doris.Request) doris.Fault {
			if r.Kind == doris.Load && r.Label == "slow" && r.Attempt%3 == 1 {
				return doris.Fault{Linger: outcome}
			}
			return doris.Fault{}
		},
	})
	pass := func(d time.Duration) { <-now; clock = clock.Add(d); now <- clock }
	load := func(label string) answer { return mustPut(t, c, "1\ta\n", "label:"+label, "group_commit:off_mode") }

	for i, commits := range []bool{false, true} {
		_, err := put(t, c, "d/t", "1\ta\n", "label:slow", "group_commit:off_mode") // attempt 1, 4
		require.Error(t, err)
		a := load("slow") // 2, 5
		assert.Equal(t, []string{"Label Already Exists", "RUNNING"}, []string{a.Status, a.ExistingJobStatus})
		assert.Contains(t, a.Message, "Label [slow] has already been used, relate to txn")
		assert.Equal(t, "PREPARE", c.State("d", "slow"))
		outcome <- commits
		assert.Eventually(t, func() bool { return c.State("d", "slow") != "PREPARE" }, timeLimit, tick)
		if !commits {
			assert.Equal(t, "Success", load("slow").Status) // 3: the label of an aborted load is free again
			pass(2 * time.Hour)                             // and this one forgotten
			assert.Equal(t, "UNKNOWN", c.State("d", "slow"))
		} else {
			a = load("slow") // 6
			assert.Equal(t, []string{"Label Already Exists", "FINISHED"}, []string{a.Status, a.ExistingJobStatus})
		}
		assert.Equal(t, int64(i+1), c.Rows("d.t"))
	}
}

func TestCancel(t *testing.T) {
	outcome := make(chan bool)
	c, _ := start(t, doris.Options{Script: func(r doris.Request) doris.Fault {
		if r.Kind == doris.Load && r.Attempt == 1 {
			return doris.Fault{Linger: outcome}
		}
		return doris.Fault{}
	}})
	_, err := put(t, c, "d/t", "1\ta\n", "label:l")
	require.Error(t, err)
	cancel := func() string {
		_, text := curlRaw(t, "-u", "root:", "-X", "POST", "http://"+c.HTTPAddress()+"/api/d/_cancel?label=l")
		return text
	}
	assert.Contains(t, cancel(), `"msg": "success"`)
	assert.Equal(t, "ABORTED", c.State("d", "l"))
	outcome <- true // too late
	assert.Contains(t, cancel(), "running transaction not found")
	assert.Zero(t, c.Rows("d.t"))
}

func TestOldSnapshotWantsOffMode(t *testing.T) {
	c, _ := start(t, doris.Options{LabelNeedsOffMode: true})
	assert.Contains(t, mustPut(t, c, "1\ta\n", "label:l").Message, "label and group_commit can't be set at the same time")
	assert.Equal(t, "Success", mustPut(t, c, "1\ta\n", "label:l", "group_commit:off_mode").Status)
}

// How fast the stand-in is bounds what can be tested on it.
func BenchmarkLoad(b *testing.B) {
	c, db := start(b, doris.Options{})
	exec1(b, db, "CREATE TABLE d.w (id BIGINT NOT NULL, body STRING) DISTRIBUTED BY RANDOM PROPERTIES ('replication_num'='1')")
	body := strings.Repeat("1\x01"+strings.Repeat("x", 1000)+"\x02", 8<<10)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		a, err := put(b, c, "d/w", body, "column_separator:\\x01", "line_delimiter:\\x02")
		require.NoError(b, err)
		require.Equal(b, int64(8<<10), a.NumberLoadedRows)
		exec1(b, db, "TRUNCATE TABLE d.w")
	}
}
